//! A model that plays scripts: a server on 127.0.0.1 for the real CLIs to talk with, offline and without a key.
//!
//! It speaks Anthropic Messages, OpenAI Responses, OpenAI Chat Completions and Gemini, streamed and whole. It keeps no
//! state between requests: each carries its whole conversation, and the answer follows from it alone ([`choose`]).
//! It knows nothing of Consort. The invariant: whatever is sent to it, it answers or closes the connection, and serves
//! the next one.
#![doc = concat!("\n```text\n", include_str!("help.txt"), "```")]

pub mod choose;
pub mod conversation;
mod dialect;
pub mod http;
mod image;
mod reply;
pub mod script;
mod server;

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

pub use script::{Script, ScriptError};
pub use server::{Options, Recorded, Server, StartError};

const HELP: &str = include_str!("help.txt");

/// Runs the server until the process is ended, and gives the exit code where it cannot begin.
pub fn main(args: impl IntoIterator<Item = String>, mut stdout: impl Write) -> i32 {
    let options = match parse(args) {
        Ok(Some(options)) => options,
        Ok(None) => return i32::from(stdout.write_all(HELP.as_bytes()).is_err()),
        Err(error) => {
            eprintln!("consort-testkit model: {error}");
            return 2;
        }
    };
    let server = match Server::start_with(options) {
        Ok(server) => server,
        Err(error) => {
            eprintln!("consort-testkit model: {error}");
            return 1;
        }
    };
    let said = writeln!(stdout, "listening on {}", server.url()).and_then(|()| stdout.flush());
    if let Err(error) = said {
        eprintln!("consort-testkit model: cannot write to standard output: {error}");
        return 1;
    }
    server.serve();
    0
}

#[derive(Debug, thiserror::Error)]
enum OptionError {
    #[error("option {0:?} is unknown; see `consort-testkit model --help`")]
    Unknown(String),
    #[error("option {0} needs a value")]
    NoValue(String),
    #[error("{0:?} is not a port: it must be a number up to 65535")]
    Port(String),
    #[error("cannot open the log {path}: {error}")]
    Log { path: String, error: std::io::Error },
    #[error(transparent)]
    Script(#[from] ScriptError),
}

/// None: only help is wanted.
fn parse(args: impl IntoIterator<Item = String>) -> Result<Option<Options>, OptionError> {
    let mut options = Options::default();
    let mut args = args.into_iter();
    while let Some(option) = args.next() {
        let mut value = || args.next().ok_or_else(|| OptionError::NoValue(option.clone()));
        match option.as_str() {
            "--help" | "-h" => return Ok(None),
            "--port" => {
                let port = value()?;
                options.port = port.parse().map_err(|_| OptionError::Port(port))?;
            }
            "--script" => {
                let script = Script::read(Path::new(&value()?))?;
                options.script = script.over(options.script);
            }
            "--log" => {
                let path = value()?;
                let log = OpenOptions::new().create(true).append(true).open(&path);
                options.log = Some(log.map_err(|error| OptionError::Log { path, error })?);
            }
            other => return Err(OptionError::Unknown(other.to_owned())),
        }
    }
    Ok(Some(options))
}
