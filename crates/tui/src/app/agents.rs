//! What a person does to agents: create, show, rename, close and so on; and the lists to choose them from.

use std::collections::BTreeMap;

use consort_daemon::protocol::{Call, ErrorBody, MessageView, NewAgent};
use consort_model::{
    Agent, AgentId, Availability, PermissionMode, ProfileSummary, Prompt, Refusal, Status, decide,
};
use uuid::Uuid;

use super::{App, Focus, Reply, Topic};
use crate::desk::Layout;
use crate::keys::{Action, TABLE};
use crate::memory::Notices;
use crate::overlay::{Choice, Command, Field, Overlay, Picker, Purpose};
use crate::text::clean;
use crate::tree::{self, Row};
use crate::view::duration;

impl App {
    /// A new agent of a profile, or of the default one; its id.
    pub(super) fn create(
        &mut self,
        profile: Option<String>,
        companion_of: Option<AgentId>,
    ) -> Option<AgentId> {
        if profile.is_none() && !self.state.profiles.iter().any(|profile| profile.is_default) {
            self.pick_profile(companion_of);
            return None;
        }
        let id = AgentId::new(Uuid::now_v7());
        let cwd = match companion_of.and_then(|owner| self.state.agents.get(&owner)) {
            Some(owner) => owner.cwd.clone().into(),
            None => self.cwd.clone(),
        };
        let new = NewAgent {
            id,
            profile,
            name: None,
            cwd,
            companion_of: companion_of.map(|owner| owner.to_string()),
            permissions: None,
            worktree: None,
            prompt: None,
        };
        match companion_of {
            Some(_) => self.wanted = Some(id),
            None => self.put_here(id),
        }
        self.call(Call::CreateAgent(new), Reply::Created(id));
        Some(id)
    }

    /// A new agent belongs to the workspace on the screen, and is shown once it is there.
    pub(super) fn put_here(&mut self, id: AgentId) {
        let workspace = self.memory.desk.current;
        if workspace > 0 {
            self.memory.desk.workspaces[workspace].agents.insert(id);
        }
        self.wanted = Some(id);
    }

    /// The profiles, to make an agent of one.
    pub(super) fn pick_profile(&mut self, companion_of: Option<AgentId>) {
        let mut choices: Vec<Choice> = self
            .state
            .profiles
            .iter()
            .map(|profile| {
                let name = clean::one_line(&profile.name).into_owned();
                let model = profile.default_model.as_deref().unwrap_or_default();
                let detail = format!("{} {model}", profile.driver).trim_end().to_owned();
                match &profile.availability {
                    Availability::Unavailable { reason } => {
                        Choice::new(name, Command::Explain(reason.clone()))
                            .detail(clean::one_line(reason))
                            .note("not available")
                    }
                    _ => {
                        let command = Command::Create { profile: profile.id.to_string(), companion_of };
                        let note = if profile.is_default { "default" } else { "" };
                        Choice::new(name, command).detail(detail).note(note)
                    }
                }
            })
            .collect();
        if companion_of.is_none() {
            let worktree =
                Choice::new("in a worktree of its own…", Command::DescribeAgent { worktree: true });
            choices.push(worktree.detail("a branch and a folder that nobody else changes"));
            let more = Choice::new("choose more…", Command::DescribeAgent { worktree: false });
            choices.push(more.detail("name, folder, permission mode, first prompt"));
        }
        let title = match companion_of {
            Some(owner) => format!("A companion for {}", self.name_of(owner)),
            None => format!("New agent in {}", self.cwd.display()),
        };
        let defaults: Vec<String> = self
            .state
            .profiles
            .iter()
            .filter(|profile| profile.is_default)
            .map(|profile| clean::one_line(&profile.name).into_owned())
            .collect();
        let picker = Picker::new(title, choices).starting_at(|choice| defaults.contains(&choice.label));
        self.open(Overlay::Picker(picker));
    }

