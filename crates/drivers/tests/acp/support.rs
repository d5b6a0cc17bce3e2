//! A conversation with the driver in which the test plays the agent.

use consort_drivers::{Driver, Frame, Launch, Output};
use consort_model::{DriverKind, NoticeLevel, Signal};
use serde_json::{Value, json};

pub struct Talk {
    pub driver: Driver,
    /// Everything the driver has sent.
    pub sent: Vec<Value>,
}

pub fn launch() -> Launch {
    Launch { cwd: "/project".into(), ..Launch::default() }
}

/// What an agent says that can do everything.
pub fn hello() -> Value {
    json!({
        "protocolVersion": 1,
        "agentInfo": {"name": "scripted", "title": "Scripted", "version": "1.0"},
        "agentCapabilities": {
            "loadSession": true,
            "promptCapabilities": {"image": true, "embeddedContext": true},
            "mcpCapabilities": {"http": true},
            "sessionCapabilities": {"resume": {}, "close": {}, "additionalDirectories": {}},
        },
    })
}

pub fn hello_of(name: &str) -> Value {
    let mut hello = hello();
    hello["agentInfo"]["name"] = json!(name);
    hello
}

impl Talk {
    pub fn start(launch: Launch) -> Self {
        let mut talk = Self { driver: Driver::new(DriverKind::Acp, launch).unwrap(), sent: vec![] };
        let out = talk.driver.start();
        talk.note(out);
        talk
    }

    /// With a session `s` that takes prompts.
    pub fn open() -> Self {
        Self::open_with(hello(), json!({"sessionId": "s"}))
    }

    pub fn open_with(hello: Value, session: Value) -> Self {
        let mut talk = Self::start(launch());
        talk.replies("initialize", hello);
        let out = talk.replies("session/new", session);
        assert!(matches!(out.signals[0], Signal::Ready(_)), "{out:?}");
        talk
    }

    /// With a turn that runs.
    pub fn working() -> Self {
        let mut talk = Self::open();
        talk.prompt("go");
        talk
    }

    pub fn prompt(&mut self, text: &str) -> Output {
        let out = self.driver.prompt(text, &[]);
        self.note(out)
    }

    /// Checks what holds for every output, and keeps what was sent.
    pub fn note(&mut self, out: Output) -> Output {
        for frame in &out.frames {
            assert_eq!(frame.iter().filter(|byte| **byte == b'\n').count(), 1);
            assert!(frame.ends_with(b"\n"));
            self.sent.push(serde_json::from_slice(frame).unwrap());
        }
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

    pub fn updates(&mut self, update: Value) -> Output {
        self.hears(json!({"jsonrpc": "2.0", "method": "session/update",
            "params": {"sessionId": "s", "update": update}}))
    }

    pub fn asks(&mut self, id: Value, method: &str, mut params: Value) -> Output {
        params["sessionId"] = json!("s");
        self.hears(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
    }

    fn last_id(&self, method: &str) -> Value {
        let request = self.sent.iter().rev().find(|message| message["method"] == method);
        request.unwrap_or_else(|| panic!("no {method} was sent: {:?}", self.sent))["id"].clone()
    }

    pub fn replies(&mut self, method: &str, result: Value) -> Output {
        self.hears(json!({"jsonrpc": "2.0", "id": self.last_id(method), "result": result}))
    }

    pub fn fails(&mut self, method: &str, code: i64, message: &str) -> Output {
        let id = self.last_id(method);
        self.hears(json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}))
    }

    pub fn last_sent(&self) -> &Value {
        self.sent.last().unwrap()
    }

    pub fn methods(&self) -> Vec<&str> {
        self.sent.iter().filter_map(|message| message["method"].as_str()).collect()
    }
}

pub fn text(text: &str) -> Signal {
    Signal::Text { text: text.into(), within: None }
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
