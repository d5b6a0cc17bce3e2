//! The beginning: how the process is started, what is said first, and when the session takes prompts.
//!
//! The answer to `initialize` is the sign that the agent is there. The session's id comes with the first turn only,
//! because there is nothing to take up again before it; the session is then told once more.

use std::sync::Arc;

use consort_model::{SessionInfo, Signal, Usage};
use serde_json::{Map, Value, json};

use super::options::mode_of;
use super::system::commands;
use super::tools::names_of;
use super::wire::one_line;
use super::{Claude, Phase, Request, warn};
use crate::{CommandLine, Output};

impl Claude {
    pub(super) fn arguments(&self) -> CommandLine {
        let mut after: Vec<String> = [
            "-p",
            "--input-format",
            "stream-json",
            "--output-format",
            "stream-json",
            "--verbose",
            "--include-partial-messages",
            "--permission-prompt-tool",
            "stdio",
            // Says when a message that was sent in the middle of a turn is taken in.
            "--replay-user-messages",
        ]
        .map(str::to_owned)
        .into();
        if self.launch.fork {
            after.push("--fork-session".to_owned());
        }
        let mut option = |name: &str, value: &str| after.extend([name.to_owned(), value.to_owned()]);
        if let Some(session) = &self.launch.resume {
            option("--resume", session);
        }
        if let Some(model) = self.launch.model.as_deref().filter(|model| *model != "default") {
            option("--model", model);
        }
        // Left out where it is the default, so that what the profile or the agent's settings say stands.
        let mode = mode_of(self.launch.permissions);
        if mode != "default" {
            option("--permission-mode", mode);
        }
        for server in &self.launch.mcp_servers {
            // Consort's own tools check for themselves what they may do.
            option("--allowedTools", &format!("mcp__{}", server.name));
        }
        for root in &self.launch.roots {
            option("--add-dir", root);
        }
        if let Some(tools) = &self.launch.tools {
            // Which tools there are, not which need no approval. Those of MCP servers are not meant.
            option("--tools", &names_of(tools));
        }
        let environment = vec![("CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS".to_owned(), "1".to_owned())];
        CommandLine { before: Vec::new(), after, environment }
    }

    pub(crate) fn hello(&mut self, out: &mut Output) {
        let request = json!({"subtype": "initialize", "hooks": null, "forwardSubagentText": true});
        self.send(Request::Initialize, request, out);
        if self.launch.mcp_servers.is_empty() {
            return;
        }
        // Not on the command line, where every process on the machine could read their tokens.
        let servers = self.launch.mcp_servers.iter().map(|server| {
            let headers = server.headers.iter().map(|(name, value)| (name.clone(), json!(value)));
            let headers = Map::from_iter(headers);
            (server.name.clone(), json!({"type": "http", "url": server.url, "headers": headers}))
        });
        let servers = Map::from_iter(servers);
        self.send(Request::Servers, json!({"subtype": "mcp_set_servers", "servers": servers}), out);
    }

    pub(super) fn initialized(&mut self, outcome: Result<Value, String>, out: &mut Output) {
        match outcome {
            Ok(said) => {
                Arc::make_mut(&mut self.options).set_models(said.get("models").unwrap_or(&Value::Null));
                self.commands = Arc::new(commands(said.get("commands")));
                self.ready(out);
            }
            Err(error) => {
                let message =
                    format!("Claude cannot open a session: {}.", one_line(&error).trim_end_matches('.'));
                self.start_failed(message, out);
            }
        }
    }

    pub(super) fn servers_set(&mut self, outcome: Result<Value, String>, out: &mut Output) {
        // They hold a token, and are of no further use.
        Arc::make_mut(&mut self.launch).mcp_servers.clear();
        match outcome {
            Ok(said) => {
                let errors = said.get("errors").and_then(Value::as_object).into_iter().flatten();
                for (name, error) in errors {
                    let error = error.as_str().map_or_else(|| error.to_string(), str::to_owned);
                    warn(
                        out,
                        format!("The MCP server {} is not there: {}", one_line(name), one_line(&error)),
                    );
                    self.failed_servers.push(name.clone());
                }
            }
            Err(error) => warn(out, format!("The agent took no MCP servers: {}", one_line(&error))),
        }
        self.ready(out);
    }

    /// The session takes prompts once everything that was said first is answered.
    fn ready(&mut self, out: &mut Output) {
        let waits = |request: &Request| matches!(request, Request::Initialize | Request::Servers);
        if self.phase != Phase::Opening || self.requests.iter().any(|(_, request)| waits(request)) {
            return;
        }
        self.phase = Phase::Open;
        // A fork gets an id of its own with its first turn.
        let session = self.launch.resume.clone().filter(|_| !self.launch.fork).unwrap_or_default();
        self.session = Arc::new(SessionInfo {
            resumed: !session.is_empty(),
            resumable: !session.is_empty(),
            cannot_fork: false,
            id: session,
            program: "Claude Code".to_owned(),
            images: true,
            files: true,
        });
        out.signals.push(Signal::Ready((*self.session).clone()));
        out.signals.push(Signal::Options(self.options.list()));
        out.signals.push(Signal::Commands((*self.commands).clone()));
        self.commands = Arc::default();
    }

    /// A turn tells which session it belongs to. A new id is a new conversation, unless it is the first.
    pub(super) fn session_is(&mut self, id: Option<&str>, version: Option<&str>, out: &mut Output) {
        let Some(id) = id.filter(|id| !id.is_empty() && self.phase == Phase::Open) else { return };
        let before = Arc::clone(&self.session);
        let program = match version {
            Some(version) => format!("Claude Code {}", one_line(version)),
            None => before.program.clone(),
        };
        let resumed = before.resumed && before.id == id;
        let session = SessionInfo { id: id.to_owned(), program, resumed, resumable: true, ..*before };
        if session == *before {
            return;
        }
        self.session = Arc::new(session);
        out.signals.push(Signal::Ready((*self.session).clone()));
        if !before.id.is_empty() && before.id != id {
            out.signals.push(Signal::Usage(Usage { context_used: Some(0), ..Usage::default() }));
            if self.plan.clear() {
                out.signals.push(Signal::Plan(Vec::new()));
            }
        }
    }

    pub(super) fn start_failed(&mut self, message: String, out: &mut Output) {
        self.phase = Phase::Over;
        self.requests.clear();
        out.signals.push(Signal::StartFailed { message });
    }
}
