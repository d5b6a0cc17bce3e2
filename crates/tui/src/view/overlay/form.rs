//! Forms.

use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::middle;
use crate::app::{App, Hit};
use crate::keys::Action;
use crate::overlay::Form;
use crate::overlay::form::{Entry, Kind};
use crate::text::theme::Theme;
use crate::text::wrap::Prefix;
use crate::text::{clean, width};
use crate::transcript::item::prose;
use crate::view::Canvas;

/// Columns for the names of entries.
const LABEL: usize = 14;

/// Draws a form; where the cursor is.
pub(super) fn draw(
    app: &mut App,
    canvas: &mut Canvas<'_>,
    area: Rect,
    form: &mut Form,
) -> Option<(u16, u16)> {
    let theme = app.theme;
    let columns = 92.min(area.width.saturating_sub(2));
    let inside = usize::from(columns.saturating_sub(4)).max(8);
    let mut lines: Vec<Line<'static>> = Vec::new();
    if !form.about.is_empty() {
        lines.extend(prose(&form.about, theme.text, inside, &Prefix::none()));
        lines.push(Line::default());
    }
    let mut cursor = None;
    form.columns = inside.saturating_sub(LABEL + 2).max(1);
    let mut owners: Vec<(usize, usize, usize)> = Vec::new();
    for at in form.visible() {
        let Some(entry) = form.entries.get(at) else { continue };
        let live = at == form.at;
        let first = lines.len();
        let (content, place) = content(entry, live, inside.saturating_sub(LABEL + 2), &theme);
        if live {
            cursor = place.map(|(row, column)| (first + row, LABEL + 2 + column));
        }
        for (row, spans) in content.into_iter().enumerate() {
            let label = if row == 0 {
                width::fit(&clean::one_line(&entry.label), LABEL).into_owned()
            } else {
                " ".repeat(LABEL)
            };
            let style = if live { theme.accent } else { theme.dim };
            let mark = if live && row == 0 { "› " } else { "  " };
            owners.push((lines.len(), at, row));
            let mut line = vec![Span::styled(label, style), Span::styled(mark, theme.accent)];
            line.extend(spans);
            lines.push(Line::from(line));
        }
        if live && !entry.help.is_empty() {
            lines.extend(prose(
                &entry.help,
                theme.dim,
                inside,
                &Prefix::same(vec![Span::raw(" ".repeat(LABEL + 2))]),
            ));
        }
    }
    lines.push(Line::default());
    if let Some(problem) = &form.problem {
        lines.extend(prose(problem, theme.bad, inside, &Prefix::none()));
    }
    let hint = format!(
        "{} next, then save · {} saves · {} cancels · ←→ choose",
        app.keys.label(Action::ListChoose),
        app.keys.label(Action::ListSubmit),
        app.keys.label(Action::ListLeave)
    );
    lines.push(Line::styled(width::cut(&hint, inside).into_owned(), theme.dim));
    let area = middle(area, columns, lines.len() as u16 + 2);
    canvas.clear(area);
    app.hits.add(area, Hit::Overlay);
    let inner = canvas.frame(area, &form.title, theme.border_focused);
    let height = usize::from(inner.height);
    let top =
        cursor.map_or(0, |(row, _)| (row + 3).saturating_sub(height)).min(lines.len().saturating_sub(height));
    for (y, line) in (inner.top()..inner.bottom()).zip(lines.iter().skip(top)) {
        canvas.line(inner.x, y, inner.width, line);
    }
    let on_screen = |line: usize| line.checked_sub(top).map(|row| inner.y + row as u16);
    for (line, at, row) in owners {
        if let Some(y) = on_screen(line).filter(|y| *y < inner.bottom()) {
            let place = Rect::new(inner.x, y, inner.width, 1);
            app.hits.add(place, Hit::Entry(at, row, inner.x + (LABEL + 2) as u16));
        }
    }
    if let Some(y) = on_screen(lines.len() - 1).filter(|y| *y < inner.bottom()) {
        app.hits.add(Rect::new(inner.x, y, inner.width, 1), Hit::Submit);
    }
    let (row, column) = cursor?;
    let y = inner.y + row.checked_sub(top)? as u16;
    (y < inner.bottom()).then_some((inner.x + (column as u16).min(inner.width.saturating_sub(1)), y))
}

type Rows = Vec<Vec<Span<'static>>>;

fn content(entry: &Entry, live: bool, columns: usize, theme: &Theme) -> (Rows, Option<(usize, usize)>) {
    match &entry.kind {
        Kind::Text(editor) | Kind::Lines(editor) => {
            let rows = editor.rows(columns.max(1));
            let text = editor.text();
            let spans = rows
                .rows
                .iter()
                .map(|row| {
                    vec![Span::styled(text.get(row.clone()).unwrap_or_default().to_owned(), theme.text)]
                })
                .collect();
            (spans, Some((rows.row, rows.column)))
        }
        Kind::One { names, at } => {
            if live && names.len() > 1 {
                let rows = names
                    .iter()
                    .enumerate()
                    .map(|(place, name)| {
                        let (mark, style) =
                            if place == *at { ("● ", theme.accent) } else { ("○ ", theme.dim) };
                        let name = if name.is_empty() { "none" } else { name };
                        vec![Span::styled(format!("{mark}{}", clean::one_line(name)), style)]
                    })
                    .collect();
                return (rows, None);
            }
            let name = names.get(*at).map(|name| clean::one_line(name).into_owned()).unwrap_or_default();
            (vec![vec![Span::styled(name, theme.text)]], None)
        }
        Kind::Some { names, at } => {
            let rows = names
                .iter()
                .enumerate()
                .filter(|(_, (_, on))| live || *on)
                .map(|(place, (name, on))| {
                    let mark = if *on { "☑ " } else { "☐ " };
                    let style = if live && place == *at { theme.accent } else { theme.text };
                    vec![Span::styled(format!("{mark}{}", clean::one_line(name)), style)]
                })
                .collect::<Rows>();
            (if rows.is_empty() { vec![vec![Span::styled("none", theme.dim)]] } else { rows }, None)
        }
    }
}
