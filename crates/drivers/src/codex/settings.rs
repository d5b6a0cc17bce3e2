//! What can be chosen for the thread: model, effort, mode, and how far the agent may go unasked.
//!
//! Owns what is offered and what is chosen. A choice goes out as `thread/settings/update`, and counts once the app
//! server says so. Consort's permission modes are pairs of an approval policy and a sandbox.

use std::sync::Arc;

use consort_model::{ApprovalPolicy, Choice, PermissionMode, SandboxMode, SessionOption, Signal};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::wire::{RpcError, lenient, one_line, read};
use super::{Codex, Phase, Request, warn};
use crate::{Launch, Output};

const MODEL: &str = "model";
const EFFORT: &str = "effort";
const MODE: &str = "mode";
const APPROVAL: &str = "approval_policy";
const SANDBOX: &str = "sandbox";

/// How many pages of models are read.
const MODEL_PAGES: usize = 8;

/// How many choices an error names.
const NAMED_CHOICES: usize = 12;

/// How far the agent may go unasked.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Access {
    /// When it asks: a word, or the app server's finer form.
    pub approval: Value,
    /// What a command can reach, as `sandboxPolicy` has it.
    pub sandbox: Value,
}

impl Default for Access {
    fn default() -> Self {
        Self { approval: json!("on-request"), sandbox: read_only() }
    }
}

fn read_only() -> Value {
    json!({"type": "readOnly", "networkAccess": false})
}

fn workspace_write() -> Value {
    json!({
        "type": "workspaceWrite",
        "writableRoots": [],
        "networkAccess": false,
        "excludeTmpdirEnvVar": false,
        "excludeSlashTmp": false,
    })
}

fn full_access() -> Value {
    json!({"type": "dangerFullAccess"})
}

/// A sandbox by its word.
fn sandbox_of(word: &str) -> Value {
    match word {
        "danger-full-access" => full_access(),
        "workspace-write" => workspace_write(),
        _ => read_only(),
    }
}

impl Access {
    /// What a profile's configuration says; where it is silent, what the app server would do.
    pub fn of_config(config: &Value, cwd: &str) -> Self {
        let said = |key: &str| config.get(key).filter(|value| !value.is_null());
        let trusted = config.get("projects").and_then(Value::as_object).is_some_and(|projects| {
            let ours =
                std::path::Path::new(cwd).ancestors().find_map(|folder| projects.get(folder.to_str()?));
            ours.and_then(|project| project.get("trust_level")).and_then(Value::as_str) == Some("trusted")
        });
        let silent = if trusted { "workspace-write" } else { "read-only" };
        let sandbox = sandbox_of(said("sandbox_mode").and_then(Value::as_str).unwrap_or(silent));
        Self { approval: said("approval_policy").cloned().unwrap_or_else(|| json!("on-request")), sandbox }
    }

    /// The same with what the profile says in Consort's own words, which stands above its configuration.
    pub fn launched(mut self, launch: &Launch) -> Self {
        if let Some(policy) = launch.approval_policy {
            self.approval = json!(match policy {
                ApprovalPolicy::Untrusted => "untrusted",
                // The app server has no such policy any more; this asks in the same cases, only sooner.
                ApprovalPolicy::OnRequest | ApprovalPolicy::OnFailure => "on-request",
                ApprovalPolicy::Never => "never",
            });
        }
        if let Some(mode) = launch.sandbox_mode {
            self.sandbox = match mode {
                SandboxMode::ReadOnly => read_only(),
                SandboxMode::WorkspaceWrite => workspace_write(),
                SandboxMode::FullAccess => full_access(),
            };
        }
        self
    }

    /// The sandbox by the word that opens a thread.
    pub fn sandbox_mode(&self) -> &'static str {
        match self.sandbox.get("type").and_then(Value::as_str) {
            Some("dangerFullAccess" | "externalSandbox") => "danger-full-access",
            Some("workspaceWrite") => "workspace-write",
            _ => "read-only",
        }
    }

    fn approval_word(&self) -> &str {
        self.approval.as_str().unwrap_or("granular")
    }
}

