//! What lies over everything else.

mod about;
mod form;
mod inbox;
mod pager;
mod settings;

use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::Canvas;
use crate::app::{App, Hit};
use crate::keys::Action;
use crate::overlay::{Command, Field, Overlay, Picker, Press};
use crate::text::wrap::Prefix;
use crate::text::{clean, width};
use crate::transcript::item::prose;

/// Draws the topmost overlay; where the cursor is.
pub(super) fn draw(app: &mut App, canvas: &mut Canvas<'_>, area: Rect) -> Option<(u16, u16)> {
    // The overlay is taken out while it is drawn, since it is drawn with what the app knows.
    let mut overlay = app.overlays.pop()?;
    let beneath_is_inbox = matches!(app.overlays.last(), Some(Overlay::Inbox(_)));
    if beneath_is_inbox && let Some(Overlay::Inbox(mut inbox)) = app.overlays.pop() {
        inbox::draw(app, canvas, area, &mut inbox);
        app.overlays.push(Overlay::Inbox(inbox));
    }
    let cursor = match &mut overlay {
        Overlay::Picker(picker) => draw_picker(app, canvas, area, picker),
        Overlay::Field(field) => draw_field(app, canvas, area, field),
        Overlay::Form(form) => form::draw(app, canvas, area, form),
        Overlay::Pager(pager) => {
            pager::draw(app, canvas, area, pager);
            None
        }
        Overlay::Inbox(inbox) => {
            inbox::draw(app, canvas, area, inbox);
            None
        }
        Overlay::Settings(settings) => {
            settings::draw(app, canvas, area, settings);
            None
        }
        Overlay::Press(press) => {
            draw_press(app, canvas, area, press);
            None
        }
    };
    app.overlays.push(overlay);
    cursor
}

/// An area in the middle, of this size if there is room.
pub(super) fn middle(area: Rect, columns: u16, rows: u16) -> Rect {
    let width = columns.min(area.width.saturating_sub(2)).max(1);
    let height = rows.min(area.height.saturating_sub(2)).max(1);
    Rect {
        x: area.x + (area.width - width.min(area.width)) / 2,
        y: area.y + (area.height - height.min(area.height)) / 3,
        width,
        height,
    }
}

fn draw_picker(
    app: &mut App,
    canvas: &mut Canvas<'_>,
    area: Rect,
    picker: &mut Picker,
) -> Option<(u16, u16)> {
    let theme = app.theme;
    let rows = picker.rows().len() as u16;
    let area = middle(area, 90, (rows.max(1) + 4).clamp(7, 24));
    canvas.clear(area);
    app.hits.add(area, Hit::Overlay);
    let inner = canvas.frame(area, &picker.title, theme.border_focused);
    if inner.height < 3 || inner.width < 4 {
        return None;
    }
    canvas.text(inner.x, inner.y, 2, "› ", theme.accent);
    let query =
        width::cut_start(picker.query.text(), usize::from(inner.width).saturating_sub(3)).into_owned();
    let end = canvas.text(inner.x + 2, inner.y, inner.width - 2, &query, theme.text);
    let list = Rect { y: inner.y + 2, height: inner.height - 2, ..inner };
    let height = usize::from(list.height);
    if picker.at() < picker.top {
        picker.top = picker.at();
    } else if picker.at() >= picker.top + height {
        picker.top = picker.at() + 1 - height;
    }
    if rows == 0 {
        canvas.text(list.x, list.y, list.width, &picker.empty, theme.dim);
    }
    let at = picker.at();
    for (row, (choice, found)) in picker.rows().enumerate().skip(picker.top).take(height) {
        let y = list.y + (row - picker.top) as u16;
        let line = Rect::new(list.x, y, list.width, 1);
        app.hits.add(line, Hit::Choice(row));
        let can = !matches!(choice.command, Command::Nothing | Command::Explain(_));
        let style = if can { theme.text } else { theme.dim };
        let label = clean::one_line(&choice.label).into_owned();
        let note = width::of(&choice.note) as u16;
        let room = line.width.saturating_sub(note + 1);
        let spans = match found.filter(|_| label == choice.label) {
            Some(found) => matched(&label, &found.positions, style, theme.matched),
            None => vec![Span::styled(label, style)],
        };
        let end = canvas.spans(line.x, y, room, &spans);
        let detail_room = (line.x + room).saturating_sub(end + 2);
        let detail = width::cut(&choice.detail, detail_room.into()).into_owned();
        // A list that looks for what was typed in the details too has them after the label and a space.
        let places: Vec<usize> = found.map_or_else(Vec::new, |found| {
            found.positions.iter().filter_map(|at| at.checked_sub(choice.label.len() + 1)).collect()
        });
        canvas.spans(end + 2, y, detail_room, &matched(&detail, &places, theme.dim, theme.matched));
        canvas.right(line.right(), y, note, &choice.note, if can { theme.key } else { theme.dim });
        if row == at {
            canvas.style(line, theme.selection);
        }
    }
    Some((end.min(inner.right() - 1), inner.y))
}

