//! The composer: what is typed, completed, recalled and sent.

use std::path::PathBuf;

use consort_daemon::protocol::{Call, NewPrompt};
use consort_model::{AgentId, Attachment, Availability, Lifecycle, PromptId};
use uuid::Uuid;

use super::{App, Connection, Editing, Effect, Focus, Reply};
use crate::editor::Editor;
use crate::keys::Action;
use crate::overlay::Overlay;
use crate::text::fuzzy;

/// Completions that are offered at once.
const MAX_OFFERED: usize = 8;

/// What can be completed at the cursor.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Completion {
    /// The bytes that a completion takes the place of.
    pub range: std::ops::Range<usize>,
    /// What is offered: what is put in, and more about it.
    pub offers: Vec<(String, String)>,
    /// Which one is chosen.
    pub at: usize,
}

/// A prompt that is not sent, or was and may come back.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Draft {
    /// Its text.
    pub text: String,
    /// Its images.
    pub images: Vec<Attachment>,
}

/// What becomes of a prompt while its agent works.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Delivery {
    /// It waits for a turn of its own.
    Waits,
    /// It joins the turn that runs.
    Joins,
}

/// Commands of Consort itself, where the agent has none of the same name.
const OWN_COMMANDS: &[(&str, &str, Action)] = &[
    ("new", "a new agent", Action::NewAgent),
    ("close", "close this agent", Action::RowClose),
    ("rename", "rename this agent", Action::RowRename),
    ("fork", "branch this conversation off", Action::RowFork),
    ("companion", "a companion for this agent", Action::RowCompanion),
    ("model", "choose the model", Action::PickModel),
    ("diff", "what this agent changed", Action::Diff),
    ("inbox", "everything that agents ask of you", Action::Inbox),
    ("about", "what is known about this agent", Action::About),
    ("worktrees", "the branches that agents work on", Action::Worktrees),
    ("messages", "messages between agents", Action::Messages),
    ("demo", "a team at work on a scratch repository", Action::PlayDemo),
    ("sessions", "every conversation", Action::Sessions),
    ("settings", "profiles, rules, limits, theme, keys", Action::Settings),
    ("keys", "every key", Action::Help),
    ("quit", "leave; the agents go on", Action::Quit),
];

impl App {
    /// What a key does in the composer; false if it does nothing there.
    pub(super) fn act_on_composer(&mut self, action: Action) {
        if self.completion.is_some() && self.act_on_completion(action) {
            self.redraw();
            return;
        }
        let columns = self.composer_columns;
        match action {
            Action::Send => self.send(Delivery::Waits),
            Action::Steer => self.send(Delivery::Joins),
            Action::NewLine => self.composer_mut().insert("\n"),
            Action::OpenEditor => {
                let text = self.composer().text().to_owned();
                self.effect(Effect::Edit(Editing::Prompt, text));
            }
            Action::Leave => self.focus = Focus::Transcript,
            Action::HistoryBack => {
                if !self.composer_mut().up(columns) {
                    self.recall(true);
                }
            }
            Action::HistoryForward => {
                if !self.composer_mut().down(columns) {
                    self.recall(false);
                }
            }
            Action::CharLeft => self.composer_mut().left(),
            Action::CharRight => self.composer_mut().right(),
            Action::WordLeft => self.composer_mut().word_left(),
            Action::WordRight => self.composer_mut().word_right(),
            Action::LineStart => self.composer_mut().start_of_line(),
            Action::LineEnd => self.composer_mut().end_of_line(),
            Action::DeleteBack if self.composer().is_empty() && self.drop_image() => {
                self.say("the image was taken back");
            }
            Action::DeleteBack => self.composer_mut().delete_back(),
            Action::DeleteForward => self.composer_mut().delete_forward(),
            Action::DeleteWord => self.composer_mut().delete_word(),
            Action::KillToStart => self.composer_mut().kill_to_start(),
            Action::KillToEnd => self.composer_mut().kill_to_end(),
            Action::PasteBack => self.composer_mut().yank(),
            Action::Undo => self.composer_mut().undo(),
            Action::PasteImage => self.effect(Effect::PasteImage),
            _ => return,
        }
        self.composer_changed();
    }

    /// The prompt changed: what can be completed may have too.
    pub(super) fn composer_changed(&mut self) {
        let most = usize::from(crate::view::composer::MAX_ROWS);
        let rows = self.composer().near(self.composer_columns, most).rows.len().min(most);
        self.complete();
        self.remember();
        if rows == self.composer_rows && !self.damage.all {
            self.damage.composer = true;
        } else {
            self.composer_rows = rows;
            self.redraw();
        }
    }

