//! The profiles in force: `config.toml` as it was last understood, and which of them can be used here.
//!
//! The file belongs to the person: it is read again when it changed, a broken one is reported and left alone, and the
//! last one that was understood stays in force meanwhile.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use consort_model::{
    ApprovalPolicy, Availability, DriverKind, EnvironmentChange, Limits, Login, PermissionMode, Profile,
    ProfileId, ProfileSummary, Program, Refusal, RevisionKey, SandboxMode,
};
use consort_store::availability;
use consort_store::config::migrate::{self, Imported};
use consort_store::config::{Config, ConfigFile, slug};

use crate::error::HubError;
use crate::{login, version};

/// The profiles in force.
pub struct Profiles {
    path: PathBuf,
    /// What agents' processes inherit; availability depends on it.
    environment: Vec<(String, String)>,
    /// What revisions are made with.
    key: RevisionKey,
    held: Mutex<Held>,
}

struct Held {
    file: Option<ConfigFile>,
    /// What is wrong with the file as it is now.
    problem: Option<String>,
}

impl Profiles {
    /// Reads the file, or makes it with the defaults where there is none.
    pub fn open(path: &Path, environment: Vec<(String, String)>, key: RevisionKey) -> Self {
        let held = match ConfigFile::load(path) {
            Ok(file) => Held { file: Some(file), problem: None },
            Err(error) => {
                tracing::warn!(%error, "config.toml cannot be used");
                Held { file: ConfigFile::last_good(path).ok(), problem: Some(error.to_string()) }
            }
        };
        Self { path: path.to_owned(), environment, key, held: Mutex::new(held) }
    }

    /// What is wrong with the file, if anything.
    pub fn problem(&self) -> Option<String> {
        self.lock().problem.clone()
    }

    /// The limits in force.
    pub fn limits(&self) -> Limits {
        self.lock().file.as_ref().map(|file| file.config().limits).unwrap_or_default()
    }

    /// One profile, with its secrets.
    pub fn get(&self, id: &ProfileId) -> Option<Profile> {
        let held = self.lock();
        held.file.as_ref()?.config().profiles.iter().find(|profile| profile.id == *id).cloned()
    }

    /// The profile that a person means, or the default one: the one marked, else the first that can be used.
    pub fn find(&self, wanted: Option<&str>) -> Option<Profile> {
        let held = self.lock();
        let config = held.file.as_ref()?.config();
        if let Some(wanted) = wanted {
            return config.find(wanted).cloned();
        }
        let default = default_of(config, |profile| is_usable(&self.availability(profile)))?;
        config.profiles.iter().find(|profile| profile.id == *default).cloned()
    }

    /// All profiles as clients see them, looked up anew.
    pub fn summaries(&self) -> Vec<ProfileSummary> {
        let held = self.lock();
        let Some(config) = held.file.as_ref().map(ConfigFile::config) else { return vec![] };
        let found: Vec<_> = config.profiles.iter().map(|profile| self.availability(profile)).collect();
        let looked_up = || config.profiles.iter().zip(&found);
        let default = default_of(config, |wanted| {
            looked_up().any(|(profile, found)| profile.id == wanted.id && is_usable(found))
        });
        let summary = |(profile, found): (&Profile, &Availability)| {
            profile.summary(&self.key, found.clone(), default == Some(&profile.id))
        };
        looked_up().map(summary).collect()
    }

    /// Reads the file again if somebody changed it; whether anything is different now.
    pub fn refresh(&self) -> bool {
        let mut held = self.lock();
        if held.problem.is_none() && held.file.as_ref().is_some_and(|file| !file.changed()) {
            return false;
        }
        match ConfigFile::load(&self.path) {
            Ok(file) => {
                *held = Held { file: Some(file), problem: None };
                true
            }
            Err(error) => {
                held.problem = Some(error.to_string());
                false
            }
        }
    }

    /// Adds a profile under an id made from its name.
    pub fn add(&self, mut profile: Profile) -> Result<ProfileId, HubError> {
        check(&profile)?;
        self.edit(|file| {
            check_name_free(file.config(), &profile.name, None)?;
            profile.id = slug(&profile.name);
            file.add_profile(&profile)?;
            Ok(profile.id.clone())
        })
    }