/// What is offered and what is chosen.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Settings {
    models: Vec<Model>,
    modes: Vec<Choice>,
    model: String,
    effort: Option<String>,
    mode: String,
    pub access: Access,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Model {
    choice: Choice,
    /// Offered only while it is chosen.
    hidden: bool,
    efforts: Vec<Choice>,
    effort: String,
}

/// A choice that was asked for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Wanted {
    what: String,
    value: String,
}

/// What `thread/start`, `thread/resume` and `thread/settings/updated` say about what is chosen.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Chosen {
    #[serde(deserialize_with = "lenient")]
    model: Option<String>,
    #[serde(alias = "reasoningEffort", deserialize_with = "lenient")]
    effort: Option<String>,
    approval_policy: Value,
    #[serde(alias = "sandbox")]
    sandbox_policy: Value,
    #[serde(deserialize_with = "lenient")]
    collaboration_mode: Option<Mode>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Mode {
    #[serde(deserialize_with = "lenient")]
    mode: String,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct ModelPage {
    #[serde(deserialize_with = "lenient")]
    data: Vec<Value>,
    #[serde(deserialize_with = "lenient")]
    next_cursor: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct ListedModel {
    #[serde(deserialize_with = "lenient")]
    model: String,
    #[serde(deserialize_with = "lenient")]
    display_name: String,
    #[serde(deserialize_with = "lenient")]
    description: Option<String>,
    #[serde(deserialize_with = "lenient")]
    hidden: bool,
    #[serde(deserialize_with = "lenient")]
    supported_reasoning_efforts: Vec<Effort>,
    #[serde(deserialize_with = "lenient")]
    default_reasoning_effort: String,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Effort {
    #[serde(deserialize_with = "lenient")]
    reasoning_effort: String,
    #[serde(deserialize_with = "lenient")]
    description: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct ListedMode {
    #[serde(deserialize_with = "lenient")]
    name: String,
    #[serde(deserialize_with = "lenient")]
    mode: String,
}

fn choice(id: &str, name: &str, description: Option<&str>) -> Choice {
    let description = description.map(one_line).filter(|text| !text.is_empty());
    let name = if name.is_empty() { id } else { name };
    Choice { id: id.to_owned(), name: one_line(name), description }
}

impl Settings {
    /// What an opened thread says about itself, with what is known to be offered.
    pub fn read(result: &str, offered: &Self) -> Self {
        let mut settings = Self { mode: "default".to_owned(), ..offered.clone() };
        settings.take(read(result));
        settings
    }

    fn take(&mut self, chosen: Chosen) {
        if let Some(model) = chosen.model {
            self.model = model;
        }
        self.effort = chosen.effort;
        if !chosen.approval_policy.is_null() {
            self.access.approval = chosen.approval_policy;
        }
        if !chosen.sandbox_policy.is_null() {
            self.access.sandbox = chosen.sandbox_policy;
        }
        if let Some(Mode { mode }) = chosen.collaboration_mode
            && !mode.is_empty()
        {
            self.mode = mode;
        }
    }

    /// Everything that can be chosen, with what is chosen.
    fn list(&self) -> Vec<SessionOption> {
        let option = |id: &str, name: &str, current: &str, mut choices: Vec<Choice>| {
            if choices.iter().all(|choice| choice.id != current) {
                choices.push(choice(current, current, None));
            }
            SessionOption { id: id.to_owned(), name: name.to_owned(), current: current.to_owned(), choices }
        };
        let mut options = Vec::new();
        if !self.model.is_empty() {
            let models = self.models.iter().filter(|model| !model.hidden || model.choice.id == self.model);
            let models = models.map(|model| model.choice.clone()).collect();
            options.push(option(MODEL, "Model", &self.model, models));
        }
        if let Some(model) = self.models.iter().find(|model| model.choice.id == self.model)
            && !model.efforts.is_empty()
        {
            let current = self.effort.as_ref().unwrap_or(&model.effort);
            options.push(option(EFFORT, "Effort", current, model.efforts.clone()));
        }
        if !self.modes.is_empty() {
            options.push(option(MODE, "Mode", &self.mode, self.modes.clone()));
        }
        let approvals = vec![
            choice("untrusted", "Untrusted", Some("Asks before anything but well-known reading")),
            choice(
                "on-request",
                "On request",
                Some("Asks when something needs more than the sandbox allows"),
            ),
            choice("never", "Never", Some("Never asks; what is not allowed fails")),
        ];
        options.push(option(APPROVAL, "Approvals", self.access.approval_word(), approvals));
        let sandboxes = vec![
            choice("read-only", "Read only", None),
            choice("workspace-write", "Write in the workspace", None),
            choice("danger-full-access", "Full access", None),
        ];
        options.push(option(SANDBOX, "Sandbox", self.access.sandbox_mode(), sandboxes));
        options
    }
}

impl Codex {
    /// What a permission mode means.
    pub(super) fn access(&self, mode: PermissionMode) -> Access {
        let on_request = json!("on-request");
        match mode {
            PermissionMode::Default => (*self.baseline).clone(),
            // Sandboxed commands can do no more than edits in the workspace could.
            PermissionMode::AcceptEdits => Access { approval: on_request, sandbox: workspace_write() },
            PermissionMode::Plan => Access { approval: on_request, sandbox: read_only() },
            PermissionMode::Bypass => Access { approval: json!("never"), sandbox: full_access() },
        }
    }

    pub(crate) fn follow_permissions(&mut self, mode: PermissionMode, out: &mut Output) {
        self.launch.permissions = mode;
        if self.phase == Phase::Open && self.permissions != mode {
            self.apply_permissions(out);
        }
    }

    pub(super) fn apply_permissions(&mut self, out: &mut Output) {
        self.permissions = self.launch.permissions;
        let Access { approval, sandbox } = self.access(self.permissions);
        let params = json!({"threadId": self.thread, "approvalPolicy": approval, "sandboxPolicy": sandbox});
        let wanted = Wanted { what: "permission mode".to_owned(), value: self.permissions.word().to_owned() };
        self.send(Request::Choose(wanted), "thread/settings/update", params, out);
    }

    pub(crate) fn choose_option(&mut self, id: &str, value: &str, out: &mut Output) -> Result<(), String> {
        if self.phase != Phase::Open {
            return Err("Codex has no open thread yet, so nothing can be chosen.".to_owned());
        }
        let options = self.settings.list();
        let Some(option) = options.iter().find(|option| option.id == id) else {
            let ids: Vec<&str> = options.iter().map(|option| option.id.as_str()).collect();
            return Err(format!("Codex has no option `{id}`: it has {}.", ids.join(", ")));
        };
        let by_id = option.choices.iter().find(|choice| choice.id == value);
        let by_name = || option.choices.iter().find(|choice| choice.name.eq_ignore_ascii_case(value));
        let value = match by_id.or_else(by_name) {
            Some(choice) => choice.id.as_str(),
            // The app server takes models that it does not list.
            None if id == MODEL && !value.trim().is_empty() => value,
            None => {
                let ids: Vec<&str> =
                    option.choices.iter().take(NAMED_CHOICES).map(|choice| choice.id.as_str()).collect();
                return Err(format!("Codex has no {id} `{value}`: it has {}.", ids.join(", ")));
            }
        };
        let mut params = json!({"threadId": self.thread});
        match id {
            MODEL => params["model"] = json!(value),
            EFFORT => params["effort"] = json!(value),
            MODE => {
                params["collaborationMode"] = json!({
                    "mode": value,
                    "settings": {
                        "model": self.settings.model,
                        "reasoning_effort": self.settings.effort,
                        "developer_instructions": null,
                    },
                });
            }
            APPROVAL if value == "granular" => return Ok(()),
            APPROVAL => params["approvalPolicy"] = json!(value),
            _ => {
                params["sandboxPolicy"] = match value {
                    // The profile's own folders and network, where it has such a sandbox itself.
                    _ if self.baseline.sandbox_mode() == value => self.baseline.sandbox.clone(),
                    word => sandbox_of(word),
                };
            }
        }
        let wanted = Wanted { what: id.to_owned(), value: value.to_owned() };
        self.send(Request::Choose(wanted), "thread/settings/update", params, out);
        Ok(())
    }

    pub(super) fn chosen(&mut self, wanted: &Wanted, outcome: Result<&str, RpcError>, out: &mut Output) {
        if let Err(error) = outcome {
            let Wanted { what, value } = wanted;
            warn(out, format!("Codex did not take {value} as its {what}: {}.", error.sentence()));
        }
    }

    pub(super) fn settings_updated(&mut self, params: &str, out: &mut Output) {
        #[derive(Deserialize, Default)]
        #[serde(rename_all = "camelCase", default)]
        struct Updated {
            #[serde(deserialize_with = "lenient")]
            thread_id: Option<String>,
            #[serde(deserialize_with = "lenient")]
            thread_settings: Option<Chosen>,
        }
        let Updated { thread_id, thread_settings: Some(chosen) } = read(params) else { return };
        if thread_id.is_some() && thread_id != self.thread {
            return;
        }
        let before = Arc::clone(&self.settings);
        Arc::make_mut(&mut self.settings).take(chosen);
        if before != self.settings {
            self.tell_options(out);
        }
    }

    pub(super) fn models_listed(&mut self, outcome: Result<&str, RpcError>, out: &mut Output) {
        let Ok(result) = outcome else { return };
        let ModelPage { data, next_cursor } = read(result);
        let settings = Arc::make_mut(&mut self.settings);
        for listed in data {
            let listed: ListedModel = serde_json::from_value(listed).unwrap_or_default();
            if listed.model.is_empty() || settings.models.iter().any(|known| known.choice.id == listed.model)
            {
                continue;
            }
            let efforts = listed.supported_reasoning_efforts.iter();
            let efforts = efforts.filter(|effort| !effort.reasoning_effort.is_empty()).map(|effort| {
                choice(&effort.reasoning_effort, &effort.reasoning_effort, effort.description.as_deref())
            });
            settings.models.push(Model {
                choice: choice(&listed.model, &listed.display_name, listed.description.as_deref()),
                hidden: listed.hidden,
                efforts: efforts.collect(),
                effort: listed.default_reasoning_effort,
            });
        }
        self.model_pages += 1;
        match next_cursor {
            Some(cursor) if self.model_pages < MODEL_PAGES => {
                self.send(Request::Models, "model/list", json!({"cursor": cursor}), out);
            }
            _ => self.tell_changed_options(out),
        }
    }

    pub(super) fn modes_listed(&mut self, outcome: Result<&str, RpcError>, out: &mut Output) {
        #[derive(Deserialize, Default)]
        #[serde(default)]
        struct Modes {
            #[serde(deserialize_with = "lenient")]
            data: Vec<Value>,
        }
        let Ok(result) = outcome else { return };
        let modes = read::<Modes>(result).data.into_iter();
        let modes = modes.map(|mode| serde_json::from_value::<ListedMode>(mode).unwrap_or_default());
        let modes = modes.filter(|mode| !mode.mode.is_empty());
        Arc::make_mut(&mut self.settings).modes =
            modes.map(|mode| choice(&mode.mode, &mode.name, None)).collect();
        self.tell_changed_options(out);
    }

    pub(super) fn tell_options(&self, out: &mut Output) {
        out.signals.push(Signal::Options(self.settings.list()));
    }

    /// Before the thread takes prompts, options are told with its opening.
    fn tell_changed_options(&self, out: &mut Output) {
        if self.phase == Phase::Open {
            self.tell_options(out);
        }
    }
}
