//! A drawn screen as an SVG picture.
//!
//! Every cell has its fixed place and width, whatever font the reader has: text is stretched to its cells, and the lines of
//! boxes are drawn as lines, so that they meet. Only what is on the buffer is drawn.

use std::fmt::Write as _;

use ratatui::buffer::{Buffer, Cell};
use ratatui::style::{Color, Modifier};

use crate::text::width;

const COLUMN: f32 = 8.4;
const ROW: f32 = 18.0;
/// From a row's top to the line that letters stand on.
const BASE: f32 = 13.5;
const MARGIN: f32 = 14.0;
const FONT: &str = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace";

/// The colours of a terminal that a theme leaves alone.
pub struct Ground {
    pub text: &'static str,
    pub background: &'static str,
}

pub const DARK: Ground = Ground { text: "#d7dce2", background: "#15181d" };
pub const LIGHT: Ground = Ground { text: "#24292f", background: "#fbfbf9" };

/// The picture of a buffer.
pub fn picture(buffer: &Buffer, title: &str, ground: &Ground) -> String {
    let (columns, rows) = (f32::from(buffer.area.width), f32::from(buffer.area.height));
    let (wide, high) = (columns * COLUMN + 2.0 * MARGIN, rows * ROW + 2.0 * MARGIN);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" font-family=\"{FONT}\" font-size=\"14\">\n\
         <title>{}</title>\n<rect x=\"0.5\" y=\"0.5\" width=\"{}\" height=\"{}\" rx=\"10\" fill=\"{}\" stroke=\"#80868b\" stroke-opacity=\"0.5\"/>\n",
        number(wide),
        number(high),
        escaped(title),
        number(wide - 1.0),
        number(high - 1.0),
        ground.background
    );
    for y in 0..buffer.area.height {
        let cells: Vec<&Cell> = (0..buffer.area.width).map(|x| &buffer[(x, y)]).collect();
        let top = MARGIN + f32::from(y) * ROW;
        backgrounds(&mut svg, &cells, top, ground);
        letters(&mut svg, &cells, top, ground);
    }
    svg.push_str("</svg>\n");
    svg
}

/// How a cell is drawn.
#[derive(Clone, PartialEq)]
struct Look {
    text: String,
    background: Option<String>,
    modifier: Modifier,
}

impl Look {
    fn of(cell: &Cell, ground: &Ground) -> Self {
        let (mut text, mut background) = (colour(cell.fg), colour(cell.bg));
        if cell.modifier.contains(Modifier::REVERSED) {
            (text, background) = (
                Some(background.unwrap_or_else(|| ground.background.to_owned())),
                Some(text.unwrap_or_else(|| ground.text.to_owned())),
            );
        }
        Self { text: text.unwrap_or_else(|| ground.text.to_owned()), background, modifier: cell.modifier }
    }

    fn attributes(&self) -> String {
        let mut attributes = format!(" fill=\"{}\"", self.text);
        for (modifier, attribute) in [
            (Modifier::BOLD, " font-weight=\"bold\""),
            (Modifier::ITALIC, " font-style=\"italic\""),
            (Modifier::DIM, " opacity=\"0.65\""),
        ] {
            if self.modifier.contains(modifier) {
                attributes.push_str(attribute);
            }
        }
        let lines = [(Modifier::UNDERLINED, "underline"), (Modifier::CROSSED_OUT, "line-through")];
        let lines: Vec<&str> = lines
            .iter()
            .filter(|(modifier, _)| self.modifier.contains(*modifier))
            .map(|(_, name)| *name)
            .collect();
        if !lines.is_empty() {
            write!(attributes, " text-decoration=\"{}\"", lines.join(" ")).unwrap();
        }
        attributes
    }
}

