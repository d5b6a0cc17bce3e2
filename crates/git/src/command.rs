//! Running git and other commands: bounded in time and output, without prompts, in a clean environment.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};

use crate::error::GitError;

/// How long a question may take.
pub const QUESTION_LIMIT: Duration = Duration::from_secs(60);

/// How long a change may take, such as checking out all files.
pub const CHANGE_LIMIT: Duration = Duration::from_secs(900);

/// The most that is read of an answer.
const OUTPUT_LIMIT: usize = 32 << 20;

/// The most that is kept of what a command says on standard error, at its end.
const ERROR_LIMIT: usize = 16 << 10;

/// How long the pipes of a command that has ended may stay open, held by something it started.
const PIPE_LIMIT: Duration = Duration::from_secs(2);

/// Variables of git that say how it runs, not where or on what: these are handed on, all others are not.
const KEPT: [&str; 10] = [
    "GIT_AUTHOR_NAME",
    "GIT_AUTHOR_EMAIL",
    "GIT_COMMITTER_NAME",
    "GIT_COMMITTER_EMAIL",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_EXEC_PATH",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
];

/// Settings for every call: nothing goes on in the background, and nothing is put away unseen.
const SETTINGS: [&str; 7] = [
    "core.quotePath=false",
    "core.fsmonitor=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "rebase.autoStash=false",
    "merge.autoStash=false",
    "advice.addEmbeddedRepo=false",
];

/// How a command ended and what it said.
#[derive(Debug)]
pub struct Output {
    /// Its exit code; none: a signal ended it.
    pub code: Option<i32>,
    /// What it printed, as far as it fits the limit.
    pub stdout: Vec<u8>,
    /// Whether it printed more.
    pub truncated: bool,
    /// The end of what it said on standard error.
    pub stderr: String,
}

impl Output {
    /// The last thing it said, in one line: for the sentence that reports a failure.
    pub fn reason(&self) -> String {
        let lines = |text: &str| {
            let noise =
                |line: &&str| line.is_empty() || line.starts_with("hint:") || line.starts_with("Preparing ");
            let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !noise(line)).collect();
            lines[lines.len().saturating_sub(6)..].join("; ")
        };
        let said = match self.stderr.trim() {
            "" => lines(&String::from_utf8_lossy(&self.stdout)),
            said => lines(said),
        };
        let said: String = said.trim_start_matches("fatal: ").chars().take(600).collect();
        match (said.is_empty(), self.code) {
            (false, _) => said,
            (true, Some(code)) => format!("it exited with code {code} without a word"),
            (true, None) => "a signal ended it".to_owned(),
        }
    }
}

/// Git in one folder.
#[derive(Clone, Debug)]
pub struct Git {
    folder: PathBuf,
    limit: Duration,
    index: Option<PathBuf>,
}

