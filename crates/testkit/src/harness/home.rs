//! A home for one test, with its daemon.

use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use consort_daemon::client::{Client as Calls, ClientError};
use consort_daemon::protocol::{Call, Done};
use consort_daemon::server::{READY, RUNNING};
use tempfile::TempDir;

use super::{Client, LIMIT, Programs, SmallDisk, processes};

/// How long processes may take to go after everything was stopped.
const LEFT_OVER_LIMIT: Duration = Duration::from_secs(15);

/// A temporary `CONSORT_HOME` with a folder for agents to work in. Ends with [`Self::finish`], or with its scope.
pub struct Home {
    // Holds the folders until the end.
    folder: TempDir,
    paths: consort_daemon::home::Home,
    programs: Programs,
    daemon: Mutex<Option<Child>>,
    finished: bool,
}

impl Home {
    /// A home with a running daemon and the profile `scripted`.
    pub fn started() -> Self {
        let home = Self::new();
        home.start_daemon();
        home
    }

    /// A home with the profile `scripted`, and no daemon yet.
    pub fn new() -> Self {
        Self::with_config("")
    }

    /// A home whose `config.toml` begins with `settings`, before the profile `scripted`.
    pub fn with_config(settings: &str) -> Self {
        // Not the usual place for temporary files: a socket's path may have some 100 bytes only.
        let folder = tempfile::Builder::new().prefix("c-").tempdir_in("/tmp").expect("/tmp can be used");
        Self::in_folder(folder, settings)
    }

    /// A home on a small disk.
    pub fn on(disk: &SmallDisk) -> Self {
        let folder = tempfile::Builder::new().prefix("c").rand_bytes(3).tempdir_in(disk.path());
        Self::in_folder(folder.expect("the disk can be used"), "")
    }

    fn in_folder(folder: TempDir, settings: &str) -> Self {
        let paths = consort_daemon::home::Home::at(&folder.path().join("h")).expect("a short path");
        let home =
            Self { folder, paths, programs: Programs::find(), daemon: Mutex::default(), finished: false };
        home.paths.make().expect("the home can be made");
        std::fs::create_dir(home.work()).expect("the folder to work in can be made");
        home.append_config(&format!("default_profile = \"scripted\"\n{settings}\n"));
        home.profile("scripted", &[]);
        home
    }

    /// The folder itself.
    pub fn root(&self) -> &Path {
        self.paths.root()
    }

    /// Where everything in it is.
    pub fn paths(&self) -> &consort_daemon::home::Home {
        &self.paths
    }

    /// The programs in use.
    pub fn programs(&self) -> &Programs {
        &self.programs
    }

    /// The folder that agents work in.
    pub fn work(&self) -> PathBuf {
        self.folder.path().join("w")
    }

    /// A place outside of everything, for what agents must not reach or what they keep.
    pub fn elsewhere(&self) -> PathBuf {
        let elsewhere = self.folder.path().join("e");
        std::fs::create_dir_all(&elsewhere).expect("a folder can be made");
        elsewhere
    }

    /// Adds a profile that runs the scripted agent with these arguments.
    pub fn profile(&self, name: &str, args: &[&str]) {
        self.profile_with(name, args, &[]);
    }

    /// Adds a profile with changes to its environment: `KEY=VALUE`, `KEY=` or `-KEY`.
    pub fn profile_with(&self, name: &str, args: &[&str], environment: &[&str]) {
        let program = self.programs.testkit.display();
        let args: Vec<&str> = std::iter::once("agent").chain(args.iter().copied()).collect();
        // Debug strings of these are TOML's basic strings.
        self.append_config(&format!(
            "\n[profiles.{name}]\nname = \"{name}\"\ndriver = \"acp\"\ncommand = \"{program}\"\nargs = {args:?}\n\
             environment = {environment:?}\n"
        ));
    }

    fn append_config(&self, text: &str) {
        let mut options = OpenOptions::new();
        let mut file = options
            .append(true)
            .create(true)
            .mode(0o600)
            .open(self.paths.config())
            .expect("config.toml opens");
        file.write_all(text.as_bytes()).expect("config.toml can be written");
    }

