//! What the program says about itself: turns beginning, modes, retries, tasks and its other small print.

use consort_model::{NoticeLevel, Signal, SlashCommand, Usage};
use serde::Deserialize;
use serde_json::Value;

use super::wire::one_line;
use super::{Claude, info, notice, unknown, warn};
use crate::Output;

/// How many MCP servers that fail get a notice of their own.
const SERVER_NOTICES: usize = 32;

/// What a turn begins with.
#[derive(Deserialize)]
struct Init {
    #[serde(default)]
    session_id: Option<String>,
    #[serde(default)]
    model: Option<String>,
    #[serde(default, rename = "permissionMode")]
    mode: Option<String>,
    #[serde(default)]
    claude_code_version: Option<String>,
    #[serde(default)]
    mcp_servers: Value,
}

impl Claude {
    pub(super) fn system(&mut self, subtype: &str, text: &str, out: &mut Output) {
        match subtype {
            // Figures and beginnings that are told better elsewhere; a refusal by the error that ends its turn.
            "thinking_tokens"
            | "task_progress"
            | "hook_started"
            | "hook_progress"
            | "hook_response"
            | "files_persisted"
            | "memory_recall"
            | "elicitation_complete"
            | "plugin_install"
            | "model_refusal_no_fallback"
            | "worker_shutting_down" => return,
            _ => {}
        }
        let Ok(said) = serde_json::from_str::<Value>(text) else { return };
        let word = |key: &str| said.get(key).and_then(Value::as_str);
        match subtype {
            "init" => self.turn_begins(&said, out),
            "status" => self.status(&said, out),
            "session_state_changed" => {
                if word("state") == Some("idle") {
                    self.idle(out);
                }
            }
            "task_started" => {
                if let (Some(task), Some(tool)) = (word("task_id"), word("tool_use_id")) {
                    self.tasks.begin(task, tool);
                }
            }
            "task_updated" => {
                let status = said.get("patch").and_then(|patch| patch.get("status")).and_then(Value::as_str);
                // A task that ended well is ended by its notification, which says more.
                if let (Some(task), Some("failed" | "killed")) = (word("task_id"), status)
                    && self.tasks.tool(task).is_some_and(|tool| self.tools.holds(tool))
                {
                    self.tasks.end(task);
                }
            }
            "task_notification" => self.task_ended(&said, out),
            "api_retry" => {
                let number = |key: &str| said.get(key).and_then(Value::as_f64).unwrap_or(0.0);
                let status = said.get("error_status").and_then(Value::as_u64);
                let status = status.map_or_else(String::new, |status| format!(" ({status})"));
                warn(
                    out,
                    format!(
                        "The model's API failed: {}{status}. Trying again in {:.1} s, {} of {}.",
                        one_line(word("error").unwrap_or("unknown")),
                        number("retry_delay_ms") / 1000.0,
                        number("attempt"),
                        number("max_retries"),
                    ),
                );
            }
            "permission_denied" => {
                let tool = one_line(word("tool_name").unwrap_or("A tool call"));
                let why = word("decision_reason")
                    .or_else(|| word("decision_reason_type"))
                    .unwrap_or("its settings");
                info(out, format!("{tool} was denied by the agent itself: {}.", one_line(why)));
            }
            "compact_boundary" => {
                info(out, "The conversation was shortened to a summary.");
                let after = said.get("compact_metadata").and_then(|metadata| metadata.get("post_tokens"));
                if let Some(after) = after.and_then(Value::as_u64) {
                    out.signals.push(Signal::Usage(Usage { context_used: Some(after), ..Usage::default() }));
                }
            }
            "commands_changed" => {
                out.signals.push(Signal::Commands(commands(said.get("commands"))));
            }
            "local_command_output" => {
                if let Some(text) = word("content") {
                    out.signals.push(Signal::MessageEnd);
                    out.signals.push(Signal::Text { text: text.to_owned(), within: None });
                    out.signals.push(Signal::MessageEnd);
                }
            }
            "informational" | "notification" | "mirror_error" | "model_refusal_fallback" => {
                let words = word("content").or_else(|| word("text")).or_else(|| word("error"));
                let Some(words) = words.filter(|words| !words.trim().is_empty()) else { return };
                let level = match word("level") {
                    Some("warning") => NoticeLevel::Warning,
                    _ => NoticeLevel::Info,
                };
                notice(out, level, one_line(words));
            }
            other => out.signals.push(unknown(&format!("system/{other}"), text)),
        }
    }