    pub(super) fn open(&mut self, overlay: Overlay) {
        self.completion = None;
        self.overlays.push(overlay);
        self.redraw();
    }

    /// Goes to the agent after or before the one that has the keyboard.
    pub(super) fn step_agent(&mut self, back: bool) {
        let order = tree::order(&self.state, &self.memory.desk);
        if order.is_empty() {
            return;
        }
        let here = self.focused().map(|agent| {
            // From a companion one goes on from its owner.
            self.state.agents.get(&agent).and_then(|agent| agent.relation.owner()).unwrap_or(agent)
        });
        let at = here.and_then(|here| order.iter().position(|id| *id == here));
        let next = match at {
            Some(at) => (at + if back { order.len() - 1 } else { 1 }) % order.len(),
            None => 0,
        };
        if let Some(agent) = order.get(next) {
            self.show(*agent, false);
        }
    }

    /// The rows of the sidebar.
    pub fn rows(&self) -> Vec<Row> {
        tree::rows(&self.state, &self.memory.desk)
    }

    /// The chosen row follows the agent that has the keyboard.
    pub(super) fn follow_row(&mut self) {
        let focused = self.focused();
        let at = self.rows().iter().position(|row| row.agent().is_some() && row.agent() == focused);
        if let Some(at) = at {
            self.row = at;
        }
    }

    /// The agent that a command is about: the chosen row's, or the one that has the keyboard.
    pub fn subject(&self) -> Option<AgentId> {
        if self.focus == Focus::Sidebar && self.overlays.is_empty() {
            return self.rows().get(self.row).and_then(|row| row.agent());
        }
        self.focused()
    }

    /// An agent was closed: what is shown instead of it.
    pub(super) fn leave_closed(&mut self, closed: AgentId) {
        let desk = &mut self.memory.desk;
        for workspace in &mut desk.workspaces {
            if workspace.panes.len() > 1 {
                for pane in workspace.panes.iter_mut().filter(|pane| **pane == Some(closed)) {
                    *pane = None;
                }
            }
        }
        self.row = self.row.min(self.rows().len().saturating_sub(1));
    }

    pub(super) fn act_on_sidebar(&mut self, action: Action) {
        let rows = self.rows();
        let count = rows.len().max(1);
        match action {
            Action::RowUp => self.row = (self.row + count - 1) % count,
            Action::RowDown => self.row = (self.row + 1) % count,
            Action::LeaveSidebar => self.focus = Focus::Composer,
            Action::RowOpen => match rows.get(self.row) {
                Some(Row::Workspace(at)) => self.carry_out(Command::Workspace(*at)),
                Some(row) => {
                    if let Some(agent) = row.agent() {
                        self.show(agent, false);
                    }
                }
                None => {}
            },
            Action::RowAlone => {
                if let Some(agent) = self.subject() {
                    self.show(agent, true);
                }
            }
            Action::RowPane => {
                if let Some(agent) = self.subject() {
                    self.memory.desk.show_beside(&self.state, agent);
                    self.focus = Focus::Composer;
                    self.screen_changed();
                }
            }
            action => self.act_on_agent(action),
        }
        self.redraw();
    }

    /// What can be done to the agent that is meant.
    pub(super) fn act_on_agent(&mut self, action: Action) {
        let Some(agent) = self.subject() else { return self.say("there is no agent here") };
        match action {
            Action::RowRename => {
                let name = self.name_of(agent);
                self.open(Overlay::Field(Field::new("Rename", name, Purpose::Rename(agent))));
            }
            Action::RowInterrupt => self.carry_out(Command::Interrupt(agent)),
            Action::RowClose => self.confirm_close(agent),
            Action::RowRestart | Action::RestartAgent => self.carry_out(Command::Restart(agent)),
            Action::RowFork => self.carry_out(Command::Fork(agent)),
            Action::RowCompanion => self.pick_profile(Some(agent)),
            Action::RebindAgent => self.pick_rebind(agent),
            Action::RowMove => {
                let workspaces = self.memory.desk.workspaces.iter().enumerate();
                let choices = workspaces
                    .map(|(at, it)| Choice::new(it.name.clone(), Command::Move(agent, at)))
                    .collect();
                self.open(Overlay::Picker(Picker::new("Move to which workspace", choices)));
            }
            _ => {}
        }
    }