    /// Changes a profile. Its id stays, whatever it is called.
    pub fn change(&self, id: &ProfileId, changes: ProfileChanges) -> Result<(), HubError> {
        self.edit(|file| {
            let mut profile = held(file.config(), id)?;
            changes.apply(&mut profile);
            check(&profile)?;
            check_name_free(file.config(), &profile.name, Some(id))?;
            Ok(file.replace_profile(&profile)?)
        })
    }

    /// Adds a profile that is like another but for its name.
    pub fn duplicate(&self, id: &ProfileId, name: String) -> Result<ProfileId, HubError> {
        let original = self.edit(|file| Ok(held(file.config(), id)?))?;
        self.add(Profile { name, ..original })
    }

    /// Adds what CC-Insights' `config.json` holds, but for what is there already. Returns also what was read otherwise
    /// than it stands there.
    pub fn import_cc_insights(&self, text: &str) -> Result<(Imported, Vec<String>), HubError> {
        let found =
            migrate::cc_insights(text).map_err(|error| Refusal::Invalid { reason: error.to_string() })?;
        let imported = self.edit(|file| Ok(file.import(&found)?))?;
        Ok((imported, found.notes))
    }

    /// Asks a profile's program for its version. A `terminal` profile may run anything, so it is not asked.
    pub async fn version(&self, profile: &ProfileSummary) -> Version {
        let Availability::Available { path } = &profile.availability else { return Version::NotAsked };
        let Some(profile) = self.get(&profile.id) else { return Version::NotAsked };
        if profile.driver == DriverKind::Terminal {
            return Version::NotAsked;
        }
        let environment = profile.apply_environment(self.environment.iter().cloned());
        match version::ask(Path::new(path), &environment, version::LIMIT).await {
            Ok(version) => Version::Said(version),
            Err(why) => Version::Unknown(format!("`{path}` {why}")),
        }
    }

    /// Whether a profile's program is logged in, where that can be known.
    pub fn login(&self, profile: &ProfileSummary) -> Option<Login> {
        let Availability::Available { path } = &profile.availability else { return None };
        let program = Program::of(profile.driver, path)?;
        let profile = self.get(&profile.id)?;
        let environment = profile.apply_environment(self.environment.iter().cloned());
        login::look(program, &environment, &profile.args)
    }

    /// Removes a profile.
    pub fn remove(&self, id: &ProfileId) -> Result<(), HubError> {
        self.edit(|file| Ok(file.remove_profile(id)?))
    }

    /// Makes a profile the default.
    pub fn set_default(&self, id: &ProfileId) -> Result<(), HubError> {
        self.edit(|file| Ok(file.set_default(Some(id))?))
    }

    /// Sets limits by their names.
    pub fn set_limits(&self, changes: &BTreeMap<String, u64>) -> Result<(), HubError> {
        self.edit(|file| {
            let mut limits = file.config().limits;
            for (name, value) in changes {
                limits.set(name, *value).map_err(|reason| Refusal::Invalid { reason })?;
            }
            Ok(file.set_limits(&limits)?)
        })
    }

    /// Sets the keys of an action of the screen. Which actions and keys there are, the screen knows.
    pub fn set_keys(&self, action: &str, keys: Option<&[String]>) -> Result<(), HubError> {
        let is_name = |text: &str| {
            (1..=64).contains(&text.len())
                && text.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '-')
        };
        let is_key = |key: &String| key.len() <= 32 && !key.chars().any(char::is_control);
        let fine = is_name(action) && keys.is_none_or(|keys| keys.len() <= 16 && keys.iter().all(is_key));
        if !fine {
            let reason = format!("`{}` with these keys cannot be kept in [keys]", action.escape_debug());
            return Err(Refusal::Invalid { reason }.into());
        }
        self.edit(|file| Ok(file.set_keys(action, keys)?))
    }

    fn edit<T>(&self, change: impl FnOnce(&mut ConfigFile) -> Result<T, HubError>) -> Result<T, HubError> {
        let mut held = self.lock();
        // A broken file is never written over, so the newest one must be read first.
        let mut file = ConfigFile::load(&self.path)?;
        let outcome = change(&mut file)?;
        *held = Held { file: Some(file), problem: None };
        Ok(outcome)
    }

    /// Whether a profile can be used here. Looks in a few folders; takes microseconds, so it is done whenever asked for.
    pub fn availability(&self, profile: &Profile) -> Availability {
        if consort_drivers::Driver::new(profile.driver, consort_drivers::Launch::default()).is_none() {
            let reason = format!("this version of Consort has no driver `{}` yet", profile.driver);
            return Availability::Unavailable { reason };
        }
        let cwd = Path::new("/");
        availability::of_profile(profile, self.environment.iter().cloned(), cwd)
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a profile's program says when it is asked for its version.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Version {
    /// There is none to ask, or it is not to be asked.
    NotAsked,
    /// This.
    Said(String),
    /// Nothing; why, in one sentence.
    Unknown(String),
}