    /// Something is typed into the prompt.
    pub(super) fn type_text(&mut self, text: &str) {
        if self.disabled().is_some() {
            return;
        }
        self.composer_mut().insert(text);
        self.composer_changed();
    }

    /// Something was pasted.
    pub(super) fn paste(&mut self, text: &str) {
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        match self.overlays.last_mut() {
            Some(Overlay::Picker(picker)) => {
                picker.query.insert(&crate::text::clean::one_line(&text));
                picker.narrow();
            }
            Some(Overlay::Field(field)) => field.editor.insert(&text),
            Some(Overlay::Form(form)) => form.paste(&text),
            Some(_) => {}
            None => {
                self.focus = Focus::Composer;
                let path = text.trim().trim_matches('\'').replace("\\ ", " ");
                if !path.contains('\n') && crate::outside::is_image_path(&path) {
                    self.effect(Effect::AttachImage(PathBuf::from(path)));
                } else {
                    self.type_text(&text);
                }
            }
        }
        self.redraw();
    }

    /// A sent prompt in the place of what is there.
    fn recall(&mut self, back: bool) {
        let count = self.memory.history.len();
        let at = match (self.history_at, back) {
            (None, true) if count > 0 && self.composer().is_empty() => count - 1,
            (Some(at), true) if at > 0 => at - 1,
            (Some(at), false) if at + 1 < count => at + 1,
            (Some(_), false) => {
                self.history_at = None;
                self.composer_mut().take();
                return;
            }
            _ => return,
        };
        self.history_at = Some(at);
        let text = self.memory.history[at].clone();
        self.composer_mut().replace(text);
    }

