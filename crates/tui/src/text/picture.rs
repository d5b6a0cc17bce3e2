//! An image as lines of a screen.
//!
//! Two ways, and both are plain cells, so a picture scrolls, is cut and is painted over like text. Any terminal with
//! colours gets two coarse pixels per cell. One that knows kitty's graphics protocol with Unicode placeholders is sent
//! the image once, and the cells say which piece of it they show.
//!
//! What is decoded here comes from agents: sizes are bounded before anything is allocated, and what cannot be read
//! gives no picture.

use std::io::Cursor;

use consort_model::Image;
use consort_model::image::base64;
use image::{DynamicImage, ImageDecoder, ImageFormat, ImageReader, RgbaImage};
use ratatui::style::{Color, Style};
use ratatui::text::{Line, Span};

/// The largest image that is decoded: in pixels per side, and in bytes of memory.
const MAX_SIDE: u32 = 16_384;
const MAX_MEMORY: u64 = 128 << 20;

/// The characters by which a placeholder's cell says its row and column, as kitty's documentation lists them.
const NUMBERS: [char; 80] = [
    '\u{305}', '\u{30d}', '\u{30e}', '\u{310}', '\u{312}', '\u{33d}', '\u{33e}', '\u{33f}', '\u{346}',
    '\u{34a}', '\u{34b}', '\u{34c}', '\u{350}', '\u{351}', '\u{352}', '\u{357}', '\u{35b}', '\u{363}',
    '\u{364}', '\u{365}', '\u{366}', '\u{367}', '\u{368}', '\u{369}', '\u{36a}', '\u{36b}', '\u{36c}',
    '\u{36d}', '\u{36e}', '\u{36f}', '\u{483}', '\u{484}', '\u{485}', '\u{486}', '\u{487}', '\u{592}',
    '\u{593}', '\u{594}', '\u{595}', '\u{597}', '\u{598}', '\u{599}', '\u{59c}', '\u{59d}', '\u{59e}',
    '\u{59f}', '\u{5a0}', '\u{5a1}', '\u{5a8}', '\u{5a9}', '\u{5ab}', '\u{5ac}', '\u{5af}', '\u{5c4}',
    '\u{610}', '\u{611}', '\u{612}', '\u{613}', '\u{614}', '\u{615}', '\u{616}', '\u{617}', '\u{657}',
    '\u{658}', '\u{659}', '\u{65a}', '\u{65b}', '\u{65d}', '\u{65e}', '\u{6d6}', '\u{6d7}', '\u{6d8}',
    '\u{6d9}', '\u{6da}', '\u{6db}', '\u{6dc}', '\u{6df}', '\u{6e0}', '\u{6e1}', '\u{6e2}',
];

/// The most columns and rows that a picture can have.
pub const MOST: u16 = NUMBERS.len() as u16;

/// The longest piece of an image in one sequence, in letters.
const PIECE: usize = 4096;

/// How the terminal shows pictures.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Means {
    /// Not at all.
    #[default]
    Words,
    /// As coarse pixels, with any colour or with the 256 that nearly every terminal has.
    Blocks {
        /// Whether any colour can be shown.
        true_colour: bool,
    },
    /// As images of its own.
    Placeholders {
        /// The pixels of a cell, across and down.
        cell: (u16, u16),
    },
}

/// A picture that can be shown.
#[derive(Clone, PartialEq, Debug)]
pub struct Picture {
    /// Its lines.
    pub lines: Vec<Line<'static>>,
    /// What the terminal is to be told before.
    pub sequence: String,
}

/// Makes a picture that fits into so many columns and rows; none if the image cannot be read. `number` is the terminal's
/// name for it, of 24 bits.
pub fn draw(image: &Image, room: (u16, u16), means: Means, number: u32) -> Option<Picture> {
    let cell = match means {
        Means::Words => return None,
        Means::Blocks { .. } => (1, 2),
        Means::Placeholders { cell } => (cell.0.max(1), cell.1.max(1)),
    };
    let decoded = decode(&image.bytes()?)?;
    let (columns, rows) = fit((decoded.width(), decoded.height()), room, cell)?;
    let pixels = (u32::from(columns * cell.0), u32::from(rows * cell.1));
    match means {
        Means::Words => None,
        Means::Blocks { true_colour } => {
            let small = decoded.thumbnail_exact(pixels.0, pixels.1).into_rgba8();
            Some(Picture { lines: blocks(&small, true_colour), sequence: String::new() })
        }
        Means::Placeholders { .. } => {
            let mut png = Vec::new();
            decoded
                .thumbnail(pixels.0, pixels.1)
                .write_to(&mut Cursor::new(&mut png), ImageFormat::Png)
                .ok()?;
            let sequence = transmission(&png, number, (columns, rows));
            Some(Picture { lines: placeholders(number, (columns, rows)), sequence })
        }
    }
}

