//! Every conversation: Consort's own, and those that agents' programs keep of a person's work with them.
//!
//! Programs are asked when the list is opened, since some must be run for it; what each one tells comes into the list when
//! it has told. A session that an agent has is that agent's conversation and stands there once.

use std::path::PathBuf;

use consort_daemon::protocol::{Call, NewAgent, SessionView};
use consort_model::{Agent, AgentId, Availability, DriverKind, ProfileId, ProfileSummary};
use uuid::Uuid;

use super::{App, Reply};
use crate::overlay::{Awaited, Choice, Command, Overlay, Picker};
use crate::text::clean;
use crate::view::duration;

const TITLE: &str = "Every conversation";

impl App {
    /// Every conversation, closed ones too, newest first; then the sessions of programs.
    pub(super) fn pick_session(&mut self) {
        let mut agents: Vec<&Agent> = self.state.agents.values().collect();
        agents.sort_by_key(|agent| std::cmp::Reverse(agent.created_at));
        let choices = agents.into_iter().map(conversation).collect();
        let mut picker = Picker::new(TITLE, choices).searching_details();
        picker.awaited = Some(Awaited::Sessions);
        picker.empty = "there is none yet".to_owned();
        self.open(Overlay::Picker(picker));
        let keeps = |profile: &&ProfileSummary| {
            let asks = matches!(profile.driver, DriverKind::Claude | DriverKind::Codex | DriverKind::Acp);
            asks && !matches!(profile.availability, Availability::Unavailable { .. })
        };
        let profiles: Vec<ProfileId> =
            self.state.profiles.iter().filter(keeps).map(|profile| profile.id.clone()).collect();
        for profile in profiles {
            // One that was asked by a list that was closed tells this one.
            if self.asked_for_sessions.insert(profile.clone()) {
                let call = Call::ListSessions { profile: Some(profile.to_string()), cwd: self.cwd.clone() };
                self.call(call, Reply::Sessions(profile));
            }
        }
        self.name_who_is_asked();
    }

    /// A program told its sessions, or why not.
    pub(super) fn sessions_told(&mut self, profile: &ProfileId, told: Result<Vec<SessionView>, String>) {
        self.asked_for_sessions.remove(profile);
        let name = self.state.profile(profile).map_or("a profile", |profile| profile.name.as_str());
        let name = clean::one_line(name).into_owned();
        let choices = match told {
            Ok(sessions) => sessions
                .into_iter()
                .filter(|view| view.agent.is_none())
                .map(|view| kept(&name, view, self.wall))
                .collect(),
            Err(why) => {
                let row = Choice::new(format!("{name}: no sessions"), Command::Explain(why.clone()));
                vec![row.detail(clean::one_line(&why))]
            }
        };
        if let Some(picker) = self.session_picker() {
            // Profiles of one program tell the same.
            let known = |choice: &Choice| {
                picker.has(|other| session(other).is_some_and(|id| session(choice) == Some(id)))
            };
            let choices = choices.into_iter().filter(|choice| !known(choice)).collect();
            picker.add(choices);
            self.name_who_is_asked();
        }
    }

    /// Nobody tells any more.
    pub(super) fn sessions_lost(&mut self) {
        self.asked_for_sessions.clear();
        self.name_who_is_asked();
    }

    /// Goes on with a program's session, as a new agent.
    pub(super) fn resume(&mut self, session: String, profile: ProfileId, cwd: String) {
        let id = AgentId::new(Uuid::now_v7());
        let cwd = if cwd.is_empty() { self.cwd.clone() } else { PathBuf::from(cwd) };
        let agent = NewAgent {
            id,
            profile: Some(profile.to_string()),
            name: None,
            cwd,
            companion_of: None,
            permissions: None,
            worktree: None,
            prompt: None,
        };
        self.put_here(id);
        self.call(Call::ResumeSession { session, agent }, Reply::Created(id));
    }

    fn session_picker(&mut self) -> Option<&mut Picker> {
        self.overlays.iter_mut().find_map(|overlay| match overlay {
            Overlay::Picker(picker) if picker.awaited == Some(Awaited::Sessions) => Some(picker),
            _ => None,
        })
    }

    fn name_who_is_asked(&mut self) {
        let asked = self.state.profiles.iter().filter(|it| self.asked_for_sessions.contains(&it.id));
        let names: Vec<String> = asked.map(|profile| clean::one_line(&profile.name).into_owned()).collect();
        let title = if names.is_empty() {
            TITLE.to_owned()
        } else {
            format!("{TITLE} · asking {}…", names.join(", "))
        };
        if let Some(picker) = self.session_picker() {
            picker.title = title;
        }
        self.redraw();
    }
}

/// An agent's conversation.
fn conversation(agent: &Agent) -> Choice {
    let title = agent.title.as_deref().unwrap_or_default();
    let label = format!("{} {}", clean::one_line(&agent.name), clean::one_line(title));
    Choice::new(label.trim_end(), Command::Show(agent.id))
        .detail(clean::one_line(&agent.cwd))
        .note(agent.status().words())
}

/// A session that a program keeps.
fn kept(profile: &str, view: SessionView, now: i64) -> Choice {
    let SessionView { session, profile: id, .. } = view;
    let title = session.title.as_deref().map(clean::one_line).filter(|title| !title.trim().is_empty());
    let label = title.map_or_else(|| "(without a title)".to_owned(), |title| title.trim().to_owned());
    let detail = format!("{profile} · {}", clean::one_line(&session.cwd));
    let age = session.updated_at.filter(|_| now > 0).map(|at| age(now - at.0)).unwrap_or_default();
    let command = Command::Resume { session: session.id, profile: id, cwd: session.cwd };
    Choice::new(label, command).detail(detail).note(age)
}

/// The session that a row goes on with.
fn session(choice: &Choice) -> Option<&str> {
    match &choice.command {
        Command::Resume { session, .. } => Some(session),
        _ => None,
    }
}

/// How long ago something was, in words that stay short.
fn age(milliseconds: i64) -> String {
    const DAY: i64 = 24 * 3_600_000;
    if milliseconds < 2 * DAY {
        format!("{} ago", duration(milliseconds))
    } else {
        format!("{} days ago", milliseconds / DAY)
    }
}
