//! Why the hub did not do what it was asked.

use consort_model::Refusal;
use consort_store::config::ConfigError;
use consort_store::{CommitError, ReadError};
use thiserror::Error;

/// Why the hub did not do what it was asked. Nothing was changed then.
#[derive(Debug, Error)]
pub enum HubError {
    /// It may not be done.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// It cannot be kept or read now.
    #[error("{0}")]
    Unavailable(String),
    /// `config.toml` is in the way.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Agents are working.
    #[error("{working} agents are working; stop them first, or use --force or --keep-agents")]
    WouldStopWork {
        /// How many.
        working: u32,
    },
}

impl HubError {
    /// The store cannot keep anything now.
    pub fn unavailable() -> Self {
        Self::Unavailable("the database cannot be written now; try again when the disk has room".to_owned())
    }
}

impl From<CommitError> for HubError {
    fn from(error: CommitError) -> Self {
        match error {
            CommitError::Refused(refusal) => Self::Refused(refusal),
            other => Self::Unavailable(other.to_string()),
        }
    }
}

impl From<ReadError> for HubError {
    fn from(error: ReadError) -> Self {
        Self::Unavailable(error.to_string())
    }
}