impl Git {
    /// For questions in a folder.
    pub fn at(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), limit: QUESTION_LIMIT, index: None }
    }

    /// For changes in a folder, which may take longer.
    pub fn changing(folder: &Path) -> Self {
        Self { limit: CHANGE_LIMIT, ..Self::at(folder) }
    }

    /// With another index than the folder's own.
    pub fn with_index(&self, index: &Path) -> Self {
        Self { index: Some(index.to_owned()), ..self.clone() }
    }

    /// Runs git, whatever it answers.
    pub async fn run<S: AsRef<OsStr>>(&self, args: &[S], most: usize) -> Result<Output, GitError> {
        let mut command = Command::new("git");
        command.arg("--no-pager");
        for setting in SETTINGS {
            command.args(["-c", setting]);
        }
        command.args(args).current_dir(&self.folder);
        clean_environment(&mut command);
        command.env("LC_ALL", "C").env("GIT_TERMINAL_PROMPT", "0").env("GIT_OPTIONAL_LOCKS", "0");
        for editor in ["GIT_EDITOR", "GIT_SEQUENCE_EDITOR"] {
            command.env(editor, ":");
        }
        if let Some(index) = &self.index {
            command.env("GIT_INDEX_FILE", index);
        }
        let what = name(args);
        if !self.folder.is_dir() {
            let message = "there is no such folder".to_owned();
            return Err(GitError::Failed { what, folder: self.folder.clone(), message });
        }
        match run(command, most, self.limit).await {
            Ok(Some(output)) => Ok(output),
            Ok(None) => {
                Err(GitError::TimedOut { what, folder: self.folder.clone(), seconds: self.limit.as_secs() })
            }
            Err(error) => Err(GitError::NotRun { reason: error.to_string() }),
        }
    }

    /// Runs git and expects that it is content; what it printed.
    pub async fn bytes<S: AsRef<OsStr>>(&self, args: &[S]) -> Result<Vec<u8>, GitError> {
        let output = self.run(args, OUTPUT_LIMIT).await?;
        if output.code != Some(0) {
            return Err(self.failed(args, &output));
        }
        if output.truncated {
            return Err(self.unexpected(args, "it is too long"));
        }
        Ok(output.stdout)
    }

    /// Like [`Self::bytes`], as text without the last line's end.
    pub async fn text<S: AsRef<OsStr>>(&self, args: &[S]) -> Result<String, GitError> {
        let mut text = String::from_utf8(self.bytes(args).await?)
            .map_err(|_| self.unexpected(args, "it is not UTF-8"))?;
        if text.ends_with('\n') {
            text.pop();
        }
        Ok(text)
    }

    /// Asks something that git answers by its exit code: 0 is yes, 1 is no, and anything else an error.
    pub async fn asks<S: AsRef<OsStr>>(&self, args: &[S]) -> Result<bool, GitError> {
        let output = self.run(args, OUTPUT_LIMIT).await?;
        match output.code {
            Some(0) => Ok(true),
            Some(1) => Ok(false),
            _ => Err(self.failed(args, &output)),
        }
    }

    /// Asks for something that may not be there, which git tells by exit code 1.
    pub async fn perhaps<S: AsRef<OsStr>>(&self, args: &[S]) -> Result<Option<String>, GitError> {
        let output = self.run(args, OUTPUT_LIMIT).await?;
        match output.code {
            Some(0) => {
                let text =
                    String::from_utf8(output.stdout).map_err(|_| self.unexpected(args, "it is not UTF-8"))?;
                Ok(Some(text.trim_end_matches('\n').to_owned()))
            }
            Some(1) => Ok(None),
            _ => Err(self.failed(args, &output)),
        }
    }

    /// The error for an answer that says no.
    pub fn failed<S: AsRef<OsStr>>(&self, args: &[S], output: &Output) -> GitError {
        GitError::Failed { what: name(args), folder: self.folder.clone(), message: output.reason() }
    }

    /// The error for an answer that cannot be understood.
    pub fn unexpected<S: AsRef<OsStr>>(&self, args: &[S], reason: impl Into<String>) -> GitError {
        GitError::Unexpected { what: name(args), folder: self.folder.clone(), reason: reason.into() }
    }
}

/// The command as people know it: its name without the options before and the values after it.
fn name<S: AsRef<OsStr>>(args: &[S]) -> String {
    let mut words = args.iter().map(|arg| arg.as_ref().to_string_lossy());
    let first = words.find(|word| !word.starts_with('-')).unwrap_or_default();
    let second = words.next().filter(|_| first == "worktree").map(|word| format!(" {word}"));
    format!("git {first}{}", second.unwrap_or_default())
}

/// Runs a line of shell in a folder. None: it took too long.
pub async fn shell(
    line: &str,
    folder: &Path,
    environment: &[(&str, String)],
    limit: Duration,
) -> std::io::Result<Option<Output>> {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", line]).current_dir(folder);
    clean_environment(&mut command);
    command.envs(environment.iter().map(|(key, value)| (key, value)));
    run(command, ERROR_LIMIT, limit).await
}

/// Takes away what would lead git to another repository, or lead it to ask somebody.
fn clean_environment(command: &mut Command) {
    for (key, _) in std::env::vars_os() {
        let own = key.to_string_lossy();
        if own.starts_with("GIT_") && !KEPT.contains(&own.as_ref()) {
            command.env_remove(&key);
        }
    }
    // A daemon has no terminal to ask at, and a window out of nowhere helps nobody.
    command.env_remove("SSH_ASKPASS").env("GIT_ASKPASS", OsString::new());
}

/// Runs a command in a process group of its own. None: it took too long, and was killed with all that it started.
async fn run(mut command: Command, most: usize, limit: Duration) -> std::io::Result<Option<Output>> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.process_group(0).kill_on_drop(true);
    let mut child = command.spawn()?;
    let group = Group { leader: child.id().and_then(|id| Pid::from_raw(id as i32)) };
    let stdout = child.stdout.take().map(|pipe| tokio::spawn(head(pipe, most)));
    let stderr = child.stderr.take().map(|pipe| tokio::spawn(tail(pipe)));
    let ended = tokio::time::timeout(limit, wait(&mut child)).await;
    // Nothing that it left running in its group goes on behind our back.
    drop(group);
    let Ok(code) = ended else {
        child.wait().await?;
        return Ok(None);
    };
    let (stdout, truncated) = collected(stdout).await.unwrap_or_default();
    let stderr = collected(stderr).await.unwrap_or_default();
    Ok(Some(Output { code: code?, stdout, truncated, stderr: String::from_utf8_lossy(&stderr).into_owned() }))
}