fn backgrounds(svg: &mut String, cells: &[&Cell], top: f32, ground: &Ground) {
    let looks: Vec<Option<String>> = cells.iter().map(|cell| Look::of(cell, ground).background).collect();
    let mut x = 0;
    for run in looks.chunk_by(|a, b| a == b) {
        if let Some(colour) = &run[0] {
            // A little higher than the row, so that no seam shows between two rows.
            writeln!(
                svg,
                "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{colour}\"/>",
                number(left(x)),
                number(top),
                number(run.len() as f32 * COLUMN),
                number(ROW + 0.4)
            )
            .unwrap();
        }
        x += run.len();
    }
}

fn letters(svg: &mut String, cells: &[&Cell], top: f32, ground: &Ground) {
    let mut x = 0;
    while x < cells.len() {
        let look = Look::of(cells[x], ground);
        let symbol = cells[x].symbol();
        let columns = width::of(symbol).max(1);
        if let Some(lines) = Lines::of(symbol) {
            let same = |cell: &&&Cell| cell.symbol() == symbol && Look::of(cell, ground) == look;
            let run = if lines.is_rule() { cells[x..].iter().take_while(same).count() } else { 1 };
            lines.draw(svg, (left(x), top), run as f32 * COLUMN, &look);
            x += run;
        } else if symbol.is_ascii() {
            let run = cells[x..]
                .iter()
                .take_while(|cell| cell.symbol().is_ascii() && Look::of(cell, ground) == look)
                .count();
            let text: String = cells[x..x + run].iter().map(|cell| cell.symbol()).collect();
            words(svg, &text, x, top, &look);
            x += run;
        } else {
            glyph(svg, symbol, (x, columns), top, &look);
            x += columns;
        }
    }
}

/// Writes the words of a run; the spaces between two runs of words are left out where there are many.
fn words(svg: &mut String, run: &str, x: usize, top: f32, look: &Look) {
    let underlined = look.modifier.intersects(Modifier::UNDERLINED | Modifier::CROSSED_OUT);
    let mut at = x;
    let parts: Vec<&str> = if underlined { vec![run] } else { run.split("  ").collect() };
    for part in parts {
        let text = if underlined { part } else { part.trim_start() };
        let start = at + part.len() - text.len();
        let text = if underlined { text } else { text.trim_end() };
        if !text.is_empty() {
            glyph(svg, text, (start, text.len()), top, look);
        }
        at += part.len() + 2;
    }
}

/// Writes a text that takes so many columns.
fn glyph(svg: &mut String, text: &str, (x, columns): (usize, usize), top: f32, look: &Look) {
    if text.trim().is_empty() && !look.modifier.contains(Modifier::UNDERLINED) {
        return;
    }
    writeln!(
        svg,
        "<text x=\"{}\" y=\"{}\" textLength=\"{}\" lengthAdjust=\"spacingAndGlyphs\" xml:space=\"preserve\"{}>{}</text>",
        number(left(x)),
        number(top + BASE),
        number(columns as f32 * COLUMN),
        look.attributes(),
        escaped(text)
    )
    .unwrap();
}

/// Which edges of its cell a line of a box goes to from the middle.
#[derive(Clone, Copy)]
struct Lines {
    left: bool,
    right: bool,
    up: bool,
    down: bool,
    round: bool,
}

impl Lines {
    fn of(symbol: &str) -> Option<Self> {
        let (left, right, up, down) = match symbol {
            "─" => (true, true, false, false),
            "│" => (false, false, true, true),
            "╭" | "┌" => (false, true, false, true),
            "╮" | "┐" => (true, false, false, true),
            "╰" | "└" => (false, true, true, false),
            "╯" | "┘" => (true, false, true, false),
            "├" => (false, true, true, true),
            "┤" => (true, false, true, true),
            "┬" => (true, true, false, true),
            "┴" => (true, true, true, false),
            "┼" => (true, true, true, true),
            _ => return None,
        };
        Some(Self { left, right, up, down, round: matches!(symbol, "╭" | "╮" | "╰" | "╯") })
    }

