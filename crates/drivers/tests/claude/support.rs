//! A conversation with the driver in which the test plays the agent.

use consort_drivers::{Driver, Frame, Launch, Output};
use consort_model::{DriverKind, NoticeLevel, Signal, ToolCall};
use serde_json::{Value, json};

pub struct Talk {
    pub driver: Driver,
    /// Everything the driver has sent.
    pub sent: Vec<Value>,
}

pub fn launch() -> Launch {
    Launch { cwd: "/project".into(), ..Launch::default() }
}

/// What the agent says to `initialize`.
pub fn hello() -> Value {
    json!({
        "commands": [{"name": "clear", "description": "Forget", "argumentHint": ""},
            {"name": "review", "description": "Look", "argumentHint": "[what]"}],
        "models": [
            {"value": "default", "resolvedModel": "big-1", "displayName": "Default", "description": "Big"},
            {"value": "small", "resolvedModel": "small-1", "displayName": "Small", "supportsAutoMode": true}],
        "account": {}, "pid": 7,
    })
}

impl Talk {
    pub fn start(launch: Launch) -> Self {
        let mut talk = Self { driver: Driver::new(DriverKind::Claude, launch).unwrap(), sent: vec![] };
        let out = talk.driver.start();
        talk.note(out);
        talk
    }

    /// With a session that takes prompts.
    pub fn open() -> Self {
        let mut talk = Self::start(launch());
        let out = talk.replies("initialize", hello());
        assert!(matches!(out.signals[0], Signal::Ready(_)), "{out:?}");
        talk
    }

    /// With a turn that runs.
    pub fn working() -> Self {
        let mut talk = Self::open();
        talk.prompt("go");
        talk.begins("s");
        talk
    }

    pub fn prompt(&mut self, text: &str) -> Output {
        let out = self.driver.prompt(text, &[]);
        self.note(out)
    }

    pub fn interrupts(&mut self) -> Output {
        let out = self.driver.interrupt();
        self.note(out)
    }

    pub fn answers(&mut self, key: &str, answer: &consort_model::Answer) -> Output {
        let out = self.driver.answer(key, answer);
        self.note(out)
    }

    /// Checks what holds for every output, and keeps what was sent.
    pub fn note(&mut self, out: Output) -> Output {
        for frame in &out.frames {
            assert_eq!(frame.iter().filter(|byte| **byte == b'\n').count(), 1);
            assert!(frame.ends_with(b"\n"));
            self.sent.push(serde_json::from_slice(frame).unwrap());
        }
        assert!(out.calls.is_empty());
        let stored = serde_json::to_string(&self.driver).unwrap();
        assert_eq!(serde_json::from_str::<Driver>(&stored).unwrap(), self.driver);
        out
    }

    pub fn hears_line(&mut self, line: impl AsRef<[u8]>) -> Output {
        let out = self.driver.receive(Frame::Line(line.as_ref()));
        self.note(out)
    }

    pub fn hears(&mut self, message: Value) -> Output {
        self.hears_line(message.to_string())
    }

    pub fn hears_all(&mut self, messages: impl IntoIterator<Item = Value>) -> Output {
        let mut all = Output::default();
        for message in messages {
            all.append(self.hears(message));
        }
        all
    }

    /// The agent begins a turn.
    pub fn begins(&mut self, session: &str) -> Output {
        self.hears(json!({"type": "system", "subtype": "init", "session_id": session, "model": "big-1",
            "permissionMode": "default", "claude_code_version": "2.1", "mcp_servers": []}))
    }

    pub fn system(&mut self, subtype: &str, mut fields: Value) -> Output {
        fields["type"] = json!("system");
        fields["subtype"] = json!(subtype);
        self.hears(fields)
    }

    pub fn asks(&mut self, id: &str, tool: &str, call: &str, input: Value, suggestions: Value) -> Output {
        self.hears(json!({"type": "control_request", "request_id": id, "request": {"subtype": "can_use_tool",
            "tool_name": tool, "tool_use_id": call, "input": input, "permission_suggestions": suggestions}}))
    }

    pub fn results(&mut self, mut fields: Value) -> Output {
        for (key, value) in [
            ("type", json!("result")),
            ("subtype", json!("success")),
            ("is_error", json!(false)),
            ("terminal_reason", json!("completed")),
        ] {
            fields.as_object_mut().unwrap().entry(key).or_insert(value);
        }
        self.hears(fields)
    }