    fn confirm_close(&mut self, agent: AgentId) {
        let Some(closing) = self.state.agents.get(&agent) else { return };
        let name = self.name_of(agent);
        let bound =
            self.state.agents.values().filter(|it| it.relation.bound_to() == Some(agent) && !it.is_closed());
        let bound: Vec<String> = bound.map(|it| clean::one_line(&it.name).into_owned()).collect();
        let working = matches!(closing.status(), Status::Working | Status::NeedsInput | Status::Stalled);
        let with =
            if bound.is_empty() { String::new() } else { format!(", and with it {}", bound.join(", ")) };
        let state = if working { " while it works" } else { "" };
        let choices = vec![
            Choice::new(format!("close {name}"), Command::Close(agent))
                .detail(format!("its transcript stays{with}")),
            Choice::new("keep it", Command::Nothing),
        ];
        self.open(Overlay::Picker(Picker::new(format!("Close {name}{state}?"), choices)));
    }

    /// Profiles of the same driver, for an agent whose own was removed.
    pub(super) fn pick_rebind(&mut self, agent: AgentId) {
        let bound = self.state.agents.get(&agent).map(|agent| (agent.driver, agent.profile.clone()));
        let Some((driver, now)) = bound else { return };
        let of_driver = |profile: &&ProfileSummary| profile.driver == driver;
        let mut profiles: Vec<&ProfileSummary> = self.state.profiles.iter().filter(of_driver).collect();
        profiles.sort_by_key(|profile| matches!(profile.availability, Availability::Unavailable { .. }));
        let choices = profiles
            .into_iter()
            .map(|profile| {
                let name = clean::one_line(&profile.name).into_owned();
                let is_now = profile.id == now;
                match &profile.availability {
                    Availability::Unavailable { reason } => {
                        Choice::new(name, Command::Explain(reason.clone()))
                            .detail(clean::one_line(reason))
                            .note(if is_now { "now, not available" } else { "not available" })
                    }
                    _ => Choice::new(name, Command::Rebind(agent, profile.id.to_string()))
                        .detail(clean::one_line(&profile.command))
                        .note(if is_now { "now" } else { "" }),
                }
            })
            .collect();
        let another = |choice: &Choice| matches!(&choice.command, Command::Rebind(_, profile) if *profile != now.to_string());
        let title = format!("Another profile for {}", self.name_of(agent));
        let mut picker = Picker::new(title, choices).starting_at(another);
        picker.empty = format!("there is no profile of the driver {driver}; add one in the settings");
        self.open(Overlay::Picker(picker));
    }

    /// The values of one of a session's options.
    pub(super) fn pick_option(&mut self, agent: AgentId, wanted: &str) {
        let option = self
            .state
            .agents
            .get(&agent)
            .and_then(|agent| agent.options.iter().find(|option| option.id == wanted))
            .cloned();
        let Some(option) = option else {
            return self.say(format!("{} offers no {wanted} to choose", self.name_of(agent)));
        };
        let choices = option
            .choices
            .iter()
            .map(|choice| {
                let command = Command::Choose { agent, option: option.id.clone(), value: choice.id.clone() };
                let note = if choice.id == option.current { "now" } else { "" };
                let detail = choice.description.as_deref().unwrap_or_default();
                Choice::new(clean::one_line(&choice.name), command).detail(clean::one_line(detail)).note(note)
            })
            .collect();
        let current = option.current.clone();
        let picker = Picker::new(clean::one_line(&option.name), choices).starting_at(
            |choice| matches!(&choice.command, Command::Choose { value, .. } if *value == current),
        );
        self.open(Overlay::Picker(picker));
    }