    /// Why nothing can be sent to the agent that has the keyboard.
    pub fn disabled(&self) -> Option<&'static str> {
        let agent = self.focused_agent()?;
        (!self.state.has_profile(&agent.profile) && !self.state.profiles.is_empty())
            .then_some("profile removed: this chat can no longer send messages")
    }

    pub(super) fn send(&mut self, delivery: Delivery) {
        // Before the first snapshot nobody knows to whom: it is sent once the screen shows it.
        if self.connection == Connection::Connecting {
            self.send_when_up = true;
            return;
        }
        if self.disabled().is_some()
            && let Some(agent) = self.focused()
        {
            return self.pick_rebind(agent);
        }
        let text = self.composer().text().trim_end().to_owned();
        let agent = self.focused();
        let images = agent.and_then(|agent| self.images.remove(&agent)).unwrap_or_default();
        if text.trim().is_empty() && images.is_empty() {
            // Where nobody could do anything, the first screen offers the demo under this key.
            if agent.is_none() && !self.can_start_agents() {
                self.effect(Effect::Demo);
            }
            return;
        }
        if let Some(action) = self.own_command(&text) {
            self.composer_mut().take();
            return self.act(action);
        }
        self.composer_mut().take();
        self.history_at = None;
        self.memory.sent(&text);
        let agent = match agent.filter(|agent| self.state.agents.contains_key(agent)) {
            Some(agent) => agent,
            None => match self.create(None, None) {
                Some(agent) => agent,
                None => {
                    self.blank.replace(text);
                    return;
                }
            },
        };
        if self
            .state
            .agents
            .get(&agent)
            .is_some_and(|agent| matches!(agent.lifecycle, Lifecycle::Closed { .. }))
        {
            self.call(Call::Reopen { agent: agent.to_string() }, Reply::Command);
        }
        let draft = Draft { text: text.clone(), images: images.clone() };
        let prompt = NewPrompt { id: PromptId::new(Uuid::now_v7()), text, attachments: images };
        let wanted = agent.to_string();
        match delivery {
            Delivery::Waits => self.call(Call::Send { agent: wanted, prompt }, Reply::Sent(agent, draft)),
            Delivery::Joins => self.call(Call::Steer { agent: wanted, prompt }, Reply::Steered(agent, draft)),
        }
        if let Some(transcript) = self.transcripts.get_mut(&agent) {
            transcript.to_end();
        }
        self.redraw();
    }

    /// Gives a prompt that waits to the turn that runs.
    pub(super) fn steer_queued(&mut self, id: AgentId, prompt: PromptId) {
        let Some(agent) = self.state.agents.get(&id) else { return };
        let Some(waiting) = agent.queued(prompt) else { return self.say("it waits no more") };
        // It is kept already, so there is nothing to put back.
        let (text, attachments) = (waiting.text.clone(), Vec::new());
        let prompt = NewPrompt { id: prompt, text, attachments };
        self.call(Call::Steer { agent: id.to_string(), prompt }, Reply::Steered(id, Draft::default()));
    }

    /// Puts a prompt that was refused back to where it was written.
    pub(super) fn put_back(&mut self, agent: AgentId, draft: Draft) {
        let composer = self.composer_of(agent);
        if composer.is_empty() {
            composer.replace(draft.text);
        }
        if self.state.agents.contains_key(&agent) && !draft.images.is_empty() {
            self.images.entry(agent).or_default().splice(0..0, draft.images);
        }
        self.redraw();
    }

    /// Where a prompt for an agent is written: one that is not there is still to be made.
    fn composer_of(&mut self, agent: AgentId) -> &mut Editor {
        match self.state.agents.contains_key(&agent) {
            true => self.composers.entry(agent).or_default(),
            false => &mut self.blank,
        }
    }

    /// The screen is left before the daemon could be told of these prompts: they become drafts again.
    pub fn keep_unsent(&mut self, unsent: Vec<(AgentId, String)>) {
        for (agent, text) in unsent.into_iter().rev() {
            let composer = self.composer_of(agent);
            let rest = composer.text().to_owned();
            composer.replace(if rest.is_empty() { text } else { format!("{text}\n{rest}") });
        }
    }

    /// Takes the last image back that was to go with the prompt; whether there was one.
    pub(super) fn drop_image(&mut self) -> bool {
        let Some(agent) = self.focused() else { return false };
        let Some(images) = self.images.get_mut(&agent) else { return false };
        let dropped = images.pop().is_some();
        if images.is_empty() {
            self.images.remove(&agent);
        }
        dropped
    }

    /// A prompt was accepted that was meant for the turn that runs; whether it joins that.
    pub(super) fn steered(&mut self, id: AgentId, joins: bool) {
        let Some(agent) = self.state.agents.get(&id) else { return };
        let name = self.name_of(id);
        if joins {
            self.say(format!("it joins {name}'s turn at the next safe point"));
        } else if !agent.driver.can_steer() {
            self.say(format!("{name} takes nothing into a running turn; the prompt waits for its own"));
        } else if agent.turn.is_some() {
            self.say("the turn takes nothing more; the prompt waits for its own");
        }
    }

    /// Whether the agent's turn takes more than the prompt that began it.
    pub fn can_steer(&self) -> bool {
        self.focused_agent().is_some_and(|agent| agent.turn.is_some() && agent.driver.can_steer())
    }

    /// Whether a profile can be used here, or may be: not all were looked at yet.
    pub fn can_start_agents(&self) -> bool {
        let profiles = &self.state.profiles;
        profiles.iter().any(|profile| !matches!(profile.availability, Availability::Unavailable { .. }))
    }

    /// The demo was played.
    pub fn demo_over(&mut self, outcome: Result<(), String>) {
        match outcome {
            Ok(()) => self.say("that was the demo; its folder and its agents are gone"),
            Err(why) => self.complain(why),
        }
        self.redraw();
    }

    /// One of Consort's own commands, if the text is one and the agent has none of that name.
    fn own_command(&self, text: &str) -> Option<Action> {
        let name = text.strip_prefix('/')?.trim();
        let agents_own =
            self.focused_agent().is_some_and(|agent| agent.commands.iter().any(|it| it.name == name));
        let own = OWN_COMMANDS.iter().find(|(own, ..)| *own == name);
        own.filter(|_| !agents_own).map(|(.., action)| *action)
    }

    /// Offers what fits before the cursor: `@file` anywhere, `/command` at the begin.
    fn complete(&mut self) {
        self.completion = None;
        let composer = self.composer();
        let (text, cursor) = (composer.text(), composer.cursor());
        let head = text.get(..cursor).unwrap_or_default();
        let start = head
            .rfind(char::is_whitespace)
            .map_or(0, |at| at + head[at..].chars().next().map_or(1, char::len_utf8));
        let word = &head[start..];
        let range = start..cursor;
        if start == 0
            && let Some(query) = word.strip_prefix('/')
        {
            self.completion = self.offers(range, query, self.commands());
        } else if let Some(query) = word.strip_prefix('@') {
            let cwd =
                self.focused_agent().map_or_else(|| self.cwd.clone(), |agent| PathBuf::from(&agent.cwd));
            let Some(files) = self.files.get(&cwd) else {
                self.effect(Effect::ListFiles(cwd));
                return;
            };
            let found = fuzzy::rank(query, files.iter().map(String::as_str), MAX_OFFERED);
            let offers: Vec<(String, String)> =
                found.into_iter().map(|(path, _)| (format!("@{path} "), String::new())).collect();
            if !offers.is_empty() {
                self.completion = Some(Completion { range, offers, at: 0 });
            }
        }
    }

    fn commands(&self) -> Vec<(String, String)> {
        let agents = self.focused_agent().map(|agent| agent.commands.as_slice()).unwrap_or_default();
        let mut commands: Vec<(String, String)> = agents
            .iter()
            .map(|command| {
                let hint = command.hint.as_deref().map(|hint| format!(" <{hint}>")).unwrap_or_default();
                (command.name.clone(), format!("{}{hint}", command.description))
            })
            .collect();
        for (name, help, _) in OWN_COMMANDS {
            if !commands.iter().any(|(known, _)| known == name) {
                commands.push(((*name).to_owned(), format!("consort: {help}")));
            }
        }
        commands
    }

    fn offers(
        &self,
        range: std::ops::Range<usize>,
        query: &str,
        commands: Vec<(String, String)>,
    ) -> Option<Completion> {
        let offers: Vec<(String, String)> = if query.is_empty() {
            commands.into_iter().take(MAX_OFFERED).map(|(name, help)| (format!("/{name} "), help)).collect()
        } else {
            let found = fuzzy::rank(query, commands.iter().map(|(name, _)| name.as_str()), MAX_OFFERED);
            found
                .into_iter()
                .map(|(name, _)| {
                    let help = commands.iter().find(|(known, _)| known == name).map(|(_, help)| help.clone());
                    (format!("/{name} "), help.unwrap_or_default())
                })
                .collect()
        };
        (!offers.is_empty()).then_some(Completion { range, offers, at: 0 })
    }

    /// What a key does to the completions; false if it is for the text.
    fn act_on_completion(&mut self, action: Action) -> bool {
        let Some(completion) = &mut self.completion else { return false };
        let count = completion.offers.len();
        match action {
            Action::HistoryBack => completion.at = (completion.at + count - 1) % count,
            Action::HistoryForward => completion.at = (completion.at + 1) % count,
            Action::Leave => self.completion = None,
            // A command that is typed whole is sent.
            Action::Send if self.is_typed_whole() => return false,
            Action::Send => self.take_completion(),
            _ => return false,
        }
        true
    }

    fn is_typed_whole(&self) -> bool {
        let text = self.composer().text();
        self.completion.as_ref().is_some_and(|completion| {
            completion.offers.get(completion.at).is_some_and(|(offer, _)| offer.trim_end() == text)
        })
    }

    /// Puts the chosen completion in.
    pub(super) fn take_completion(&mut self) {
        let Some(completion) = self.completion.take() else { return };
        if let Some((text, _)) = completion.offers.get(completion.at) {
            let text = text.clone();
            self.composer_mut().splice(completion.range, &text);
        }
        self.composer_changed();
    }

    /// Files under a folder were listed.
    pub fn files_listed(&mut self, folder: PathBuf, files: Vec<String>) {
        self.files.insert(folder, files);
        if self.overlays.is_empty() && self.focus == Focus::Composer {
            self.complete();
            self.redraw();
        }
    }

    /// An image was read, or why not.
    pub fn image_read(&mut self, image: Result<consort_model::Attachment, String>) {
        let Some(agent) = self.focused() else {
            return self.complain("start the agent with a text first; images can follow");
        };
        match image {
            Ok(image) => {
                self.images.entry(agent).or_default().push(image);
                self.redraw();
            }
            Err(why) => self.complain(why),
        }
    }

    /// A text comes back from the editor.
    pub fn edited(&mut self, editing: Editing, text: Result<String, String>) {
        match (editing, text) {
            (_, Err(why)) => self.complain(why),
            (Editing::Prompt, Ok(text)) => {
                self.composer_mut().replace(text.trim_end().to_owned());
                self.composer_changed();
            }
            (Editing::Config, Ok(_)) => self.call(Call::CheckProfiles { profile: None }, Reply::Checked),
        }
        self.redraw();
    }
}
