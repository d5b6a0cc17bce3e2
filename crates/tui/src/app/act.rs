//! What a key does.

use consort_daemon::protocol::Call;
use consort_model::{AgentId, Answer, DiffText, Status};
use uuid::Uuid;

use super::hunt::Way;
use super::{App, Connection, Editing, Effect, Focus, Reply};
use crate::input::Key;
use crate::keys::{Action, Context};
use crate::overlay::pager::Text;
use crate::overlay::{Command, Field, Overlay, Pager, Purpose, Settings, Whole};
use crate::text::theme::Theme;
use crate::transcript::item::{self, Look};

/// How long a second key may take to leave.
const LEAVE_WITHIN: std::time::Duration = std::time::Duration::from_secs(2);

impl App {
    /// A key was pressed.
    pub fn key(&mut self, key: Key) {
        let context = self.context();
        // What is typed into a field is typed, whatever else the key would do.
        if context == Context::List {
            let over = self.keys.action(context, key).filter(|action| action.works_over_everything());
            let captures = matches!(self.overlays.last(), Some(Overlay::Press(_)));
            return match over.filter(|_| !captures) {
                Some(action) => self.act(action),
                None => self.list_key(key),
            };
        }
        if context == Context::Composer && self.completion.is_some() && key.code == crate::input::Code::Tab {
            self.take_completion();
            return self.redraw();
        }
        match self.keys.action(context, key) {
            Some(action) => self.act(action),
            None => {
                if context == Context::Composer
                    && let Some(letter) = key.writes()
                {
                    self.type_text(letter.encode_utf8(&mut [0; 4]));
                } else if matches!(context, Context::Transcript | Context::Sidebar)
                    && key.writes().is_some_and(char::is_alphanumeric)
                {
                    self.say(format!("{} goes back to the prompt", self.keys.label(Action::Leave)));
                }
            }
        }
    }

    /// Does what a key stands for.
    pub fn act(&mut self, action: Action) {
        if let Connection::Lost { .. } = self.connection
            && action == Action::Redraw
        {
            return self.carry_out(Command::StartDaemon);
        }
        match action {
            Action::NextNeedy => self.next_needy(),
            Action::Inbox => self.open_inbox(),
            Action::Palette => self.open_palette(),
            Action::NewAgent => self.pick_profile(None),
            Action::NextAgent => self.step_agent(false),
            Action::PreviousAgent => self.step_agent(true),
            Action::FocusNext => self.focus_next(),
            Action::CycleMode => self.cycle_mode(),
            Action::PickModel => {
                if let Some(agent) = self.focused() {
                    self.pick_option(agent, "model");
                }
            }
            Action::Interrupt => self.interrupt(),
            Action::RestartHere => {
                if let Some(agent) = self.focused_agent().map(|agent| agent.id) {
                    self.carry_out(Command::Restart(agent));
                }
            }
            Action::NextPane | Action::PreviousPane => {
                self.memory.desk.step_pane(&self.state, action == Action::PreviousPane);
                self.completion = None;
                self.asks_changed();
                self.follow_row();
                self.screen_changed();
            }
            Action::CycleLayout => {
                let next = self.arranged().layout.next();
                self.carry_out(Command::Layout(next));
            }
            Action::ShowAlone => {
                let workspace = self.memory.desk.workspace_mut();
                workspace.alone = !workspace.alone;
                workspace.focus = 0;
                self.screen_changed();
            }
            Action::ToggleSidebar => {
                self.memory.sidebar_hidden = !self.memory.sidebar_hidden;
                if self.focus == Focus::Sidebar {
                    self.focus = Focus::Composer;
                }
                self.remember();
                self.redraw();
            }
            Action::ScrollUp | Action::PageUpHere => self.scroll_page(-1),
            Action::ScrollDown | Action::PageDownHere => self.scroll_page(1),
            Action::ScrollTop | Action::FirstItem => {
                if let Some(agent) = self.focused()
                    && let Some(wanted) = self.transcripts.get_mut(&agent).and_then(|it| it.to_start())
                {
                    self.ask_page(agent, wanted);
                }
                self.damage.panes = true;
            }
            Action::ScrollEnd | Action::LastItem => {
                if let Some(agent) = self.focused() {
                    if let Some(transcript) = self.transcripts.get_mut(&agent) {
                        transcript.to_end();
                    }
                    self.load_page(agent);
                }
                self.damage.panes = true;
            }
            Action::Search | Action::SearchHere => {
                if let Some(agent) = self.focused() {
                    let before = self.transcripts.get(&agent).map(|it| it.searched().to_owned());
                    let field = Field::new(
                        "Search in this conversation",
                        before.unwrap_or_default(),
                        Purpose::Search(agent),
                    );
                    self.open(Overlay::Field(field));
                }
            }
            Action::ToggleDetails => {
                if let Some(transcript) = self.focused().and_then(|agent| self.transcripts.get_mut(&agent)) {
                    transcript.toggle_all();
                }
                self.damage.panes = true;
            }
            Action::CopyLast => self.copy_last(),
            Action::Diff => {
                if let Some(agent) = self.focused_agent().map(|agent| agent.id) {
                    self.open_changes(agent);
                }
            }
            Action::Worktrees => self.open_worktrees(),
            Action::Messages => self.pick_message(),
            Action::About => {
                if let Some(agent) = self.focused_agent().map(|agent| agent.id) {
                    self.open(Overlay::Pager(Pager::new(Text::About(agent))));
                }
            }
            Action::Welcome => self.open(Overlay::Pager(Pager::new(Text::Welcome))),
            Action::PlayDemo => self.effect(Effect::Demo),
            Action::Sessions => self.pick_session(),
            Action::Settings => {
                self.call(Call::CheckProfiles { profile: None }, Reply::Checked);
                self.open(Overlay::Settings(Settings::default()));
            }
            Action::Workspaces => self.pick_workspace(),
            Action::Queue => self.pick_queued(),
            Action::Help => self.open(Overlay::Pager(Pager::new(Text::Help))),
            Action::Suspend => self.effect(Effect::Suspend),
            Action::Redraw => self.effect(Effect::Redraw),
            Action::Quit => self.effect(Effect::Quit),
            action => match self.context() {
                Context::Composer => self.act_on_composer_or_agent(action),
                Context::Transcript => self.act_on_transcript(action),
                Context::Sidebar => self.act_on_sidebar(action),
                Context::Ask => self.act_on_ask(action),
                Context::Settings => self.act_on_settings(action),
                Context::Pager => self.act_on_pager(action),
                Context::List | Context::Anywhere => {}
            },
        }
    }