/// The sequence by which a terminal forgets an image.
pub fn forgetting(number: u32) -> String {
    format!("\x1b_Ga=d,d=I,i={number},q=2\x1b\\")
}

fn decode(bytes: &[u8]) -> Option<DynamicImage> {
    let mut reader = ImageReader::new(Cursor::new(bytes)).with_guessed_format().ok()?;
    let mut limits = image::Limits::default();
    limits.max_image_width = Some(MAX_SIDE);
    limits.max_image_height = Some(MAX_SIDE);
    limits.max_alloc = Some(MAX_MEMORY);
    reader.limits(limits);
    let mut decoder = reader.into_decoder().ok()?;
    if decoder.total_bytes() > MAX_MEMORY {
        return None;
    }
    // Cameras store what they saw as it came, and beside it how it is to be turned.
    let orientation = decoder.orientation().ok()?;
    let mut decoded = DynamicImage::from_decoder(decoder).ok()?;
    decoded.apply_orientation(orientation);
    Some(decoded)
}

/// The columns and rows of a picture of so many pixels: as large as there is room for, no larger than it is, and at least one.
fn fit((width, height): (u32, u32), room: (u16, u16), cell: (u16, u16)) -> Option<(u16, u16)> {
    if width == 0 || height == 0 || room.0 == 0 || room.1 == 0 {
        return None;
    }
    let (width, height) = (f64::from(width) / f64::from(cell.0), f64::from(height) / f64::from(cell.1));
    let room = (f64::from(room.0.min(MOST)), f64::from(room.1.min(MOST)));
    let scale = (room.0 / width).min(room.1 / height).min(1.0);
    let cells = |length: f64, most: f64| (length * scale).round().clamp(1.0, most) as u16;
    Some((cells(width, room.0), cells(height, room.1)))
}

/// Two pixels per cell: the upper one is the letter, the lower one what is behind it.
fn blocks(pixels: &RgbaImage, true_colour: bool) -> Vec<Line<'static>> {
    let colour = |x: u32, y: u32| match pixels.get_pixel(x, y).0 {
        [_, _, _, 0..128] => Color::Reset,
        [red, green, blue, _] if true_colour => Color::Rgb(red, green, blue),
        [red, green, blue, _] => {
            let step = |part: u8| ((u16::from(part) * 5 + 127) / 255) as u8;
            Color::Indexed(16 + 36 * step(red) + 6 * step(green) + step(blue))
        }
    };
    let cell = |x: u32, y: u32| match (colour(x, y), colour(x, y + 1)) {
        (Color::Reset, Color::Reset) => Span::raw(" "),
        (Color::Reset, lower) => Span::styled("▄", Style::new().fg(lower)),
        (upper, lower) => Span::styled("▀", Style::new().fg(upper).bg(lower)),
    };
    let rows = (0..pixels.height() / 2).map(|row| row * 2);
    rows.map(|y| (0..pixels.width()).map(|x| cell(x, y)).collect::<Vec<_>>().into()).collect()
}

/// Cells that say which piece of the image they show, and by their colour of which image.
fn placeholders(number: u32, (columns, rows): (u16, u16)) -> Vec<Line<'static>> {
    let [_, red, green, blue] = number.to_be_bytes();
    let style = Style::new().fg(Color::Rgb(red, green, blue));
    let piece = |row: char, column: char| Span::styled(format!("\u{10eeee}{row}{column}"), style);
    let columns = &NUMBERS[..columns.into()];
    let line = |row: &char| columns.iter().map(|column| piece(*row, *column)).collect::<Vec<_>>().into();
    NUMBERS[..rows.into()].iter().map(line).collect()
}

