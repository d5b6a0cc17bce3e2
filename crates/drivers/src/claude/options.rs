//! What can be chosen for the session: the permission mode and the model.
//!
//! The agent tells its models at the start and what is in use at the beginning of every turn. It takes any name for
//! both and says so only when it fails, so what can be chosen is checked here.

use std::sync::Arc;

use consort_model::{Choice, PermissionMode, SessionOption, Signal};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::wire::one_line;
use super::{Claude, Phase, Request, warn};
use crate::Output;

const MODE: &str = "mode";
const MODEL: &str = "model";

/// The agent's modes: its name, ours, and what it does.
const MODES: [(&str, &str, &str); 4] = [
    ("default", "Default", "Asks before it edits or runs anything"),
    ("acceptEdits", "Accept edits", "Edits files in its folder without asking"),
    ("plan", "Plan", "Reads and plans; asks before it leaves this mode"),
    ("dontAsk", "Don't ask", "Denies by itself what it would have to ask for"),
];

/// Modes that only some models or ways of starting have.
const OTHER_MODES: [(&str, &str, &str); 2] = [
    ("auto", "Auto", "A model decides what needs to be asked"),
    ("bypassPermissions", "Bypass permissions", "Does everything without asking"),
];

/// What is chosen and what could be.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Options {
    mode: String,
    /// The chosen value of `models`, or the model itself where it is not among them.
    model: String,
    /// The model in use, by its full name.
    pub resolved: String,
    models: Vec<Model>,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Model {
    value: String,
    #[serde(default)]
    resolved_model: Option<String>,
    #[serde(default)]
    display_name: Option<String>,
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    supports_auto_mode: bool,
}

impl Options {
    pub fn new(mode: &str, model: Option<&str>) -> Self {
        Self { mode: mode.to_owned(), model: model.unwrap_or("default").to_owned(), ..Self::default() }
    }

    pub fn set_models(&mut self, models: &Value) {
        let models = models.as_array().into_iter().flatten();
        self.models = models.filter_map(|model| Model::deserialize(model).ok()).collect();
    }

    pub fn list(&self) -> Vec<SessionOption> {
        let models = self.models.iter().map(|model| Choice {
            id: model.value.clone(),
            name: model.display_name.clone().unwrap_or_else(|| model.value.clone()),
            description: model.description.clone(),
        });
        let mut models: Vec<Choice> = models.collect();
        if models.iter().all(|choice| choice.id != self.model) {
            models.push(Choice { id: self.model.clone(), name: self.model.clone(), description: None });
        }
        let option = |id: &str, name: &str, current: &str, choices| SessionOption {
            id: id.to_owned(),
            name: name.to_owned(),
            current: current.to_owned(),
            choices,
        };
        vec![option(MODE, "Mode", &self.mode, self.modes()), option(MODEL, "Model", &self.model, models)]
    }

    fn modes(&self) -> Vec<Choice> {
        let auto = self.models.iter().any(|model| model.supports_auto_mode);
        let others = OTHER_MODES.iter().filter(|(id, ..)| *id == self.mode || (*id == "auto" && auto));
        let choice = |(id, name, description): &(&str, &str, &str)| Choice {
            id: (*id).to_owned(),
            name: (*name).to_owned(),
            description: Some((*description).to_owned()),
        };
        let mut modes: Vec<Choice> = MODES.iter().chain(others).map(choice).collect();
        if modes.iter().all(|mode| mode.id != self.mode) {
            modes.push(Choice { id: self.mode.clone(), name: self.mode.clone(), description: None });
        }
        modes
    }

    /// The model in use, by its full name.
    fn set_resolved(&mut self, resolved: &str) {
        resolved.clone_into(&mut self.resolved);
        let is_it = |model: &&Model| model.resolved_model.as_deref() == Some(resolved);
        let chosen = self.models.iter().find(|model| model.value == self.model);
        if self.model != resolved && !chosen.as_ref().is_some_and(is_it) {
            let known = self.models.iter().find(is_it).map(|model| model.value.as_str());
            self.model = known.unwrap_or(resolved).to_owned();
        }
    }
}

