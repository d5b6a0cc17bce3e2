//! Where everything of one Consort lives: one folder, `CONSORT_HOME` or `~/.consort`.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// Longest path of a Unix socket that every supported system takes, in bytes.
const MAX_SOCKET_PATH: usize = 103;

/// The folder with config, data, logs, and the sockets of the daemon and its runners.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Home {
    root: PathBuf,
}

/// Why there is no home.
#[derive(Debug, Error)]
pub enum HomeError {
    /// Neither variable is set.
    #[error("neither CONSORT_HOME nor HOME is set; set CONSORT_HOME to the folder that Consort should use")]
    Unset,
    /// The folder's path leaves no room for a socket in it.
    #[error("the path {path} is too long for sockets in it; set CONSORT_HOME to a shorter one")]
    TooLong {
        /// The folder.
        path: PathBuf,
    },
    /// The folder cannot be made or closed to others.
    #[error("cannot make the folder {path}: {source}")]
    Make {
        /// The folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl Home {
    /// The home that the environment names.
    pub fn from_environment() -> Result<Self, HomeError> {
        let set = |key: &str| std::env::var_os(key).filter(|value| !value.is_empty()).map(PathBuf::from);
        let root = match set("CONSORT_HOME") {
            Some(root) => root,
            None => set("HOME").ok_or(HomeError::Unset)?.join(".consort"),
        };
        Self::at(&root)
    }

    /// A home at this folder, which need not exist yet.
    pub fn at(root: &Path) -> Result<Self, HomeError> {
        let root =
            std::path::absolute(root).map_err(|source| HomeError::Make { path: root.to_owned(), source })?;
        let longest = root.join("run").join("0123456789ab-0000").join("s");
        if longest.as_os_str().len() > MAX_SOCKET_PATH {
            return Err(HomeError::TooLong { path: root });
        }
        Ok(Self { root })
    }

    /// Makes the folder, closed to other users.
    pub fn make(&self) -> Result<(), HomeError> {
        for folder in [self.root.clone(), self.runners(), self.logs()] {
            make_private(&folder).map_err(|source| HomeError::Make { path: folder, source })?;
        }
        Ok(())
    }

    /// The folder itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The settings that people edit.
    pub fn config(&self) -> PathBuf {
        self.root.join("config.toml")
    }

    /// The daemon's socket.
    pub fn socket(&self) -> PathBuf {
        self.root.join("daemon.sock")
    }

    /// Held by the one daemon of this home; holds its pid.
    pub fn lock(&self) -> PathBuf {
        self.root.join("daemon.lock")
    }

    /// One folder per runner.
    pub fn runners(&self) -> PathBuf {
        self.root.join("run")
    }

    /// The daemon's logs.
    pub fn logs(&self) -> PathBuf {
        self.root.join("logs")
    }
}

fn make_private(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let mut permissions = std::fs::metadata(folder)?.permissions();
    if permissions.mode() & 0o077 != 0 {
        permissions.set_mode(0o700);
        std::fs::set_permissions(folder, permissions)?;
    }
    Ok(())
}
