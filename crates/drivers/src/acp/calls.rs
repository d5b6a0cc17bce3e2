//! Calls to the host: files and terminals.
//!
//! Owns which calls and terminals are open and how an answer looks. Checks paths by their text; the host, which knows
//! where links lead, checks again and does the work.

use std::path::{Component, Path};

use agent_client_protocol_schema::v1;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::wire::{self, code};
use super::{Acp, Incoming, warn};
use crate::host::TerminalExit;
use crate::{CallId, CallResult, HostCall, Output};

/// The open calls and terminals.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Calls {
    next_call: u64,
    next_terminal: u64,
    open: Vec<OpenCall>,
    terminals: Vec<String>,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct OpenCall {
    call: CallId,
    /// The request's id as it stood in the JSON.
    request: String,
    what: HostCall,
}

/// Whether a request is a call to the host.
pub fn knows(method: &str) -> bool {
    matches!(
        method,
        "fs/read_text_file"
            | "fs/write_text_file"
            | "terminal/create"
            | "terminal/output"
            | "terminal/wait_for_exit"
            | "terminal/kill"
            | "terminal/release"
    )
}

impl Calls {
    pub fn pending(&self) -> Vec<(CallId, HostCall)> {
        self.open.iter().map(|open| (open.call.clone(), open.what.clone())).collect()
    }

    pub fn len(&self) -> usize {
        self.open.len()
    }

    pub fn clear(&mut self) {
        self.open.clear();
        self.terminals.clear();
    }

    /// Forgets the call of a request that was taken back; whether there was one.
    pub fn forget(&mut self, request: &str) -> bool {
        let before = self.open.len();
        self.open.retain(|open| open.request != request);
        self.open.len() < before
    }

    fn hand_out(&mut self, request: &str, what: HostCall, out: &mut Output) {
        self.next_call += 1;
        let call = CallId(format!("call-{}", self.next_call));
        self.open.push(OpenCall { call: call.clone(), request: request.to_owned(), what: what.clone() });
        out.calls.push((call, what));
    }
}

/// The parameters of everything that is about one terminal.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OneTerminal {
    terminal_id: String,
}

impl Acp {
    pub(super) fn host_call(&mut self, request: &Incoming<'_>, out: &mut Output) {
        match self.read_call(request, out) {
            Some(Ok(what)) => self.calls.hand_out(request.id, what, out),
            Some(Err(message)) => {
                out.frames.push(wire::refuse(request.id, code::INVALID_PARAMS, &message, Value::Null));
                warn(out, format!("A {} of the agent was refused: {message}", request.method));
            }
            None => {}
        }
    }

    /// What the request wants of the host, or why it may not; none if it was refused already.
    fn read_call(&mut self, request: &Incoming<'_>, out: &mut Output) -> Option<Result<HostCall, String>> {
        Some(match request.method {
            "fs/read_text_file" => {
                let read: v1::ReadTextFileRequest = self.params(request, out)?;
                let call = |path| HostCall::ReadFile { path, line: read.line, limit: read.limit };
                self.inside(&read.path).map(call)
            }
            "fs/write_text_file" => {
                let write: v1::WriteTextFileRequest = self.params(request, out)?;
                let call = |path| HostCall::WriteFile { path, text: write.content };
                self.inside(&write.path).map(call)
            }
            "terminal/create" => {
                let create: v1::CreateTerminalRequest = self.params(request, out)?;
                match create.cwd.as_deref().map(|cwd| self.inside(cwd)).transpose() {
                    Ok(cwd) => Ok(self.create_terminal(create, cwd)),
                    Err(message) => Err(message),
                }
            }
            method => {
                let OneTerminal { terminal_id: terminal } = self.params(request, out)?;
                let Some(index) = self.calls.terminals.iter().position(|open| *open == terminal) else {
                    return Some(Err(format!("there is no terminal {}", wire::one_line(&terminal))));
                };
                Ok(match method {
                    "terminal/output" => HostCall::TerminalOutput { terminal },
                    "terminal/wait_for_exit" => HostCall::TerminalWait { terminal },
                    "terminal/kill" => HostCall::TerminalKill { terminal },
                    _ => {
                        self.calls.terminals.remove(index);
                        HostCall::TerminalRelease { terminal }
                    }
                })
            }
        })
    }

