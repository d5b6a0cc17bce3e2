//! The agent's side of the protocol: what each method answers. Prompts are handed to the playing thread.

use std::collections::HashMap;
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::desk::{Desk, Job};
use super::options::{Auth, LOGIN_FILE, Options};
use super::play;
use super::session::{self, Session};
use super::wire::{RpcError, Wire, lock};

/// Models and efforts on offer with `--config-options`; the first of each is current.
const MODELS: [&str; 2] = ["scripted-large", "scripted-small"];
const EFFORTS: [&str; 3] = ["medium", "low", "high"];

pub struct Agent {
    pub options: Options,
    pub wire: Wire,
    pub desk: Desk,
    sessions: Mutex<HashMap<String, Arc<Session>>>,
    /// The parameters of `initialize`, null before it.
    client: Mutex<Value>,
    authenticated: AtomicBool,
    counter: AtomicU64,
}

impl Agent {
    pub fn new(options: Options, out: Box<dyn Write + Send>) -> Self {
        Self {
            options,
            wire: Wire::new(out),
            desk: Desk::default(),
            sessions: Mutex::default(),
            client: Mutex::default(),
            authenticated: AtomicBool::new(false),
            counter: AtomicU64::new(0),
        }
    }

    /// Plays what is enqueued, for ever.
    pub fn run_jobs(&self) {
        loop {
            match self.desk.next_job() {
                Job::Prompt { ticket, id, params } => play::prompt(self, &ticket, &id, &params),
                Job::AnswerLater { delay, id, answer } => {
                    std::thread::sleep(delay);
                    self.wire.answer(&id, answer);
                }
            }
        }
    }

    /// Takes one line from the client.
    pub fn receive(&self, line: &[u8]) {
        let Ok(message) = serde_json::from_slice::<Value>(line) else {
            let error = RpcError::new(RpcError::PARSE, "Parse error: the line is not JSON");
            return self.wire.answer(&Value::Null, Err(error));
        };
        let params = &message["params"];
        match (message["method"].as_str(), message.get("id")) {
            (Some(method), Some(id)) => {
                if let Some(answer) = self.request(method, id, params).transpose() {
                    self.wire.answer(id, answer);
                }
            }
            (Some("session/cancel"), None) => {
                self.desk.cancel(params["sessionId"].as_str().unwrap_or_default());
            }
            (Some(method), None) => eprintln!("consort-testkit agent: ignored notification {method}"),
            (None, Some(id)) => {
                let answer = match message.get("error") {
                    Some(error) => Err(RpcError::new(
                        error["code"].as_i64().unwrap_or_default(),
                        error["message"].as_str().unwrap_or_default(),
                    )),
                    None => Ok(message["result"].clone()),
                };
                match id.as_u64() {
                    Some(id) => self.desk.deliver(id, answer),
                    None => eprintln!("consort-testkit agent: ignored an answer to {id}"),
                }
            }
            (None, None) => {
                let error = RpcError::new(RpcError::INVALID_REQUEST, "Invalid request: no method and no id");
                self.wire.answer(&Value::Null, Err(error));
            }
        }
    }

    /// The answer to a request; `None` if it comes later.
    fn request(&self, method: &str, id: &Value, params: &Value) -> Result<Option<Value>, RpcError> {
        if method != "initialize" && lock(&self.client).is_null() {
            return Err(RpcError::new(RpcError::INVALID_REQUEST, "Invalid request: initialize comes first"));
        }
        let options = &self.options;
        match method {
            "initialize" => return self.initialize(id, params),
            "authenticate" => self.authenticate(params),
            "session/new" => return self.new_session(id, params),
            "session/load" if options.load => return self.load(id, params),
            "session/resume" if options.resume => {
                self.require_authentication()?;
                let (session, _) = self.reopen(params)?;
                Ok(self.session_state(&session))
            }
            "session/list" if options.list => self.list(params),
            "session/close" if options.close => {
                let session = self.session(params)?;
                self.desk.cancel(&session.id);
                lock(&self.sessions).remove(&session.id);
                Ok(json!({}))
            }
            "session/set_mode" if !options.modes.is_empty() => self.set_mode(params),
            "session/set_config_option" if options.config_options => self.set_config_option(params),
            "session/prompt" => {
                let session = self.session(params)?;
                self.desk.enqueue_prompt(&session.id, id.clone(), params.clone());
                return Ok(None);
            }
            _ => Err(RpcError::new(RpcError::METHOD_NOT_FOUND, format!("Method not found: {method}"))),
        }
        .map(Some)
    }

