//! A conversation with the driver in which the test plays the app server.

use consort_drivers::{Driver, Frame, Launch, Output};
use consort_model::{Answer, DriverKind, NoticeLevel, Signal, ToolCall};
use serde_json::{Value, json};

pub struct Talk {
    pub driver: Driver,
    /// Everything the driver has sent.
    pub sent: Vec<Value>,
}

pub fn launch() -> Launch {
    Launch { cwd: "/project".into(), ..Launch::default() }
}

/// What a thread says about itself when it is opened.
pub fn thread() -> Value {
    json!({
        "thread": {"id": "t", "cliVersion": "0.166.0", "name": null},
        "model": "big", "reasoningEffort": null,
        "approvalPolicy": "on-request", "sandbox": {"type": "readOnly", "networkAccess": false},
    })
}

pub fn models() -> Value {
    let efforts = json!([{"reasoningEffort": "low", "description": "Fast"}, {"reasoningEffort": "high"}]);
    let model = |id: &str, hidden: bool| {
        json!({"id": id, "model": id, "displayName": id.to_uppercase(), "description": "", "hidden": hidden,
            "supportedReasoningEfforts": efforts, "defaultReasoningEffort": "low", "isDefault": id == "big"})
    };
    json!({"data": [model("big", false), model("small", false), model("old", true)], "nextCursor": null})
}

pub fn modes() -> Value {
    json!({"data": [{"name": "Plan", "mode": "plan"}, {"name": "Default", "mode": "default"}]})
}

impl Talk {
    pub fn start(launch: Launch) -> Self {
        let mut talk = Self { driver: Driver::new(DriverKind::Codex, launch).unwrap(), sent: vec![] };
        let out = talk.driver.start();
        talk.note(out);
        talk
    }

    /// Up to where a thread is asked for.
    pub fn greeted(launch: Launch, config: Value) -> Self {
        let mut talk = Self::start(launch);
        talk.replies("initialize", json!({"userAgent": "consort/0.166.0 (Debian) x"}));
        talk.replies("model/list", models());
        talk.replies("collaborationMode/list", modes());
        talk.replies("account/read", json!({"account": null, "requiresOpenaiAuth": false}));
        talk.replies("config/read", json!({"config": config}));
        talk
    }

    /// With a thread `t` that takes prompts.
    pub fn open() -> Self {
        Self::open_with(launch())
    }

    pub fn open_with(launch: Launch) -> Self {
        let mut talk = Self::greeted(launch, json!({}));
        let out = talk.replies("thread/start", thread());
        assert!(matches!(out.signals[0], Signal::Ready(_)), "{out:?}");
        talk
    }

    /// With a turn `u` that runs.
    pub fn working() -> Self {
        let mut talk = Self::open();
        talk.prompt("go");
        talk.begins();
        talk
    }

    pub fn prompt(&mut self, text: &str) -> Output {
        let out = self.driver.prompt(text, &[]);
        self.note(out)
    }

    pub fn begins(&mut self) {
        self.replies("turn/start", json!({"turn": {"id": "u", "status": "inProgress"}}));
        self.tells("turn/started", json!({"turn": {"id": "u", "status": "inProgress"}}));
    }

    pub fn ends(&mut self, status: &str) -> Output {
        self.tells(
            "turn/completed",
            json!({"turn": {"id": "u", "items": [], "status": status, "error": null}}),
        )
    }

    /// Checks what holds for every output, and keeps what was sent.
    pub fn note(&mut self, out: Output) -> Output {
        for frame in &out.frames {
            assert_eq!(frame.iter().filter(|byte| **byte == b'\n').count(), 1);
            assert!(frame.ends_with(b"\n"));
            let message: Value = serde_json::from_slice(frame).unwrap();
            assert_eq!(message.get("jsonrpc"), None);
            self.sent.push(message);
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

    /// A notification about thread `t` and turn `u`, unless it says otherwise.
    pub fn tells(&mut self, method: &str, mut params: Value) -> Output {
        for (key, value) in [("threadId", "t"), ("turnId", "u")] {
            if params.get(key).is_none() {
                params[key] = json!(value);
            }
        }
        self.hears(json!({"method": method, "params": params, "emittedAtMs": 1_000_000_000_000_u64}))
    }

    pub fn item(&mut self, when: &str, item: Value) -> Output {
        self.tells(&format!("item/{when}"), json!({"item": item}))
    }

    pub fn asks(&mut self, id: Value, method: &str, mut params: Value) -> Output {
        for (key, value) in [("threadId", "t"), ("turnId", "u")] {
            if params.get(key).is_none() {
                params[key] = json!(value);
            }
        }
        self.hears(json!({"id": id, "method": method, "params": params}))
    }

    fn last_id(&self, method: &str) -> Value {
        let request = self.sent.iter().rev().find(|message| message["method"] == method);
        request.unwrap_or_else(|| panic!("no {method} was sent: {:?}", self.sent))["id"].clone()
    }

    pub fn replies(&mut self, method: &str, result: Value) -> Output {
        self.hears(json!({"id": self.last_id(method), "result": result}))
    }

    pub fn fails(&mut self, method: &str, message: &str) -> Output {
        let id = self.last_id(method);
        self.hears(json!({"id": id, "error": {"code": -32600, "message": message}}))
    }

    pub fn last_sent(&self) -> &Value {
        self.sent.last().unwrap()
    }

    /// The parameters of the last request of this method.
    pub fn sent(&self, method: &str) -> &Value {
        let request = self.sent.iter().rev().find(|message| message["method"] == method);
        &request.unwrap_or_else(|| panic!("no {method} was sent: {:?}", self.sent))["params"]
    }

    pub fn methods(&self) -> Vec<&str> {
        self.sent.iter().filter_map(|message| message["method"].as_str()).collect()
    }
}

/// A person's yes, in the form in which it is stored.
pub fn allow(scope: &str) -> Answer {
    serde_json::from_value(json!({"answer": "allow", "scope": scope})).unwrap()
}

pub fn text(text: &str) -> Signal {
    Signal::Text { text: text.into(), within: None }
}

/// The one tool call among these signals.
pub fn tool(out: &Output) -> &ToolCall {
    let mut calls = out.signals.iter().filter_map(|signal| match signal {
        Signal::Tool { call, .. } => Some(call),
        _ => None,
    });
    let call = calls.next().unwrap_or_else(|| panic!("no tool call: {out:?}"));
    assert_eq!(calls.next(), None);
    call
}

/// The notices among these signals.
pub fn notices(out: &Output) -> Vec<(NoticeLevel, &str)> {
    let notices = out.signals.iter().filter_map(|signal| match signal {
        Signal::Notice { level, text } => Some((*level, text.as_str())),
        _ => None,
    });
    notices.inspect(|(_, text)| assert!(!text.chars().any(char::is_control), "{text:?}")).collect()
}

/// The one warning among these signals.
pub fn warning(out: &Output) -> &str {
    match &*notices(out) {
        [(NoticeLevel::Warning, text)] => text,
        other => panic!("no single warning: {other:?}"),
    }
}
