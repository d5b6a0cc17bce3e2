//! What can be said of an image in a prompt: its type, its size, and for PNG its measures.

use std::fmt;

use serde_json::Value;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    pub media_type: String,
    /// Of the decoded image; zero where only an address was given.
    pub bytes: usize,
    /// Width and height.
    pub measures: Option<(u32, u32)>,
}

impl Image {
    /// The image in a content block of any of the APIs.
    pub fn of_block(block: &Value) -> Option<Self> {
        if block["type"] == "image" {
            let source = &block["source"];
            return match source["data"].as_str() {
                Some(data) => Some(Self::of_base64(source["media_type"].as_str()?, data)),
                None => Some(Self::of_url(source["url"].as_str()?)),
            };
        }
        for key in ["inlineData", "inline_data"] {
            if let Some(data) = block[key]["data"].as_str() {
                let media_type =
                    block[key]["mimeType"].as_str().or_else(|| block[key]["mime_type"].as_str())?;
                return Some(Self::of_base64(media_type, data));
            }
        }
        let url = &block["image_url"];
        url.as_str().or_else(|| url["url"].as_str()).map(Self::of_url)
    }

    fn of_url(url: &str) -> Self {
        match url.strip_prefix("data:").and_then(|data| data.split_once(";base64,")) {
            Some((media_type, data)) => Self::of_base64(media_type, data),
            None => Self { media_type: "an image by its address".into(), bytes: 0, measures: None },
        }
    }

    fn of_base64(media_type: &str, data: &str) -> Self {
        let data = data.trim_end_matches('=');
        // A PNG's measures end at byte 24, which is character 32 in base64.
        let measures = data.get(..32).and_then(decode).and_then(|head| png_measures(&head));
        Self { media_type: media_type.to_owned(), bytes: data.len() * 3 / 4, measures }
    }
}

impl fmt::Display for Image {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{} of {} bytes", self.media_type, self.bytes)?;
        match self.measures {
            Some((width, height)) => write!(to, ", {width} by {height}"),
            None => Ok(()),
        }
    }
}

fn png_measures(head: &[u8]) -> Option<(u32, u32)> {
    let number = |at: usize| Some(u32::from_be_bytes(head.get(at..at + 4)?.try_into().ok()?));
    head.starts_with(b"\x89PNG\r\n\x1a\n").then(|| Some((number(16)?, number(20)?)))?
}

/// Base64 of whole groups of four characters, without padding.
fn decode(text: &str) -> Option<Vec<u8>> {
    const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digits: Option<Vec<u32>> = text
        .bytes()
        .map(|byte| ALPHABET.iter().position(|digit| *digit == byte).and_then(|at| u32::try_from(at).ok()))
        .collect();
    let groups = digits?;
    let bytes = groups.chunks_exact(4).flat_map(|group| {
        let bits = group.iter().fold(0, |bits, digit| bits << 6 | digit);
        bits.to_be_bytes().into_iter().skip(1)
    });
    Some(bytes.collect())
}