    fn initialize(&self, id: &Value, params: &Value) -> Result<Option<Value>, RpcError> {
        let options = &self.options;
        let answer = if options.init_error {
            Err(RpcError::new(RpcError::INTERNAL, "Internal error: initialize fails as told"))
        } else {
            *lock(&self.client) = params.clone();
            Ok(json!({
                "protocolVersion": options.protocol_version.unwrap_or(1),
                "agentInfo": {"name": options.name, "title": "Scripted agent", "version": env!("CARGO_PKG_VERSION")},
                "agentCapabilities": self.capabilities(),
                "authMethods": self.auth_methods(params),
            }))
        };
        if options.init_delay == 0 {
            return answer.map(Some);
        }
        // By the other thread, so that the end of the input is noticed meanwhile.
        let delay = Duration::from_millis(options.init_delay);
        self.desk.enqueue(Job::AnswerLater { delay, id: id.clone(), answer });
        Ok(None)
    }

    fn capabilities(&self) -> Value {
        let options = &self.options;
        let offered = [("list", options.list), ("resume", options.resume), ("close", options.close)];
        let session: Map<String, Value> =
            offered.into_iter().filter(|(_, on)| *on).map(|(name, _)| (name.to_owned(), json!({}))).collect();
        json!({
            "loadSession": options.load,
            "promptCapabilities": {"image": options.image, "audio": false, "embeddedContext": true},
            "mcpCapabilities": {"http": true, "sse": false},
            "sessionCapabilities": session,
        })
    }

    fn auth_methods(&self, params: &Value) -> Value {
        match &self.options.auth {
            Some(Auth::Agent(id)) => json!([{"id": id, "name": format!("Log in with {id}")}]),
            // Only for clients that can run it, as the protocol demands.
            Some(Auth::Terminal(id)) if params["clientCapabilities"]["auth"]["terminal"] == true => {
                json!([{"id": id, "name": format!("Log in with {id}"), "type": "terminal", "args": ["--login"]}])
            }
            _ => json!([]),
        }
    }

    fn authenticate(&self, params: &Value) -> Result<Value, RpcError> {
        match &self.options.auth {
            Some(Auth::Agent(id)) if params["methodId"] == id.as_str() => {
                self.authenticated.store(true, Ordering::Relaxed);
                Ok(json!({}))
            }
            _ => Err(RpcError::params("Invalid params: methodId is not one of the methods")),
        }
    }

    fn require_authentication(&self) -> Result<(), RpcError> {
        let done = match &self.options.auth {
            None => true,
            Some(Auth::Agent(_)) => self.authenticated.load(Ordering::Relaxed),
            Some(Auth::Terminal(_)) => {
                self.options.state_dir.as_ref().is_some_and(|dir| dir.join(LOGIN_FILE).exists())
            }
        };
        if done { Ok(()) } else { Err(RpcError::new(RpcError::AUTH_REQUIRED, "Authentication required")) }
    }

    fn new_session(&self, id: &Value, params: &Value) -> Result<Option<Value>, RpcError> {
        self.require_authentication()?;
        let mode = self.options.modes.first().cloned();
        let session = Arc::new(Session::create(self.options.state_dir.as_deref(), params, mode)?);
        lock(&self.sessions).insert(session.id.clone(), Arc::clone(&session));
        let mut result = self.session_state(&session);
        result["sessionId"] = json!(session.id);
        if self.options.commands {
            // The client does not know the id before the answer.
            self.wire.answer(id, Ok(result));
            let update = play::commands_update(&play::COMMANDS.map(str::to_owned));
            self.wire.notify("session/update", json!({"sessionId": session.id, "update": update}));
            return Ok(None);
        }
        Ok(Some(result))
    }

    fn load(&self, id: &Value, params: &Value) -> Result<Option<Value>, RpcError> {
        self.require_authentication()?;
        let (session, updates) = self.reopen(params)?;
        let state = self.session_state(&session);
        if self.options.late_replay {
            self.wire.answer(id, Ok(state.clone()));
        }
        for update in updates {
            self.wire.notify("session/update", json!({"sessionId": session.id, "update": update}));
        }
        Ok(if self.options.late_replay { None } else { Some(state) })
    }

    /// The session of a load or resume, from the state dir or from this process, and the updates to replay.
    fn reopen(&self, params: &Value) -> Result<(Arc<Session>, Vec<Value>), RpcError> {
        let Some(dir) = &self.options.state_dir else {
            return Ok((self.session(params)?, Vec::new()));
        };
        let id = params["sessionId"].as_str().unwrap_or_default();
        if let Ok(session) = self.session(params) {
            return Ok((session, session::read(dir, id)?.updates));
        }
        let (session, stored) = Session::reopen(dir, id, params, self.options.modes.first().cloned())?;
        let session = Arc::new(session);
        lock(&self.sessions).insert(session.id.clone(), Arc::clone(&session));
        Ok((session, stored.updates))
    }

