//! The file itself: read, watched for edits by others, and replaced in one step.
//!
//! A new text is written beside the file and renamed over it, so that a crash leaves the old or the new one whole. The
//! last text that could be understood is kept in `config.toml.last-good`.

use std::ffi::OsString;
use std::fmt;
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use consort_model::{Limits, Profile, ProfileId};
use toml_edit::DocumentMut;

use super::migrate::{self, Found, Imported};
use super::{Config, ConfigError, edit};

/// What the file says when Consort is started for the first time.
const DEFAULTS: &str = r#"# Consort's configuration: the profiles (ways to run an agent) and the limits.
# Edit it freely: changes are taken up as they are saved, and what Consort itself changes leaves the rest as it is.
#
# A profile has: name, driver (claude, codex, acp, native, terminal), command, args,
# environment (a list of "KEY=VALUE", "KEY=" and "-KEY"), default_model,
# default_permissions (default, accept-edits, plan, bypass); for codex also
# sandbox_mode (readOnly, workspaceWrite, fullAccess) and
# approval_policy (untrusted, onRequest, onFailure, never).

# The profile that is used where none is named; without it, the first one whose program is installed.
# default_profile = "claude"

[profiles.claude]
name = "Claude"
driver = "claude"
default_model = "opus"
default_permissions = "default"

[profiles.codex]
name = "Codex"
driver = "codex"
sandbox_mode = "workspaceWrite"
approval_policy = "onRequest"

[profiles.gemini]
name = "Gemini"
driver = "acp"
command = "gemini"
args = ["--acp"]

[profiles.consort]
name = "Consort"
driver = "native"
"#;

/// `config.toml` as it was last read or written.
#[derive(Clone)]
pub struct ConfigFile {
    path: PathBuf,
    document: DocumentMut,
    config: Config,
    stamp: Option<Stamp>,
}

/// Leaves the document out: it holds the values of environments.
impl fmt::Debug for ConfigFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConfigFile")
            .field("path", &self.path)
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

/// What tells one version of a file from another without reading it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Stamp {
    inode: u64,
    size: u64,
    seconds: i64,
    nanoseconds: i64,
}

impl Stamp {
    fn of(metadata: &Metadata) -> Self {
        Self {
            inode: metadata.ino(),
            size: metadata.size(),
            seconds: metadata.mtime(),
            nanoseconds: metadata.mtime_nsec(),
        }
    }
}

