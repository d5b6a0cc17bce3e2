//! The profiles in force: `config.toml` as it was last understood, and which of them can be used here.
//!
//! The file belongs to the person: it is read again when it changed, a broken one is reported and left alone, and the
//! last one that was understood stays in force meanwhile.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use consort_model::{Availability, Limits, Profile, ProfileId, ProfileSummary};
use consort_store::availability;
use consort_store::config::{ConfigError, ConfigFile, unique_slug};

/// The profiles in force.
pub struct Profiles {
    path: PathBuf,
    /// What agents' processes inherit; availability depends on it.
    environment: Vec<(String, String)>,
    held: Mutex<Held>,
}

struct Held {
    file: Option<ConfigFile>,
    /// What is wrong with the file as it is now.
    problem: Option<String>,
}

impl Profiles {
    /// Reads the file, or makes it with the defaults where there is none.
    pub fn open(path: &Path, environment: Vec<(String, String)>) -> Self {
        let held = match ConfigFile::load(path) {
            Ok(file) => Held { file: Some(file), problem: None },
            Err(error) => {
                tracing::warn!(%error, "config.toml cannot be used");
                Held { file: ConfigFile::last_good(path).ok(), problem: Some(error.to_string()) }
            }
        };
        Self { path: path.to_owned(), environment, held: Mutex::new(held) }
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
        let default = self.default_of(&held)?;
        config.profiles.iter().find(|profile| profile.id == default).cloned()
    }

    /// All profiles as clients see them, looked up anew.
    pub fn summaries(&self) -> Vec<ProfileSummary> {
        let held = self.lock();
        let default = self.default_of(&held);
        let Some(file) = held.file.as_ref() else { return vec![] };
        let profiles = file.config().profiles.iter();
        profiles
            .map(|profile| profile.summary(self.availability(profile), default.as_ref() == Some(&profile.id)))
            .collect()
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
    pub fn add(&self, mut profile: Profile) -> Result<ProfileId, ConfigError> {
        self.edit(|file| {
            profile.id = consort_store::config::slug(&profile.name);
            if profile.id.as_str().is_empty() {
                profile.id = unique_slug(&profile.name, file.config());
            }
            file.add_profile(&profile)?;
            Ok(profile.id.clone())
        })
    }

    /// Removes a profile.
    pub fn remove(&self, id: &ProfileId) -> Result<(), ConfigError> {
        self.edit(|file| file.remove_profile(id))
    }

    /// Makes a profile the default.
    pub fn set_default(&self, id: &ProfileId) -> Result<(), ConfigError> {
        self.edit(|file| file.set_default(Some(id)))
    }

    fn edit<T>(
        &self,
        change: impl FnOnce(&mut ConfigFile) -> Result<T, ConfigError>,
    ) -> Result<T, ConfigError> {
        let mut held = self.lock();
        // A broken file is never written over, so the newest one must be read first.
        let mut file = ConfigFile::load(&self.path)?;
        let outcome = change(&mut file)?;
        *held = Held { file: Some(file), problem: None };
        Ok(outcome)
    }

    fn default_of(&self, held: &Held) -> Option<ProfileId> {
        let config = held.file.as_ref()?.config();
        let usable =
            |profile: &&Profile| matches!(self.availability(profile), Availability::Available { .. });
        config
            .default_profile
            .clone()
            .or_else(|| config.profiles.iter().find(usable).map(|profile| profile.id.clone()))
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