/// The sequences that give an image to the terminal, to be shown by placeholders. It answers nothing to them.
fn transmission(png: &[u8], number: u32, (columns, rows): (u16, u16)) -> String {
    let data = base64(png);
    let mut sequence = String::with_capacity(data.len() + 256);
    let mut head = format!("a=T,U=1,f=100,i={number},c={columns},r={rows},q=2,");
    let mut rest = data.as_str();
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(PIECE.min(rest.len()));
        let more = u8::from(!after.is_empty());
        sequence.push_str(&format!("\x1b_G{head}m={more};{piece}\x1b\\"));
        head = "q=2,".to_owned();
        rest = after;
    }
    sequence
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::width;
    use proptest::prelude::*;

    /// Left half red, right half blue, the lowest quarter clear.
    fn flag(side: u32) -> Image {
        let pixels = RgbaImage::from_fn(side, side, |x, y| {
            let clear = if y >= side * 3 / 4 { 0 } else { 255 };
            image::Rgba(if x < side / 2 { [255, 0, 0, clear] } else { [0, 0, 255, clear] })
        });
        let mut png = Vec::new();
        pixels.write_to(&mut Cursor::new(&mut png), ImageFormat::Png).unwrap();
        Image { mime_type: "image/png".into(), data: base64(&png) }
    }

    #[test]
    fn a_picture_of_blocks_has_two_pixels_in_a_cell() {
        let picture = draw(&flag(64), (8, 20), Means::Blocks { true_colour: true }, 1).unwrap();
        assert_eq!(picture.lines.len(), 4);
        let (red, blue) = (Color::Rgb(255, 0, 0), Color::Rgb(0, 0, 255));
        let [left, .., right] = &picture.lines[0].spans[..] else { panic!("eight cells") };
        assert_eq!((left.style.fg, left.style.bg), (Some(red), Some(red)));
        assert_eq!((right.style.fg, right.style.bg), (Some(blue), Some(blue)));
        assert_eq!(picture.lines[3].spans[0], Span::raw(" "), "what is clear stays so");
        assert!(picture.sequence.is_empty());
        let few = draw(&flag(64), (8, 20), Means::Blocks { true_colour: false }, 1).unwrap();
        assert_eq!(few.lines[0].spans[0].style.fg, Some(Color::Indexed(196)));
    }

    #[test]
    fn placeholders_are_one_column_wide_and_name_their_image() {
        let means = Means::Placeholders { cell: (8, 16) };
        let picture = draw(&flag(320), (10, 40), means, 0x0012_3456).unwrap();
        assert_eq!(picture.lines.len(), 5, "a square is twice as many columns as rows");
        for line in &picture.lines {
            assert_eq!(line.spans.len(), 10);
            for span in &line.spans {
                assert_eq!(width::of(&span.content), 1);
                assert_eq!(span.style.fg, Some(Color::Rgb(0x12, 0x34, 0x56)));
            }
        }
        assert_eq!(picture.lines[1].spans[2].content, "\u{10eeee}\u{30d}\u{30e}");
        assert!(picture.sequence.starts_with("\x1b_Ga=T,U=1,f=100,i=1193046,c=10,r=5,q=2,m="));
        assert!(picture.sequence.ends_with("\x1b\\"));
    }

    #[test]
    fn a_long_image_is_given_in_pieces() {
        let sequence = transmission(&[7; 10_000], 9, (3, 2));
        let pieces: Vec<&str> = sequence.split_terminator("\x1b\\").collect();
        assert_eq!(pieces.len(), 4);
        assert!(pieces[..3].iter().all(|piece| piece.contains("m=1;")));
        assert!(pieces[3].contains("m=0;") && !pieces[3].contains("a=T"));
    }

    #[test]
    fn what_is_no_image_gives_no_picture() {
        let blocks = Means::Blocks { true_colour: true };
        let of = |data: &str| Image { mime_type: "image/png".into(), data: data.into() };
        assert_eq!(draw(&of("not base 64!"), (10, 10), blocks, 1), None);
        assert_eq!(draw(&of(&base64(b"\x89PNG\r\n\x1a\n")), (10, 10), blocks, 1), None);
        assert_eq!(draw(&of(""), (10, 10), blocks, 1), None);
        let whole = flag(64).data;
        assert_eq!(draw(&of(&whole[..whole.len() / 2 / 4 * 4]), (10, 10), blocks, 1), None);
        assert_eq!(draw(&flag(4), (10, 10), Means::Words, 1), None);
        // One that claims to be larger than all memory.
        let mut bytes = flag(4).bytes().unwrap();
        bytes[16..24].copy_from_slice(&[0x7f, 0xff, 0xff, 0xff, 0x7f, 0xff, 0xff, 0xff]);
        assert_eq!(draw(&of(&base64(&bytes)), (10, 10), blocks, 1), None);
    }

    proptest! {
        #[test]
        fn a_picture_fits_keeps_its_shape_and_is_never_nothing(
            width in 1u32..5000, height in 1u32..5000, columns in 1u16..200, rows in 1u16..200,
        ) {
            let (across, down) = fit((width, height), (columns, rows), (1, 2)).unwrap();
            prop_assert!((1..=columns.min(MOST)).contains(&across) && (1..=rows.min(MOST)).contains(&down));
            let wanted = f64::from(width) / f64::from(height);
            let (low, high) = (
                (f64::from(across) - 1.0) / (f64::from(down) * 2.0 + 2.0),
                (f64::from(across) + 1.0) / (f64::from(down) * 2.0 - 2.0).max(0.1),
            );
            prop_assert!(down == 1 || across == 1 || (low..=high).contains(&wanted));
        }
    }
}
