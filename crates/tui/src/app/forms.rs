//! The settings, and the forms in them.

mod rules;

use consort_daemon::protocol::{Call, NewProfile, ProfileEdit};
use consort_model::{Answer, ApprovalPolicy, DriverKind, PermissionMode, ProfileSummary, SandboxMode};

use consort_model::limits::NAMED;

use super::{App, Reply};
use crate::input::{Code, Key};
use crate::keys::{Action, Context, TABLE};
use crate::overlay::form::{Entry, Form, Subject};
use crate::overlay::settings::Part;
use crate::overlay::{Choice, Command, Field, Overlay, Picker, Press, Purpose};
use crate::text::clean;
use crate::text::theme::Theme;

/// What stands for "as the program itself is configured".
const OPEN: &str = "as configured";

impl App {
    /// A key while a form is on top.
    pub(super) fn form_key(&mut self, key: Key, action: Option<Action>, editing: Option<Action>) {
        let Some(Overlay::Form(form)) = self.overlays.last_mut() else { return };
        let step = self.keys.action(Context::Anywhere, key);
        form.problem = None;
        match (action, editing, key.writes()) {
            (Some(Action::ListLeave), ..) => {
                self.overlays.pop();
            }
            (Some(Action::ListSubmit), ..) => self.submit(),
            (Some(Action::ListChoose), ..) => {
                let was_last = !form.step(false);
                if was_last {
                    self.submit();
                }
            }
            (Some(Action::ListUp), ..) => form.move_by(true),
            (Some(Action::ListDown), ..) => form.move_by(false),
            (_, _, Some(letter)) => form.write(letter),
            (_, Some(action), _) => match step {
                Some(Action::FocusNext) => drop(form.step(false)),
                Some(Action::CycleMode) => drop(form.step(true)),
                _ => form.edit(action),
            },
            _ => {}
        }
    }

    /// Takes what the field or form on top holds.
    pub(super) fn submit_top(&mut self) {
        if let Some(Overlay::Field(_)) = self.overlays.last() {
            if let Some(Overlay::Field(field)) = self.overlays.pop() {
                self.filled(field);
            }
        } else {
            self.submit();
        }
    }

    fn submit(&mut self) {
        let Some(Overlay::Form(form)) = self.overlays.last_mut() else { return };
        match form.subject.clone() {
            Subject::Question(ask, fields) => match form.answer(&fields) {
                Ok(value) => {
                    self.overlays.pop();
                    self.answer(&[ask], &Answer::Reply { value });
                }
                Err(problem) => form.problem = Some(problem),
            },
            Subject::NewAgent => self.make_described(),
            Subject::NewRule => match rules::read(form) {
                Ok(rule) => self.call(Call::AddRule(rule), Reply::Saved),
                Err(problem) => form.problem = Some(problem),
            },
            Subject::NewProfile => match new_profile(form) {
                Ok(new) => self.call(Call::AddProfile(new), Reply::Saved),
                Err(problem) => form.problem = Some(problem),
            },
            Subject::EditProfile(id) => {
                let before = self.state.profiles.iter().find(|profile| profile.id.as_str() == id);
                let Some(before) = before else { return };
                match profile_edit(form, before) {
                    Ok(changes) => self.call(Call::EditProfile { profile: id, changes }, Reply::Saved),
                    Err(problem) => form.problem = Some(problem),
                }
            }
        }
    }

    /// What a form says was refused: it stays, with the reason.
    pub(super) fn form_refused(&mut self, why: String) {
        match self.overlays.last_mut() {
            Some(Overlay::Form(form)) => {
                form.problem = Some(why);
                self.redraw();
            }
            _ => self.complain(why),
        }
    }

    /// Sets a limit to what was typed, or lets it be corrected.
    pub(super) fn set_limit(&mut self, name: &'static str, typed: &str) {
        match typed.parse::<u64>() {
            Ok(value) => {
                let limits = [(name.to_owned(), value)].into();
                self.call(Call::SetLimits { limits }, Reply::Limit(name, typed.to_owned()));
            }
            Err(_) => {
                let field = limit_field(name, typed);
                self.open(Overlay::Field(field.problem("that is no whole number, 0 or more")));
            }
        }
    }