    fn act_on_composer_or_agent(&mut self, action: Action) {
        match action {
            Action::RowRename
            | Action::RowInterrupt
            | Action::RowClose
            | Action::RowRestart
            | Action::RowFork
            | Action::RowCompanion
            | Action::RowMove
            | Action::RestartAgent
            | Action::RebindAgent => self.act_on_agent(action),
            Action::RowAlone | Action::RowPane => self.act_on_sidebar(action),
            action => self.act_on_composer(action),
        }
    }

    /// Gives the keyboard to the next thing on the screen.
    fn focus_next(&mut self) {
        let has_asks = self.focused_agent().is_some_and(|agent| !agent.asks.is_empty());
        self.focus = match self.focus {
            Focus::Composer if has_asks => return self.focus_ask(),
            Focus::Composer | Focus::Ask => Focus::Transcript,
            Focus::Transcript if !self.memory.sidebar_hidden => Focus::Sidebar,
            Focus::Transcript | Focus::Sidebar => Focus::Composer,
        };
        self.redraw();
    }

    /// Empties the prompt, or stops the turn, or leaves.
    fn interrupt(&mut self) {
        if self.focus != Focus::Composer {
            self.focus = Focus::Composer;
            return self.redraw();
        }
        let has_images = self.focused().is_some_and(|agent| self.images.contains_key(&agent));
        if !self.composer().is_empty() || has_images {
            self.focused().and_then(|agent| self.images.remove(&agent));
            self.composer_mut().take();
            self.composer_changed();
            return self.redraw();
        }
        let working = self.focused_agent().filter(|agent| {
            matches!(agent.status(), Status::Working | Status::Stalled | Status::NeedsInput)
                && agent.turn.is_some()
        });
        if let Some(agent) = working.map(|agent| agent.id) {
            return self.carry_out(Command::Interrupt(agent));
        }
        if self.leaving_until.is_some() {
            return self.effect(Effect::Quit);
        }
        let until = self.now + LEAVE_WITHIN;
        self.leaving_until = Some(until);
        self.say("once more to leave; the agents go on");
        // It is said for as long as it is so.
        if let Some(toast) = &mut self.toast {
            toast.until = until;
        }
    }

