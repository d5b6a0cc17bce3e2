//! The sessions that agents' programs keep.

use consort_daemon::protocol::{Call, SessionView};

use crate::args;
use crate::exit::Stop;
use crate::link::Link;
use crate::output::{Output, Paint, Style, age, now, one_line, print_json};
use crate::prompt::working_directory;

/// `consort sessions`.
pub fn sessions(args: &args::Sessions) -> Result<(), Stop> {
    let cwd = working_directory(args.cwd.as_deref())?;
    let call = Call::ListSessions { profile: args.profile.clone(), cwd };
    let sessions: Vec<SessionView> = Link::new()?.call(&call)?;
    if args.json {
        return print_json(&sessions);
    }
    let mut output = Output::human();
    if sessions.is_empty() {
        output.line("no sessions in this folder")?;
    }
    for session in &sessions {
        let text = shown(session, output.paint, now());
        output.write(&text)?;
    }
    output.flush()
}

fn shown(view: &SessionView, paint: Paint, now: i64) -> String {
    let session = &view.session;
    let since = session.updated_at.map_or_else(|| "-".to_owned(), |at| age(now - at.0));
    let of = view.agent.as_ref().map(|name| format!("  agent {}", one_line(name))).unwrap_or_default();
    format!(
        "{}  {}{of}\n  {}\n",
        paint.paint(Style::Bold, &one_line(&session.id)),
        paint.paint(Style::Dim, &since),
        one_line(session.title.as_deref().unwrap_or("(without a title)")),
    )
}

#[cfg(test)]
mod tests {
    use consort_model::{KeptSession, ProfileId, Timestamp};

    use super::*;

    #[test]
    fn a_session_is_two_lines_and_names_its_agent() {
        let session = KeptSession {
            id: "s-1".into(),
            title: Some("Mend\nthe gate".into()),
            cwd: "/w".into(),
            updated_at: Some(Timestamp(0)),
        };
        let view = SessionView { session, profile: ProfileId::new("codex"), agent: Some("fixer".into()) };
        let text = shown(&view, Paint::plain(), 120_000);
        assert_eq!(text, format!("s-1  {}  agent fixer\n  Mend the gate\n", age(120_000)));
        let bare = SessionView {
            session: KeptSession { id: "s-2".into(), ..KeptSession::default() },
            agent: None,
            ..view
        };
        assert_eq!(shown(&bare, Paint::plain(), 0), "s-2  -\n  (without a title)\n");
    }
}
