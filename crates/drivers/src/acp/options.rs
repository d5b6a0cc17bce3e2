//! What can be chosen for the session: modes, models, and whatever else the agent offers.
//!
//! The protocol has three forms for this, old and new; here they become one list in which `mode` and `model` go by
//! those names whatever the agent calls them. Choosing translates back.

use std::sync::Arc;

use agent_client_protocol_schema::v1;
use consort_model::{Choice, SessionOption, Signal};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::wire::{RpcError, one_line};
use super::{Acp, Phase, Request, warn};
use crate::Output;

const MODE: &str = "mode";
const MODEL: &str = "model";

/// How many choices an error names.
const NAMED_CHOICES: usize = 12;

/// Everything that can be chosen, with what is chosen.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Options {
    modes: Option<SessionOption>,
    models: Option<SessionOption>,
    config: Vec<ConfigOption>,
}

/// One of the agent's configuration options.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct ConfigOption {
    /// What the agent calls it.
    wire: String,
    boolean: bool,
    option: SessionOption,
}

/// How an option is set.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Setter {
    Mode,
    Model,
    Config { wire: String, boolean: bool },
}

/// A choice that was asked for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Wanted {
    option: String,
    value: String,
    /// The session opens once this is settled.
    opening: bool,
}

impl Options {
    /// Reads what a session offers; a part that cannot be read is not offered.
    pub fn read(modes: Option<&RawValue>, models: Option<&RawValue>, config: Option<&RawValue>) -> Self {
        Self {
            modes: modes.and_then(|raw| read_modes(raw.get())),
            models: models.and_then(|raw| read_models(raw.get())),
            config: config.map(|raw| read_config(raw.get())).unwrap_or_default(),
        }
    }

    /// All options. A mode or model among the configuration options stands for the older forms.
    pub fn list(&self) -> Vec<SessionOption> {
        let older = [&self.modes, &self.models].into_iter().flatten();
        let older = older.filter(|older| self.config.iter().all(|config| config.option.id != older.id));
        older.chain(self.config.iter().map(|config| &config.option)).cloned().collect()
    }

    fn find(&self, id: &str) -> Option<(&SessionOption, Setter)> {
        if let Some(config) = self.config.iter().find(|config| config.option.id == id) {
            let setter = Setter::Config { wire: config.wire.clone(), boolean: config.boolean };
            return Some((&config.option, setter));
        }
        match id {
            MODE => self.modes.as_ref().map(|option| (option, Setter::Mode)),
            MODEL => self.models.as_ref().map(|option| (option, Setter::Model)),
            _ => None,
        }
    }

    /// Takes over what is chosen now; whether that changed anything.
    fn set_current(&mut self, id: &str, value: &str) -> bool {
        let config = self.config.iter_mut().map(|config| &mut config.option);
        let older = [&mut self.modes, &mut self.models].into_iter().flatten();
        let mut changed = false;
        for option in config.chain(older).filter(|option| option.id == id && option.current != value) {
            value.clone_into(&mut option.current);
            changed = true;
        }
        changed
    }
}

impl Acp {
    pub(super) fn tell_options(&self, out: &mut Output) {
        let options = self.options.list();
        if !options.is_empty() {
            out.signals.push(Signal::Options(options));
        }
    }

    pub(super) fn mode_is(&mut self, mode: &str, out: &mut Output) {
        if Arc::make_mut(&mut self.options).set_current(MODE, mode) {
            self.tell_changed_options(out);
        }
    }

    pub(super) fn config_is(&mut self, config: &str, out: &mut Output) {
        Arc::make_mut(&mut self.options).config = read_config(config);
        self.tell_changed_options(out);
    }

    /// Before the session takes prompts, options are told with its opening.
    fn tell_changed_options(&self, out: &mut Output) {
        if self.phase == Phase::Open {
            out.signals.push(Signal::Options(self.options.list()));
        }
    }

    pub(crate) fn choose_option(&mut self, id: &str, value: &str, out: &mut Output) -> Result<(), String> {
        if self.phase != Phase::Open {
            return Err("the session is not open yet".to_owned());
        }
        let Some((option, setter)) = self.options.find(id) else {
            let offered: Vec<String> = self.options.list().into_iter().map(|option| option.id).collect();
            return Err(format!("the agent has no option {id}; it has {}", named(&offered)));
        };
        let Some(value) = pick(option, value) else {
            let offered: Vec<String> = option.choices.iter().map(|choice| choice.id.clone()).collect();
            return Err(format!("the agent offers no {id} {value}; it offers {}", named(&offered)));
        };
        self.send_choice(setter, Wanted { option: id.to_owned(), value, opening: false }, out);
        Ok(())
    }

    /// Chooses the model that the agent was started with, before the first prompt can be sent.
    pub(super) fn choose_first_model(&mut self, model: &str, out: &mut Output) {
        let found = self.options.find(MODEL);
        if found.as_ref().is_some_and(|(option, _)| option.current == model) {
            return self.ready(out);
        }
        let picked = found.as_ref().and_then(|(option, _)| pick(option, model));
        match (found, picked) {
            (Some((_, setter)), Some(value)) => {
                self.send_choice(setter, Wanted { option: MODEL.to_owned(), value, opening: true }, out);
            }
            (found, _) => {
                let current = found.map_or("its own", |(option, _)| option.current.as_str());
                warn(
                    out,
                    format!("The agent does not offer the model {}; it uses {current}.", one_line(model)),
                );
                self.ready(out);
            }
        }
    }

