//! The sessions that the programs of profiles keep, Consort's and those of a person's own work with them.
//!
//! A program that can be asked is run for it, in the environment of its profile and the folder that is meant, within
//! [`LIMIT`]; whatever it started is killed with it. What is said is [`consort_drivers::sessions`]'s business. Claude Code
//! cannot be asked: the beginnings of its files are read.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, UNIX_EPOCH};

use consort_drivers::sessions::{Listing, Next, claude_folder, claude_title, newest_first};
use consort_drivers::{Driver, Launch};
use consort_model::{Availability, DriverKind, KeptSession, Profile, Refusal, Timestamp};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::Command;
use tokio::time::timeout;
use uuid::Uuid;

use crate::error::HubError;
use crate::hub::Hub;
use crate::version::Group;

/// How long a program may take to start and tell.
const LIMIT: Duration = Duration::from_secs(30);

/// The longest line that is read of a program, in bytes.
const MAX_LINE: u64 = 16 << 20;

/// How much is read of a file to find out what it is about, in bytes.
const MAX_BEGINNING: u64 = 64 << 10;

impl Hub {
    /// The sessions of a folder that the program of a profile keeps, the newest first; and whose they are.
    pub async fn sessions(
        &self,
        wanted: Option<&str>,
        cwd: &Path,
    ) -> Result<(Profile, Vec<KeptSession>), HubError> {
        self.refresh_profiles().await?;
        let profile = self
            .shared
            .profiles
            .find(wanted)
            .ok_or_else(|| Refusal::NoSuchProfile { wanted: wanted.unwrap_or("default").to_owned() })?;
        crate::hub::check_cwd(cwd)?;
        let path = match self.shared.profiles.availability(&profile) {
            Availability::Available { path } => path,
            Availability::Unavailable { reason } => {
                let reason = format!("the profile `{}` cannot be used: {reason}", profile.name);
                return Err(Refusal::Invalid { reason }.into());
            }
            Availability::Unknown => profile.command.clone().unwrap_or_default(),
        };
        let environment = profile.apply_environment(self.shared.environment.iter().cloned());
        let found = if profile.driver == DriverKind::Claude {
            let (environment, cwd) = (environment, cwd.to_path_buf());
            let read = tokio::task::spawn_blocking(move || claude(&environment, &cwd));
            read.await.map_err(|error| error.to_string())
        } else {
            ask(&profile, &path, &environment, cwd).await
        };
        let found = found.map_err(|why| {
            let reason = format!("`{path}` {why}");
            HubError::from(Refusal::Invalid { reason })
        })?;
        Ok((profile, found))
    }
}

/// Runs a program and asks it; else why there is no answer, as part of a sentence about the program.
async fn ask(
    profile: &Profile,
    path: &str,
    environment: &[(String, String)],
    cwd: &Path,
) -> Result<Vec<KeptSession>, String> {
    let cwd_text = cwd.to_string_lossy().into_owned();
    let Some(mut listing) = Listing::new(profile.driver, &cwd_text) else {
        return Err(format!("keeps no sessions, since it is run by the driver `{}`", profile.driver));
    };
    let launch = Launch { cwd: cwd_text, ..Launch::default() };
    let line = Driver::new(profile.driver, launch).map(|driver| driver.command_line()).unwrap_or_default();
    let own = line.environment.iter().filter(|(key, _)| !environment.iter().any(|(set, _)| set == key));
    let mut child = Command::new(path)
        .args(line.before.iter().chain(&profile.args).chain(&line.after))
        .env_clear()
        .envs(environment.iter().chain(own).map(|(key, value)| (key, value)))
        .current_dir(cwd)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| format!("could not be started: {error}"))?;
    let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
    let _group = Group::new(child);
    let (Some(mut stdin), Some(stdout)) = (stdin, stdout) else {
        return Err("could not be asked".to_owned());
    };
    let talk = async {
        let mut stdout = BufReader::new(stdout);
        let mut lines = listing.start();
        loop {
            for line in lines {
                stdin.write_all(&line).await.map_err(|error| format!("could not be asked: {error}"))?;
            }
            let mut line = Vec::new();
            let mut one = (&mut stdout).take(MAX_LINE);
            let read =
                one.read_until(b'\n', &mut line).await.map_err(|error| format!("was lost: {error}"))?;
            if read == 0 {
                return Err("ended before it told its sessions".to_owned());
            }
            match listing.receive(&line) {
                Next::Say(more) => lines = more,
                Next::Done(found) => return Ok(found),
                Next::Refused(why) => return Err(why),
            }
        }
    };
    match timeout(LIMIT, talk).await {
        Ok(outcome) => outcome,
        Err(_) => Err(format!("did not tell its sessions within {} seconds", LIMIT.as_secs())),
    }
}

/// The sessions of Claude Code's in a folder.
fn claude(environment: &[(String, String)], cwd: &Path) -> Vec<KeptSession> {
    let variable = |name: &str| {
        let found = environment.iter().rev().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    };
    let own = variable("CLAUDE_CONFIG_DIR").map(PathBuf::from);
    let Some(folder) = own.or_else(|| Some(Path::new(variable("HOME")?).join(".claude"))) else {
        return vec![];
    };
    let cwd = cwd.to_string_lossy();
    let Ok(entries) = std::fs::read_dir(folder.join("projects").join(claude_folder(&cwd))) else {
        return vec![];
    };
    let sessions = entries.flatten().filter_map(|entry| {
        let path = entry.path();
        let id = path.file_stem()?.to_str()?.parse::<Uuid>().ok()?;
        path.extension().filter(|extension| *extension == "jsonl")?;
        let changed = entry.metadata().ok()?.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
        let mut beginning = Vec::new();
        File::open(&path).ok()?.take(MAX_BEGINNING).read_to_end(&mut beginning).ok()?;
        // One in which nothing was said has nothing to go on with.
        let title = claude_title(&beginning)?;
        Some(KeptSession {
            id: id.to_string(),
            title: Some(title),
            cwd: cwd.clone().into_owned(),
            updated_at: i64::try_from(changed.as_millis()).ok().map(Timestamp),
        })
    });
    newest_first(sessions.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claude_sessions_of_a_folder_are_found_by_its_name() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join(".claude/projects/-w-my-repo");
        std::fs::create_dir_all(&folder).unwrap();
        let said = r#"{"type":"user","message":{"content":"Mend the gate"}}"#;
        let id = "11111111-2222-4333-8444-555555555555";
        for (name, text) in [
            (format!("{id}.jsonl"), said),
            ("21111111-2222-4333-8444-555555555555.jsonl".to_owned(), "{}"),
            ("agent-7.jsonl".to_owned(), said),
            ("notes.txt".to_owned(), said),
        ] {
            std::fs::write(folder.join(name), text).unwrap();
        }
        let environment = [("HOME".to_owned(), home.path().display().to_string())];
        let found = claude(&environment, Path::new("/w/my_repo"));
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].id.as_str(), found[0].title.as_deref()), (id, Some("Mend the gate")));
        assert_eq!(claude(&environment, Path::new("/w/other")), []);
        assert_eq!(claude(&[], Path::new("/w/my_repo")), []);
    }
}
