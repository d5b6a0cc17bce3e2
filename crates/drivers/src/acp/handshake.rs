//! The handshake: hello, the login where one is needed, and the session, new or taken up again.
//!
//! Owns everything up to [`Signal::Ready`]. Whatever fails here ends in [`Signal::StartFailed`] with a sentence that
//! says what to do, except where there is a next best way.

use agent_client_protocol_schema::ProtocolVersion;
use agent_client_protocol_schema::v1;
use consort_model::{Answer, AskBody, Question, SessionInfo, Signal};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::asks::Open;
use super::options::Options;
use super::wire::{RpcError, code, one_line};
use super::{Acp, Phase, Request, warn};
use crate::{Bridge, Output};

/// How a session is opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// A new one.
    New,
    /// An earlier one, without its past being told again.
    Resume,
    /// An earlier one, with its past being told again.
    Load,
    /// A new one that begins with the past of an earlier one.
    Fork,
}

/// The agent, as it described itself.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Peer {
    /// Its name, by which its quirks are known.
    pub name: String,
    /// Its name and version for people.
    pub program: String,
    pub can: Abilities,
    pub logins: Vec<Login>,
}

/// What the agent said it can do.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Abilities {
    pub load: bool,
    pub resume: bool,
    #[serde(default)]
    pub fork: bool,
    pub close: bool,
    pub images: bool,
    pub files: bool,
    pub http_tools: bool,
    pub more_folders: bool,
}

/// A way to log in.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Login {
    pub id: String,
    /// Its name and what it says about itself.
    pub about: String,
    /// What to run in a terminal; such a login is not asked of the agent.
    pub terminal: Option<String>,
}

impl Acp {
    pub(crate) fn hello(&mut self, out: &mut Output) {
        let mut meta = v1::Meta::new();
        // A convention from before the protocol had terminal logins: with it, agents say which command to run.
        meta.insert("terminal-auth".to_owned(), Value::Bool(true));
        let capabilities = v1::ClientCapabilities::new()
            .fs(v1::FileSystemCapabilities::new().read_text_file(true).write_text_file(true))
            .terminal(true)
            .session(
                v1::ClientSessionCapabilities::new()
                    .compaction(v1::CompactionCapabilities::new())
                    .notices(v1::NoticeCapabilities::new())
                    .config_options(
                        v1::SessionConfigOptionsCapabilities::new()
                            .boolean(v1::BooleanConfigOptionCapabilities::new()),
                    ),
            )
            .auth(v1::AuthCapabilities::new().terminal(true))
            .elicitation(
                v1::ElicitationCapabilities::new()
                    .form(v1::ElicitationFormCapabilities::new())
                    .url(v1::ElicitationUrlCapabilities::new()),
            )
            .meta(meta);
        let client =
            v1::Implementation::new("consort", env!("CARGO_PKG_VERSION")).title("Consort".to_owned());
        let params = v1::InitializeRequest::new(ProtocolVersion::V1)
            .client_capabilities(capabilities)
            .client_info(client);
        self.send(Request::Initialize, "initialize", params, out);
    }

    pub(super) fn initialized(&mut self, outcome: Result<&str, RpcError>, out: &mut Output) {
        let result = match outcome {
            Ok(result) => result,
            Err(error) => {
                return self.fail(format!("The agent refused to start: {}.", error.sentence()), out);
            }
        };
        let hello: v1::InitializeResponse = match serde_json::from_str(result) {
            Ok(hello) => hello,
            Err(error) => {
                let error = one_line(&error.to_string());
                return self
                    .fail(format!("The agent's hello cannot be read ({error}); is it an ACP agent?"), out);
            }
        };
        if hello.protocol_version != ProtocolVersion::V1 {
            return self.fail(
                format!(
                    "The agent speaks version {} of the Agent Client Protocol and Consort speaks version 1; \
                     another version of the agent is needed.",
                    hello.protocol_version
                ),
                out,
            );
        }
        self.peer = Peer::from_hello(&hello).into();
        self.open(out);
    }

    /// Opens the session in the best way there is.
    fn open(&mut self, out: &mut Output) {
        let can = self.peer.can;
        if self.launch.fork && self.launch.resume.is_some() {
            if can.fork {
                return self.open_by(Way::Fork, out);
            }
            return self.fail("The agent cannot fork sessions.".to_owned(), out);
        }
        match (&self.launch.resume, can.resume, can.load) {
            (Some(_), true, _) => self.open_by(Way::Resume, out),
            (Some(_), false, true) => self.open_by(Way::Load, out),
            (Some(_), false, false) => {
                warn(out, "The agent cannot take up its earlier session, so this is a new one.");
                self.launch.resume = None;
                self.open_by(Way::New, out);
            }
            (None, ..) => self.open_by(Way::New, out),
        }
    }