    fn send_choice(&mut self, setter: Setter, wanted: Wanted, out: &mut Output) {
        let session = self.session.clone().unwrap_or_default();
        let value = wanted.value.clone();
        let (method, params) = match setter {
            Setter::Mode => ("session/set_mode", json!({"sessionId": session, "modeId": value})),
            Setter::Model => ("session/set_model", json!({"sessionId": session, "modelId": value})),
            Setter::Config { wire, boolean: false } => {
                ("session/set_config_option", json!({"sessionId": session, "configId": wire, "value": value}))
            }
            Setter::Config { wire, boolean: true } => (
                "session/set_config_option",
                json!({"sessionId": session, "configId": wire, "type": "boolean", "value": value == "true"}),
            ),
        };
        self.send(Request::Choose(wanted), method, params, out);
    }

    pub(super) fn chosen(&mut self, wanted: &Wanted, outcome: Result<&str, RpcError>, out: &mut Output) {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Chosen<'a> {
            #[serde(borrow, default)]
            config_options: Option<&'a RawValue>,
        }
        match outcome {
            Ok(result) => {
                let options = Arc::make_mut(&mut self.options);
                options.set_current(&wanted.option, &wanted.value);
                if let Ok(Chosen { config_options: Some(config) }) = serde_json::from_str(result) {
                    options.config = read_config(config.get());
                }
                self.tell_changed_options(out);
            }
            Err(error) => {
                let Wanted { option, value, .. } = wanted;
                warn(out, format!("The agent did not take {value} as its {option}: {}.", error.sentence()));
            }
        }
        if wanted.opening {
            self.ready(out);
        }
    }
}

/// The id of the choice that is meant, by its id or by its name.
fn pick(option: &SessionOption, wanted: &str) -> Option<String> {
    let by_id = option.choices.iter().find(|choice| choice.id == wanted);
    let by_name = || option.choices.iter().find(|choice| choice.name.eq_ignore_ascii_case(wanted));
    by_id.or_else(by_name).map(|choice| choice.id.clone())
}

fn named(ids: &[String]) -> String {
    match ids {
        [] => "none".to_owned(),
        ids if ids.len() > NAMED_CHOICES => {
            format!("{} and {} more", ids[..NAMED_CHOICES].join(", "), ids.len() - NAMED_CHOICES)
        }
        ids => ids.join(", "),
    }
}

fn read_modes(raw: &str) -> Option<SessionOption> {
    let state: v1::SessionModeState = serde_json::from_str(raw).ok()?;
    let choices = state.available_modes.into_iter().map(|mode| Choice {
        id: mode.id.to_string(),
        name: mode.name,
        description: mode.description,
    });
    Some(SessionOption {
        id: MODE.to_owned(),
        name: "Mode".to_owned(),
        current: state.current_mode_id.to_string(),
        choices: choices.collect(),
    })
}

fn read_models(raw: &str) -> Option<SessionOption> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Models {
        current_model_id: String,
        #[serde(default)]
        available_models: Vec<Model>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Model {
        model_id: String,
        name: Option<String>,
        description: Option<String>,
    }
    let models: Models = serde_json::from_str(raw).ok()?;
    let choices = models.available_models.into_iter().map(|model| Choice {
        name: model.name.unwrap_or_else(|| model.model_id.clone()),
        id: model.model_id,
        description: model.description,
    });
    Some(SessionOption {
        id: MODEL.to_owned(),
        name: "Model".to_owned(),
        current: models.current_model_id,
        choices: choices.collect(),
    })
}

fn read_config(raw: &str) -> Vec<ConfigOption> {
    let entries: Vec<Value> = serde_json::from_str(raw).unwrap_or_default();
    let mut config: Vec<ConfigOption> = Vec::new();
    for entry in entries {
        let Ok(entry) = serde_json::from_value::<v1::SessionConfigOption>(entry) else { continue };
        let taken = |id: &str| config.iter().any(|other| other.option.id == id);
        let id = match &entry.category {
            Some(v1::SessionConfigOptionCategory::Mode) if !taken(MODE) => MODE.to_owned(),
            Some(v1::SessionConfigOptionCategory::Model) if !taken(MODEL) => MODEL.to_owned(),
            _ => entry.id.to_string(),
        };
        if taken(&id) {
            continue;
        }
        let (boolean, current, choices) = match entry.kind {
            v1::SessionConfigKind::Select(select) => {
                let options = match select.options {
                    v1::SessionConfigSelectOptions::Ungrouped(options) => options,
                    v1::SessionConfigSelectOptions::Grouped(groups) => {
                        groups.into_iter().flat_map(|group| group.options).collect()
                    }
                    _ => continue,
                };
                let choices = options.into_iter().map(|option| Choice {
                    id: option.value.to_string(),
                    name: option.name,
                    description: option.description,
                });
                (false, select.current_value.to_string(), choices.collect())
            }
            v1::SessionConfigKind::Boolean(boolean) => {
                let choice =
                    |id: &str, name: &str| Choice { id: id.into(), name: name.into(), description: None };
                (true, boolean.current_value.to_string(), vec![choice("true", "On"), choice("false", "Off")])
            }
            _ => continue,
        };
        let option = SessionOption { id, name: entry.name, current, choices };
        config.push(ConfigOption { wire: entry.id.to_string(), boolean, option });
    }
    config
}