    fn scroll_page(&mut self, pages: isize) {
        let Some(agent) = self.focused() else { return };
        let height = self.hits.pane_height(agent).saturating_sub(2).max(1) as isize;
        self.scroll(agent, pages * height);
    }

    /// Scrolls a conversation by lines.
    pub fn scroll(&mut self, agent: AgentId, lines: isize) {
        let width = self.hits.pane_width(agent);
        let names = |id: AgentId| self.state.agents.get(&id).map(|it| it.name.clone()).unwrap_or_default();
        let opens = self.keys.label(Action::OpenItem);
        let look = Look { theme: &self.theme, width, name_of: &names, pictures: &self.pictures, opens };
        if let Some(transcript) = self.transcripts.get_mut(&agent) {
            transcript.scroll(&look, lines);
        }
        self.load_page(agent);
        self.damage.panes = true;
    }

    fn act_on_transcript(&mut self, action: Action) {
        let Some(agent) = self.focused() else {
            self.focus = Focus::Composer;
            return self.redraw();
        };
        let width = self.hits.pane_width(agent);
        let names = |id: AgentId| self.state.agents.get(&id).map(|it| it.name.clone()).unwrap_or_default();
        let opens = self.keys.label(Action::OpenItem);
        let look = Look { theme: &self.theme, width, name_of: &names, pictures: &self.pictures, opens };
        let Some(transcript) = self.transcripts.get_mut(&agent) else { return };
        let mut copied = None;
        match action {
            Action::ItemUp => transcript.choose(&look, false),
            Action::ItemDown => transcript.choose(&look, true),
            Action::ToggleItem => {
                if let Some(chosen) = transcript.chosen() {
                    transcript.toggle(chosen);
                }
            }
            Action::OpenItem => return self.open_item(agent),
            Action::CopyItem => {
                copied = transcript
                    .chosen()
                    .and_then(|chosen| transcript.item(chosen))
                    .map(crate::transcript::item::plain_text);
            }
            Action::NextFound | Action::PreviousFound => {
                let words = transcript.searched().to_owned();
                let back = action == Action::PreviousFound;
                return self.search(agent, words, if back { Way::Back } else { Way::On });
            }
            Action::LeaveTranscript => {
                transcript.choose_none();
                self.hunt = None;
                self.focus = Focus::Composer;
            }
            _ => return self.act_on_agent(action),
        }
        if let Some(text) = copied {
            self.copy(text);
        }
        self.load_page(agent);
        self.redraw();
    }

    /// Shows the chosen item whole.
    fn open_item(&mut self, agent: AgentId) {
        let Some(transcript) = self.transcripts.get(&agent) else { return };
        let Some(item) = transcript.chosen().and_then(|chosen| transcript.item(chosen)) else {
            let (up, down) = (self.keys.label(Action::ItemUp), self.keys.label(Action::ItemDown));
            return self.say(format!("choose an item first, with {up} and {down}"));
        };
        let title = item::title(item).unwrap_or_else(|| self.name_of(agent));
        let whole = Whole::new(title, &item::whole_text(item), transcript.searched());
        self.open(Overlay::Pager(Pager::new(Text::Item(Box::new(whole)))));
    }

    fn act_on_pager(&mut self, action: Action) {
        let Some(Overlay::Pager(pager)) = self.overlays.last_mut() else { return };
        let page = pager.height.saturating_sub(1).max(1) as isize;
        match action {
            Action::PagerUp => pager.step(-1),
            Action::PagerDown => pager.step(1),
            Action::PagerPageUp => pager.step(-page),
            Action::PagerPageDown => pager.step(page),
            Action::PagerTop => pager.step(isize::MIN),
            Action::PagerEnd => pager.step(isize::MAX / 2),
            Action::PagerNext => pager.next_mark(),
            Action::PagerLeave => {
                self.overlays.pop();
            }
            _ => {}
        }
        self.redraw();
    }