    fn open_by(&mut self, way: Way, out: &mut Output) {
        let can = self.peer.can;
        let cwd = self.launch.cwd.clone();
        let folders: Vec<std::path::PathBuf> =
            if can.more_folders { self.launch.roots.iter().map(Into::into).collect() } else { Vec::new() };
        let servers = self.mcp_servers();
        let earlier = self.launch.resume.clone().unwrap_or_default();
        let request = Request::Open { way };
        match way {
            Way::New => {
                let params =
                    v1::NewSessionRequest::new(cwd).additional_directories(folders).mcp_servers(servers);
                self.send(request, "session/new", params, out);
            }
            Way::Resume => {
                let params = v1::ResumeSessionRequest::new(earlier.clone(), cwd)
                    .additional_directories(folders)
                    .mcp_servers(servers);
                self.send(request, "session/resume", params, out);
            }
            Way::Fork => {
                let params = v1::ForkSessionRequest::new(earlier.clone(), cwd)
                    .additional_directories(folders)
                    .mcp_servers(servers);
                self.send(request, "session/fork", params, out);
            }
            Way::Load => {
                let params = v1::LoadSessionRequest::new(earlier.clone(), cwd)
                    .additional_directories(folders)
                    .mcp_servers(servers);
                self.send(request, "session/load", params, out);
            }
        }
        // What arrives before the answer speaks of this session already; a fork's own is not known yet.
        self.session = matches!(way, Way::Resume | Way::Load).then_some(earlier);
        self.replaying = way != Way::New;
    }

    /// The servers in the way that the agent takes them: over HTTP, or over stdio, which all agents must take.
    fn mcp_servers(&self) -> Vec<v1::McpServer> {
        let servers = self.launch.mcp_servers.iter().filter_map(|server| {
            if !self.peer.can.http_tools {
                let Bridge { command, args, environment } = server.bridge.clone()?;
                let environment =
                    environment.into_iter().map(|(name, value)| v1::EnvVariable::new(name, value));
                let server = v1::McpServerStdio::new(server.name.clone(), command)
                    .args(args)
                    .env(environment.collect());
                return Some(v1::McpServer::Stdio(server));
            }
            let headers =
                server.headers.iter().map(|(name, value)| v1::HttpHeader::new(name.clone(), value.clone()));
            let server =
                v1::McpServerHttp::new(server.name.clone(), server.url.clone()).headers(headers.collect());
            Some(v1::McpServer::Http(server))
        });
        servers.collect()
    }

    pub(super) fn opened(&mut self, way: Way, outcome: Result<&str, RpcError>, out: &mut Output) {
        let result = match outcome {
            Ok(result) => result,
            Err(error) if error.code == code::AUTH_REQUIRED => return self.ask_login(&error.sentence(), out),
            Err(error) if way == Way::New => {
                return self.fail(format!("The agent could not open a session: {}.", error.sentence()), out);
            }
            Err(error) if way == Way::Fork => {
                return self
                    .fail(format!("The agent could not fork the session: {}.", error.sentence()), out);
            }
            Err(error) => {
                let error = error.sentence();
                warn(
                    out,
                    format!(
                        "The agent could not take up its earlier session, so this is a new one: {error}."
                    ),
                );
                self.launch.resume = None;
                return self.open_by(Way::New, out);
            }
        };
        // An earlier session may be taken up with a bare null for an answer.
        let opened: Opened<'_> = serde_json::from_str(result).unwrap_or_default();
        if let Some(session) = opened.session_id {
            self.session = Some(session);
        }
        if self.session.is_none() {
            return self.fail("The agent opened a session without naming it.".to_owned(), out);
        }
        self.options = Options::read(opened.modes, opened.models, opened.config_options).into();
        // They hold a token, and are of no further use.
        self.launch.mcp_servers.clear();
        if matches!(way, Way::Load | Way::Fork) {
            // Some agents answer before they have told the past. Whatever they still have to tell comes before the
            // answer to this, which every peer owes even if it does not know the method.
            let session = json!({"sessionId": self.session});
            self.send(Request::Settle, "_consort/settle", session, out);
        } else {
            self.settled(out);
        }
    }

    /// The session is open and its past is told.
    pub(super) fn settled(&mut self, out: &mut Output) {
        match self.launch.model.take() {
            Some(model) => self.choose_first_model(&model, out),
            None => self.ready(out),
        }
    }

    /// The session takes prompts.
    pub(super) fn ready(&mut self, out: &mut Output) {
        self.phase = Phase::Open;
        let can = self.peer.can;
        out.signals.push(Signal::Ready(SessionInfo {
            id: self.session.clone().unwrap_or_default(),
            program: self.peer.program.clone(),
            resumed: self.launch.resume.is_some() && !self.launch.fork,
            resumable: can.load || can.resume,
            cannot_fork: !can.fork,
            images: can.images,
            files: can.files,
        }));
        self.tell_options(out);
    }

