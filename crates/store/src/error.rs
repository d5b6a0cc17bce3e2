//! What can go wrong with the database, each as one sentence that says what to do.

use std::io;
use std::path::{Path, PathBuf};

use consort_model::Refusal;
use rusqlite::ErrorCode;
use thiserror::Error;

/// Why the database cannot be opened.
#[derive(Debug, Error)]
pub enum OpenError {
    /// A later version of Consort wrote it.
    #[error(
        "{} was written by a newer version of Consort (version {found} of the data, this one knows {known}): \
         use that version, or another CONSORT_HOME",
        path.display()
    )]
    Newer {
        /// The database.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// The newest that this program knows.
        known: u32,
    },
    /// It is something else; it was left alone.
    #[error("{} is not a Consort database: it was left as it is; move it away and start again", path.display())]
    NotOurs {
        /// The file.
        path: PathBuf,
    },
    /// A file or folder could not be made or opened.
    #[error("{} could not be opened: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// SQLite could not work with it.
    #[error("{reason}")]
    Database {
        /// One sentence.
        reason: String,
    },
    /// The copy before a migration could not be made, so nothing was migrated.
    #[error("no backup {} could be made before the upgrade, so the database was left as it is: {reason}", path.display())]
    Backup {
        /// Where it should have been.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// Something in it cannot be understood.
    #[error("the database holds {what} that cannot be read ({reason}): restore a backup of consort.db")]
    Unreadable {
        /// What.
        what: String,
        /// Why.
        reason: String,
    },
}

impl OpenError {
    pub(crate) fn sqlite(path: &Path, error: &rusqlite::Error) -> Self {
        if error.sqlite_error_code() == Some(ErrorCode::NotADatabase) {
            return Self::NotOurs { path: path.to_owned() };
        }
        Self::Database { reason: sentence(path, error) }
    }
}

/// Why a change did not happen.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum CommitError {
    /// It was decided against.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// It could not be written. Nothing was changed; trying again is safe.
    #[error("{reason}")]
    Unavailable {
        /// One sentence: what happened and what to do.
        reason: String,
    },
    /// The store is closed.
    #[error("the store is closed: the daemon is stopping")]
    Stopped,
}

/// Why something could not be read.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum ReadError {
    /// The database could not be read.
    #[error("{reason}")]
    Unavailable {
        /// One sentence.
        reason: String,
    },
    /// What was read cannot be understood.
    #[error("the database holds {what} that cannot be read ({reason}): restore a backup of consort.db")]
    Unreadable {
        /// What.
        what: String,
        /// Why.
        reason: String,
    },
}

/// Inside a read, where the path is not known yet.
#[derive(Debug)]
pub(crate) enum RowError {
    Sqlite(rusqlite::Error),
    Unreadable { what: String, reason: String },
}

impl From<rusqlite::Error> for RowError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl RowError {
    pub(crate) fn read(self, path: &Path) -> ReadError {
        match self {
            Self::Sqlite(error) => ReadError::Unavailable { reason: sentence(path, &error) },
            Self::Unreadable { what, reason } => ReadError::Unreadable { what, reason },
        }
    }

    pub(crate) fn open(self, path: &Path) -> OpenError {
        match self {
            Self::Sqlite(error) => OpenError::sqlite(path, &error),
            Self::Unreadable { what, reason } => OpenError::Unreadable { what, reason },
        }
    }
}

/// What SQLite said, for a person.
pub(crate) fn sentence(path: &Path, error: &rusqlite::Error) -> String {
    let path = path.display();
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => {
            format!("the disk that holds {path} is full: free some space, then try again")
        }
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            format!("{path} is locked by another program: end that program, then try again")
        }
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => {
            format!("{path} may not be written: give this user permission, then try again")
        }
        Some(ErrorCode::CannotOpen) => {
            format!("{path} cannot be opened: check that its folder is there and permitted ({error})")
        }
        Some(ErrorCode::DatabaseCorrupt) => {
            format!("{path} is damaged: restore a backup of it ({error})")
        }
        _ => format!("{path} could not be used: {error}"),
    }
}
