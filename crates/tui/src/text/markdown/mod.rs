//! Markdown as agents write it, laid out for a width: headings, lists, tables, quotes, links and coloured code.
//!
//! [`render`] does a whole text, [`Stream`] one that still grows. Both are the same code: a text is cut into its top-level
//! blocks, each block is laid out for itself ([`layout`]), and one empty line goes between two. A stream keeps the lines
//! of the blocks that can no longer change, so what a piece of new text costs depends on the block that it lands in.
//!
//! Invariant: a stream shows the same lines as [`render`] of all that was added to it, however it was cut into pieces.

mod fence;
mod inline;
mod layout;
mod parse;
mod stream;
mod table;

use ratatui::text::Line;

use super::theme::Theme;
pub use stream::Stream;

/// Lays out a whole text.
pub fn render(source: &str, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let mut stream = Stream::default();
    stream.append(source);
    stream.into_lines(columns, theme)
}

#[cfg(test)]
mod tests;