/// The agent's own mode for one of ours. Where everything is allowed, Consort allows it: the agent's own way needs a
/// flag that it refuses under root.
pub fn mode_of(permissions: PermissionMode) -> &'static str {
    match permissions {
        PermissionMode::Default | PermissionMode::Bypass => "default",
        PermissionMode::AcceptEdits => "acceptEdits",
        PermissionMode::Plan => "plan",
    }
}

impl Claude {
    /// The agent says what mode or model it uses.
    pub(super) fn uses(&mut self, mode: Option<&str>, model: Option<&str>, out: &mut Output) {
        let mut options = (*self.options).clone();
        if let Some(mode) = mode.filter(|mode| !mode.is_empty()) {
            mode.clone_into(&mut options.mode);
        }
        if let Some(model) = model.filter(|model| !model.is_empty()) {
            options.set_resolved(model);
        }
        self.take_options(options, out);
    }

    fn take_options(&mut self, options: Options, out: &mut Output) {
        let changed = options.list() != self.options.list();
        if options != *self.options {
            self.options = Arc::new(options);
        }
        // Before the session takes prompts, options are told with its opening.
        if changed && self.phase == Phase::Open {
            out.signals.push(Signal::Options(self.options.list()));
        }
    }

    pub(crate) fn choose_option(
        &mut self,
        option: &str,
        value: &str,
        out: &mut Output,
    ) -> Result<(), String> {
        if self.phase != Phase::Open {
            return Err("the session is not open yet".to_owned());
        }
        let list = self.options.list();
        let Some(found) = list.iter().find(|found| found.id == option) else {
            return Err(format!("the agent has no option {option}; it has mode and model"));
        };
        let by_id = found.choices.iter().find(|choice| choice.id == value);
        let by_name = || found.choices.iter().find(|choice| choice.name.eq_ignore_ascii_case(value));
        let value = match by_id.or_else(by_name) {
            Some(choice) => choice.id.clone(),
            // Every full name of a model is taken, listed or not; a word that is no such name is a slip.
            None if option == MODEL && value.contains(['-', '.', '/', ':']) => value.to_owned(),
            None => {
                let offered: Vec<&str> = found.choices.iter().map(|choice| choice.id.as_str()).collect();
                return Err(format!(
                    "the agent offers no {option} {value}; it offers {}",
                    offered.join(", ")
                ));
            }
        };
        if option == MODE {
            self.set_mode(&value, out);
        } else {
            let request = match value.as_str() {
                "default" => json!({"subtype": "set_model"}),
                model => json!({"subtype": "set_model", "model": model}),
            };
            self.send(Request::Model { value }, request, out);
        }
        Ok(())
    }

    pub(crate) fn follow_permissions(&mut self, permissions: PermissionMode, out: &mut Output) {
        self.permissions = permissions;
        let mode = mode_of(permissions);
        if self.phase != Phase::Over && self.options.mode != mode {
            self.set_mode(mode, out);
        }
    }

    fn set_mode(&mut self, mode: &str, out: &mut Output) {
        let request = json!({"subtype": "set_permission_mode", "mode": mode});
        self.send(Request::Mode { value: mode.to_owned() }, request, out);
    }

    pub(super) fn mode_set(&mut self, mode: &str, outcome: Result<Value, String>, out: &mut Output) {
        match outcome {
            Ok(_) => self.uses(Some(mode), None, out),
            Err(error) => {
                warn(out, format!("The agent did not take {mode} as its mode: {}", one_line(&error)))
            }
        }
    }

    pub(super) fn model_set(&mut self, model: &str, outcome: Result<Value, String>, out: &mut Output) {
        match outcome {
            Ok(_) => {
                let mut options = (*self.options).clone();
                model.clone_into(&mut options.model);
                self.take_options(options, out);
            }
            Err(error) => {
                warn(out, format!("The agent did not take {model} as its model: {}", one_line(&error)))
            }
        }
    }
}