    fn last_id(&self, subtype: &str) -> Value {
        let request = self.sent.iter().rev().find(|message| message["request"]["subtype"] == subtype);
        request.unwrap_or_else(|| panic!("no {subtype} was sent: {:?}", self.sent))["request_id"].clone()
    }

    pub fn replies(&mut self, subtype: &str, response: Value) -> Output {
        self.hears(json!({"type": "control_response", "response": {"subtype": "success",
            "request_id": self.last_id(subtype), "response": response}}))
    }

    pub fn fails(&mut self, subtype: &str, error: &str) -> Output {
        self.hears(json!({"type": "control_response", "response": {"subtype": "error",
            "request_id": self.last_id(subtype), "error": error}}))
    }

    pub fn last_sent(&self) -> &Value {
        self.sent.last().unwrap()
    }

    /// What was answered to a request of the agent.
    pub fn answer_to(&self, id: &str) -> &Value {
        let answers: Vec<&Value> = self
            .sent
            .iter()
            .filter(|message| {
                message["type"] == "control_response" && message["response"]["request_id"] == id
            })
            .collect();
        assert_eq!(answers.len(), 1, "{id} in {:?}", self.sent);
        &answers[0]["response"]["response"]
    }

    /// Sends since the beginning, by subtype or type.
    pub fn kinds_sent(&self) -> Vec<&str> {
        self.sent
            .iter()
            .map(|message| message["request"]["subtype"].as_str().or(message["type"].as_str()).unwrap())
            .collect()
    }
}

/// Lets the call run; `scope` as it is written.
pub fn allow(scope: &str) -> consort_model::Answer {
    serde_json::from_value(json!({"answer": "allow", "scope": scope})).unwrap()
}

pub fn piece(index: u64, text: &str) -> Value {
    json!({"type": "stream_event", "parent_tool_use_id": null, "event": {"type": "content_block_delta",
        "index": index, "delta": {"type": "text_delta", "text": text}}})
}

pub fn stream(event: Value) -> Value {
    json!({"type": "stream_event", "parent_tool_use_id": null, "event": event})
}

pub fn message_starts(id: &str) -> Value {
    stream(json!({"type": "message_start", "message": {"id": id, "usage": {"input_tokens": 1}}}))
}

pub fn block_starts(index: u64, kind: &str) -> Value {
    stream(json!({"type": "content_block_start", "index": index, "content_block": {"type": kind}}))
}

pub fn block_stops(index: u64) -> Value {
    stream(json!({"type": "content_block_stop", "index": index}))
}

pub fn says(id: &str, block: Value) -> Value {
    json!({"type": "assistant", "parent_tool_use_id": null,
        "message": {"id": id, "role": "assistant", "model": "big-1", "content": [block]}})
}

pub fn within(mut message: Value, call: &str) -> Value {
    message["parent_tool_use_id"] = json!(call);
    message
}

pub fn calls(id: &str, name: &str, input: Value) -> Value {
    says("m", json!({"type": "tool_use", "id": id, "name": name, "input": input}))
}

pub fn tool_result(id: &str, content: Value) -> Value {
    json!({"type": "user", "parent_tool_use_id": null, "message": {"role": "user",
        "content": [{"type": "tool_result", "tool_use_id": id, "content": content}]}})
}

pub fn text(text: &str) -> Signal {
    Signal::Text { text: text.into(), within: None }
}

/// The last state of the tool call among these signals.
pub fn last_call(out: &Output) -> &ToolCall {
    let last = out.signals.iter().rev().find_map(|signal| match signal {
        Signal::Tool { call, .. } => Some(call),
        _ => None,
    });
    last.unwrap_or_else(|| panic!("no tool call: {out:?}"))
}

/// The one warning among these signals.
pub fn warning(out: &Output) -> &str {
    let mut warnings = out.signals.iter().filter_map(|signal| match signal {
        Signal::Notice { level: NoticeLevel::Warning, text } => Some(text.as_str()),
        _ => None,
    });
    let warning = warnings.next().unwrap_or_else(|| panic!("no warning: {out:?}"));
    assert_eq!(warnings.next(), None);
    assert!(!warning.chars().any(char::is_control), "{warning:?}");
    warning
}
