//! How a command ends: the exit codes, and the one sentence that goes with them.
//!
//! The codes are a contract with scripts. They are documented in `docs/cli.md` and by `consort help exit-codes`.

use std::io;
use std::process::ExitCode;

use consort_daemon::client::ClientError;
use consort_daemon::protocol::codes;
use consort_model::TurnOutcome;

/// The table that `consort help exit-codes` prints.
pub const TABLE: &str = "\
0    done; for `run` and `send --wait`: the agent completed its turn
1    something failed that is not listed below
2    wrong usage
3    no daemon runs (`daemon status`, `daemon stop`), or it was stopped while a command waited for it
4    the daemon refused: no such agent or profile, the agent is closed, the request is no longer open
5    the turn or the agent failed, or the agent stopped at a limit
6    the turn was interrupted, its prompt dropped, or the agent closed before it was done
7    nothing new can be accepted now: disk full, database locked, configuration broken
8    a person is needed and none can be asked here
9    the time given with --timeout is over
130  stopped by Ctrl-C while waiting; the agent goes on
143  told to end by SIGTERM";

/// How a command ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exit {
    /// All well.
    Done,
    /// Anything that has no code of its own.
    Failed,
    /// Wrong usage.
    Usage,
    /// No daemon runs.
    NoDaemon,
    /// The daemon refused.
    Refused,
    /// The turn or the agent failed.
    TurnFailed,
    /// The turn was interrupted or never came.
    Interrupted,
    /// The daemon cannot take anything new.
    Unavailable,
    /// A person is needed.
    NeedsPerson,
    /// Time is over.
    TimedOut,
    /// Ctrl-C while waiting.
    Abandoned,
    /// SIGTERM.
    Terminated,
}

impl Exit {
    /// The number.
    pub fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::NoDaemon => 3,
            Self::Refused => 4,
            Self::TurnFailed => 5,
            Self::Interrupted => 6,
            Self::Unavailable => 7,
            Self::NeedsPerson => 8,
            Self::TimedOut => 9,
            Self::Abandoned => 130,
            Self::Terminated => 143,
        }
    }

    /// The code for a turn that ended.
    pub fn of_outcome(outcome: &TurnOutcome) -> Self {
        match outcome {
            TurnOutcome::Completed => Self::Done,
            TurnOutcome::Interrupted => Self::Interrupted,
            TurnOutcome::Stopped { .. } | TurnOutcome::Failed { .. } => Self::TurnFailed,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// Why a command ends early.
#[derive(Debug)]
pub struct Stop {
    /// With which code.
    pub exit: Exit,
    /// What is said on standard error; none: nothing.
    pub message: Option<String>,
    /// The answer of the daemon it comes from, for callers that look closer.
    pub cause: Option<Box<ClientError>>,
}

impl Stop {
    /// Ends with a sentence.
    pub fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, message: Some(message.into()), cause: None }
    }

    /// Fails with a sentence.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(Exit::Failed, message)
    }

    /// Ends without a word, because it was said already.
    pub fn quiet(exit: Exit) -> Self {
        Self { exit, message: None, cause: None }
    }
}

/// A reader that went away (`consort agents | head -1`) has what it wanted.
impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::quiet(Exit::Done),
            _ => Self::failed(format!("cannot write the output: {error}")),
        }
    }
}

impl From<serde_json::Error> for Stop {
    fn from(error: serde_json::Error) -> Self {
        match error.io_error_kind() {
            Some(kind) => io::Error::from(kind).into(),
            None => Self::failed(format!("cannot write the output as JSON: {error}")),
        }
    }
}

impl From<ClientError> for Stop {
    fn from(error: ClientError) -> Self {
        let exit = match &error {
            ClientError::NoDaemon { .. } => Exit::NoDaemon,
            ClientError::Answer(body) => match body.code {
                codes::REFUSED => Exit::Refused,
                codes::UNAVAILABLE | codes::CONFIG => Exit::Unavailable,
                _ => Exit::Failed,
            },
            _ => Exit::Failed,
        };
        Self { exit, message: Some(error.to_string()), cause: Some(Box::new(error)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use consort_daemon::protocol::ErrorBody;
    use consort_model::Refusal;

    #[test]
    fn every_code_is_in_the_table() {
        let all = [
            Exit::Done,
            Exit::Failed,
            Exit::Usage,
            Exit::NoDaemon,
            Exit::Refused,
            Exit::TurnFailed,
            Exit::Interrupted,
            Exit::Unavailable,
            Exit::NeedsPerson,
            Exit::TimedOut,
            Exit::Abandoned,
            Exit::Terminated,
        ];
        let listed: Vec<u8> = TABLE
            .lines()
            .filter_map(|line| line.split_whitespace().next())
            .filter_map(|word| word.parse().ok())
            .collect();
        assert_eq!(listed, all.map(Exit::code));
    }

    #[test]
    fn outcomes_and_errors_have_their_codes() {
        assert_eq!(Exit::of_outcome(&TurnOutcome::Completed), Exit::Done);
        assert_eq!(Exit::of_outcome(&TurnOutcome::Interrupted), Exit::Interrupted);
        assert_eq!(Exit::of_outcome(&TurnOutcome::Failed { message: "no".into() }), Exit::TurnFailed);
        assert_eq!(Exit::of_outcome(&TurnOutcome::Stopped { reason: "max".into() }), Exit::TurnFailed);
        let refusal = ErrorBody::from(Refusal::NoSuchAgent { wanted: "x".into() });
        assert_eq!(Stop::from(ClientError::Answer(refusal)).exit, Exit::Refused);
        let full = ErrorBody::new(codes::UNAVAILABLE, "the disk is full");
        assert_eq!(Stop::from(ClientError::Answer(full)).exit, Exit::Unavailable);
        assert_eq!(Stop::from(ClientError::NoDaemon { home: "/x".into() }).exit, Exit::NoDaemon);
    }

    #[test]
    fn a_closed_pipe_ends_quietly() {
        let stop = Stop::from(io::Error::from(io::ErrorKind::BrokenPipe));
        assert_eq!((stop.exit, stop.message), (Exit::Done, None));
    }
}