    fn ask_login(&mut self, why: &str, out: &mut Output) {
        self.session = None;
        self.replaying = false;
        if self.peer.logins.is_empty() {
            return self.fail(format!("The agent is not logged in and offers no way to: {why}."), out);
        }
        let mut text =
            format!("{} is not logged in: {why}. Answer with one of these:", self.peer.program_or_agent());
        for login in &self.peer.logins {
            text.push_str(&format!("\n{}: {}", login.id, login.about));
            if let Some(command) = &login.terminal {
                text.push_str(&format!(". Run {command} in another terminal first"));
            }
        }
        let ids: Vec<&str> = self.peer.logins.iter().map(|login| login.id.as_str()).collect();
        let schema = json!({
            "type": "object",
            "properties": {"method": {"type": "string", "enum": ids}},
            "required": ["method"],
        });
        let key = format!("login-{}", self.next_request);
        let title = format!("{} needs a login", self.peer.program_or_agent());
        self.asks.open(key.clone(), Open::Login { why: why.to_owned() });
        let body = AskBody::Question(Question { text, schema, url: None });
        out.signals.push(Signal::Ask { key, title, body });
    }

    pub(super) fn answer_login(&mut self, why: &str, answer: &Answer, out: &mut Output) {
        let wanted = match answer {
            Answer::Reply { value: Value::String(method) } => Some(method.as_str()),
            Answer::Reply { value } => value.get("method").and_then(Value::as_str),
            Answer::Choose { option } => Some(option.as_str()),
            Answer::Allow { .. } => match &*self.peer.logins {
                [only] => Some(only.id.as_str()),
                _ => None,
            },
            Answer::Deny { .. } | Answer::Stop => {
                return self.fail(format!("The agent is not logged in: {why}."), out);
            }
        };
        let login = wanted.and_then(|wanted| self.peer.logins.iter().find(|login| login.id == wanted.trim()));
        match login {
            Some(Login { terminal: Some(_), .. }) => self.open(out),
            Some(login) => {
                let params = v1::AuthenticateRequest::new(login.id.clone());
                self.send(Request::Authenticate, "authenticate", params, out);
            }
            None => {
                let wanted = one_line(wanted.unwrap_or("this"));
                self.ask_login(&format!("{wanted} is none of its logins"), out);
            }
        }
    }

    pub(super) fn authenticated(&mut self, outcome: Result<&str, RpcError>, out: &mut Output) {
        match outcome {
            Ok(_) => self.open(out),
            Err(error) => self.ask_login(&format!("the login failed: {}", error.sentence()), out),
        }
    }

    /// The session cannot be opened.
    fn fail(&mut self, message: String, out: &mut Output) {
        self.phase = Phase::Over;
        self.requests.clear();
        self.asks.clear();
        self.calls.clear();
        out.signals.push(Signal::StartFailed { message });
    }
}

/// What all three ways of opening a session answer with. `models` has left the protocol, and one agent still sends it.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Opened<'a> {
    session_id: Option<String>,
    #[serde(borrow)]
    modes: Option<&'a RawValue>,
    #[serde(borrow)]
    models: Option<&'a RawValue>,
    #[serde(borrow)]
    config_options: Option<&'a RawValue>,
}

impl Peer {
    fn from_hello(hello: &v1::InitializeResponse) -> Self {
        let can = &hello.agent_capabilities;
        let (name, program) = match &hello.agent_info {
            Some(info) => {
                let title = info.title.as_ref().unwrap_or(&info.name);
                (info.name.clone(), one_line(&format!("{title} {}", info.version)))
            }
            None => Default::default(),
        };
        Self {
            name,
            program,
            can: Abilities {
                load: can.load_session,
                resume: can.session_capabilities.resume.is_some(),
                fork: can.session_capabilities.fork.is_some(),
                close: can.session_capabilities.close.is_some(),
                images: can.prompt_capabilities.image,
                files: can.prompt_capabilities.embedded_context,
                http_tools: can.mcp_capabilities.http,
                more_folders: can.session_capabilities.additional_directories.is_some(),
            },
            logins: hello.auth_methods.iter().filter_map(Login::from_method).collect(),
        }
    }

    fn program_or_agent(&self) -> &str {
        if self.program.is_empty() { "The agent" } else { &self.program }
    }
}

impl Login {
    fn from_method(method: &v1::AuthMethod) -> Option<Self> {
        let (id, name, description, meta, args) = match method {
            v1::AuthMethod::Terminal(login) => {
                (&login.id, &login.name, &login.description, &login.meta, Some(&login.args))
            }
            v1::AuthMethod::Agent(login) => (&login.id, &login.name, &login.description, &login.meta, None),
            _ => return None,
        };
        let about = match description.as_ref().map(|text| text.trim()).filter(|text| !text.is_empty()) {
            Some(description) => one_line(&format!("{name}, {description}")),
            None => one_line(name),
        };
        let by_meta = meta.as_ref().and_then(|meta| meta.get("terminal-auth")).and_then(terminal_command);
        let by_args =
            args.map(|args| format!("the agent's own command with `{}`", one_line(&args.join(" "))));
        Some(Self { id: id.to_string(), about, terminal: by_meta.or(by_args) })
    }
}

fn terminal_command(terminal: &Value) -> Option<String> {
    let mut command = terminal.get("command")?.as_str()?.to_owned();
    for arg in terminal.get("args").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
    {
        command.push(' ');
        command.push_str(arg);
    }
    Some(format!("`{}`", one_line(&command)))
}