impl ConfigFile {
    /// Reads the file; where there is none, writes the defaults first.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        match Self::read(path) {
            Err(ConfigError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                if let Some(folder) = path.parent() {
                    DirBuilder::new()
                        .recursive(true)
                        .mode(0o700)
                        .create(folder)
                        .map_err(|source| failed(folder, "made", source))?;
                }
                let mut file = Self {
                    path: path.to_owned(),
                    document: parse_document(DEFAULTS, path)?,
                    config: Config::parse(DEFAULTS, path)?,
                    stamp: None,
                };
                file.write(DEFAULTS)?;
                Ok(file)
            }
            result => {
                let mut file = result?;
                if file.config.old.there {
                    file.migrate()?;
                }
                file.keep_as_good(&file.document.to_string());
                Ok(file)
            }
        }
    }

    /// What the file said when it could last be understood, to work with until the file is corrected. Changing it
    /// fails as long as the file itself is broken.
    pub fn last_good(path: &Path) -> Result<Self, ConfigError> {
        let mut file = Self::read(&beside(path, ".last-good"))?;
        file.path = path.to_owned();
        file.stamp = None;
        Ok(file)
    }

    /// What it says.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether somebody else changed the file since it was read. Reads no more than its inode.
    pub fn changed(&self) -> bool {
        fs::metadata(&self.path).ok().map(|metadata| Stamp::of(&metadata)) != self.stamp
    }

    /// Adds a profile at the end.
    pub fn add_profile(&mut self, profile: &Profile) -> Result<(), ConfigError> {
        self.edit(|path, config, document| edit::add_profile(path, config, document, profile))
    }

    /// Changes what differs in a profile that is there.
    pub fn replace_profile(&mut self, profile: &Profile) -> Result<(), ConfigError> {
        self.edit(|path, config, document| edit::replace_profile(path, config, document, profile))
    }

    /// Removes a profile; if it was the default, there is none afterwards.
    pub fn remove_profile(&mut self, id: &ProfileId) -> Result<(), ConfigError> {
        self.edit(|path, config, document| edit::remove_profile(path, config, document, id))
    }

    /// Sets the profile that is used where none is named.
    pub fn set_default(&mut self, id: Option<&ProfileId>) -> Result<(), ConfigError> {
        self.edit(|_, config, document| edit::set_default(config, document, id))
    }

    /// Writes the limits that differ from those that are there.
    pub fn set_limits(&mut self, limits: &Limits) -> Result<(), ConfigError> {
        self.edit(|path, config, document| edit::set_limits(path, config, document, limits))
    }

    /// Sets the keys of an action of the screen; none: as they are without the file.
    pub fn set_keys(&mut self, action: &str, keys: Option<&[String]>) -> Result<(), ConfigError> {
        self.edit(|path, _, document| edit::set_keys(path, document, action, keys))
    }

    /// Adds profiles from elsewhere, but for those that run like one that is there.
    pub fn import(&mut self, found: &Found) -> Result<Imported, ConfigError> {
        self.edit(|path, config, document| edit::import(path, config, document, found))
    }

    /// Turns the keys from before there were profiles into profiles, once. The file as it was stays beside it.
    fn migrate(&mut self) -> Result<(), ConfigError> {
        let profiles = self.config.old.profiles(&self.config.profiles);
        let backup = self.keep_backup()?;
        tracing::info!(backup = %backup.display(), added = profiles.len(), "old settings become profiles");
        let found = Found { profiles, ..Found::default() };
        self.edit(|path, config, document| {
            migrate::remove_old_settings(document);
            edit::import(path, config, document, &found).map(drop)
        })
    }

    /// Puts the file as it is beside itself, over no earlier copy that says something else.
    fn keep_backup(&self) -> Result<PathBuf, ConfigError> {
        let text = self.document.to_string();
        let mut number = 1_u32;
        loop {
            let number_part = if number == 1 { String::new() } else { format!("-{number}") };
            let path = beside(&self.path, &format!(".before-migration{number_part}"));
            match fs::read_to_string(&path) {
                Ok(kept) if kept == text => return Ok(path),
                Ok(_) => number += 1,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    replace(&path, &text).map_err(|source| failed(&path, "written", source))?;
                    return Ok(path);
                }
                Err(source) => return Err(failed(&path, "read", source)),
            }
        }
    }

    /// Takes up what others wrote meanwhile, makes the change, and writes the file if all of it can be understood.
    fn edit<T>(
        &mut self,
        change: impl FnOnce(&Path, &Config, &mut DocumentMut) -> Result<T, ConfigError>,
    ) -> Result<T, ConfigError> {
        if self.changed() {
            *self = Self::load(&self.path)?;
        }
        let mut document = self.document.clone();
        let outcome = change(&self.path, &self.config, &mut document)?;
        let text = document.to_string();
        if text == self.document.to_string() {
            return Ok(outcome);
        }
        let config = Config::parse(&text, &self.path)?;
        let mut next = Self { path: self.path.clone(), document, config, stamp: self.stamp };
        next.write(&text)?;
        *self = next;
        Ok(outcome)
    }

    fn read(path: &Path) -> Result<Self, ConfigError> {
        // Looked at before reading: an edit in between then counts as a later one.
        let metadata = fs::metadata(path).map_err(|source| failed(path, "read", source))?;
        let text = fs::read_to_string(path).map_err(|source| failed(path, "read", source))?;
        let config = Config::parse(&text, path)?;
        Ok(Self {
            path: path.to_owned(),
            document: parse_document(&text, path)?,
            config,
            stamp: Some(Stamp::of(&metadata)),
        })
    }

    fn write(&mut self, text: &str) -> Result<(), ConfigError> {
        // A link, as people have it who keep their configuration elsewhere, stays one.
        let target = fs::canonicalize(&self.path).unwrap_or_else(|_| self.path.clone());
        let metadata = replace(&target, text).map_err(|source| failed(&self.path, "written", source))?;
        self.stamp = Some(Stamp::of(&metadata));
        self.keep_as_good(text);
        Ok(())
    }

    /// Keeps the text beside the file. A convenience: that it cannot be kept is no reason to refuse the file.
    fn keep_as_good(&self, text: &str) {
        let path = beside(&self.path, ".last-good");
        if fs::read_to_string(&path).is_ok_and(|kept| kept == text) {
            return;
        }
        if let Err(error) = replace(&path, text) {
            tracing::warn!(path = %path.display(), %error, "the last good configuration was not kept");
        }
    }
}

fn parse_document(text: &str, path: &Path) -> Result<DocumentMut, ConfigError> {
    text.parse().map_err(|error: toml_edit::TomlError| {
        let (line, column) = super::position(text, error.span().map_or(0, |span| span.start));
        ConfigError::Broken { path: path.to_owned(), line, column, message: error.message().to_owned() }
    })
}

fn failed(path: &Path, action: &'static str, source: io::Error) -> ConfigError {
    ConfigError::Io { path: path.to_owned(), action, source }
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    PathBuf::from(name)
}

/// Puts a file with this text in the place of another, for this user only, in one step that survives a crash.
fn replace(path: &Path, text: &str) -> io::Result<Metadata> {
    let partial = beside(path, &format!(".partial-{}", std::process::id()));
    let write = || {
        match fs::remove_file(&partial) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&partial)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&partial, path)?;
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            File::open(folder)?.sync_all()?;
        }
        file.metadata()
    };
    let result = write();
    if result.is_err() {
        // Nothing is lost if it stays; the next attempt removes it.
        fs::remove_file(&partial).ok();
    }
    result
}