async fn wait(child: &mut Child) -> std::io::Result<Option<i32>> {
    Ok(child.wait().await?.code())
}

/// Kills what is left of a process group when it goes out of scope.
struct Group {
    leader: Option<Pid>,
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(leader) = self.leader {
            // Mostly nobody is left in it.
            kill_process_group(leader, Signal::KILL).ok();
        }
    }
}

/// What a reader read, unless something that holds the pipe keeps it open.
async fn collected<T>(reader: Option<tokio::task::JoinHandle<T>>) -> Option<T> {
    tokio::time::timeout(PIPE_LIMIT, reader?).await.ok()?.ok()
}

/// The first `most` bytes, and whether there were more; the rest is read and dropped, so that nobody waits for a reader.
async fn head(mut pipe: impl AsyncRead + Unpin, most: usize) -> (Vec<u8>, bool) {
    let mut kept = Vec::new();
    let mut truncated = false;
    let mut buffer = vec![0; 64 << 10];
    while let Ok(read @ 1..) = pipe.read(&mut buffer).await {
        let room = most.saturating_sub(kept.len()).min(read);
        kept.extend_from_slice(&buffer[..room]);
        truncated |= room < read;
    }
    (kept, truncated)
}

/// The last bytes, as many as are kept of an error.
async fn tail(mut pipe: impl AsyncRead + Unpin) -> Vec<u8> {
    let mut kept = Vec::new();
    let mut buffer = vec![0; 8 << 10];
    while let Ok(read @ 1..) = pipe.read(&mut buffer).await {
        kept.extend_from_slice(&buffer[..read]);
        if kept.len() > 2 * ERROR_LIMIT {
            kept.drain(..kept.len() - ERROR_LIMIT);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(stdout: &str, stderr: &str, code: Option<i32>) -> String {
        Output { code, stdout: stdout.into(), truncated: false, stderr: stderr.into() }.reason()
    }

    #[test]
    fn the_reason_is_what_git_said_last() {
        assert_eq!(said("", "fatal: not a git repository\n", Some(128)), "not a git repository");
        assert_eq!(said("", "hint: x\nerror: a\nerror: b\n", Some(1)), "error: a; error: b");
        assert_eq!(said("CONFLICT in a\n", "", Some(1)), "CONFLICT in a");
        assert_eq!(said("", "", Some(3)), "it exited with code 3 without a word");
        assert_eq!(said("", "", None), "a signal ended it");
    }

    #[test]
    fn a_command_is_named_by_its_verb() {
        assert_eq!(name(&["worktree", "add", "-b", "x"]), "git worktree add");
        assert_eq!(name(&["--literal-pathspecs", "diff", "--raw"]), "git diff");
        assert_eq!(name::<&str>(&[]), "git ");
    }

    #[tokio::test]
    async fn a_command_that_does_not_end_is_ended_with_all_it_started() {
        let folder = tempfile::tempdir().unwrap();
        let line = "echo $$ >leader; sleep 600 & sleep 600";
        let ended = shell(line, folder.path(), &[], Duration::from_millis(300)).await.unwrap();
        assert!(ended.is_none());
        let leader = std::fs::read_to_string(folder.path().join("leader")).unwrap();
        let leader = Pid::from_raw(leader.trim().parse().unwrap()).unwrap();
        // Whoever inherits the dead takes a moment to bury them.
        let is_left = || rustix::process::test_kill_process_group(leader).is_ok();
        let deadline = std::time::Instant::now() + Duration::from_secs(20);
        while is_left() && std::time::Instant::now() < deadline {
            tokio::task::yield_now().await;
        }
        assert!(!is_left(), "the group is empty");
    }

    #[tokio::test]
    async fn what_a_command_leaves_running_holds_nobody_up() {
        let folder = tempfile::tempdir().unwrap();
        let output = shell("echo done; sleep 600 &", folder.path(), &[], Duration::from_secs(30)).await;
        let output = output.unwrap().unwrap();
        assert_eq!((output.code, output.stdout.as_slice()), (Some(0), b"done\n".as_slice()));
    }

    #[tokio::test]
    async fn only_the_beginning_of_a_long_answer_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let line = "head -c 1000000 /dev/zero; head -c 1000000 /dev/zero >&2; exit 3";
        let output = shell(line, folder.path(), &[], Duration::from_secs(30)).await.unwrap().unwrap();
        assert_eq!((output.code, output.stdout.len(), output.truncated), (Some(3), ERROR_LIMIT, true));
        assert!(output.stderr.len() <= 2 * ERROR_LIMIT);
    }
}