    fn create_terminal(&mut self, create: v1::CreateTerminalRequest, cwd: Option<String>) -> HostCall {
        self.calls.next_terminal += 1;
        let terminal = format!("term-{}", self.calls.next_terminal);
        self.calls.terminals.push(terminal.clone());
        HostCall::TerminalCreate {
            terminal,
            command: create.command,
            args: create.args,
            env: create.env.into_iter().map(|variable| (variable.name, variable.value)).collect(),
            cwd,
            output_limit: create.output_byte_limit,
        }
    }

    /// The path, if it is absolute and lies within the agent's folders by its text.
    fn inside(&self, path: &Path) -> Result<String, String> {
        let shown = wire::one_line(&path.to_string_lossy());
        if !path.is_absolute() {
            return Err(format!("the path {shown} is not absolute"));
        }
        if path.components().any(|part| part == Component::ParentDir) {
            return Err(format!("the path {shown} leads upwards; give it without .."));
        }
        let mut roots = self.launch.roots.iter().chain([&self.launch.cwd]);
        if !roots.any(|root| path.starts_with(root)) {
            return Err(format!("the path {shown} is outside of the agent's folders"));
        }
        path.to_str().map(str::to_owned).ok_or_else(|| format!("the path {shown} is not UTF-8"))
    }

    pub(crate) fn complete_call(&mut self, call: &CallId, result: CallResult, out: &mut Output) {
        let Some(index) = self.calls.open.iter().position(|open| open.call == *call) else { return };
        let OpenCall { request, what, .. } = self.calls.open.remove(index);
        let answer = match (&what, result) {
            (HostCall::ReadFile { .. }, CallResult::Text { text }) => Ok(json!({"content": text})),
            (HostCall::ReadFile { .. }, CallResult::NotFound { .. })
                if self.quirks().missing_file_is_empty =>
            {
                Ok(json!({"content": ""}))
            }
            (HostCall::TerminalCreate { terminal, .. }, CallResult::Done) => {
                Ok(json!({"terminalId": terminal}))
            }
            (HostCall::TerminalOutput { .. }, CallResult::Output { text, truncated, exit }) => {
                let mut answer = json!({"output": text, "truncated": truncated});
                if let Some(exit) = exit {
                    answer["exitStatus"] = exit_status(&exit);
                }
                Ok(answer)
            }
            (HostCall::TerminalWait { .. }, CallResult::Exited(exit)) => Ok(exit_status(&exit)),
            (
                HostCall::WriteFile { .. } | HostCall::TerminalKill { .. } | HostCall::TerminalRelease { .. },
                CallResult::Done,
            ) => Ok(json!({})),
            (what, CallResult::NotFound { message }) => Err((
                code::NOT_FOUND,
                message,
                file_of(what).map_or(Value::Null, |path| json!({"uri": path})),
            )),
            (_, CallResult::Failed { message }) => Err((code::INTERNAL, message, Value::Null)),
            (
                _,
                CallResult::Done
                | CallResult::Text { .. }
                | CallResult::Output { .. }
                | CallResult::Exited(_),
            ) => Err((code::INTERNAL, "the host gave no fitting answer".to_owned(), Value::Null)),
        };
        match answer {
            Ok(answer) => out.frames.push(wire::reply(&request, answer)),
            Err((code, message, data)) => {
                if let HostCall::TerminalCreate { terminal, .. } = &what {
                    self.calls.terminals.retain(|open| open != terminal);
                }
                out.frames.push(wire::refuse(&request, code, &message, data));
            }
        }
    }
}

fn file_of(call: &HostCall) -> Option<&str> {
    match call {
        HostCall::ReadFile { path, .. } | HostCall::WriteFile { path, .. } => Some(path),
        _ => None,
    }
}

/// The protocol has no negative exit codes; there are none on Unix either.
fn exit_status(exit: &TerminalExit) -> Value {
    json!({"exitCode": exit.code.and_then(|code| u32::try_from(code).ok()), "signal": exit.signal})
}