    /// The next permission mode.
    pub(super) fn cycle_mode(&mut self) {
        let Some((id, mode)) = self.focused_agent().map(|agent| (agent.id, agent.permissions)) else {
            return;
        };
        let at = PermissionMode::ALL.iter().position(|known| *known == mode).unwrap_or(0);
        // Bypass lets everything through: it is chosen by name, never stepped into.
        let next = PermissionMode::ALL[(at + 1) % PermissionMode::ALL.len()];
        let next = if next == PermissionMode::Bypass { PermissionMode::Default } else { next };
        self.carry_out(Command::Mode(id, next));
    }

    /// The last messages between agents, newest first.
    pub(super) fn pick_message(&mut self) {
        let choices = MessageView::list(&self.state, None)
            .into_iter()
            .rev()
            .map(|message| {
                let (from, to) = (clean::one_line(&message.from_name), clean::one_line(&message.to_name));
                let age = if self.wall > 0 { duration(self.wall - message.at.0) } else { String::new() };
                Choice::new(format!("{from} → {to}"), Command::Show(message.to))
                    .detail(clean::one_line(&message.preview))
                    .note(format!("{} {age}", message.state.word()).trim_end())
            })
            .collect();
        let mut picker = Picker::new("Messages between agents", choices);
        picker.empty = "no agent has written to another".to_owned();
        self.open(Overlay::Picker(picker));
    }

    /// Every command and agent by name.
    pub(super) fn open_palette(&mut self) {
        let mut choices: Vec<Choice> = Vec::new();
        let agents = tree::order(&self.state, &self.memory.desk);
        for id in agents {
            if let Some(agent) = self.state.agents.get(&id) {
                let label = format!("go to {}", clean::one_line(&agent.name));
                choices.push(Choice::new(label, Command::Show(id)).note(agent.status().words()));
            }
        }
        if let Some(agent) = self.focused_agent() {
            let id = agent.id;
            for mode in PermissionMode::ALL {
                let note = if agent.permissions == mode { "now" } else { "" };
                let label = format!("permission mode: {}", mode.word());
                choices.push(Choice::new(label, Command::Mode(id, mode)).note(note));
            }
            for option in &agent.options {
                let label = format!("choose {}", clean::one_line(&option.name).to_lowercase());
                let command = Command::PickOption(id, option.id.clone());
                choices.push(Choice::new(label, command).note(clean::one_line(&option.current)));
            }
        }
        for binding in TABLE {
            use crate::keys::Context::{Anywhere, Sidebar};
            let here = matches!(binding.context, Anywhere)
                || matches!(binding.action, Action::RebindAgent | Action::OpenEditor | Action::Steer)
                || (binding.context == Sidebar
                    && !matches!(
                        binding.action,
                        Action::RowUp | Action::RowDown | Action::RowOpen | Action::LeaveSidebar
                    ));
            if here && binding.action != Action::Palette {
                let note = if binding.context == Anywhere { self.keys.label(binding.action) } else { "" };
                choices.push(Choice::new(binding.help, Command::Act(binding.action)).note(note));
            }
        }
        for layout in Layout::ALL {
            choices.push(Choice::new(format!("panes: {}", layout.words()), Command::Layout(layout)));
        }
        for (label, theme) in [
            ("as the terminal is", None),
            ("dark", Some("dark")),
            ("light", Some("light")),
            ("no colour", Some("no-colour")),
        ] {
            choices.push(Choice::new(format!("theme: {label}"), Command::Theme(theme)));
        }
        for notices in Notices::ALL.into_iter().filter(|notices| *notices != self.memory.notices) {
            choices
                .push(Choice::new(format!("notifications: {}", notices.words()), Command::Notices(notices)));
        }
        let hidden = self.memory.pictures_hidden;
        let label = if hidden { "pictures: show" } else { "pictures: hide" };
        choices.push(Choice::new(label, Command::Pictures(hidden)));
        choices.push(Choice::new("edit config.toml in $EDITOR", Command::EditConfig));
        self.open(Overlay::Picker(Picker::new("Commands", choices)));
    }

