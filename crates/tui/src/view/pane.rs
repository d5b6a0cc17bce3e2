//! Panes: an agent each, with its head, its conversation, and what it asks.

use consort_model::{Agent, AgentId, Lifecycle, Status, TurnOutcome, decide};
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::{Canvas, ask, draw_mark, duration, welcome};
use crate::app::{App, Connection, Focus, Hit};
use crate::keys::Action;
use crate::text::wrap::Prefix;
use crate::text::{clean, width};
use crate::transcript::Place;
use crate::transcript::item::{Look, prose};

/// Lines of an agent's last words on stderr that are shown.
const STDERR_LINES: usize = 8;

pub(super) fn draw_all(app: &mut App, canvas: &mut Canvas<'_>, area: Rect) {
    if area.height == 0 || area.width == 0 {
        return;
    }
    let arranged = app.arranged();
    let areas = arranged.layout.areas(area);
    for (at, (pane, area)) in arranged.panes.iter().zip(&areas).enumerate() {
        app.hits.add(*area, Hit::Pane(at, *pane));
        let focused = at == arranged.focus;
        match pane.and_then(|id| app.state.agents.get(&id)).cloned() {
            Some(agent) => draw(app, canvas, *area, &agent, focused, arranged.panes.len() > 1),
            None if areas.len() == 1 => welcome::draw(app, canvas, *area),
            None => {
                let (pane, agent) = (app.keys.label(Action::NextPane), app.keys.label(Action::NextAgent));
                let text = match focused {
                    true => format!("empty: {agent} shows an agent here, a prompt makes a new one"),
                    false => format!("empty: {pane} goes here, {agent} then shows an agent"),
                };
                let columns = area.width.saturating_sub(2).max(1);
                let lines = prose(&text, app.theme.dim, columns.into(), &Prefix::none());
                for (y, line) in (area.top()..area.bottom()).zip(&lines) {
                    canvas.line(area.x + 1, y, columns, line);
                }
            }
        }
        // The column that the layout left between panes.
        if area.right() < areas.iter().map(|it| it.right()).max().unwrap_or(0) {
            canvas.wall(area.right(), area.y, area.bottom(), app.theme.border);
        }
    }
}

fn draw(app: &mut App, canvas: &mut Canvas<'_>, area: Rect, agent: &Agent, focused: bool, many: bool) {
    let Some(body) = draw_head(app, canvas, area, agent, focused, many) else { return };
    let notes = notes(app, agent, usize::from(body.width.saturating_sub(2)));
    let card = ask::height(app, agent, body, focused);
    if focused {
        app.ask.hide();
    }
    let below = (notes.len() as u16 + card).min(body.height.saturating_sub(1));
    let text = Rect { height: body.height - below, ..body };
    draw_transcript(app, canvas, text, agent.id, focused);
    let mut y = text.bottom();
    for line in notes.iter().take(usize::from(below.saturating_sub(card))) {
        canvas.line(body.x + 1, y, body.width - 1, line);
        y += 1;
    }
    if card > 0 {
        let card = Rect { y, height: body.bottom().saturating_sub(y), ..body };
        ask::draw_card(app, canvas, card, agent, focused);
    }
}

