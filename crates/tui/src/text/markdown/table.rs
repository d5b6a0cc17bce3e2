//! Tables that fit: columns as wide as they need where there is room, narrower with wrapped cells where not, and a list of
//! rows where a column would be left with less than a word.

use pulldown_cmark::Alignment;
use ratatui::text::{Line, Span};

use crate::text::theme::Theme;
use crate::text::width;
use crate::text::wrap::{self, Prefix};

/// The least columns in which a cell can be read.
const MIN_COLUMNS: usize = 4;

const BETWEEN: &str = " │ ";
const BETWEEN_COLUMNS: usize = 3;
const CROSSING: &str = "─┼─";

type Cell = Vec<Span<'static>>;

/// A table in the making; its first row is the head.
pub struct Table {
    alignments: Vec<Alignment>,
    rows: Vec<Vec<Cell>>,
    row: Vec<Cell>,
}

impl Table {
    /// Empty, with this many columns.
    pub fn new(alignments: &[Alignment]) -> Self {
        Self { alignments: alignments.to_vec(), rows: Vec::new(), row: Vec::new() }
    }

    /// Adds a cell to the row.
    pub fn cell(&mut self, cell: Cell) {
        self.row.push(cell);
    }

    /// Ends the row.
    pub fn end_row(&mut self) {
        let row = std::mem::take(&mut self.row);
        self.rows.push(row);
    }

    /// The lines for a width.
    pub fn lines(&self, room: usize, theme: &Theme) -> Vec<Line<'static>> {
        let count = self.alignments.len();
        let natural: Vec<usize> = (0..count)
            .map(|column| {
                self.rows
                    .iter()
                    .filter_map(|row| row.get(column))
                    .map(|cell| width::of_spans(cell))
                    .max()
                    .unwrap_or(0)
            })
            .collect();
        let for_cells = room.saturating_sub(BETWEEN_COLUMNS * count.saturating_sub(1));
        let narrowest: usize = natural.iter().map(|columns| (*columns).min(MIN_COLUMNS)).sum();
        if narrowest > for_cells {
            self.records(room, theme)
        } else {
            self.grid(&shares(&natural, for_cells), theme)
        }
    }

    fn grid(&self, columns: &[usize], theme: &Theme) -> Vec<Line<'static>> {
        let mut lines = Vec::new();
        let mut rows = Vec::new();
        for (index, row) in self.rows.iter().enumerate() {
            let cells: Vec<Vec<Line<'static>>> = columns
                .iter()
                .enumerate()
                .map(|(column, columns)| {
                    let cell = row.get(column).map(Vec::as_slice).unwrap_or_default();
                    let mut cell = wrap::words(cell, *columns, &Prefix::none());
                    if index == 0 {
                        for span in cell.iter_mut().flat_map(|line| &mut line.spans) {
                            span.style = theme.strong.patch(span.style);
                        }
                    }
                    cell
                })
                .collect();
            rows.push(cells);
        }
        let tall = rows.iter().skip(1).any(|cells| cells.iter().any(|cell| cell.len() > 1));
        for (index, cells) in rows.into_iter().enumerate() {
            // Rows of several lines run into each other without a rule.
            if index == 1 || index > 1 && tall {
                lines.push(rule(columns, theme));
            }
            self.row_lines(cells, columns, theme, &mut lines);
        }
        lines
    }

    fn row_lines(
        &self,
        mut cells: Vec<Vec<Line<'static>>>,
        columns: &[usize],
        theme: &Theme,
        lines: &mut Vec<Line<'static>>,
    ) {
        let height = cells.iter().map(Vec::len).max().unwrap_or(0);
        let last = columns.len().saturating_sub(1);
        for at in 0..height {
            let mut spans = Vec::new();
            for (column, cell) in cells.iter_mut().enumerate() {
                if column > 0 {
                    spans.push(Span::styled(BETWEEN, theme.marker));
                }
                let line = cell.get_mut(at).map(std::mem::take).unwrap_or_default();
                let missing = columns[column].saturating_sub(width::of_line(&line));
                let before = match self.alignments.get(column) {
                    Some(Alignment::Right) => missing,
                    Some(Alignment::Center) => missing / 2,
                    _ => 0,
                };
                push_spaces(before, &mut spans);
                spans.extend(line.spans);
                if column < last {
                    push_spaces(missing - before, &mut spans);
                }
            }
            lines.push(Line::from(spans));
        }
    }

    /// Each row as lines of `head: cell`.
    fn records(&self, room: usize, theme: &Theme) -> Vec<Line<'static>> {
        let mut lines = Vec::new();
        let (Some(head), rows) = (self.rows.first(), self.rows.get(1..).unwrap_or_default()) else {
            return lines;
        };
        if rows.is_empty() {
            for cell in head {
                lines.extend(wrap::words(cell, room, &Prefix::none()));
            }
        }
        for (index, row) in rows.iter().enumerate() {
            if index > 0 {
                lines.push(Line::default());
            }
            for (name, cell) in head.iter().zip(row) {
                let mut spans: Vec<_> = name
                    .iter()
                    .map(|span| Span::styled(span.content.clone(), theme.strong.patch(span.style)))
                    .collect();
                spans.push(Span::raw(": "));
                spans.extend(cell.iter().cloned());
                lines.extend(wrap::words(
                    &spans,
                    room,
                    &Prefix { first: Vec::new(), rest: vec![Span::raw("  ")] },
                ));
            }
        }
        lines
    }
}

/// Divides the room: what is narrow gets what it needs, the rest is shared evenly among the wide ones.
fn shares(natural: &[usize], room: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..natural.len()).collect();
    order.sort_by_key(|column| natural[*column]);
    let mut shares = vec![0; natural.len()];
    let mut left = room;
    for (done, column) in order.iter().enumerate() {
        let fair = left / (natural.len() - done);
        shares[*column] = natural[*column].min(fair).max(1);
        left = left.saturating_sub(shares[*column]);
    }
    shares
}

fn rule(columns: &[usize], theme: &Theme) -> Line<'static> {
    let parts: Vec<String> = columns.iter().map(|columns| "─".repeat(*columns)).collect();
    Line::from(Span::styled(parts.join(CROSSING), theme.marker))
}

fn push_spaces(count: usize, spans: &mut Vec<Span<'static>>) {
    if count > 0 {
        spans.push(Span::raw(" ".repeat(count)));
    }
}
