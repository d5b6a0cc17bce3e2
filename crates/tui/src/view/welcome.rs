//! The first screen: what was found on this machine, and what to press. A pane shows it where there is no agent.

use consort_model::{Availability, DriverKind, ProfileSummary};
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::Canvas;
use crate::app::{App, Connection, Hit};
use crate::keys::Action;
use crate::text::wrap::{self, Prefix};
use crate::text::{clean, width};

/// Columns for the name of a key, and for that of a profile.
const KEY: usize = 8;
const NAME: usize = 12;

/// A line, and what a click on it does.
type Row = (Line<'static>, Option<Action>);

pub(super) fn draw(app: &mut App, canvas: &mut Canvas<'_>, area: Rect) {
    let columns = area.width.saturating_sub(4);
    for (y, (line, action)) in (area.top() + 1..area.bottom()).zip(lines(app, columns.into())) {
        let place = Rect::new(area.x + 3, y, columns, 1);
        canvas.line(place.x, y, place.width, &line);
        if let Some(action) = action {
            app.hits.add(place, Hit::Button(action));
        }
    }
}

/// The lines, with what a click on them does.
pub(super) fn lines(app: &App, columns: usize) -> Vec<Row> {
    let theme = app.theme;
    let mut rows: Vec<Row> = Vec::new();
    let mut add = |spans: &[Span<'static>], prefix: Prefix, action: Option<Action>| {
        rows.extend(wrap::words(spans, columns, &prefix).into_iter().map(|line| (line, action)));
    };
    let text = |words: String, style: Style| [Span::styled(words, style)];
    let hanging = |label: String, style: Style| Prefix::hanging(vec![Span::styled(label, style)]);
    add(&text("Consort runs a team of coding agents.".to_owned(), theme.title), Prefix::none(), None);
    add(&[], Prefix::none(), None);
    if app.connection == Connection::Connecting {
        add(&text("connecting to the daemon…".to_owned(), theme.dim), Prefix::none(), None);
        return rows;
    }
    for profile in &app.state.profiles {
        let name = width::fit(&clean::one_line(&profile.name), NAME).into_owned();
        let (mark, style, about) = match &profile.availability {
            Availability::Available { path } => ("✓", theme.good, clean::one_line(path).into_owned()),
            Availability::Unavailable { .. } => ("–", theme.dim, how_to_get(profile)),
            Availability::Unknown => ("·", theme.dim, "being looked at".to_owned()),
        };
        add(&text(about, theme.dim), hanging(format!("{mark} {name}  "), style), None);
    }
    add(&[], Prefix::none(), None);
    let sends = app.keys.label(Action::Send);
    let mut keys: Vec<(Action, &str, &str)> = Vec::new();
    if app.can_start_agents() {
        let default = app.state.profiles.iter().find(|profile| profile.is_default);
        let who = default.map_or_else(String::new, |profile| format!(" {} does it.", profile.name));
        let words = format!("Type what is to be done in {} and press {sends}.{who}", app.cwd.display());
        add(&text(clean::one_line(&words).into_owned(), theme.text), Prefix::none(), None);
        keys.push((Action::NewAgent, app.keys.label(Action::NewAgent), "choose who does it, and where"));
        keys.push((Action::PlayDemo, app.keys.label(Action::PlayDemo), "play the demo"));
    } else {
        let words = "No agent was found here. The demo needs none, and no key for a model either:";
        add(&text(words.to_owned(), theme.text), Prefix::none(), None);
        keys.push((Action::PlayDemo, sends, "play the demo: a team at work on a scratch repository"));
        keys.push((Action::Settings, app.keys.label(Action::Settings), "profiles; `c` there looks again"));
    }
    add(&[], Prefix::none(), None);
    for (action, words) in [
        (Action::Sessions, "earlier conversations"),
        (Action::Settings, "profiles and settings"),
        (Action::Palette, "every command"),
        (Action::Help, "every key"),
        (Action::Quit, "leave; agents go on without the screen"),
    ] {
        if !keys.iter().any(|(there, ..)| *there == action) {
            keys.push((action, app.keys.label(action), words));
        }
    }
    for (action, key, words) in keys {
        let label = width::fit(key, KEY).into_owned();
        add(&text(words.to_owned(), theme.text), hanging(label, theme.key), Some(action));
    }
    rows
}

/// How to get a program that is not there.
fn how_to_get(profile: &ProfileSummary) -> String {
    match profile.driver {
        DriverKind::Claude => "not found: npm install -g @anthropic-ai/claude-code".to_owned(),
        DriverKind::Codex => "not found: npm install -g @openai/codex".to_owned(),
        DriverKind::Acp if profile.command.contains("gemini") => {
            "not found: npm install -g @google/gemini-cli".to_owned()
        }
        _ => match &profile.availability {
            Availability::Unavailable { reason } => clean::one_line(reason).into_owned(),
            _ => String::new(),
        },
    }
}