    /// A key while a list, a field or a form is on top.
    fn list_key(&mut self, key: Key) {
        let action = self.keys.action(Context::List, key);
        let editing = self.keys.action(Context::Composer, key);
        match self.overlays.last_mut() {
            Some(Overlay::Press(_)) => self.pressed(key),
            Some(Overlay::Picker(picker)) => match (action, editing, key.writes()) {
                (Some(Action::ListUp), ..) => picker.step(-1),
                (Some(Action::ListDown), ..) => picker.step(1),
                (Some(Action::ListPageUp), ..) => picker.step(-8),
                (Some(Action::ListPageDown), ..) => picker.step(8),
                (Some(Action::ListChoose), ..) => self.choose(),
                (Some(Action::ListDelete), ..) => {
                    if let Some(command) = picker.chosen().and_then(|choice| choice.dropped.clone()) {
                        self.overlays.pop();
                        self.carry_out(command);
                    }
                }
                (Some(Action::ListSubmit), ..) => {
                    if let Some(command) = picker.chosen().and_then(|choice| choice.submitted.clone()) {
                        self.overlays.pop();
                        self.carry_out(command);
                    }
                }
                (Some(Action::ListLeave), ..) => {
                    self.overlays.pop();
                }
                (_, _, Some(letter)) => {
                    picker.query.insert(letter.encode_utf8(&mut [0; 4]));
                    picker.narrow();
                }
                (_, Some(action), _) => {
                    edit(&mut picker.query, action);
                    picker.narrow();
                }
                _ => {}
            },
            Some(Overlay::Field(field)) => match (action, editing, key.writes()) {
                (Some(Action::ListChoose), ..) => self.submit_top(),
                (Some(Action::ListLeave), ..) => {
                    self.overlays.pop();
                }
                (_, _, Some(letter)) => field.editor.insert(letter.encode_utf8(&mut [0; 4])),
                (_, Some(action), _) => edit(&mut field.editor, action),
                _ => {}
            },
            Some(Overlay::Form(_)) => self.form_key(key, action, editing),
            _ => {}
        }
        self.redraw();
    }

    /// Does what the chosen row of the list on top stands for; where nothing fits, the list stays.
    pub(super) fn choose(&mut self) {
        let Some(Overlay::Picker(picker)) = self.overlays.last() else { return };
        let Some(command) = picker.chosen().map(|choice| choice.command.clone()) else { return };
        // From a prompt that was edited one comes back to the others.
        if !matches!(command, Command::EditQueued(..)) {
            self.overlays.pop();
        }
        self.carry_out(command);
    }

    /// A field was filled.
    pub(super) fn filled(&mut self, field: Field) {
        let text = field.editor.text().trim().to_owned();
        match field.purpose {
            Purpose::Rename(agent) if !text.is_empty() => {
                self.call(Call::Rename { agent: agent.to_string(), name: text }, Reply::Command);
            }
            Purpose::Pattern(asks, scope) => {
                let pattern = (!text.is_empty()).then(|| text.clone());
                let answer = Answer::Allow { scope, pattern };
                match self.why_not(&asks, &answer) {
                    Some(why) => self.ask_pattern(asks, scope, &text, Some(why)),
                    None => self.answer(&asks, &answer),
                }
            }
            Purpose::DenyWith(asks) => {
                let message = (!text.is_empty()).then_some(text);
                self.answer(&asks, &Answer::Deny { message });
            }
            Purpose::Reply(ask) => self.reply(ask, text),
            Purpose::Search(agent) => {
                self.focus = Focus::Transcript;
                self.search(agent, text, Way::Around);
            }
            Purpose::NewWorkspace if !text.is_empty() => {
                let at = self.memory.desk.add(&text);
                self.carry_out(Command::Workspace(at));
            }
            Purpose::RenameWorkspace if !text.is_empty() => {
                self.memory.desk.workspace_mut().name = text;
                self.remember();
            }
            Purpose::EditQueued(agent, prompt) => {
                let text = (!text.is_empty()).then_some(text);
                self.call(Call::EditPrompt { agent: agent.to_string(), prompt, text }, Reply::Command);
            }
            Purpose::DuplicateProfile(profile) if !text.is_empty() => {
                self.call(Call::DuplicateProfile { profile, name: text }, Reply::Once);
            }
            Purpose::Limit(name) => self.set_limit(name, &text),
            Purpose::DiscardWorktree(path) => self.discard_worktree(path, &text),
            _ => {}
        }
        self.redraw();
    }