    /// A limit was refused: it can be corrected, where one still looks at the limits.
    pub(super) fn limit_refused(&mut self, name: &'static str, typed: &str, why: String) {
        match self.overlays.last() {
            Some(Overlay::Settings(settings)) if settings.part == Part::Limits => {
                self.open(Overlay::Field(limit_field(name, typed).problem(why)));
            }
            _ => self.complain(why),
        }
    }

    pub(super) fn act_on_settings(&mut self, action: Action) {
        let Some(Overlay::Settings(settings)) = self.overlays.last_mut() else { return };
        let (part, row) = (settings.part, settings.row);
        match action {
            Action::TabNext => settings.step_part(false),
            Action::TabBack => settings.step_part(true),
            Action::SettingUp => settings.step(-1),
            Action::SettingDown => settings.step(1),
            Action::SettingLeave => {
                self.overlays.pop();
            }
            Action::SettingCheck => {
                settings.checking = true;
                self.call(Call::CheckProfiles { profile: None }, Reply::Checked);
            }
            action => match part {
                Part::Profiles => self.act_on_profile(action, row),
                Part::Rules => self.act_on_rule(action, row),
                Part::Screen if action == Action::SettingEdit => self.act_on_look(row),
                Part::Limits if action == Action::SettingEdit => {
                    if let Some((name, _)) = NAMED.get(row) {
                        let now = self.state.limits.get(name).unwrap_or_default();
                        self.open(Overlay::Field(limit_field(name, &now.to_string())));
                    }
                }
                Part::Keys => self.act_on_keys(action, row),
                _ => {}
            },
        }
        self.redraw();
    }

    fn act_on_profile(&mut self, action: Action, row: usize) {
        if action == Action::SettingAdd {
            return self.open(Overlay::Form(profile_form(None)));
        }
        let Some(profile) = self.state.profiles.get(row).cloned() else { return };
        let id = profile.id.to_string();
        match action {
            Action::SettingEdit => self.open(Overlay::Form(profile_form(Some(&profile)))),
            Action::SettingDuplicate => {
                let name = format!("{} 2", profile.name);
                self.open(Overlay::Field(Field::new(
                    "Name of the copy",
                    name,
                    Purpose::DuplicateProfile(id),
                )));
            }
            Action::SettingDefault => self.call(Call::SetDefaultProfile { profile: id }, Reply::Command),
            Action::SettingRemove => {
                let affected: Vec<String> = self
                    .state
                    .agents
                    .values()
                    .filter(|agent| agent.profile == profile.id && !agent.is_closed())
                    .map(|agent| clean::one_line(&agent.name).into_owned())
                    .collect();
                let name = clean::one_line(&profile.name).into_owned();
                let about = match affected.len() {
                    0 => "no open chat uses it".to_owned(),
                    count => format!("{count} can no longer send messages: {}", affected.join(", ")),
                };
                let choices = vec![
                    Choice::new("keep it", Command::Nothing),
                    Choice::new(format!("remove {name}"), Command::RemoveProfile(id)).detail(about),
                ];
                self.open(Overlay::Picker(Picker::new(format!("Remove the profile {name}?"), choices)));
            }
            _ => {}
        }
    }

    fn act_on_rule(&mut self, action: Action, row: usize) {
        match action {
            Action::SettingAdd => self.open(Overlay::Form(rules::form(self))),
            Action::SettingRemove => {
                let Some((id, rule)) = self.state.rules.iter().nth(row) else { return };
                let words = clean::exact(&rule.subject.to_string()).replace('\n', " ");
                let about = match rule.effect.is_allow() {
                    true => "what it allows is asked about again",
                    false => "what it denies is asked about again",
                };
                let choices = vec![
                    Choice::new("keep it", Command::Nothing),
                    Choice::new("remove the rule", Command::RemoveRule(*id)).detail(about),
                ];
                let effect = if rule.effect.is_allow() { "allows" } else { "denies" };
                let title = format!("Remove the rule that {effect} {words}?");
                self.open(Overlay::Picker(Picker::new(title, choices)));
            }
            _ => {}
        }
    }

    fn act_on_keys(&mut self, action: Action, row: usize) {
        let Some(binding) = TABLE.get(row) else { return };
        match action {
            Action::SettingEdit | Action::SettingAdd => {
                let adds = action == Action::SettingAdd;
                self.open(Overlay::Press(Press { binding, adds, problem: None }));
            }
            Action::SettingRemove => {
                self.call(Call::SetKeys { action: binding.name.to_owned(), keys: None }, Reply::Keys);
            }
            _ => {}
        }
    }

