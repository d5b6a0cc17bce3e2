//! The inbox: everything that agents ask, oldest first, and the whole of the one that has the keyboard.

use ratatui::layout::Rect;

use super::middle;
use crate::app::{App, Hit};
use crate::overlay::Inbox;
use crate::text::{clean, width};
use crate::view::{Canvas, ask, duration};

/// Columns of the inbox at most.
const COLUMNS: u16 = 120;

pub(super) fn draw(app: &mut App, canvas: &mut Canvas<'_>, area: Rect, inbox: &mut Inbox) {
    let theme = app.theme;
    inbox.ask.hide();
    let open: Vec<_> =
        app.state.inbox().into_iter().map(|(agent, ask)| (agent.clone(), ask.clone())).collect();
    let at = open.iter().position(|(_, ask)| Some(ask.id) == inbox.ask.current).unwrap_or(0);
    let inside = usize::from(area.width.saturating_sub(2).min(COLUMNS)).saturating_sub(4);
    let lines = open.get(at).map(|(agent, ask)| ask::lines_in_reach(app, &inbox.ask, agent, ask, inside));
    let lines = lines.unwrap_or_default();
    // As high as what is asked, with room for the list, so that the keys stand near what they are for.
    let wanted = lines.len() + open.len().min(usize::from(area.height / 3)) + 7;
    let area = middle(area, COLUMNS, u16::try_from(wanted.max(12)).unwrap_or(u16::MAX));
    canvas.clear(area);
    app.hits.add(area, Hit::Overlay);
    let title = match open.len() {
        0 => "Inbox: nobody needs you".to_owned(),
        1 => "Inbox: 1 request".to_owned(),
        count => format!("Inbox: {count} requests"),
    };
    let inner = canvas.frame(area, &title, theme.border_focused);
    if inner.height < 4 {
        return;
    }
    if open.is_empty() {
        canvas.text(
            inner.x,
            inner.y,
            inner.width,
            "What agents ask of you comes here, from every depth.",
            theme.dim,
        );
        return;
    }
    let needed = u16::try_from(lines.len()).unwrap_or(u16::MAX).saturating_add(3);
    let room = inner.height.saturating_sub(needed).max(inner.height / 3).max(1);
    let list = u16::try_from(open.len()).unwrap_or(u16::MAX).min(room);
    let top = (at + 1).saturating_sub(list.into());
    for (row, (agent, ask)) in open.iter().enumerate().skip(top).take(list.into()) {
        let y = inner.y + (row - top) as u16;
        let line = Rect::new(inner.x, y, inner.width, 1);
        app.hits.add(line, Hit::InboxRow(ask.id));
        let mark = if inbox.ask.marked.contains(&ask.id) { "◆" } else { " " };
        canvas.text(line.x, y, 1, mark, theme.accent);
        let name = width::fit(&clean::one_line(&agent.name), 16).into_owned();
        let end = canvas.text(line.x + 2, y, 17, &name, theme.title);
        let age = if app.wall > 0 { duration(app.wall - ask.at.0) } else { String::new() };
        let room = line.right().saturating_sub(end + 2 + width::of(&age) as u16);
        let text = width::cut(&clean::one_line(&ask.title), room.into()).into_owned();
        canvas.text(end + 1, y, room, &text, theme.text);
        canvas.right(line.right(), y, 8, &age, theme.dim);
        if row == at {
            canvas.style(line, theme.selection);
        }
    }
    let rule = Rect { y: inner.y + list, height: 1, ..inner };
    canvas.rule(rule, theme.border);
    let hidden = open.len().saturating_sub(list.into());
    if hidden > 0 {
        canvas.right(rule.right(), rule.y, rule.width, &format!(" {hidden} more "), theme.dim);
    }
    let Some((_, ask)) = open.get(at) else { return };
    let keys = 2.min(inner.height.saturating_sub(list + 2));
    let text = Rect { y: rule.y + 1, height: inner.height.saturating_sub(list + 1 + keys), ..inner };
    ask::draw_lines(&mut inbox.ask, canvas, text, &lines);
    let live = inbox.ask.is_armed();
    ask::draw_buttons(app, canvas, Rect { y: text.bottom(), height: keys, ..inner }, ask, live);
}
