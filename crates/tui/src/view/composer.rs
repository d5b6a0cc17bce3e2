//! The prompt: what is being written, for whom, and what can be completed.

use ratatui::layout::Rect;

use super::Canvas;
use crate::app::{App, Connection, Focus, Hit};
use crate::keys::Action;
use crate::text::{clean, width};

/// The most rows of text that are shown.
pub(crate) const MAX_ROWS: u16 = 10;

/// How many rows the prompt takes, with the line above it.
pub(super) fn height(app: &App, columns: u16) -> u16 {
    let columns = usize::from(columns.saturating_sub(4).max(1));
    let rows = app.composer().near(columns, MAX_ROWS.into()).rows.len();
    rows.clamp(1, MAX_ROWS.into()) as u16 + 1
}

/// Draws the prompt; where the cursor is.
pub(super) fn draw(app: &mut App, canvas: &mut Canvas<'_>, area: Rect) -> Option<(u16, u16)> {
    if area.height < 2 || area.width < 6 {
        return None;
    }
    app.hits.add(area, Hit::Composer);
    let theme = app.theme;
    let has_keyboard = app.focus == Focus::Composer && app.overlays.is_empty();
    let style = if has_keyboard { theme.border_focused } else { theme.border };
    canvas.rule(Rect { height: 1, ..area }, style);
    let images = app.focused().and_then(|agent| app.images.get(&agent)).map_or(0, Vec::len);
    let title = match app.focused() {
        Some(agent) if app.state.agents.contains_key(&agent) => format!(" to {} ", app.name_of(agent)),
        _ => " to a new agent ".to_owned(),
    };
    let mut x = canvas.text(area.x + 2, area.y, area.width.saturating_sub(4), &title, style);
    if images > 0 {
        let text = format!("· {images} image{} ", if images == 1 { "" } else { "s" });
        x = canvas.text(x, area.y, area.right().saturating_sub(x + 2), &text, theme.accent);
    }
    let hint = match (&app.connection, has_keyboard) {
        (Connection::Lost { .. }, _) => " what you send waits for the daemon ".to_owned(),
        (_, true) if app.focused().is_none() && app.composer().is_empty() && !app.can_start_agents() => {
            format!(" {} plays the demo ", app.keys.label(Action::Send))
        }
        (_, true) if app.disabled().is_some() => {
            format!(" {} gives it another profile ", app.keys.label(Action::Send))
        }
        (_, true) if app.can_steer() => format!(
            " {} waits for its turn · {} joins this one ",
            app.keys.label(Action::Send),
            app.keys.label(Action::Steer)
        ),
        (_, true) => {
            format!(" {} sends · {} commands ", app.keys.label(Action::Send), app.keys.label(Action::Palette))
        }
        (_, false) => String::new(),
    };
    let room = area.right().saturating_sub(x + 3);
    let x = canvas.right(area.right() - 2, area.y, room, &hint, theme.dim);
    let commands = format!("{} commands", app.keys.label(Action::Palette));
    if let Some(at) = hint.find(&commands).filter(|_| width::of(&hint) <= room.into()) {
        let place = Rect::new(x + width::of(&hint[..at]) as u16, area.y, width::of(&commands) as u16, 1);
        app.hits.add(place, Hit::Button(Action::Palette));
    }
    let text = Rect { x: area.x + 3, y: area.y + 1, width: area.width - 4, height: area.height - 1 };
    canvas.text(area.x + 1, text.y, 1, "›", if has_keyboard { theme.accent } else { theme.dim });
    app.composer_columns = text.width.into();
    app.composer_place = text;
    if let Some(why) = app.disabled() {
        canvas.text(text.x, text.y, text.width, why, theme.warning);
        return None;
    }
    let composer = app.composer();
    if composer.is_empty() {
        let words = match app.focused_agent() {
            None => "say what the new agent is to do",
            Some(agent) if !agent.asks.is_empty() => {
                "it waits for your answer; what you send now waits for its turn"
            }
            Some(_) if app.can_steer() => "it works; what you send waits for its turn, or joins this one",
            Some(agent) if agent.turn.is_some() => "it works; what you send now waits for its turn",
            Some(_) => "say what to do; @ names a file, / a command",
        };
        canvas.text(text.x, text.y, text.width, words, theme.dim);
        return has_keyboard.then_some((text.x, text.y));
    }
    let rows = composer.near(text.width.into(), text.height.into());
    let top = rows.top(text.height.into());
    let content = composer.text();
    for (y, row) in (text.top()..text.bottom()).zip(rows.rows.iter().skip(top)) {
        let line = content.get(row.clone()).unwrap_or_default().replace('\t', " ");
        canvas.text(text.x, y, text.width, &line, theme.text);
    }
    let column = (rows.column as u16).min(text.width.saturating_sub(1));
    has_keyboard.then_some((text.x + column, text.y + (rows.row - top) as u16))
}

/// Draws what can be completed, above the prompt.
pub(super) fn draw_completion(app: &mut App, canvas: &mut Canvas<'_>, composer: Rect) {
    let Some(completion) = app.completion.clone() else { return };
    let theme = app.theme;
    let rows = completion.offers.len() as u16;
    let widest = completion.offers.iter().map(|(offer, about)| width::of(offer) + width::of(about) + 3).max();
    let columns = (widest.unwrap_or(0) as u16 + 4)
        .clamp(20, composer.width.saturating_sub(2).max(20))
        .min(composer.width);
    let height = (rows + 2).min(composer.y);
    if height < 3 {
        return;
    }
    let area =
        Rect::new(composer.x + 1, composer.y - height, columns.min(composer.width.saturating_sub(1)), height);
    canvas.clear(area);
    let inner = canvas.frame(area, "", theme.border);
    for (at, ((offer, about), y)) in completion.offers.iter().zip(inner.top()..inner.bottom()).enumerate() {
        let line = Rect::new(inner.x, y, inner.width, 1);
        app.hits.add(line, Hit::Completion(at));
        let end = canvas.text(line.x, y, line.width, offer.trim_end(), theme.text);
        let room = line.right().saturating_sub(end + 2);
        let about = width::cut(&clean::one_line(about), room.into()).into_owned();
        canvas.text(end + 2, y, room, &about, theme.dim);
        if at == completion.at {
            canvas.style(line, theme.selection);
        }
    }
}
