//! What a pane shows where there is no agent: what was found on this machine, and what to press.

use consort_model::{Availability, DriverKind, ProfileSummary};
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::Canvas;
use crate::app::{App, Connection};
use crate::keys::Action;
use crate::text::clean;

pub(super) fn draw(app: &mut App, canvas: &mut Canvas<'_>, area: Rect) {
    let theme = app.theme;
    let mut lines: Vec<Line<'static>> =
        vec![Line::styled("Consort runs a team of coding agents.", theme.title), Line::default()];
    if app.connection == Connection::Connecting {
        lines.push(Line::styled("connecting to the daemon…", theme.dim));
    } else {
        let available =
            |profile: &ProfileSummary| matches!(profile.availability, Availability::Available { .. });
        for profile in &app.state.profiles {
            let name = clean::one_line(&profile.name).into_owned();
            let (mark, style, about) = match &profile.availability {
                Availability::Available { path } => ("✓ ", theme.good, clean::one_line(path).into_owned()),
                Availability::Unavailable { .. } => ("– ", theme.dim, how_to_get(profile)),
                Availability::Unknown => ("· ", theme.dim, "being looked at".to_owned()),
            };
            lines.push(Line::from(vec![
                Span::styled(mark, style),
                Span::styled(format!("{name:<12} "), if available(profile) { theme.text } else { theme.dim }),
                Span::styled(about, theme.dim),
            ]));
        }
        lines.push(Line::default());
        let key = |action: Action, words: &str| {
            Line::from(vec![
                Span::styled(format!("{:<8}", app.keys.label(action)), theme.key),
                Span::styled(words.to_owned(), theme.text),
            ])
        };
        if app.state.profiles.iter().any(available) {
            lines.push(Line::styled(
                format!(
                    "Type what is to be done in {} and press enter.",
                    clean::one_line(&app.cwd.to_string_lossy())
                ),
                theme.text,
            ));
            lines.push(Line::default());
            lines.push(key(Action::NewAgent, "choose who does it"));
        } else {
            lines.push(Line::styled(
                "No agent was found. `consort demo` shows a team at work without any.",
                theme.text,
            ));
            lines.push(Line::default());
        }
        lines.push(key(Action::Sessions, "earlier conversations"));
        lines.push(key(Action::Settings, "profiles and settings"));
        lines.push(key(Action::Palette, "every command"));
        lines.push(key(Action::Help, "every key"));
        lines.push(key(Action::Quit, "leave; agents go on without the screen"));
    }
    for (y, line) in (area.top() + 1..area.bottom()).zip(&lines) {
        canvas.line(area.x + 3, y, area.width.saturating_sub(4), line);
    }
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
