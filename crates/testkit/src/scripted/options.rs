//! The command line of the scripted agent.

use std::collections::HashMap;
use std::path::PathBuf;

use super::steps::{self, StepError};

#[derive(Debug, Default)]
pub struct Options {
    /// The arguments as given, for the step that says them.
    pub given: Vec<String>,
    pub name: String,
    pub on_prompt: Option<String>,
    pub scripts: HashMap<String, String>,
    pub state_dir: Option<PathBuf>,
    pub chunk: Option<usize>,
    pub message_ids: bool,
    pub load: bool,
    pub resume: bool,
    pub list: bool,
    pub close: bool,
    pub image: bool,
    pub auth: Option<Auth>,
    pub modes: Vec<String>,
    pub config_options: bool,
    pub commands: bool,
    pub late_replay: bool,
    pub protocol_version: Option<u64>,
    pub init_delay: u64,
    pub slow_start: u64,
    pub init_error: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Auth {
    /// By the `authenticate` request.
    Agent(String),
    /// By a run of the agent with `--login`.
    Terminal(String),
}

pub enum Command {
    Run(Box<Options>),
    Help,
    /// The run ends before it speaks the protocol.
    Exit {
        code: i32,
        message: String,
    },
}

#[derive(Debug, thiserror::Error)]
pub enum OptionError {
    #[error("option {0:?} is unknown; see `consort-testkit agent --help`")]
    Unknown(String),
    #[error("option {0} needs a value")]
    NoValue(String),
    #[error("option {option} cannot be {value:?}: it must be a number")]
    NotANumber { option: String, value: String },
    #[error("cannot read the script file {path}: {error}")]
    Script { path: String, error: std::io::Error },
    #[error("line {line} of the script file is not `NAME: STEPS`")]
    ScriptLine { line: usize },
    #[error("the steps {steps:?} cannot be used: {error}")]
    Steps { steps: String, error: StepError },
    #[error("--login needs a --state-dir to record the login in")]
    LoginWithoutState,
    #[error("cannot record the login in {path:?}: {error}")]
    Login { path: PathBuf, error: std::io::Error },
}

/// The file in the state dir that records a terminal login.
pub const LOGIN_FILE: &str = "logged-in";

pub fn parse(args: impl IntoIterator<Item = String>) -> Result<Command, OptionError> {
    let given: Vec<String> = args.into_iter().collect();
    let mut options = Options {
        given: given.clone(),
        name: "scripted".into(),
        state_dir: std::env::var_os("SCRIPTED_STATE_DIR").map(PathBuf::from),
        load: true,
        resume: true,
        list: true,
        close: true,
        image: true,
        ..Options::default()
    };
    let mut login = false;
    let mut crash = None;
    let mut args = given.into_iter();
    while let Some(option) = args.next() {
        let mut value = || args.next().ok_or_else(|| OptionError::NoValue(option.clone()));
        match option.as_str() {
            "--help" | "-h" => return Ok(Command::Help),
            "--on-prompt" => options.on_prompt = Some(value()?),
            "--script" => options.scripts.extend(read_scripts(value()?)?),
            "--state-dir" => options.state_dir = Some(value()?.into()),
            "--chunk" => options.chunk = Some(number(&option, value()?)?),
            "--message-ids" => options.message_ids = true,
            "--name" => options.name = value()?,
            "--no-load" => options.load = false,
            "--no-resume" => options.resume = false,
            "--no-list" => options.list = false,
            "--no-close" => options.close = false,
            "--no-image" => options.image = false,
            "--auth" => {
                let method = value()?;
                options.auth = Some(match method.strip_suffix(":terminal") {
                    Some(method) => Auth::Terminal(method.to_owned()),
                    None => Auth::Agent(method),
                });
            }
            "--login" => login = true,
            "--modes" => options.modes = value()?.split(',').map(str::to_owned).collect(),
            "--config-options" => options.config_options = true,
            "--commands" => options.commands = true,
            "--late-replay" => options.late_replay = true,
            "--protocol-version" => options.protocol_version = Some(number(&option, value()?)?),
            "--init-delay" => options.init_delay = number(&option, value()?)?,
            "--slow-start" => options.slow_start = number(&option, value()?)?,
            "--init-error" => options.init_error = true,
            "--crash-on-start" => crash = Some(number(&option, value()?)?),
            _ => return Err(OptionError::Unknown(option)),
        }
    }
    if let Some(code) = crash {
        return Ok(Command::Exit { code, message: "scripted agent: crashing on start as told".into() });
    }
    if login {
        return record_login(&options);
    }
    for steps in options.scripts.values().chain(&options.on_prompt) {
        steps::parse(steps, &options.scripts)
            .map_err(|error| OptionError::Steps { steps: steps.clone(), error })?;
    }
    Ok(Command::Run(Box::new(options)))
}

fn number<N: std::str::FromStr>(option: &str, value: String) -> Result<N, OptionError> {
    value.parse().map_err(|_| OptionError::NotANumber { option: option.to_owned(), value })
}

fn record_login(options: &Options) -> Result<Command, OptionError> {
    let dir = options.state_dir.as_ref().ok_or(OptionError::LoginWithoutState)?;
    let path = dir.join(LOGIN_FILE);
    std::fs::create_dir_all(dir)
        .and_then(|()| std::fs::write(&path, ""))
        .map_err(|error| OptionError::Login { path, error })?;
    Ok(Command::Exit { code: 0, message: "scripted agent: logged in".into() })
}

fn read_scripts(path: String) -> Result<HashMap<String, String>, OptionError> {
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) => return Err(OptionError::Script { path, error }),
    };
    let mut scripts: HashMap<String, String> = HashMap::new();
    let mut current: Option<String> = None;
    for (index, line) in text.lines().enumerate() {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let malformed = || OptionError::ScriptLine { line: index + 1 };
        if line.starts_with([' ', '\t']) {
            let name = current.as_ref().ok_or_else(malformed)?;
            let steps = scripts.get_mut(name).ok_or_else(malformed)?;
            steps.push('\n');
            steps.push_str(line.trim());
        } else {
            let (name, steps) = line.split_once(':').ok_or_else(malformed)?;
            scripts.insert(name.trim().to_owned(), steps.trim().to_owned());
            current = Some(name.trim().to_owned());
        }
    }
    Ok(scripts)
}