/// The line above a conversation; what is left below it.
fn draw_head(
    app: &mut App,
    canvas: &mut Canvas<'_>,
    area: Rect,
    agent: &Agent,
    focused: bool,
    many: bool,
) -> Option<Rect> {
    let theme = app.theme;
    let line = Rect { height: 1, ..area };
    if focused && many {
        canvas.style(line, theme.selection);
    }
    draw_mark(app, canvas, area.x + 1, area.y, agent);
    let name = clean::one_line(&agent.name).into_owned();
    let style = if focused { theme.title } else { theme.dim };
    let mut x = canvas.text(area.x + 3, area.y, area.width.saturating_sub(4), &name, style);
    let mut about: Vec<String> = Vec::new();
    if let Some(owner) = agent.relation.owner() {
        about.push(format!("companion of {}", app.name_of(owner)));
    }
    if let Some(parent) = agent.relation.parent() {
        about.push(format!("for {}", app.name_of(parent)));
    }
    if let Some(worktree) = app.state.worktree_of(agent) {
        about.push(format!("⎇ {}", clean::one_line(&worktree.branch)));
    }
    if let Some(note) = agent.note.as_deref().filter(|note| !note.is_empty()) {
        about.push(clean::one_line(note).into_owned());
    }
    if agent.team_tools == consort_model::agent::TeamTools::Missing {
        about.push("without team tools".to_owned());
    }
    if let Some(title) = agent.title.as_deref().filter(|title| !title.is_empty()) {
        about.push(clean::one_line(title).into_owned());
    }
    let state = state_words(app, agent);
    let room = area.right().saturating_sub(x + width::of(&state) as u16 + 3);
    if room > 8 {
        let about = width::cut(&about.join(" · "), room.saturating_sub(2).into()).into_owned();
        x = canvas.text(x + 2, area.y, room, &about, theme.dim);
    }
    let state_style = match agent.status() {
        Status::NeedsInput | Status::Stalled => theme.warning,
        Status::Failed => theme.bad,
        _ => theme.dim,
    };
    canvas.right(
        area.right().saturating_sub(1),
        area.y,
        area.right().saturating_sub(x + 2),
        &state,
        state_style,
    );
    if focused && many {
        canvas.style(line, theme.selection);
    }
    (area.height > 1).then(|| Rect { y: area.y + 1, height: area.height - 1, ..area })
}

fn state_words(app: &App, agent: &Agent) -> String {
    let status = agent.status();
    let mut words = status.words().to_owned();
    if let Some(turn) = &agent.turn {
        if turn.interrupted {
            words = "stopping".to_owned();
        }
        if app.wall > 0 {
            words.push_str(&format!(" {}", duration(app.wall - turn.started_at.0)));
        }
    }
    let waiting = agent.queue.len();
    if waiting > 0 {
        words.push_str(&format!(", {waiting} waiting"));
    }
    words
}

/// What a person must know about an agent besides its conversation.
fn notes(app: &App, agent: &Agent, columns: usize) -> Vec<Line<'static>> {
    let theme = &app.theme;
    let mut lines = Vec::new();
    let mut say = |text: String, style| {
        lines.extend(prose(&text, style, columns, &Prefix::hanging(vec![Span::styled("▪ ", style)])));
    };
    if !app.state.profiles.is_empty() && !app.state.has_profile(&agent.profile) {
        say(
            format!(
                "profile removed: this chat can no longer send messages — {} gives it another profile",
                app.keys.label(Action::Send)
            ),
            theme.warning,
        );
    } else if app.state.restart_to_apply(agent) {
        let restart = app.keys.label(Action::RestartHere);
        say(format!("its profile was edited: restart to apply ({restart})"), theme.dim);
    }
    match &agent.lifecycle {
        Lifecycle::Failed(failure) => {
            let how = match (failure.exit_code, failure.signal) {
                // Most messages say it themselves.
                (Some(code), _) if !failure.message.contains(&code.to_string()) => {
                    format!(" (exit code {code})")
                }
                (None, Some(signal)) if !failure.message.contains(&signal.to_string()) => {
                    format!(" (signal {signal})")
                }
                _ => String::new(),
            };
            let parked = if failure.parked { "; it crashed repeatedly and is parked" } else { "" };
            let restart = app.keys.label(Action::RestartHere);
            say(format!("{}{how}{parked} — {restart} restarts it", failure.message), theme.bad);
            let tail: Vec<&str> = failure.stderr_tail.lines().collect();
            let text = tail[tail.len().saturating_sub(STDERR_LINES)..].join("\n");
            if !text.is_empty() {
                lines.extend(prose(
                    &text,
                    theme.dim,
                    columns,
                    &Prefix::same(vec![Span::styled("│ ", theme.border)]),
                ));
            }
        }
        Lifecycle::Closed { .. } => {
            say("closed; sending something opens it again".to_owned(), theme.dim);
        }
        _ if agent.status() == Status::Stalled => {
            say(
                format!("no sign of life for a while — {} stops the turn", app.keys.label(Action::Interrupt)),
                theme.warning,
            );
        }
        _ if agent.turn.is_none() => match &agent.last_outcome {
            Some(TurnOutcome::Failed { message }) => {
                say(format!("the turn failed: {}", clean::one_line(message)), theme.bad);
            }
            Some(TurnOutcome::Stopped { reason }) => {
                say(format!("the turn ended early: {}", clean::one_line(reason)), theme.warning);
            }
            Some(TurnOutcome::Interrupted) => say("the turn was stopped".to_owned(), theme.dim),
            Some(TurnOutcome::Completed) | None => {}
        },
        _ => {}
    }
    for (at, prompt) in agent.queue.iter().enumerate().take(3) {
        let joins = decide::joins(agent, prompt.id);
        let mut hint = if joins { "  joins this turn".to_owned() } else { String::new() };
        if at == 0 {
            hint.push_str(&format!("  {} edits", app.keys.label(Action::Queue)));
        }
        let room = columns.saturating_sub(2 + width::of(&hint));
        let text = width::cut(&clean::one_line(&prompt.text), room).into_owned();
        lines.push(Line::from(vec![
            Span::styled("⋯ ", theme.dim),
            Span::styled(text, theme.dim),
            Span::styled(hint, theme.border),
        ]));
    }
    lines
}