    /// A key was pressed in answer to the question for one.
    pub(super) fn pressed(&mut self, key: Key) {
        let Some(Overlay::Press(press)) = self.overlays.last_mut() else { return };
        let answer = if key == Key::plain(Code::Escape) { None } else { Some(press.answer(key, &self.keys)) };
        match answer {
            Some(Err(problem)) => press.problem = Some(problem),
            Some(Ok(keys)) => {
                let action = press.binding.name.to_owned();
                self.overlays.pop();
                self.call(Call::SetKeys { action, keys: Some(keys) }, Reply::Keys);
            }
            None => drop(self.overlays.pop()),
        }
        self.redraw();
    }

    fn act_on_look(&mut self, row: usize) {
        match row {
            0 => {
                let names: Vec<Option<&'static str>> =
                    std::iter::once(None).chain(Theme::NAMES.into_iter().map(Some)).collect();
                let at = names.iter().position(|name| *name == self.memory.theme.as_deref()).unwrap_or(0);
                self.carry_out(Command::Theme(names[(at + 1) % names.len()]));
            }
            1 => self.carry_out(Command::Notices(self.memory.notices.next())),
            2 => {
                self.memory.sidebar_hidden = !self.memory.sidebar_hidden;
                self.remember();
            }
            _ => self.carry_out(Command::Pictures(self.memory.pictures_hidden)),
        }
    }
}

/// The field for a limit.
fn limit_field(name: &'static str, text: &str) -> Field {
    let about = NAMED.iter().find(|(known, _)| *known == name).map_or("", |(_, about)| about);
    Field::new(name, text, Purpose::Limit(name)).hint(about)
}

fn profile_form(profile: Option<&ProfileSummary>) -> Form {
    let text = |get: &dyn Fn(&ProfileSummary) -> String| profile.map(get).unwrap_or_default();
    let drivers: Vec<String> = DriverKind::ALL.iter().map(|driver| driver.word().to_owned()).collect();
    let modes: Vec<String> = PermissionMode::ALL.iter().map(|mode| mode.word().to_owned()).collect();
    let place = |names: &[String], word: &str| names.iter().position(|name| name == word).unwrap_or(0);
    let open_or = |words: Vec<&'static str>| -> Vec<String> {
        std::iter::once(OPEN).chain(words).map(str::to_owned).collect()
    };
    let sandboxes = open_or(SandboxMode::ALL.iter().map(|mode| mode.word()).collect());
    let policies = open_or(ApprovalPolicy::ALL.iter().map(|policy| policy.word()).collect());
    let driver = profile.map_or(DriverKind::Claude, |profile| profile.driver);
    let mode = profile.map_or(PermissionMode::Default, |profile| profile.default_permissions);
    let sandbox = profile.and_then(|profile| profile.sandbox_mode).map_or(OPEN, SandboxMode::word);
    let policy = profile.and_then(|profile| profile.approval_policy).map_or(OPEN, ApprovalPolicy::word);
    let command = text(&|profile| {
        let own = profile.driver.default_program() == Some(profile.command.as_str());
        if own { String::new() } else { profile.command.clone() }
    });
    let arguments = text(&|profile| {
        shlex::try_join(profile.args.iter().map(String::as_str)).unwrap_or_else(|_| profile.args.join(" "))
    });
    let mut entries = vec![
        Entry::text("name", "name", "what you call it", text(&|profile| profile.name.clone())),
        Entry::one(
            "driver",
            "driver",
            "the protocol it speaks",
            drivers.clone(),
            place(&drivers, driver.word()),
        ),
        Entry::text(
            "command",
            "command",
            "empty: the driver's own program, found on PATH; acp has none",
            command,
        ),
        Entry::text("args", "arguments", "as in a shell", arguments),
        Entry::lines(
            "environment",
            "environment",
            "KEY=VALUE, KEY= or -KEY, one a line (alt-enter); values are hidden once saved",
            text(&|profile| profile.environment.join("\n")),
        ),
        Entry::text(
            "default_model",
            "model",
            "empty: the agent's own choice",
            text(&|profile| profile.default_model.clone().unwrap_or_default()),
        ),
        Entry::one(
            "default_permissions",
            "permissions",
            "what its approvals follow",
            modes.clone(),
            place(&modes, mode.word()),
        ),
        Entry::one(
            "sandbox_mode",
            "sandbox",
            "what its commands may do by themselves",
            sandboxes.clone(),
            place(&sandboxes, sandbox),
        ),
        Entry::one("approval_policy", "asks", "when it asks", policies.clone(), place(&policies, policy)),
    ];
    let (title, subject) = match profile {
        None => ("New profile".to_owned(), Subject::NewProfile),
        Some(profile) => {
            // The driver of a profile is what it is: its agents speak it.
            if let Some(entry) = entries.get_mut(1) {
                entry.kind = crate::overlay::form::Kind::One { names: vec![driver.word().to_owned()], at: 0 };
                entry.help = "cannot be changed; duplicate the profile or add one".to_owned();
            }
            (
                format!("Profile {}", clean::one_line(&profile.name)),
                Subject::EditProfile(profile.id.to_string()),
            )
        }
    };
    Form::new(title, entries, subject)
}