    /// Does what was chosen.
    pub fn carry_out(&mut self, command: Command) {
        let of = |agent: AgentId| agent.to_string();
        match command {
            Command::Act(action) => {
                // What only the prompt knows how to do, the prompt does, whatever had the keyboard.
                if matches!(action, Action::OpenEditor | Action::Steer)
                    || self.focus != Focus::Sidebar && matches!(action, Action::RowAlone | Action::RowPane)
                {
                    self.focus = Focus::Composer;
                }
                self.act(action);
            }
            Command::Show(agent) => {
                self.overlays.clear();
                self.show(agent, false);
                self.asks_changed();
            }
            Command::Create { profile, companion_of } => {
                self.create(Some(profile), companion_of);
            }
            Command::Choose { agent, option, value } => {
                self.call(Call::Choose { agent: of(agent), option, value }, Reply::Command);
            }
            Command::PickOption(agent, option) => self.pick_option(agent, &option),
            Command::Mode(agent, permissions) => {
                self.call(Call::SetPermissions { agent: of(agent), permissions }, Reply::Command);
            }
            Command::Reopen(agent) => self.call(Call::Reopen { agent: of(agent) }, Reply::Command),
            Command::Rebind(agent, profile) => {
                self.call(Call::Rebind { agent: of(agent), profile }, Reply::Command);
            }
            Command::Restart(agent) => {
                let there = self.state.agents.get(&agent).is_some_and(|agent| agent.wants_process());
                let agent = of(agent);
                let call = if there { Call::Restart { agent } } else { Call::Reopen { agent } };
                self.call(call, Reply::Command);
            }
            Command::Close(agent) => self.call(Call::Close { agent: of(agent) }, Reply::Command),
            Command::Interrupt(agent) => self.call(Call::Interrupt { agent: of(agent) }, Reply::Command),
            Command::Fork(agent) => {
                let id = AgentId::new(Uuid::now_v7());
                self.wanted = Some(id);
                self.call(Call::Fork { agent: of(agent), id, name: None, prompt: None }, Reply::Created(id));
            }
            Command::Layout(layout) => {
                self.memory.desk.set_layout(&self.state, layout);
                self.say(format!("panes: {}", layout.words()));
                self.asks_changed();
                self.screen_changed();
            }
            Command::Theme(name) => {
                self.memory.theme = name.map(str::to_owned);
                let theme = name.and_then(Theme::named).unwrap_or_else(crate::outside::theme_of_environment);
                self.set_theme(theme);
                self.remember();
            }
            Command::Notices(notices) => {
                self.memory.notices = notices;
                self.remember();
                self.redraw();
            }
            Command::Pictures(shown) => {
                self.memory.pictures_hidden = !shown;
                self.choose_means();
                self.remember();
            }
            Command::Workspace(at) => {
                self.memory.desk.current = at.min(self.memory.desk.workspaces.len() - 1);
                if self.arranged().focused().is_none() {
                    let order = crate::tree::order(&self.state, &self.memory.desk);
                    let here = order.iter().find(|id| self.memory.desk.home_of(&self.state, **id) == at);
                    if let Some(agent) = here {
                        self.memory.desk.show(&self.state, *agent, false);
                    }
                }
                self.asks_changed();
                self.screen_changed();
            }
            Command::NewWorkspace => {
                self.open(Overlay::Field(Field::new("Name of the workspace", "", Purpose::NewWorkspace)));
            }
            Command::RenameWorkspace => {
                let name = self.memory.desk.workspace().name.clone();
                self.open(Overlay::Field(Field::new(
                    "Name of the workspace",
                    name,
                    Purpose::RenameWorkspace,
                )));
            }
            Command::RemoveWorkspace => {
                let at = self.memory.desk.current;
                if at > 0 && at < self.memory.desk.workspaces.len() {
                    self.memory.desk.workspaces.remove(at);
                    self.carry_out(Command::Workspace(0));
                }
            }
            Command::Move(agent, to) => {
                self.memory.desk.move_agent(&self.state, agent, to);
                self.follow_row();
                self.screen_changed();
            }
            Command::AnswerOption(ask, option) => self.answer(&[ask], &Answer::Choose { option }),
            Command::EditQueued(agent, prompt) => {
                let text =
                    self.state.agents.get(&agent).and_then(|it| it.queued(prompt)).map(|it| it.text.clone());
                if let Some(text) = text {
                    let field =
                        Field::new("Edit the prompt that waits", text, Purpose::EditQueued(agent, prompt));
                    self.open(Overlay::Field(field.hint("empty drops it")));
                }
            }
            Command::DropQueued(agent, prompt) => {
                self.call(Call::EditPrompt { agent: of(agent), prompt, text: None }, Reply::Command);
            }
            Command::RemoveProfile(profile) => {
                self.call(Call::RemoveProfile { profile, force: true }, Reply::Once);
            }
            Command::Resume { session, profile, cwd } => self.resume(session, profile, cwd),
            Command::SteerQueued(agent, prompt) => self.steer_queued(agent, prompt),
            Command::RemoveRule(rule) => self.call(Call::RemoveRule { rule }, Reply::Command),
            Command::EditConfig => self.effect(Effect::Edit(Editing::Config, String::new())),
            Command::Rename(agent) => {
                let name = self.name_of(agent);
                self.open(Overlay::Field(Field::new("Rename", name, Purpose::Rename(agent))));
            }
            Command::StartDaemon => {
                if let Connection::Lost { starting, .. } = &mut self.connection {
                    *starting = true;
                    self.effect(Effect::StartDaemon);
                }
            }
            Command::DescribeAgent { worktree } => self.describe_agent(worktree),
            Command::Worktree(view) => self.pick_for_worktree(&view),
            Command::Changes(agent) => self.open_changes(agent),
            Command::FinishWorktree { path, by, keep } => {
                self.say("bringing the branch home…");
                self.call(Call::FinishWorktree { worktree: path, by, keep }, Reply::WorktreeFinished);
            }
            Command::RemoveWorktree(path) => self.remove_worktree(path, false),
            Command::DiscardWorktree(path, lost) => self.confirm_discard(path, &lost),
            Command::Explain(why) => self.complain(why),
            Command::Nothing => {}
        }
        self.redraw();
    }

