//! The bar at the bottom: who works and who waits, and what the agent that has the keyboard runs with.

use consort_model::{Agent, Lifecycle, Relation, State, Status};
use ratatui::layout::Rect;

use super::Canvas;
use crate::app::{App, Connection, Hit, Toast};
use crate::keys::Action;
use crate::text::wrap::Prefix;
use crate::text::{clean, width};
use crate::transcript::item::prose;
use crate::tree::is_finished;

/// Rows of a message at most.
const TALLEST: u16 = 8;

pub(super) fn draw(app: &mut App, canvas: &mut Canvas<'_>, area: Rect) {
    if area.height == 0 {
        return;
    }
    let theme = app.theme;
    canvas.style(area, theme.status_bar);
    let columns = area.width.saturating_sub(2);
    if let Connection::Lost { why, starting } = &app.connection {
        let text = if *starting {
            "the daemon is being started…".to_owned()
        } else {
            let key = app.keys.label(Action::Redraw);
            // Whoever ended with it was told to, before the connection went.
            let lives = |agent: &Agent| matches!(agent.lifecycle, Lifecycle::Starting | Lifecycle::Ready);
            let go_on =
                if app.state.agents.values().any(lives) { "; agents go on by themselves" } else { "" };
            format!("the daemon is gone ({}); waiting for it — {key} starts it{go_on}", clean::one_line(why))
        };
        let text = width::cut(&text, columns.into()).into_owned();
        canvas.text(area.x + 1, area.y, columns, &text, theme.status_bar.patch(theme.bad));
        return;
    }
    if let Some(toast) = &app.toast {
        let style = theme.status_bar.patch(if toast.bad { theme.bad } else { theme.accent });
        let text = width::cut(&clean::one_line(&toast.text), columns.into()).into_owned();
        canvas.text(area.x + 1, area.y, columns, &text, style);
        return;
    }
    let counts = match app.connection {
        Connection::Connecting => "connecting…".to_owned(),
        _ => counts(&app.state),
    };
    // Who needs a person is never cut off; what the session is gives way, a whole part at a time.
    let end = canvas.text(area.x + 1, area.y, columns, &counts, theme.status_bar);
    let needy = Rect::new(area.x, area.y, end.saturating_sub(area.x), 1);
    app.hits.add(needy, Hit::Button(Action::NextNeedy));
    let mut x = area.x + 1;
    for part in counts.split_inclusive(", ") {
        let words = part.trim_end_matches(", ");
        if words.ends_with(" you") {
            let place = Rect::new(x, area.y, width::of(words) as u16, 1);
            canvas.style(place, theme.status_bar.patch(theme.warning));
        }
        x += width::of(part) as u16;
    }
    let room = usize::from(area.right().saturating_sub(end + 3));
    let parts = app.focused_agent().map(|agent| session(app, agent)).unwrap_or_default();
    let parts = fitting(parts, room);
    let mut x = area.right().saturating_sub(1 + columns_of(&parts) as u16);
    for (at, part) in parts.iter().enumerate() {
        if at > 0 {
            x = canvas.text(x, area.y, width::of(SEPARATOR) as u16, SEPARATOR, theme.status_bar);
        }
        let columns = width::of(&part.text) as u16;
        if let Some(action) = part.action {
            app.hits.add(Rect::new(x, area.y, columns, 1), Hit::Button(action));
        }
        x = canvas.text(x, area.y, columns, &part.text, theme.status_bar);
    }
}

/// Draws the message at the bottom over everything else, where the bar is too narrow for it.
pub(super) fn draw_tall_toast(app: &mut App, canvas: &mut Canvas<'_>, bar: Rect) {
    let columns = usize::from(bar.width.saturating_sub(2)).max(1);
    let Some(toast) = app.toast.as_ref().filter(|toast| is_tall(toast, bar.width)) else { return };
    let theme = app.theme;
    let style = theme.status_bar.patch(if toast.bad { theme.bad } else { theme.accent });
    let lines = prose(&toast.text, style, columns, &Prefix::none());
    let rows = (lines.len() as u16).min(bar.y.saturating_sub(2) + 1).min(TALLEST);
    let area = Rect { y: bar.bottom() - rows, height: rows, ..bar };
    canvas.clear(area);
    canvas.style(area, theme.status_bar);
    for (y, line) in (area.top()..area.bottom()).zip(&lines) {
        canvas.line(area.x + 1, y, columns as u16, line);
    }
    app.tall_toast = true;
}

/// Whether a message does not fit into the bar.
pub(super) fn is_tall(toast: &Toast, columns: u16) -> bool {
    toast.text.contains('\n') || width::of(&toast.text) > usize::from(columns.saturating_sub(2))
}