    fn list(&self, params: &Value) -> Result<Value, RpcError> {
        let mut listed: Vec<(String, Value)> = match &self.options.state_dir {
            Some(dir) => session::stored_ids(dir)
                .into_iter()
                .filter_map(|id| session::read(dir, &id).ok().map(|stored| (id, stored)))
                .map(|(id, stored)| (id.clone(), entry(&id, json!(stored.cwd), stored.title)))
                .collect(),
            None => lock(&self.sessions)
                .values()
                .map(|session| (session.id.clone(), entry(&session.id, json!(session.cwd), session.title())))
                .collect(),
        };
        if let Some(cwd) = params.get("cwd").filter(|cwd| !cwd.is_null()) {
            listed.retain(|(_, entry)| &entry["cwd"] == cwd);
        }
        listed.sort_by(|(left, _), (right, _)| left.cmp(right));
        Ok(json!({"sessions": listed.into_iter().map(|(_, entry)| entry).collect::<Vec<_>>()}))
    }

    fn set_mode(&self, params: &Value) -> Result<Value, RpcError> {
        let session = self.session(params)?;
        let mode =
            params["modeId"].as_str().filter(|mode| self.options.modes.iter().any(|known| known == mode));
        let mode = mode.ok_or_else(|| RpcError::params("Invalid params: modeId is not one of the modes"))?;
        session.set_mode(mode);
        Ok(json!({}))
    }

    fn set_config_option(&self, params: &Value) -> Result<Value, RpcError> {
        let session = self.session(params)?;
        let id = params["configId"].as_str().unwrap_or_default();
        let value = &params["value"];
        let known = match id {
            "model" => MODELS.iter().any(|model| value == model),
            "effort" => EFFORTS.iter().any(|effort| value == effort),
            "verbose" => value.is_boolean(),
            _ => false,
        };
        if !known {
            return Err(RpcError::params(format!("Invalid params: option {id:?} cannot be {value}")));
        }
        session.set_config(id, value.clone());
        Ok(json!({"configOptions": self.config_options(&session)}))
    }

    /// The session a request names.
    pub fn session(&self, params: &Value) -> Result<Arc<Session>, RpcError> {
        let id = params["sessionId"].as_str().unwrap_or_default();
        lock(&self.sessions).get(id).cloned().ok_or_else(|| {
            RpcError::new(RpcError::NOT_FOUND, format!("Resource not found: session {id} does not exist"))
        })
    }

    fn session_state(&self, session: &Session) -> Value {
        let mut state = json!({});
        if let Some(mode) = session.mode() {
            let modes: Vec<Value> =
                self.options.modes.iter().map(|mode| json!({"id": mode, "name": mode})).collect();
            state["modes"] = json!({"currentModeId": mode, "availableModes": modes});
        }
        if self.options.config_options {
            state["configOptions"] = self.config_options(session);
        }
        state
    }

    pub fn config_options(&self, session: &Session) -> Value {
        let select = |id: &str, name: &str, category: &str, values: &[&str]| {
            let options: Vec<Value> =
                values.iter().map(|value| json!({"value": value, "name": value})).collect();
            let current = session.config(id).unwrap_or_else(|| json!(values.first()));
            json!({"id": id, "name": name, "category": category, "type": "select",
                   "currentValue": current, "options": options})
        };
        let mut options = vec![
            select("model", "Model", "model", &MODELS),
            select("effort", "Effort", "thought_level", &EFFORTS),
        ];
        if self.client()["clientCapabilities"]["session"]["configOptions"]["boolean"].is_object() {
            let current = session.config("verbose").unwrap_or(json!(false));
            options.push(
                json!({"id": "verbose", "name": "Verbose", "type": "boolean", "currentValue": current}),
            );
        }
        Value::Array(options)
    }

    pub fn client(&self) -> Value {
        lock(&self.client).clone()
    }

    /// A number for a tool call or a message.
    pub fn count(&self) -> u64 {
        self.counter.fetch_add(1, Ordering::Relaxed) + 1
    }
}

fn entry(id: &str, cwd: Value, title: Option<String>) -> Value {
    let mut entry = json!({"sessionId": id, "cwd": cwd});
    if let Some(title) = title {
        entry["title"] = json!(title);
    }
    entry
}