    /// Puts a text into the clipboard.
    pub fn copy(&mut self, text: String) {
        let lines = text.lines().count();
        self.effect(Effect::Copy(text));
        self.say(format!("copied {lines} line{}", if lines == 1 { "" } else { "s" }));
    }

    fn copy_last(&mut self) {
        use consort_model::ItemBody;
        let last = self.focused().and_then(|agent| self.transcripts.get(&agent)).and_then(|transcript| {
            transcript.items().rev().find_map(|item| match &item.body {
                ItemBody::Text { text } => Some(text.clone()),
                _ => None,
            })
        });
        match last {
            Some(text) => self.copy(text),
            None => self.say("there is no answer to copy"),
        }
    }

    fn open_changes(&mut self, agent: AgentId) {
        self.call(Call::Diff { agent: agent.to_string(), paths: Vec::new() }, Reply::Diff(agent));
        self.open(Overlay::Pager(Pager::new(Text::Changes(agent, None))));
    }

    /// What an agent changed was told.
    pub fn changes(&mut self, agent: AgentId, diff: Result<DiffText, String>) {
        for overlay in &mut self.overlays {
            if let Overlay::Pager(pager) = overlay
                && let Text::Changes(of, text) = &mut pager.text
                && *of == agent
            {
                *text = Some(diff.clone());
                pager.lines = None;
            }
        }
        self.redraw();
    }
}

/// What an editing key does to a field.
pub(crate) fn edit(editor: &mut crate::editor::Editor, action: Action) {
    match action {
        Action::CharLeft => editor.left(),
        Action::CharRight => editor.right(),
        Action::WordLeft => editor.word_left(),
        Action::WordRight => editor.word_right(),
        Action::LineStart => editor.start_of_line(),
        Action::LineEnd => editor.end_of_line(),
        Action::DeleteBack => editor.delete_back(),
        Action::DeleteForward => editor.delete_forward(),
        Action::DeleteWord => editor.delete_word(),
        Action::KillToStart => editor.kill_to_start(),
        Action::KillToEnd => editor.kill_to_end(),
        Action::PasteBack => editor.yank(),
        Action::Undo => editor.undo(),
        _ => {}
    }
}