/// How many agents need a person.
pub(super) fn needy(state: &State) -> usize {
    state.agents.values().filter(|agent| !agent.is_closed() && agent.status() == Status::NeedsInput).count()
}

/// What so many of them do.
pub(super) fn need(count: usize) -> &'static str {
    if count == 1 { "needs you" } else { "need you" }
}

/// `Agents: 1 primary, 2 running, 1 needs you, 1 finished`; what there is none of is left out.
pub(super) fn counts(state: &State) -> String {
    let open = || state.agents.values().filter(|agent| !agent.is_closed());
    let count = |wanted: &dyn Fn(&&Agent) -> bool| open().filter(wanted).count();
    let primary = count(&|agent| agent.relation == Relation::Primary);
    let parts = [
        (count(&|agent| matches!(agent.status(), Status::Working | Status::Starting)), "running"),
        (needy(state), need(needy(state))),
        (count(&|agent| agent.status() == Status::Stalled), "stalled"),
        (count(&|agent| agent.status() == Status::Failed), "failed"),
        (count(&|agent| is_finished(agent)), "finished"),
    ];
    let mut text = format!("Agents: {primary} primary");
    for (count, word) in parts.into_iter().filter(|(count, _)| *count > 0) {
        text.push_str(&format!(", {count} {word}"));
    }
    text
}

/// What stands between parts.
const SEPARATOR: &str = " · ";

/// Something that is said about a session.
struct Part {
    text: String,
    /// What a click on it does.
    action: Option<Action>,
    /// How much it matters.
    weight: u8,
}

/// The columns that parts take.
fn columns_of(parts: &[Part]) -> usize {
    let texts: usize = parts.iter().map(|part| width::of(&part.text)).sum();
    texts + width::of(SEPARATOR) * parts.len().saturating_sub(1)
}

/// The parts that fit: what matters least is left out first, and nothing is cut.
fn fitting(mut parts: Vec<Part>, columns: usize) -> Vec<Part> {
    while columns_of(&parts) > columns {
        let Some(least) = parts.iter().map(|part| part.weight).min() else { break };
        parts.retain(|part| part.weight > least);
    }
    parts
}

/// Model, mode, context use, cost and branch.
fn session(app: &App, agent: &Agent) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    let mut say = |text: String, weight, action| parts.push(Part { text, action, weight });
    if let Some(model) = agent.options.iter().find(|option| option.id == "model") {
        let name = model
            .choices
            .iter()
            .find(|choice| choice.id == model.current)
            .map_or(&model.current, |it| &it.name);
        say(clean::one_line(name).into_owned(), 4, Some(Action::PickModel));
    } else if let Some(profile) = app.state.profile(&agent.profile) {
        let name = profile.default_model.as_deref().unwrap_or(&profile.name);
        say(clean::one_line(name).into_owned(), 4, Some(Action::PickModel));
    }
    say(agent.permissions.word().to_owned(), 5, Some(Action::CycleMode));
    if let (Some(used), Some(size)) = (agent.usage.context_used, agent.usage.context_size)
        && size > 0
    {
        say(format!("context {}%", (used * 100).div_ceil(size)), 3, None);
    }
    if let Some(cost) = agent.usage.cost {
        say(format!("{}${cost:.2}", super::about_cost(agent)), 2, None);
    }
    if let Some(branch) = app.branches.get(std::path::Path::new(&agent.cwd)) {
        say(clean::one_line(branch).into_owned(), 1, None);
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{agent, state_of, sub_agent};
    use consort_model::{Timestamp, Turn, TurnId, relation::TaskResult};

    #[test]
    fn the_bar_counts_agents_by_what_they_do() {
        let turn = Turn {
            id: TurnId::new(uuid::Uuid::nil()),
            started_at: Timestamp(0),
            interrupted: false,
            stalled: false,
            yielded: false,
        };
        let mut finished = sub_agent(4, 1);
        let Relation::SubAgent { result, .. } = &mut finished.relation else { panic!("a sub-agent") };
        *result = Some(TaskResult::Yielded { text: "done".into(), file: None });
        let working = |mut agent: Agent| {
            agent.turn = Some(turn.clone());
            agent
        };
        let state = state_of(vec![agent(1), working(sub_agent(2, 1)), working(sub_agent(3, 1)), finished]);
        assert_eq!(counts(&state), "Agents: 1 primary, 2 running, 1 finished");
        assert_eq!(counts(&state_of(vec![])), "Agents: 0 primary");
    }
}