/// What is to be different about a profile; none: stays as it is.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ProfileChanges {
    /// The name.
    pub name: Option<String>,
    /// The program; none inside: the driver's own.
    pub command: Option<Option<String>>,
    /// All arguments.
    pub args: Option<Vec<String>>,
    /// Added, or put in the place of what the profile says about the same variable.
    pub environment: Vec<EnvironmentChange>,
    /// Variables that the profile is to say nothing about any more.
    pub unmentioned: Vec<String>,
    /// The model; none inside: the agent's own choice.
    pub default_model: Option<Option<String>>,
    /// The permission mode of new agents.
    pub default_permissions: Option<PermissionMode>,
    /// What commands may do by themselves; none inside: as Codex is configured.
    pub sandbox_mode: Option<Option<SandboxMode>>,
    /// When it asks; none inside: as Codex is configured.
    pub approval_policy: Option<Option<ApprovalPolicy>>,
}

impl ProfileChanges {
    fn apply(self, profile: &mut Profile) {
        fn set<T>(field: &mut T, change: Option<T>) {
            if let Some(value) = change {
                *field = value;
            }
        }
        set(&mut profile.name, self.name);
        set(&mut profile.command, self.command);
        set(&mut profile.args, self.args);
        set(&mut profile.default_model, self.default_model);
        set(&mut profile.default_permissions, self.default_permissions);
        set(&mut profile.sandbox_mode, self.sandbox_mode);
        set(&mut profile.approval_policy, self.approval_policy);
        profile.environment.retain(|entry| !self.unmentioned.iter().any(|key| key == entry.key()));
        for change in self.environment {
            match profile.environment.iter_mut().find(|entry| entry.key() == change.key()) {
                Some(entry) => *entry = change,
                None => profile.environment.push(change),
            }
        }
    }
}

/// Refuses a profile that says what cannot be.
fn check(profile: &Profile) -> Result<(), Refusal> {
    profile.check().map_err(|(field, why)| Refusal::Invalid { reason: format!("`{field}`: {why}") })
}

/// Refuses a name that would let a person mean one profile and get another.
fn check_name_free(config: &Config, name: &str, own: Option<&ProfileId>) -> Result<(), Refusal> {
    let taken = |profile: &&Profile| {
        Some(&profile.id) != own && (profile.name == name || profile.id.as_str() == name)
    };
    match config.profiles.iter().find(taken) {
        Some(other) => {
            let reason = format!("there is already a profile `{}`; choose another name", other.name);
            Err(Refusal::Invalid { reason })
        }
        None => Ok(()),
    }
}

fn held(config: &Config, id: &ProfileId) -> Result<Profile, Refusal> {
    let profile = config.profiles.iter().find(|profile| profile.id == *id);
    profile.cloned().ok_or_else(|| Refusal::NoSuchProfile { wanted: id.to_string() })
}

/// The default profile: the one marked, else the first that can be used.
fn default_of(config: &Config, usable: impl Fn(&Profile) -> bool) -> Option<&ProfileId> {
    let first_usable = || config.profiles.iter().find(|profile| usable(profile)).map(|profile| &profile.id);
    config.default_profile.as_ref().or_else(first_usable)
}

fn is_usable(found: &Availability) -> bool {
    matches!(found, Availability::Available { .. })
}

#[cfg(test)]
mod tests;