    fn turn_begins(&mut self, said: &Value, out: &mut Output) {
        let Ok(init) = Init::deserialize(said) else {
            return warn(out, "The agent began a turn in a way that cannot be read.");
        };
        self.session_is(init.session_id.as_deref(), init.claude_code_version.as_deref(), out);
        self.uses(init.mode.as_deref(), init.model.as_deref(), out);
        for server in init.mcp_servers.as_array().into_iter().flatten() {
            self.check_server(server, out);
        }
        self.begin(out);
    }

    fn check_server(&mut self, server: &Value, out: &mut Output) {
        let word = |key: &str| server.get(key).and_then(Value::as_str);
        let (Some(name), Some(status @ ("failed" | "needs-auth"))) = (word("name"), word("status")) else {
            return;
        };
        if self.failed_servers.len() >= SERVER_NOTICES
            || self.failed_servers.iter().any(|known| known == name)
        {
            return;
        }
        self.failed_servers.push(name.to_owned());
        let what =
            if status == "failed" { "cannot be reached or refuses the agent" } else { "wants a login" };
        warn(out, format!("The MCP server {} {what}; its tools are missing.", one_line(name)));
    }

    fn status(&mut self, said: &Value, out: &mut Output) {
        let word = |key: &str| said.get(key).and_then(Value::as_str);
        self.uses(word("permissionMode"), None, out);
        if word("status") == Some("compacting") {
            info(out, "The conversation is being shortened to a summary.");
        }
    }

    fn task_ended(&mut self, said: &Value, out: &mut Output) {
        let word = |key: &str| said.get(key).and_then(Value::as_str);
        let Some(task) = word("task_id") else { return };
        let background = self.in_background(task);
        self.tasks.end(task);
        let hidden = said.get("skip_transcript").and_then(Value::as_bool).unwrap_or(false);
        if background && !hidden {
            let summary = one_line(word("summary").unwrap_or("A background task"));
            let text = match word("status") {
                Some("stopped") => format!("{summary}: stopped."),
                Some("failed") => format!("{summary}: failed."),
                _ => format!("{}.", summary.trim_end_matches('.')),
            };
            info(out, text);
        }
    }

    /// Whether a task is at work and the call that began it has its result.
    pub(super) fn in_background(&self, task: &str) -> bool {
        self.tasks.tool(task).is_some_and(|tool| !self.tools.holds(tool))
    }

    pub(super) fn rate_limit(&self, text: &str, out: &mut Output) {
        let said: Value = serde_json::from_str(text).unwrap_or_default();
        let limit = said.get("rate_limit_info").unwrap_or(&Value::Null);
        let word = |key: &str| limit.get(key).and_then(Value::as_str);
        let which = one_line(&word("rateLimitType").unwrap_or("usage").replace('_', " "));
        let used = limit.get("utilization").and_then(Value::as_f64);
        match word("status") {
            Some("allowed_warning") => {
                let used = used.map_or_else(String::new, |used| format!(": {:.0} % are used", used * 100.0));
                info(out, format!("The {which} limit is near{used}."));
            }
            Some("rejected") => warn(out, format!("The {which} limit is reached.")),
            _ => {}
        }
    }

    pub(super) fn auth_status(&self, text: &str, out: &mut Output) {
        let said: Value = serde_json::from_str(text).unwrap_or_default();
        if let Some(error) = said.get("error").and_then(Value::as_str) {
            warn(out, format!("The agent's login failed: {}", one_line(error)));
        }
    }
}

/// The slash commands as the agent lists them.
pub fn commands(list: Option<&Value>) -> Vec<SlashCommand> {
    let commands = list.and_then(Value::as_array).into_iter().flatten();
    commands
        .filter_map(|command| {
            let word = |key: &str| command.get(key).and_then(Value::as_str);
            Some(SlashCommand {
                name: word("name")?.trim_start_matches('/').to_owned(),
                description: word("description").unwrap_or_default().to_owned(),
                hint: word("argumentHint").filter(|hint| !hint.is_empty()).map(str::to_owned),
            })
        })
        .collect()
}
