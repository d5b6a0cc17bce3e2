//! The list of agents: workspaces, a tree, companions as small lines, who needs a person first to be seen.

use consort_model::{AgentId, Status};
use ratatui::layout::Rect;
use ratatui::style::Modifier;

use super::{Canvas, draw_mark};
use crate::app::{App, Connection, Focus, Hit};
use crate::keys::Action;
use crate::text::{clean, width};
use crate::tree::Row;

pub(super) fn draw(app: &mut App, canvas: &mut Canvas<'_>, area: Rect) {
    if area.width < 4 || area.height == 0 {
        return;
    }
    let theme = app.theme;
    let has_keyboard = app.focus == Focus::Sidebar && app.overlays.is_empty();
    let edge = if has_keyboard { theme.border_focused } else { theme.border };
    canvas.wall(area.right() - 1, area.y, area.bottom(), edge);
    let inner = Rect { width: area.width - 1, ..area };
    let mut y = inner.y;
    canvas.text(inner.x + 1, y, inner.width - 1, "consort", theme.title);
    let waiting = super::status::needy(&app.state);
    if waiting > 0 {
        let words = format!("{waiting} {}", super::status::need(waiting));
        let with_key = format!("{words} {}", app.keys.label(Action::NextNeedy));
        let room = inner.width.saturating_sub(10);
        let text = if width::of(&with_key) <= room.into() { with_key } else { words };
        let x = canvas.right(inner.right() - 1, y, room, &text, theme.warning);
        app.hits.add(Rect::new(x, y, inner.right() - x, 1), Hit::Button(Action::NextNeedy));
    } else {
        let name = &app.memory.desk.workspace().name;
        if app.memory.desk.workspaces.len() > 1 {
            canvas.right(inner.right() - 1, y, inner.width - 9, &clean::one_line(name), theme.dim);
        }
    }
    y += 2;
    let rows = app.rows();
    let shown: Vec<AgentId> = app.arranged().agents().collect();
    let focused = app.focused();
    let room = usize::from(inner.bottom().saturating_sub(y + 1));
    // The chosen row stays in sight.
    let top = app.row.saturating_sub(room.saturating_sub(1)).min(rows.len().saturating_sub(room));
    for (at, row) in rows.iter().enumerate().skip(top).take(room) {
        let line = Rect::new(inner.x, y, inner.width, 1);
        app.hits.add(line, Hit::Row(at));
        let chosen = has_keyboard && at == app.row;
        match *row {
            Row::Workspace(workspace) => {
                let name =
                    app.memory.desk.workspaces.get(workspace).map(|it| it.name.clone()).unwrap_or_default();
                let current = workspace == app.memory.desk.current;
                let mark = if current { "▾ " } else { "▸ " };
                let end = canvas.text(line.x + 1, y, 2, mark, theme.dim);
                canvas.text(
                    end,
                    y,
                    line.right().saturating_sub(end),
                    &clean::one_line(&name),
                    theme.heading_small,
                );
            }
            Row::Agent { id, depth } => {
                draw_agent(app, canvas, line, id, depth, shown.contains(&id), focused == Some(id));
            }
            Row::Companion { id, depth } => draw_companion(app, canvas, line, id, depth, focused == Some(id)),
        }
        if chosen {
            canvas.style(line, theme.selection);
        }
        y += 1;
    }
    if rows.len() > top + room {
        canvas.text(
            inner.x + 1,
            inner.bottom() - 1,
            inner.width,
            &format!("{} more", rows.len() - top - room),
            theme.dim,
        );
    } else if rows.is_empty() && app.connection == Connection::Up {
        let text = format!("{} new agent", app.keys.label(Action::NewAgent));
        canvas.text(inner.x + 1, y, inner.width - 1, &text, theme.dim);
    }
}

fn draw_agent(
    app: &mut App,
    canvas: &mut Canvas<'_>,
    line: Rect,
    id: AgentId,
    depth: usize,
    shown: bool,
    focused: bool,
) {
    let Some(agent) = app.state.agents.get(&id).cloned() else { return };
    let theme = app.theme;
    let indent = (depth * 2).min(usize::from(line.width / 3)) as u16;
    let mut x = line.x + 1 + indent;
    if depth > 0 {
        canvas.text(x - 2, line.y, 2, "└", theme.border);
    }
    draw_mark(app, canvas, x, line.y, &agent);
    x += 2;
    let status = agent.status();
    let note = match status {
        Status::NeedsInput => match agent.asks.len() {
            1 => "needs you".to_owned(),
            count => format!("needs you {count}"),
        },
        Status::Stalled => "stalled".to_owned(),
        Status::Failed => "failed".to_owned(),
        _ if !agent.queue.is_empty() => format!("+{}", agent.queue.len()),
        _ if !agent.worktrees.is_empty() => "⎇".to_owned(),
        _ => String::new(),
    };
    let note_style = match status {
        Status::Failed => theme.bad,
        Status::NeedsInput | Status::Stalled => theme.warning,
        _ => theme.dim,
    };
    let end = line.right().saturating_sub(1);
    let note_columns = width::of(&note) as u16;
    let name_columns = end.saturating_sub(x + if note.is_empty() { 0 } else { note_columns + 1 });
    let style = match (focused, shown) {
        (true, _) => theme.accent.add_modifier(Modifier::BOLD),
        (false, true) => theme.accent,
        (false, false) if crate::tree::is_finished(&agent) => theme.dim,
        (false, false) if app.unread.contains(&id) => theme.strong,
        (false, false) => theme.text,
    };
    let name = width::cut(&clean::one_line(&agent.name), name_columns.into()).into_owned();
    canvas.text(x, line.y, name_columns, &name, style);
    canvas.right(end, line.y, note_columns, &note, note_style);
}

fn draw_companion(
    app: &mut App,
    canvas: &mut Canvas<'_>,
    line: Rect,
    id: AgentId,
    depth: usize,
    focused: bool,
) {
    let Some(agent) = app.state.agents.get(&id).cloned() else { return };
    let theme = app.theme;
    let x = line.x + 3 + (depth * 2).min(usize::from(line.width / 3)) as u16;
    canvas.text(x, line.y, 1, "+", theme.border);
    draw_mark(app, canvas, x + 2, line.y, &agent);
    let columns = line.right().saturating_sub(x + 5);
    let name = width::cut(&clean::one_line(&agent.name), columns.into()).into_owned();
    let style = if focused { theme.accent } else { theme.dim };
    canvas.text(x + 4, line.y, columns, &name, style);
}