fn words(form: &Form) -> Result<Vec<String>, String> {
    shlex::split(&form.value("args")).ok_or_else(|| "the arguments have an open quote".to_owned())
}

fn some(text: String) -> Option<String> {
    (!text.is_empty()).then_some(text)
}

fn open_or_parsed<T: std::str::FromStr<Err = String>>(word: &str) -> Result<Option<T>, String> {
    if word == OPEN || word.is_empty() { Ok(None) } else { word.parse().map(Some) }
}

fn new_profile(form: &Form) -> Result<NewProfile, String> {
    let driver: DriverKind = form.value("driver").parse()?;
    let codex = driver == DriverKind::Codex;
    let name = form.value("name");
    if name.is_empty() {
        return Err("a profile needs a name".to_owned());
    }
    if driver == DriverKind::Acp && form.value("command").is_empty() {
        return Err("a profile of the driver acp needs a command".to_owned());
    }
    Ok(NewProfile {
        name,
        driver,
        command: some(form.value("command")),
        args: words(form)?,
        environment: form
            .value("environment")
            .lines()
            .map(|line| line.trim().to_owned())
            .filter(|it| !it.is_empty())
            .collect(),
        default_model: some(form.value("default_model")),
        default_permissions: form.value("default_permissions").parse()?,
        sandbox_mode: if codex { open_or_parsed(&form.value("sandbox_mode"))? } else { None },
        approval_policy: if codex { open_or_parsed(&form.value("approval_policy"))? } else { None },
    })
}

/// What is different from before; values that are hidden stay as they are.
fn profile_edit(form: &Form, before: &ProfileSummary) -> Result<ProfileEdit, String> {
    let key_of = |line: &str| line.trim_start_matches('-').split('=').next().unwrap_or_default().to_owned();
    let text = form.value("environment");
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let environment: Vec<String> = lines
        .iter()
        .filter(|line| !before.environment.iter().any(|shown| shown == *line))
        .map(|line| (*line).to_owned())
        .collect();
    if environment.iter().any(|line| line.ends_with("=…")) {
        return Err(
            "`…` stands for a value that is hidden: write the value, or leave the line as it was".to_owned()
        );
    }
    let kept: Vec<String> = lines.iter().map(|line| key_of(line)).collect();
    let dropped =
        before.environment.iter().map(|line| key_of(line)).filter(|key| !kept.contains(key)).collect();
    let args = words(form)?;
    if args != before.args && args.iter().any(|arg| arg.contains('…')) {
        return Err(
            "`…` stands for an argument that is hidden: write it, or leave the arguments as they were"
                .to_owned(),
        );
    }
    let codex = before.driver == DriverKind::Codex;
    let open = |word: String| if word == OPEN { String::new() } else { word };
    let command = form.value("command");
    let own = before.driver.default_program() == Some(before.command.as_str());
    let before_command = if own { "" } else { before.command.as_str() };
    Ok(ProfileEdit {
        name: some(form.value("name")).filter(|name| *name != before.name),
        command: (command != before_command).then_some(command),
        args: (args != before.args).then_some(args),
        environment,
        environment_dropped: dropped,
        default_model: Some(form.value("default_model"))
            .filter(|model| *model != before.default_model.clone().unwrap_or_default()),
        default_permissions: Some(form.value("default_permissions").parse()?)
            .filter(|mode| *mode != before.default_permissions),
        sandbox_mode: codex.then(|| open(form.value("sandbox_mode"))),
        approval_policy: codex.then(|| open(form.value("approval_policy"))),
    })
}

#[cfg(test)]
mod tests;
