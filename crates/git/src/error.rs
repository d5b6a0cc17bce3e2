//! Why git did not do what was wanted.

use std::path::PathBuf;

use thiserror::Error;

/// Why git did not do what was wanted. Each message is one sentence for a person.
#[derive(Debug, Error)]
pub enum GitError {
    /// There is no git.
    #[error("git cannot be run: {reason}; install it, or put it on the daemon's PATH")]
    NotRun {
        /// Why.
        reason: String,
    },
    /// It did not come to an end.
    #[error("`{what}` took longer than {seconds} seconds in {} and was ended", folder.display())]
    TimedOut {
        /// The command.
        what: String,
        /// Where.
        folder: PathBuf,
        /// The limit.
        seconds: u64,
    },
    /// It said no.
    #[error("`{what}` failed in {}: {message}", folder.display())]
    Failed {
        /// The command.
        what: String,
        /// Where.
        folder: PathBuf,
        /// What it said.
        message: String,
    },
    /// It said more, or something else, than can be understood.
    #[error("`{what}` in {} said something that Consort does not understand: {reason}", folder.display())]
    Unexpected {
        /// The command.
        what: String,
        /// Where.
        folder: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// Something that must not be done, or cannot be done as things are. The sentence says what to do.
    #[error("{0}")]
    Refused(String),
}

impl GitError {
    /// A refusal with a sentence.
    pub fn refused(sentence: impl Into<String>) -> Self {
        Self::Refused(sentence.into())
    }
}
