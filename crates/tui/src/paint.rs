//! The way to the terminal: what changed since the last frame, as few bytes as possible, in one write.
//!
//! Views draw into [`Canvas::next`], which keeps what was drawn before, so a view draws only where something changed. A
//! frame is framed by the marks of synchronised output: a terminal that knows them never shows half of one.
//!
//! Invariant: only printable characters and sequences made here are written; control characters in a cell are left out.

use ratatui::buffer::{Buffer, Cell};
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier};

use crate::text::width;

/// What is on the screen and what is to be.
pub struct Canvas {
    shown: Buffer,
    /// What the next frame shows.
    pub next: Buffer,
    /// Nothing on the terminal is known: everything is to be written.
    unknown: bool,
    cursor: Option<(u16, u16)>,
}

impl Canvas {
    /// A canvas for a terminal of which nothing is known.
    pub fn new(area: Rect) -> Self {
        Self { shown: Buffer::empty(area), next: Buffer::empty(area), unknown: true, cursor: None }
    }

    /// The whole of it.
    pub fn area(&self) -> Rect {
        self.next.area
    }

    /// Begins anew: another size, or another program wrote on the terminal.
    pub fn reset(&mut self, area: Rect) {
        *self = Self::new(area);
    }

    /// The bytes that bring the terminal from what it shows to `next`, appended to `out`; nothing if nothing changed.
    pub fn frame(&mut self, cursor: Option<(u16, u16)>, out: &mut Vec<u8>) {
        let mut text = String::new();
        if self.unknown {
            text.push_str("\x1b[0m\x1b[2J");
        }
        let mut pen = Pen::default();
        let columns = usize::from(self.next.area.width);
        if columns > 0 {
            for (y, (next, shown)) in
                self.next.content.chunks(columns).zip(self.shown.content.chunks_mut(columns)).enumerate()
            {
                if !self.unknown && next.iter().zip(&*shown).all(|(next, shown)| is_same(next, shown)) {
                    continue;
                }
                paint_row(&mut text, &mut pen, y, next, shown, self.unknown);
                shown.clone_from_slice(next);
            }
        }
        if text.is_empty() && cursor == self.cursor {
            return;
        }
        if pen != Pen::default() {
            text.push_str("\x1b[0m");
        }
        let place = match cursor {
            Some((x, y)) => format!("\x1b[{};{}H\x1b[?25h", y + 1, x + 1),
            None => String::new(),
        };
        out.extend_from_slice(b"\x1b[?2026h\x1b[?25l");
        out.extend_from_slice(text.as_bytes());
        out.extend_from_slice(place.as_bytes());
        out.extend_from_slice(b"\x1b[?2026l");
        self.unknown = false;
        self.cursor = cursor;
    }
}

/// What the terminal's pen is set to.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Pen {
    foreground: Color,
    background: Color,
    modifier: Modifier,
}

impl Default for Pen {
    fn default() -> Self {
        Self { foreground: Color::Reset, background: Color::Reset, modifier: Modifier::empty() }
    }
}

impl Pen {
    fn of(cell: &Cell) -> Self {
        Self { foreground: cell.fg, background: cell.bg, modifier: cell.modifier }
    }
}

fn paint_row(text: &mut String, pen: &mut Pen, y: usize, next: &[Cell], shown: &[Cell], all: bool) {
    // Wide characters reach into the cell after them; rows that have any are written whole from the first change on.
    let is_wide = |cell: &Cell| columns_of(cell) > 1;
    let whole = all || next.iter().chain(shown).any(is_wide);
    let mut at = None;
    let mut x = 0;
    let mut begun = all;
    while x < next.len() {
        let cell = &next[x];
        let columns = columns_of(cell);
        let changed = !is_same(cell, &shown[x]);
        begun |= changed;
        if if whole { begun } else { changed } {
            if at != Some(x) {
                text.push_str(&format!("\x1b[{};{}H", y + 1, x + 1));
            }
            let wanted = Pen::of(cell);
            if *pen != wanted {
                set_pen(text, *pen, wanted);
                *pen = wanted;
            }
            push_symbol(text, cell.symbol());
            at = Some(x + columns);
            // What a terminal takes for the width of a cluster is not always what we do.
            if cell.symbol().len() > 1 && !is_plain(cell.symbol()) {
                at = None;
            }
        }
        x += columns;
    }
}

/// How many columns a cell's symbol takes.
fn columns_of(cell: &Cell) -> usize {
    match cell.symbol().len() {
        1 => 1,
        _ => width::of(cell.symbol()).max(1),
    }
}

/// Whether two cells look the same. Asked for every cell of every frame, so what mostly decides it comes first.
fn is_same(one: &Cell, other: &Cell) -> bool {
    let (a, b) = (one.symbol().as_bytes(), other.symbol().as_bytes());
    a.first() == b.first()
        && a.len() == b.len()
        && one.fg == other.fg
        && one.bg == other.bg
        && one.modifier == other.modifier
        && (a.len() <= 1 || a == b)
}