    /// A command with this home in its environment.
    pub fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.env("CONSORT_HOME", self.root()).env("NO_COLOR", "1").current_dir(self.work());
        command.stdin(Stdio::null());
        command
    }

    /// Starts the daemon and waits until it listens; its process.
    pub fn start_daemon(&self) -> i32 {
        self.start_daemon_with(|_| {})
    }

    /// Starts the daemon with a changed command.
    pub fn start_daemon_with(&self, change: impl FnOnce(&mut Command)) -> i32 {
        let mut command = self.command(&self.programs.consort);
        command.args(["daemon", "run", "--detached"]).stdout(Stdio::piped());
        change(&mut command);
        let mut child = command.spawn().expect("the daemon can be started");
        let mut said = String::new();
        BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut said).expect("a line of text");
        let pid = child.id() as i32;
        if said.trim() != READY {
            let status = child.wait();
            assert_ne!(said.trim(), RUNNING, "another daemon runs already");
            panic!("the daemon did not start: {said:?}, {status:?}");
        }
        if let Some(mut before) = self.daemon().replace(child) {
            before.wait().expect("an earlier daemon can be waited for");
        }
        pid
    }

    /// Kills the daemon as nothing else does, and waits until it is gone. Its runners and agents live on.
    pub fn kill_daemon(&self) {
        if let Some(mut daemon) = self.daemon().take() {
            daemon.kill().expect("a child can be killed");
            daemon.wait().expect("a child can be waited for");
        }
        // One that a command started is not ours to wait for.
        if let Ok(calls) = Calls::connect(&self.paths) {
            let pid = calls.welcome().pid as i32;
            processes::kill(pid);
            assert!(processes::wait_until_gone(pid, LIMIT), "the daemon survived SIGKILL");
        }
    }

    /// Waits until the daemon that this home started has ended by itself; whether it ended well.
    pub fn wait_for_daemon_end(&self) -> bool {
        let Some(mut daemon) = self.daemon().take() else { return true };
        let pid = daemon.id() as i32;
        if !processes::wait_until_gone(pid, LIMIT) {
            daemon.kill().expect("a child can be killed");
            daemon.wait().expect("a child can be waited for");
            panic!("the daemon {pid} did not end");
        }
        daemon.wait().expect("a child can be waited for").success()
    }

    /// Kills the daemon and starts another.
    pub fn restart(&self) -> i32 {
        self.kill_daemon();
        self.start_daemon()
    }

    /// A client with a replica.
    pub fn client(&self) -> Client {
        Client::connect(&self.paths, &self.work())
    }

    /// A client with a replica, unless the daemon is not there or goes away meanwhile.
    pub fn try_client(&self) -> Result<Client, ClientError> {
        Client::try_connect(&self.paths, &self.work())
    }

    /// Runs `consort` to its end.
    pub fn consort(&self, args: &[&str]) -> Output {
        self.consort_command(args).output().expect("consort can be run")
    }

    /// `consort` with these arguments, to be changed or started by the caller.
    pub fn consort_command(&self, args: &[&str]) -> Command {
        let mut command = self.command(&self.programs.consort);
        command.args(args);
        command
    }

    /// The living processes of this home.
    pub fn processes(&self) -> Vec<processes::Process> {
        processes::of_home(self.root())
    }

    /// The folders of runners that are there.
    pub fn runner_folders(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.paths.runners()).expect("the runners' folder can be read");
        entries.flatten().map(|entry| entry.path()).collect()
    }

    /// Kills everything and checks nothing, for a test that has failed already.
    pub fn abandon(mut self) {
        self.finished = true;
        self.kill_everything();
    }

    /// Stops everything and fails if anything is left.
    pub fn finish(mut self) {
        self.end();
    }

    fn end(&mut self) {
        self.finished = true;
        match Calls::connect(&self.paths) {
            Ok(mut calls) => {
                let pid = calls.welcome().pid as i32;
                let stop = Call::Stop { force: true, keep_agents: false };
                calls.call::<Done>(&stop).expect("the daemon can be stopped");
                assert!(processes::wait_until_gone(pid, LIMIT), "the daemon did not end after its stop");
                self.wait_for_daemon_end();
            }
            Err(ClientError::NoDaemon { .. }) => {
                self.daemon().take().map(|mut daemon| daemon.wait());
            }
            Err(error) => panic!("the daemon cannot be stopped: {error}"),
        }
        let left = processes::wait_until_none(self.root(), LEFT_OVER_LIMIT);
        let folders = self.runner_folders();
        self.kill_everything();
        assert!(left.is_empty(), "processes are left over: {left:#?}");
        assert!(folders.is_empty(), "folders of runners are left over: {folders:?}");
    }

    /// The last resort. What is killed may just have started another, so it is looked for until none is there.
    fn kill_everything(&self) {
        if let Some(mut daemon) = self.daemon().take() {
            daemon.kill().ok();
            daemon.wait().ok();
        }
        for _ in 0..100 {
            let left = self.processes();
            if left.is_empty() {
                return;
            }
            for process in &left {
                processes::kill(process.pid);
            }
            for process in left {
                processes::wait_until_gone(process.pid, Duration::from_secs(1));
            }
        }
    }

    fn daemon(&self) -> MutexGuard<'_, Option<Child>> {
        self.daemon.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Home {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.kill_everything();
            let log = std::fs::read_dir(self.paths.logs()).into_iter().flatten().flatten();
            for file in log {
                let text = std::fs::read_to_string(file.path()).unwrap_or_default();
                let tail = text.lines().rev().take(40).collect::<Vec<_>>();
                let tail = tail.into_iter().rev().collect::<Vec<_>>().join("\n");
                eprintln!("the end of the daemon's log:\n{tail}");
            }
        } else if !self.finished {
            self.end();
        }
    }
}
