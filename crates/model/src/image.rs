//! Images as prompts and tools carry them: known by their first bytes, and written in base 64.

use crate::item::{Attachment, Image};

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

impl Attachment {
    /// An image of these bytes; none if they are neither PNG, JPEG, GIF nor WebP.
    pub fn image(bytes: &[u8]) -> Option<Self> {
        let mime_type = mime_type(bytes)?.to_owned();
        Some(Self::Image(Image { mime_type, data: base64(bytes) }))
    }
}

impl Image {
    /// An image that came encoded, by someone who did not say of which kind it is.
    pub fn encoded(data: &str) -> Option<Self> {
        let beginning = from_base64(data.get(..data.len().min(16))?)?;
        Some(Self { mime_type: mime_type(&beginning)?.to_owned(), data: data.to_owned() })
    }

    /// Its bytes; none if they are not encoded as they should be.
    pub fn bytes(&self) -> Option<Vec<u8>> {
        from_base64(&self.data)
    }

    /// What it is in a few words, such as `image png 12 kB`.
    pub fn words(&self) -> String {
        let kind = self.mime_type.strip_prefix("image/").unwrap_or(&self.mime_type);
        let kind: String = kind.chars().filter(|letter| !letter.is_control()).take(20).collect();
        format!("image {kind} {}", size(self.data.len() / 4 * 3))
    }
}

/// A number of bytes for people.
pub fn size(bytes: usize) -> String {
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..1_048_576 => format!("{} kB", bytes.div_ceil(1024)),
        _ => format!("{:.1} MB", bytes as f64 / 1_048_576.0),
    }
}

fn mime_type(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}

/// Base 64 with padding, as images and a terminal's clipboard have it.
pub fn base64(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let byte = |at: usize| u32::from(group.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for at in 0..4 {
            let letter = ALPHABET[(bits >> (18 - 6 * at)) as usize & 63];
            text.push(if at <= group.len() { char::from(letter) } else { '=' });
        }
    }
    text
}

/// What was written in base 64; none if it was not. White space between the letters does not matter.
pub fn from_base64(text: &str) -> Option<Vec<u8>> {
    let letters = text.trim_ascii_end().trim_end_matches('=').bytes();
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut count) = (0u32, 0);
    for letter in letters.filter(|letter| !letter.is_ascii_whitespace()) {
        let value = match letter {
            b'A'..=b'Z' => letter - b'A',
            b'a'..=b'z' => letter - b'a' + 26,
            b'0'..=b'9' => letter - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_pads_to_groups_of_four() {
        let encoded = ["", "f", "fo", "foo", "foob", "fooba", "foobar"].map(|text| base64(text.as_bytes()));
        assert_eq!(encoded, ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"]);
        assert_eq!(base64(&[0xff, 0xfe, 0xfd]), "//79");
    }

    #[test]
    fn what_was_encoded_is_read_back_and_nonsense_is_not() {
        for length in 0..70u8 {
            let bytes: Vec<u8> = (0..length).map(|n| n.wrapping_mul(37)).collect();
            assert_eq!(from_base64(&base64(&bytes)), Some(bytes));
        }
        assert_eq!(from_base64("Zm9v\nYmFy\n"), Some(b"foobar".to_vec()));
        assert_eq!(from_base64("not base 64!"), None);
    }

    #[test]
    fn an_encoded_image_is_known_by_its_beginning() {
        let data = base64(b"\x89PNG\r\n\x1a\n and more of it than is looked at");
        assert_eq!(Image::encoded(&data).unwrap().mime_type, "image/png");
        assert_eq!(Image::encoded("QUJD"), None);
        assert_eq!(Image::encoded("é"), None);
    }

    #[test]
    fn images_are_known_by_their_first_bytes() {
        assert_eq!(mime_type(b"\x89PNG\r\n"), Some("image/png"));
        assert_eq!(mime_type(b"RIFF\0\0\0\0WEBPVP8 "), Some("image/webp"));
        assert_eq!(Attachment::image(b"plain"), None);
        assert_eq!(Attachment::image(b""), None);
    }
}
