//! What an agent asks its client to do: files, terminals, questions. The outcome is said as text.

use serde_json::{Value, json};

use super::{End, Turn};

impl Turn<'_> {
    pub(super) fn fs_read(&self, path: &str, line: Option<u64>, limit: Option<u64>) -> Result<(), End> {
        let mut params = json!({"sessionId": self.session.id, "path": self.session.cwd.join(path)});
        if let Some(line) = line {
            params["line"] = json!(line);
        }
        if let Some(limit) = limit {
            params["limit"] = json!(limit);
        }
        let answer = self.call("fs/read_text_file", params)?;
        self.report(
            "fs_read",
            answer.map(|result| result["content"].as_str().unwrap_or("no content").to_owned()),
        );
        Ok(())
    }

    pub(super) fn fs_write(&self, path: &str, text: &str) -> Result<(), End> {
        let path = self.session.cwd.join(path);
        let params = json!({"sessionId": self.session.id, "path": path, "content": text});
        let answer = self.call("fs/write_text_file", params)?;
        self.report("fs_write", answer.map(|_| "written".to_owned()));
        Ok(())
    }

    /// A command in the client's terminal, shown in a tool call.
    pub(super) fn terminal(&self, command: &[String], kill: bool, limit: Option<u64>) -> Result<(), End> {
        let (program, args) = match command {
            [program, args @ ..] => (program, args),
            [] => return Ok(()),
        };
        let mut params = json!({"sessionId": self.session.id, "command": program, "args": args,
                                "cwd": self.session.cwd, "env": []});
        if let Some(limit) = limit {
            params["outputByteLimit"] = json!(limit);
        }
        let created = self.call("terminal/create", params)?;
        let terminal = match created {
            Ok(result) => result["terminalId"].clone(),
            Err(error) => {
                self.report("terminal", Err(error));
                return Ok(());
            }
        };
        let call = self.open_tool(
            "execute",
            &command.join(" "),
            json!({
                "status": "in_progress", "content": [{"type": "terminal", "terminalId": terminal}],
            }),
        );
        let on_terminal = json!({"sessionId": self.session.id, "terminalId": terminal});
        let run = || -> Result<(Value, Value), End> {
            if kill && let Err(error) = self.call("terminal/kill", on_terminal.clone())? {
                self.report("terminal/kill", Err(error));
            }
            let exit = self.call("terminal/wait_for_exit", on_terminal.clone())?;
            let output = self.call("terminal/output", on_terminal.clone())?;
            Ok((exit.map_err(End::Error)?, output.map_err(End::Error)?))
        };
        let outcome = run();
        if outcome.is_err() && self.ticket.cancelled() {
            // Nobody waits for the answer any more, but the client should not keep a terminal for a turn that is over.
            let id = self.agent.wire.fresh_id();
            self.agent.wire.request(id, "terminal/release", on_terminal);
            self.close_tool(&call, "failed", "cancelled");
            outcome?;
            return Ok(());
        }
        let released = self.call("terminal/release", on_terminal)?;
        self.close_tool_as_is(&call, if outcome.is_ok() { "completed" } else { "failed" });
        match outcome {
            Ok((exit, output)) => {
                let end = match (exit["exitCode"].as_i64(), exit["signal"].as_str()) {
                    (Some(code), _) => format!("exit {code}"),
                    (None, Some(signal)) => format!("signal {signal}"),
                    (None, None) => "no exit status".to_owned(),
                };
                let truncated = if output["truncated"] == true { " (truncated)" } else { "" };
                let text = output["output"].as_str().unwrap_or_default();
                self.say(&format!("terminal: {end}{truncated}\n{text}"));
            }
            Err(End::Error(error)) => self.report("terminal", Err(error)),
            Err(stop) => return Err(stop),
        }
        if let Err(error) = released {
            self.report("terminal/release", Err(error));
        }
        Ok(())
    }

    pub(super) fn elicit(&self, message: &str) -> Result<(), End> {
        let message = if message.is_empty() { "What shall it be?" } else { message };
        let answer = self.call(
            "elicitation/create",
            json!({
                "sessionId": self.session.id,
                "mode": "form",
                "message": message,
                "requestedSchema": {
                    "type": "object",
                    "properties": {
                        "name": {"type": "string", "title": "Name"},
                        "colour": {"type": "string", "title": "Colour", "enum": ["red", "green", "blue"]},
                        "sure": {"type": "boolean", "title": "Sure?"},
                    },
                    "required": ["name"],
                },
            }),
        )?;
        self.report(
            "elicitation",
            answer.map(|result| {
                let action = result["action"].as_str().unwrap_or("no action").to_owned();
                match result.get("content") {
                    Some(content) => format!("{action} {content}"),
                    None => action,
                }
            }),
        );
        Ok(())
    }
}