    pub(super) fn pick_workspace(&mut self) {
        let desk = &self.memory.desk;
        let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
        for id in tree::order(&self.state, desk) {
            *counts.entry(desk.home_of(&self.state, id)).or_default() += 1;
        }
        let mut choices: Vec<Choice> = desk
            .workspaces
            .iter()
            .enumerate()
            .map(|(at, workspace)| {
                let count = counts.get(&at).copied().unwrap_or(0);
                let note = if at == desk.current { "now" } else { "" };
                Choice::new(workspace.name.clone(), Command::Workspace(at))
                    .detail(format!("{count} agent{}", if count == 1 { "" } else { "s" }))
                    .note(note)
            })
            .collect();
        choices.push(Choice::new("make a new workspace", Command::NewWorkspace));
        choices.push(Choice::new("rename this workspace", Command::RenameWorkspace));
        if desk.current > 0 {
            choices.push(
                Choice::new("remove this workspace", Command::RemoveWorkspace)
                    .detail("its agents go to the first one"),
            );
        }
        self.open(Overlay::Picker(Picker::new("Workspaces", choices)));
    }

    /// The prompts of the agent on the screen that wait.
    pub(super) fn pick_queued(&mut self) {
        let Some(agent) = self.focused_agent() else { return };
        let id = agent.id;
        let choices = queued(agent);
        if choices.is_empty() {
            return self.say("no prompt waits");
        }
        let label = |action| self.keys.label(action);
        let (edits, drops) = (label(Action::ListChoose), label(Action::ListDelete));
        let mut title = format!("Prompts that wait: {edits} edits, {drops} drops");
        if self.can_steer() {
            title.push_str(&format!(", {} joins the turn", label(Action::ListSubmit)));
        }
        let mut picker = Picker::new(title, choices);
        picker.queue_of = Some(id);
        picker.empty = "no prompt waits".to_owned();
        self.open(Overlay::Picker(picker));
    }

    /// Says why a prompt was refused, in words of this screen where the daemon's are for the command line.
    pub(super) fn prompt_refused(&mut self, agent: AgentId, error: ErrorBody) {
        let ErrorBody { message, data, .. } = error;
        let Ok(Refusal::Parked { .. }) = serde_json::from_value(data) else { return self.complain(message) };
        let (name, key) = (self.name_of(agent), self.keys.label(Action::RestartHere));
        self.complain(format!("{name} crashed repeatedly and is parked; {key} starts it again"));
        self.until_over(Topic::Parked(agent));
    }

    /// Something about an agent changed: a list of what waits for it shows that.
    pub(super) fn queue_changed(&mut self, id: AgentId) {
        let Some(agent) = self.state.agents.get(&id) else { return };
        for overlay in &mut self.overlays {
            if let Overlay::Picker(picker) = overlay
                && picker.queue_of == Some(id)
            {
                picker.replace(queued(agent));
            }
        }
    }
}

/// The prompts that wait for an agent, to edit, drop or steer them.
fn queued(agent: &Agent) -> Vec<Choice> {
    let id = agent.id;
    let choice = |prompt: &Prompt| {
        let mut choice = Choice::new(clean::one_line(&prompt.text), Command::EditQueued(id, prompt.id));
        choice.dropped = Some(Command::DropQueued(id, prompt.id));
        if decide::joins(agent, prompt.id) {
            choice.note = "joins the turn".to_owned();
        } else {
            choice.submitted = Some(Command::SteerQueued(id, prompt.id));
        }
        choice
    };
    agent.queue.iter().map(choice).collect()
}