/// A label with the letters that matched set apart.
fn matched(
    label: &str,
    places: &[usize],
    plain: ratatui::style::Style,
    style: ratatui::style::Style,
) -> Vec<Span<'static>> {
    let mut spans: Vec<Span<'static>> = Vec::new();
    for (at, letter) in label.char_indices() {
        let style = if places.contains(&at) { plain.patch(style) } else { plain };
        match spans.last_mut() {
            Some(last) if last.style == style => last.content.to_mut().push(letter),
            _ => spans.push(Span::styled(letter.to_string(), style)),
        }
    }
    spans
}

fn draw_press(app: &mut App, canvas: &mut Canvas<'_>, area: Rect, press: &Press) {
    let theme = app.theme;
    let columns = 70.min(area.width.saturating_sub(2));
    let inside = usize::from(columns.saturating_sub(4)).max(1);
    let now = app.keys.all_labels(press.binding);
    let wish = if press.adds { "one more key" } else { "the key" };
    let said = [
        (press.binding.help.to_owned(), theme.text),
        (if now.is_empty() { "It has no key now.".to_owned() } else { format!("Now: {now}") }, theme.dim),
        (format!("Press {wish} for it; esc leaves it as it is."), theme.accent),
    ];
    let problem = press.problem.clone().map(|problem| (problem, theme.bad));
    let lines: Vec<Line<'static>> = said
        .into_iter()
        .chain(problem)
        .flat_map(|(text, style)| prose(&text, style, inside, &Prefix::none()))
        .collect();
    let area = middle(area, columns, lines.len() as u16 + 2);
    canvas.clear(area);
    app.hits.add(area, Hit::Overlay);
    let inner = canvas.frame(area, press.binding.name, theme.border_focused);
    for (y, line) in (inner.top()..inner.bottom()).zip(&lines) {
        canvas.line(inner.x, y, inner.width, line);
    }
}

fn draw_field(app: &mut App, canvas: &mut Canvas<'_>, area: Rect, field: &Field) -> Option<(u16, u16)> {
    let theme = app.theme;
    let columns = 80.min(area.width.saturating_sub(2));
    let rows = field.editor.rows(usize::from(columns.saturating_sub(4)).max(1));
    let inside = usize::from(columns.saturating_sub(4)).max(1);
    let said = field.problem.iter().map(|problem| (problem, theme.bad)).chain([(&field.hint, theme.dim)]);
    let below: Vec<Line<'static>> = said
        .filter(|(text, _)| !text.is_empty())
        .flat_map(|(text, style)| prose(text, style, inside, &Prefix::none()))
        .collect();
    let area = middle(area, columns, (rows.rows.len().min(12) + 2 + below.len()) as u16);
    canvas.clear(area);
    app.hits.add(area, Hit::Overlay);
    let inner = canvas.frame(area, &field.title, theme.border_focused);
    if inner.height == 0 {
        return None;
    }
    let text = Rect { height: inner.height.saturating_sub(below.len() as u16).max(1), ..inner };
    let top = rows.top(text.height.into());
    let content = field.editor.text();
    for (y, row) in (text.top()..text.bottom()).zip(rows.rows.iter().skip(top)) {
        canvas.text(text.x, y, text.width, content.get(row.clone()).unwrap_or_default(), theme.text);
    }
    for (y, line) in (text.bottom()..inner.bottom()).zip(&below) {
        canvas.line(inner.x, y, inner.width, line);
    }
    let words = format!(" {} · {} ", app.keys.label(Action::ListChoose), app.keys.label(Action::ListLeave));
    let x = canvas.right(area.right() - 2, area.bottom() - 1, area.width - 4, &words, theme.dim);
    app.hits.add(Rect::new(x, area.bottom() - 1, width::of(&words) as u16, 1), Hit::Submit);
    let column = (rows.column as u16).min(text.width.saturating_sub(1));
    Some((text.x + column, text.y + (rows.row - top) as u16))
}