fn draw_transcript(app: &mut App, canvas: &mut Canvas<'_>, area: Rect, id: AgentId, focused: bool) {
    let theme = app.theme;
    // One column before the text for what is chosen, one after it.
    let columns = area.width.saturating_sub(3).max(1);
    app.hits.set_pane(id, columns, area.height);
    let names = |id: AgentId| app.state.agents.get(&id).map(|agent| agent.name.clone()).unwrap_or_default();
    let opens = app.keys.label(Action::OpenItem);
    let look = Look { theme: &theme, width: columns, name_of: &names, pictures: &app.pictures, opens };
    let Some(transcript) = app.transcripts.get_mut(&id) else { return };
    let (loaded, empty) = (transcript.is_loaded(), transcript.is_empty());
    if !loaded || empty {
        let text = match (&app.connection, loaded) {
            (Connection::Up, false) => "…",
            (Connection::Up, true) => "Nothing was said yet.",
            _ => "",
        };
        canvas.text(area.x + 2, area.y, columns, text, theme.dim);
        return;
    }
    let chosen = transcript.chosen().filter(|_| focused && app.focus == Focus::Transcript);
    let searched = transcript.searched().to_owned();
    for (y, shown) in (area.y..).zip(transcript.view(&look, area.height.into())) {
        canvas.line(area.x + 2, y, columns, shown.text);
        if chosen == Some(shown.index) {
            canvas.text(area.x, y, 1, "▎", theme.accent);
        }
        if !searched.is_empty() && chosen == Some(shown.index) {
            mark_found(canvas, Rect::new(area.x + 2, y, columns, 1), &searched);
        }
        app.hits.add(Rect::new(area.x, y, area.width, 1), Hit::Line(id, shown.index));
    }
    if transcript.place() != Place::End && area.height > 2 {
        let unseen = if transcript.has_unseen() { "new below" } else { "more below" };
        let text = format!(" ↓ {unseen} · {} ", app.keys.label(Action::ScrollEnd));
        let x = canvas.right(area.right() - 1, area.bottom() - 1, area.width - 1, &text, theme.status_bar);
        app.hits.add(Rect::new(x, area.bottom() - 1, area.right() - x, 1), Hit::Button(Action::ScrollEnd));
    }
}

/// Marks what a search found in a line on the screen.
pub(super) fn mark_found(canvas: &mut Canvas<'_>, line: Rect, searched: &str) {
    let mut text = String::new();
    let mut columns = Vec::new();
    for x in line.left()..line.right() {
        let Some(cell) = canvas.buffer.cell((x, line.y)) else { continue };
        let lower = cell.symbol().to_lowercase();
        columns.extend(std::iter::repeat_n(x, lower.len()));
        text.push_str(&lower);
    }
    let style = canvas.theme.found;
    for (at, found) in text.match_indices(searched) {
        let (Some(from), Some(to)) = (columns.get(at), columns.get(at + found.len() - 1)) else { continue };
        canvas.style(Rect::new(*from, line.y, to - from + 1, 1), style);
    }
}