    fn is_rule(self) -> bool {
        self.left && self.right && !self.up && !self.down
    }

    fn draw(self, svg: &mut String, (x, y): (f32, f32), columns: f32, look: &Look) {
        let (middle, centre) = (x + COLUMN / 2.0, y + ROW / 2.0);
        let mut path = String::new();
        let mut line = |from: (f32, f32), to: (f32, f32)| {
            write!(path, "M{} {}L{} {}", number(from.0), number(from.1), number(to.0), number(to.1)).unwrap();
        };
        if self.is_rule() {
            line((x, centre), (x + columns, centre));
        } else if self.round {
            let end = (middle, if self.down { y + ROW } else { y });
            let side = (if self.right { x + COLUMN } else { x }, centre);
            write!(
                path,
                "M{} {}Q{} {} {} {}",
                number(end.0),
                number(end.1),
                number(middle),
                number(centre),
                number(side.0),
                number(side.1)
            )
            .unwrap();
        } else {
            for (is_there, end) in [
                (self.left, (x, centre)),
                (self.right, (x + COLUMN, centre)),
                (self.up, (middle, y)),
                (self.down, (middle, y + ROW)),
            ] {
                if is_there {
                    line((middle, centre), end);
                }
            }
        }
        writeln!(svg, "<path d=\"{path}\" stroke=\"{}\" fill=\"none\"/>", look.text).unwrap();
    }
}

fn left(x: usize) -> f32 {
    MARGIN + x as f32 * COLUMN
}

/// As short as it can be said to a tenth.
fn number(value: f32) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// A colour as terminals show it; none: the terminal's own.
fn colour(colour: Color) -> Option<String> {
    let (red, green, blue) = match colour {
        Color::Indexed(index @ 16..=231) => {
            let level = |step: u8| if step == 0 { 0 } else { 55 + 40 * step };
            let index = index - 16;
            (level(index / 36), level(index / 6 % 6), level(index % 6))
        }
        Color::Indexed(index @ 232..) => {
            let level = 8 + 10 * (index - 232);
            (level, level, level)
        }
        Color::Rgb(red, green, blue) => (red, green, blue),
        _ => return None,
    };
    Some(format!("#{red:02x}{green:02x}{blue:02x}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::layout::Rect;
    use ratatui::style::Style;

    #[test]
    fn every_cell_has_its_place_and_nothing_breaks_out() {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 12, 2));
        buffer.set_string(0, 0, "a<漢b", Style::new().fg(Color::Indexed(203)).add_modifier(Modifier::BOLD));
        buffer.set_string(0, 1, "──│x", Style::new().bg(Color::Indexed(235)));
        let svg = picture(&buffer, "a & b", &DARK);
        assert!(svg.contains("<title>a &amp; b</title>"), "{svg}");
        assert!(svg.contains(r##"x="14" y="27.5" textLength="16.8" lengthAdjust="spacingAndGlyphs" xml:space="preserve" fill="#ff5f5f" font-weight="bold">a&lt;</text>"##), "{svg}");
        assert!(
            svg.contains(r#"x="30.8" y="27.5" textLength="16.8""#),
            "a wide one takes two columns: {svg}"
        );
        assert!(svg.contains(r#"x="47.6" y="27.5" textLength="8.4""#), "{svg}");
        assert!(svg.contains(r#"M14 41L30.8 41"#), "a rule is one line: {svg}");
        assert!(
            svg.contains(r##"<rect x="14" y="32" width="33.6" height="18.4" fill="#262626"/>"##),
            "{svg}"
        );
    }

    #[test]
    fn reversed_swaps_the_colours() {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 2, 1));
        buffer.set_string(0, 0, "x", Style::new().add_modifier(Modifier::REVERSED));
        let svg = picture(&buffer, "", &LIGHT);
        assert!(svg.contains(r##"fill="#24292f"/>"##) && svg.contains(r##"fill="#fbfbf9">x<"##), "{svg}");
    }
}
