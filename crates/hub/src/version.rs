//! Asking programs for their version.
//!
//! A program that is found may still be broken, or wait for something. So it is run with `--version` and nothing else, in
//! the environment of its profile, without input, within [`LIMIT`]; whatever it started is killed with it. What it
//! says is shown and not kept.

use std::io;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// How long a program may take.
pub const LIMIT: Duration = Duration::from_secs(15);

/// How many programs are asked at once: each may be a whole language runtime.
static TURNS: Semaphore = Semaphore::const_new(8);

/// How much a program may say, in bytes.
const MAX_OUTPUT: u64 = 16 << 10;

/// The longest version that is shown, in characters.
const MAX_VERSION: usize = 120;

/// What a program says when it is asked for its version; else why it said nothing, as part of a sentence.
pub async fn ask(
    program: &Path,
    environment: &[(String, String)],
    limit: Duration,
) -> Result<String, String> {
    let Ok(_turn) = TURNS.acquire().await else { return Err("was not asked".to_owned()) };
    let child = Command::new(program)
        .arg("--version")
        .env_clear()
        .envs(environment.iter().map(|(key, value)| (key, value)))
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| format!("could not be started: {error}"))?;
    // Dropped last, when nothing waits for the group any more.
    let mut group = Group::new(child);
    match timeout(limit, group.answer()).await {
        Ok(answer) => answer,
        Err(_) => Err(format!("did not answer `--version` within {} seconds", limit.as_secs_f32())),
    }
}

/// A program with everything that it started, killed when this is dropped.
pub struct Group {
    leader: Option<u32>,
    child: Child,
}

impl Group {
    /// A program that was started as the leader of a group of its own.
    pub fn new(child: Child) -> Self {
        Self { leader: child.id(), child }
    }

    async fn answer(&mut self) -> Result<String, String> {
        let (stdout, stderr) = (self.child.stdout.take(), self.child.stderr.take());
        let (stdout, stderr) = tokio::join!(read(stdout), read(stderr));
        let unreadable = |error: io::Error| format!("could not be read: {error}");
        let (stdout, stderr) = (stdout.map_err(unreadable)?, stderr.map_err(unreadable)?);
        let status = self.child.wait().await.map_err(|error| format!("was lost: {error}"))?;
        if !status.success() {
            let how = match status.code() {
                Some(code) => format!("exited with code {code}"),
                None => "was killed".to_owned(),
            };
            return Err(format!("{how} when asked for `--version`"));
        }
        version(&stdout).or_else(|| version(&stderr)).ok_or_else(|| "said nothing to `--version`".to_owned())
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let leader = self.leader.and_then(|leader| Pid::from_raw(leader.cast_signed()));
        if let Some(leader) = leader
            && let Err(error) = kill_process_group(leader, Signal::KILL)
            && error != rustix::io::Errno::SRCH
        {
            tracing::debug!(%error, "a program that was asked for its version could not be killed");
        }
    }
}

/// What comes until the end, or until it is enough.
async fn read(stream: Option<impl AsyncRead + Unpin>) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Some(stream) = stream {
        stream.take(MAX_OUTPUT).read_to_end(&mut bytes).await?;
    }
    Ok(bytes)
}

/// The first line that says something, without control characters.
fn version(output: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(output);
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    Some(line.chars().filter(|letter| !letter.is_control()).take(MAX_VERSION).collect())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::path::PathBuf;

    use super::*;

    fn program(dir: &Path, name: &str, script: &str) -> PathBuf {
        let path = dir.join(name);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
        path
    }

    #[tokio::test]
    async fn programs_are_asked_in_their_environment_and_without_input() {
        let dir = tempfile::tempdir().unwrap();
        let environment = [("PATH", "/usr/bin:/bin"), ("NAME", "mine")]
            .map(|(key, value)| (key.to_owned(), value.to_owned()));
        let long = format!("printf '%s' {}", "x".repeat(500));
        let facts = [
            ("plain", "echo \"$1 $NAME ${HOME-none}\"", Ok("--version mine none")),
            ("second-line", "echo; printf ' 1.2.3 \\033[1m\\n4\\n'", Ok("1.2.3 [1m")),
            ("stderr", "echo 2.0 >&2", Ok("2.0")),
            ("input", "cat; echo done", Ok("done")),
            ("silent", "true", Err("said nothing to `--version`")),
            ("fails", "echo no; exit 3", Err("exited with code 3 when asked for `--version`")),
            ("endless", "yes", Err("")),
        ];
        for (name, script, expected) in facts {
            let path = program(dir.path(), name, script);
            let answer = ask(&path, &environment, LIMIT).await;
            match expected {
                Ok(version) => assert_eq!(answer.as_deref(), Ok(version), "{name}"),
                Err(why) => assert!(answer.unwrap_err().contains(why), "{name}"),
            }
        }
        let answer = ask(&program(dir.path(), "long", &long), &environment, LIMIT).await;
        assert_eq!(answer.unwrap().chars().count(), MAX_VERSION);
        let missing = ask(&dir.path().join("missing"), &environment, LIMIT).await;
        assert!(missing.unwrap_err().starts_with("could not be started"));
    }

    #[tokio::test]
    async fn one_that_hangs_is_killed_with_what_it_started() {
        let dir = tempfile::tempdir().unwrap();
        let pids = dir.path().join("pids");
        let script = format!("sleep 600 & echo $! $$ > {}; wait", pids.display());
        let environment = [("PATH".to_owned(), "/usr/bin:/bin".to_owned())];
        let path = program(dir.path(), "hangs", &script);
        let answer = ask(&path, &environment, Duration::from_secs(1)).await;
        assert_eq!(answer.unwrap_err(), "did not answer `--version` within 1 seconds");
        let pids = fs::read_to_string(pids).unwrap();
        let alive = |pid: &str| {
            // A zombie that nobody has reaped yet is dead.
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            stat.rsplit(')').next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with(" Z"))
        };
        let deadline = std::time::Instant::now() + Duration::from_secs(10);
        while pids.split_whitespace().any(alive) {
            assert!(std::time::Instant::now() < deadline, "something of it still runs");
            tokio::task::yield_now().await;
        }
    }
}