/// Whether every terminal agrees on its width.
fn is_plain(symbol: &str) -> bool {
    let mut letters = symbol.chars();
    matches!((letters.next(), letters.next()), (Some(letter), None) if width::of(symbol) == 1 && (letter as u32) < 0x2600)
}

fn push_symbol(text: &mut String, symbol: &str) {
    let before = text.len();
    text.extend(symbol.chars().filter(|letter| !letter.is_control()));
    if text.len() == before {
        text.push(' ');
    }
}

fn set_pen(text: &mut String, from: Pen, to: Pen) {
    const CODES: [(Modifier, u8); 8] = [
        (Modifier::BOLD, 1),
        (Modifier::DIM, 2),
        (Modifier::ITALIC, 3),
        (Modifier::UNDERLINED, 4),
        (Modifier::SLOW_BLINK, 5),
        (Modifier::REVERSED, 7),
        (Modifier::HIDDEN, 8),
        (Modifier::CROSSED_OUT, 9),
    ];
    text.push_str("\x1b[");
    let mut first = true;
    let mut code = |text: &mut String, words: std::fmt::Arguments<'_>| {
        if !std::mem::take(&mut first) {
            text.push(';');
        }
        text.push_str(&words.to_string());
    };
    let mut from = from;
    if !(from.modifier - to.modifier).is_empty() {
        code(text, format_args!("0"));
        from = Pen::default();
    }
    for (modifier, number) in CODES {
        if to.modifier.contains(modifier) && !from.modifier.contains(modifier) {
            code(text, format_args!("{number}"));
        }
    }
    if from.foreground != to.foreground {
        colour(&mut code, text, to.foreground, 30);
    }
    if from.background != to.background {
        colour(&mut code, text, to.background, 40);
    }
    text.push('m');
}

fn colour(
    code: &mut impl FnMut(&mut String, std::fmt::Arguments<'_>),
    text: &mut String,
    colour: Color,
    base: u8,
) {
    let bright = base + 60;
    let number = match colour {
        Color::Reset => base + 9,
        Color::Black => base,
        Color::Red => base + 1,
        Color::Green => base + 2,
        Color::Yellow => base + 3,
        Color::Blue => base + 4,
        Color::Magenta => base + 5,
        Color::Cyan => base + 6,
        Color::Gray => base + 7,
        Color::DarkGray => bright,
        Color::LightRed => bright + 1,
        Color::LightGreen => bright + 2,
        Color::LightYellow => bright + 3,
        Color::LightBlue => bright + 4,
        Color::LightMagenta => bright + 5,
        Color::LightCyan => bright + 6,
        Color::White => bright + 7,
        Color::Indexed(index) => return code(text, format_args!("{};5;{index}", base + 8)),
        Color::Rgb(red, green, blue) => {
            return code(text, format_args!("{};2;{red};{green};{blue}", base + 8));
        }
    };
    code(text, format_args!("{number}"));
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use ratatui::style::Style;

    fn painted(canvas: &mut Canvas, terminal: &mut vt100::Parser) -> usize {
        let mut out = Vec::new();
        canvas.frame(None, &mut out);
        terminal.process(&out);
        out.len()
    }

    fn terminal(area: Rect) -> vt100::Parser {
        let size = |cells: u16| std::num::NonZero::new(cells).unwrap();
        vt100::Parser::new(size(area.height), size(area.width), 0)
    }

    #[test]
    fn nothing_is_written_where_nothing_changed() {
        let area = Rect::new(0, 0, 20, 3);
        let mut canvas = Canvas::new(area);
        let mut terminal = terminal(area);
        canvas.next.set_string(0, 0, "hello", Style::new().fg(Color::Indexed(110)));
        assert!(painted(&mut canvas, &mut terminal) > 0);
        assert_eq!(painted(&mut canvas, &mut terminal), 0);
        canvas.next.set_string(0, 0, "hellO", Style::new().fg(Color::Indexed(110)));
        assert!(painted(&mut canvas, &mut terminal) < 60, "one cell is one cell");
        assert_eq!(terminal.screen().rows(0, 20).next().unwrap().trim_end(), "hellO");
    }

    proptest! {
        #[test]
        fn whatever_was_there_before_the_terminal_shows_the_last_frame(
            frames in proptest::collection::vec(proptest::collection::vec(
                (0u16..18, 0u16..3, prop_oneof!["[a-z ]{1,8}", Just("漢字".to_owned()), Just("é".to_owned())], 16u8..20),
            1..4), 1..6),
        ) {
            let area = Rect::new(0, 0, 20, 3);
            let mut canvas = Canvas::new(area);
            let mut terminal = terminal(area);
            for frame in frames {
                canvas.next.reset();
                for (x, y, text, colour) in frame {
                    canvas.next.set_string(x, y, text, Style::new().fg(Color::Indexed(colour)));
                }
                painted(&mut canvas, &mut terminal);
                let mut fresh = Canvas::new(area);
                fresh.next.clone_from(&canvas.next);
                let mut clean = self::terminal(area);
                painted(&mut fresh, &mut clean);
                prop_assert_eq!(terminal.screen().contents(), clean.screen().contents());
            }
        }
    }
}
