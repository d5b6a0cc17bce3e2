//! The handshake: hello, the login, and the thread, new or taken up again.
//!
//! Owns everything up to [`Signal::Ready`]. Whatever fails here ends in [`Signal::StartFailed`] with a sentence that
//! says what to do, except where there is a next best way. What can be chosen is asked for at the same time and does
//! not hold up the opening.

use consort_model::{PermissionMode, SessionInfo, Signal, SlashCommand};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::settings::{Access, Settings};
use super::turns::COMMANDS;
use super::wire::{self, RpcError, lenient, one_line, read};
use super::{Codex, Phase, Request, warn};
use crate::Output;

/// What is told by others in better ways, or to nobody: the app server leaves these out when asked to.
const UNWANTED: [&str; 4] =
    ["turn/diff/updated", "thread/readState/changed", "remoteControl/status/changed", "thread/goal/cleared"];

/// How a thread is opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// A new one.
    New,
    /// An earlier one.
    Resume,
    /// A new one that begins with the past of an earlier one.
    Fork,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Hello {
    #[serde(deserialize_with = "lenient")]
    user_agent: String,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Account {
    account: Value,
    #[serde(deserialize_with = "lenient")]
    requires_openai_auth: bool,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Opened {
    #[serde(deserialize_with = "lenient")]
    thread: Thread,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Thread {
    #[serde(deserialize_with = "lenient")]
    id: Option<String>,
    #[serde(deserialize_with = "lenient")]
    cli_version: Option<String>,
    #[serde(deserialize_with = "lenient")]
    name: Option<String>,
}

impl Codex {
    pub(crate) fn hello(&mut self, out: &mut Output) {
        let params = json!({
            "clientInfo": {"name": "consort", "title": "Consort", "version": env!("CARGO_PKG_VERSION")},
            "capabilities": {"experimentalApi": true, "optOutNotificationMethods": UNWANTED},
        });
        self.send(Request::Initialize, "initialize", params, out);
    }

    pub(super) fn initialized(&mut self, outcome: Result<&str, RpcError>, out: &mut Output) {
        let hello: Hello = match outcome {
            Ok(result) => read(result),
            Err(error) => return self.fail(format!("Codex refused to start: {}.", error.sentence()), out),
        };
        self.program = program(&hello.user_agent);
        out.frames.push(wire::notification("initialized"));
        self.send(Request::Account, "account/read", json!({"refreshToken": false}), out);
        self.send(Request::Config, "config/read", json!({"cwd": self.launch.cwd}), out);
        self.send(Request::Models, "model/list", json!({}), out);
        self.send(Request::Modes, "collaborationMode/list", json!({}), out);
    }

    pub(super) fn account_read(&mut self, outcome: Result<&str, RpcError>, out: &mut Output) {
        // Without a word about the login there is still a thread to try.
        let account: Account = outcome.map(read).unwrap_or_default();
        if account.requires_openai_auth && account.account.is_null() {
            return self.fail(
                "Codex is not logged in. Run `codex login` with this profile's environment, then reopen the agent."
                    .to_owned(),
                out,
            );
        }
        self.account_known = true;
        self.open_when_known(out);
    }

    pub(super) fn config_read(&mut self, outcome: Result<&str, RpcError>, out: &mut Output) {
        let config: Value = outcome.map(read).unwrap_or_default();
        let config = config.get("config").unwrap_or(&Value::Null);
        self.baseline = Access::of_config(config, &self.launch.cwd).launched(&self.launch).into();
        self.config_known = true;
        self.open_when_known(out);
    }

    fn open_when_known(&mut self, out: &mut Output) {
        if self.account_known && self.config_known && self.phase == Phase::Opening {
            let way = match (&self.launch.resume, self.launch.fork) {
                (Some(_), true) => Way::Fork,
                (Some(_), false) => Way::Resume,
                (None, _) => Way::New,
            };
            self.open_by(way, out);
        }
    }

    fn open_by(&mut self, way: Way, out: &mut Output) {
        let mut params = Map::new();
        params.insert("cwd".to_owned(), json!(self.launch.cwd));
        if let Some(model) = &self.launch.model {
            params.insert("model".to_owned(), json!(model));
        }
        if !self.launch.roots.is_empty() {
            let roots: Vec<&String> = std::iter::once(&self.launch.cwd).chain(&self.launch.roots).collect();
            params.insert("runtimeWorkspaceRoots".to_owned(), json!(roots));
        }
        let servers: Map<String, Value> = self
            .launch
            .mcp_servers
            .iter()
            .map(|server| {
                let headers: Map<String, Value> =
                    server.headers.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
                // A dotted key stands beside the profile's own servers instead of replacing them.
                let settings = json!({
                    "url": server.url,
                    "http_headers": headers,
                    // Consort's own tools check for themselves what they may do.
                    "default_tools_approval_mode": "approve",
                });
                (format!("mcp_servers.{}", server.name), settings)
            })
            .collect();
        if !servers.is_empty() {
            params.insert("config".to_owned(), Value::Object(servers));
        }
        self.permissions = self.launch.permissions;
        // A new thread follows the configuration by itself. An earlier one would go on under what it had last, which
        // may be more than its agent is allowed now.
        let access = self.access(self.permissions);
        let all = way != Way::New || self.permissions != PermissionMode::Default;
        if all || self.launch.approval_policy.is_some() {
            params.insert("approvalPolicy".to_owned(), access.approval.clone());
        }
        if all || self.launch.sandbox_mode.is_some() {
            params.insert("sandbox".to_owned(), json!(access.sandbox_mode()));
        }
        match (way, &self.launch.resume) {
            (Way::Resume, Some(earlier)) => {
                // What arrives before the answer speaks of this thread already.
                self.thread = Some(earlier.clone());
                params.insert("threadId".to_owned(), json!(earlier));
                params.insert("excludeTurns".to_owned(), json!(true));
                self.send(Request::Open { way }, "thread/resume", params, out);
            }
            (Way::Fork, Some(earlier)) => {
                self.thread = None;
                params.insert("threadId".to_owned(), json!(earlier));
                params.insert("excludeTurns".to_owned(), json!(true));
                self.send(Request::Open { way }, "thread/fork", params, out);
            }
            _ => {
                self.thread = None;
                self.send(Request::Open { way: Way::New }, "thread/start", params, out);
            }
        }
    }

    pub(super) fn opened(&mut self, way: Way, outcome: Result<&str, RpcError>, out: &mut Output) {
        let result = match outcome {
            Ok(result) => result,
            Err(error) if way == Way::New => {
                return self.fail(format!("Codex could not open a thread: {}.", error.sentence()), out);
            }
            Err(error) if way == Way::Fork => {
                return self.fail(format!("Codex could not fork the thread: {}.", error.sentence()), out);
            }
            Err(error) => {
                let error = error.sentence();
                warn(
                    out,
                    format!("Codex could not take up its earlier thread, so this is a new one: {error}."),
                );
                self.launch.resume = None;
                return self.open_by(Way::New, out);
            }
        };
        let Opened { thread } = read(result);
        let Some(id) = thread.id.or_else(|| self.thread.take()) else {
            return self.fail("Codex opened a thread without naming it.".to_owned(), out);
        };
        self.thread = Some(id.clone());
        if let Some(version) = thread.cli_version {
            self.program = one_line(&format!("Codex {version}"));
        }
        let settings = Settings::read(result, &self.settings);
        if way == Way::New && self.permissions == PermissionMode::Default {
            self.baseline = settings.access.clone().into();
        }
        self.settings = settings.into();
        // They hold a token, and are of no further use.
        self.launch.mcp_servers.clear();
        self.phase = Phase::Open;
        out.signals.push(Signal::Ready(SessionInfo {
            id,
            program: self.program.clone(),
            resumed: way == Way::Resume,
            resumable: true,
            cannot_fork: false,
            images: true,
            files: true,
        }));
        if let Some(name) = thread.name {
            out.signals.push(Signal::Title(one_line(&name)));
        }
        let commands = COMMANDS.map(|(name, description, hint)| SlashCommand {
            name: name.to_owned(),
            description: description.to_owned(),
            hint: hint.map(str::to_owned),
        });
        out.signals.push(Signal::Commands(commands.into()));
        self.tell_options(out);
        if self.permissions != self.launch.permissions {
            // It was changed while the thread was being opened.
            self.apply_permissions(out);
        }
    }

    /// The thread cannot be opened.
    fn fail(&mut self, message: String, out: &mut Output) {
        self.phase = Phase::Over;
        self.requests.clear();
        out.signals.push(Signal::StartFailed { message });
    }
}

/// The version in `consort/0.166.0 (Debian …)`.
fn program(user_agent: &str) -> String {
    let version = user_agent.split_once('/').and_then(|(_, rest)| rest.split_whitespace().next());
    one_line(&format!("Codex {}", version.unwrap_or_default())).trim().to_owned()
}
