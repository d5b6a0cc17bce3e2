//! Who stands behind a connection: a person, or a process that belongs to an agent.
//!
//! Owns the judgement and what it rests on: the parents of a process in `/proc`, and the marks that agents' processes
//! carry in their environment. Leaves to the daemon which calls are a person's alone.
//!
//! A runner adopts whatever its agent's processes leave behind, so the chain of parents of such a process leads to the
//! runner, in a session of its own and after any number of forks too. The marks find what was left when a runner
//! itself was killed. Invariant: what cannot be told is no person. What this cannot see stands in the guide.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use consort_model::AgentId;
use consort_runner::process::{parent_of, read_proc};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::hub::Hub;
use crate::shared::{AGENT_MARK, PROCESS_MARK};

/// Longer chains of parents are not followed.
const MAX_DEPTH: usize = 256;

/// How often a step is taken again because a parent ended meanwhile.
const MAX_RETRIES: usize = 64;

/// Who a process speaks for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Speaker {
    /// A person, as far as can be told.
    Person,
    /// An agent of this hub; none: one that is not named by its marks.
    Agent(Option<AgentId>),
    /// A command that the daemon itself runs, such as the setup of a worktree.
    Daemon,
    /// It cannot be told.
    Unknown {
        /// Why.
        reason: String,
    },
}

/// The process at the other end of a connection, held so that its number cannot come to mean another one unseen.
#[derive(Debug)]
pub struct Peer {
    pid: i32,
    handle: Option<OwnedFd>,
}

impl Peer {
    /// Takes hold of a process; best right when it connects.
    pub fn hold(pid: Option<i32>) -> Self {
        let known = pid.and_then(Pid::from_raw);
        // One that is gone already is told apart when somebody asks who it is.
        let handle = known.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        Self { pid: pid.unwrap_or(0), handle }
    }

    fn is_alive(&self) -> bool {
        let Some(handle) = &self.handle else { return false };
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        // The handle of a process is readable once it has ended.
        matches!(poll(&mut [PollFd::new(handle, PollFlags::IN)], Some(&now)), Ok(0))
    }
}

impl Hub {
    /// Who a connected process speaks for.
    pub fn speaker(&self, peer: &Peer) -> Speaker {
        let ours = |id: AgentId| self.with(|state| state.agents.contains_key(&id));
        let own = Some(std::process::id() as i32);
        let speaker = judge(&Proc, peer.pid, own, self.runners(), &ours);
        // Whoever lives after it was looked at was the one that was looked at.
        if speaker == Speaker::Person && !peer.is_alive() {
            return unknown("the process that connected has ended");
        }
        speaker
    }
}

/// Whether this very process belongs to an agent whose runners are in `runners`.
pub fn is_below_a_runner(runners: &Path) -> bool {
    let judged = judge(&Proc, std::process::id() as i32, None, runners, &|_| false);
    matches!(judged, Speaker::Agent(_))
}

/// What is looked at of a process.
trait Processes {
    /// Its parent; none if it is gone or hidden.
    fn parent(&self, pid: i32) -> Option<i32>;
    /// Its arguments, each followed by a zero byte.
    fn command_line(&self, pid: i32) -> Option<Vec<u8>>;
    /// The environment it was started with, likewise.
    fn environment(&self, pid: i32) -> io::Result<Vec<u8>>;
}

struct Proc;

impl Processes for Proc {
    fn parent(&self, pid: i32) -> Option<i32> {
        parent_of(pid)
    }

    fn command_line(&self, pid: i32) -> Option<Vec<u8>> {
        read_proc(pid, "cmdline").ok()
    }

    fn environment(&self, pid: i32) -> io::Result<Vec<u8>> {
        read_proc(pid, "environ")
    }
}

fn unknown(reason: &str) -> Speaker {
    Speaker::Unknown { reason: reason.to_owned() }
}

/// Looks at a process and everything above it.
fn judge(
    processes: &impl Processes,
    peer: i32,
    own: Option<i32>,
    runners: &Path,
    ours: &dyn Fn(AgentId) -> bool,
) -> Speaker {
    if peer <= 0 {
        return unknown("its process is not visible from the daemon");
    }
    match processes.environment(peer) {
        Ok(environment) => {
            if let Some(agent) = marked(&environment).find(|agent| ours(*agent)) {
                return Speaker::Agent(Some(agent));
            }
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return unknown("the process that connected has ended");
        }
        Err(_) => return unknown("the environment of its process cannot be read"),
    }
    let mut at = peer;
    let mut retries = 0;
    for _ in 0..MAX_DEPTH {
        if own == Some(at) {
            return Speaker::Daemon;
        }
        if processes.command_line(at).is_some_and(|line| is_runner(&line, runners)) {
            return Speaker::Agent(None);
        }
        let parent = loop {
            let Some(parent) = processes.parent(at) else {
                // Above the peer itself this is a process that is hidden from this user, so none of ours.
                return if at == peer { unknown("its process is gone") } else { Speaker::Person };
            };
            if parent <= 0 {
                return Speaker::Person;
            }
            if let Ok(environment) = processes.environment(parent)
                && let Some(agent) = marked(&environment).find(|agent| ours(*agent))
            {
                return Speaker::Agent(Some(agent));
            }
            // A process gets another parent when its own ends: as long as it has this one, the number means this one.
            if processes.parent(at) == Some(parent) {
                break parent;
            }
            retries += 1;
            if retries > MAX_RETRIES {
                return unknown("the parents of its process do not hold still");
            }
        };
        at = parent;
    }
    unknown("its process has too many parents")
}

/// The agents that an environment's marks name.
fn marked(environment: &[u8]) -> impl Iterator<Item = AgentId> {
    environment.split(|byte| *byte == 0).filter_map(|variable| {
        let (key, value) = std::str::from_utf8(variable).ok()?.split_once('=')?;
        match key {
            AGENT_MARK => value.parse().ok(),
            PROCESS_MARK => value.rsplit_once('.')?.0.parse().ok(),
            _ => None,
        }
    })
}

/// Whether a command line is that of a runner whose folder is in `runners`.
fn is_runner(command_line: &[u8], runners: &Path) -> bool {
    let words: Vec<&[u8]> = command_line.split(|byte| *byte == 0).collect();
    let dir = words.windows(3).find(|words| words[0] == b"runner" && words[1] == b"--dir");
    let Some(Ok(dir)) = dir.map(|words| std::str::from_utf8(words[2])) else { return false };
    let Some(folder) = Path::new(dir).parent() else { return false };
    // Another daemon of this home may have called it by another name.
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| PathBuf::from(path));
    folder == runners || real(folder) == real(runners)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::collections::HashMap;
    use uuid::Uuid;

    #[derive(Default)]
    struct Table {
        processes: HashMap<i32, (i32, &'static str, String)>,
        hidden: Vec<i32>,
        /// The process whose parent is another one with every look.
        restless: Option<i32>,
        looks: Cell<i32>,
    }

    impl Table {
        fn with(mut self, pid: i32, parent: i32, command: &'static str, environment: &str) -> Self {
            self.processes.insert(pid, (parent, command, environment.to_owned()));
            self
        }
    }

    impl Processes for Table {
        fn parent(&self, pid: i32) -> Option<i32> {
            if self.restless == Some(pid) {
                self.looks.set(self.looks.get() + 1);
                return Some(1000 + self.looks.get());
            }
            self.processes.get(&pid).filter(|_| !self.hidden.contains(&pid)).map(|process| process.0)
        }

        fn command_line(&self, pid: i32) -> Option<Vec<u8>> {
            self.processes.get(&pid).map(|process| process.1.replace(' ', "\0").into_bytes())
        }

        fn environment(&self, pid: i32) -> io::Result<Vec<u8>> {
            match self.processes.get(&pid) {
                Some(_) if self.hidden.contains(&pid) => Err(io::ErrorKind::PermissionDenied.into()),
                Some(process) => Ok(process.2.replace(' ', "\0").into_bytes()),
                None => Err(io::ErrorKind::NotFound.into()),
            }
        }
    }

    const RUNNER: &str = "/bin/consort runner --dir /home/a/.consort/run/0123-1 ";
    const OTHER_RUNNER: &str = "/bin/consort runner --dir /tmp/other/run/0123-1 ";

    fn agent() -> AgentId {
        AgentId::new(Uuid::from_u128(7))
    }

    fn marks() -> String {
        format!("PATH=/bin {AGENT_MARK}={0} {PROCESS_MARK}={0}.3", agent())
    }

    fn judged(table: Table, peer: i32) -> Speaker {
        judge(&table, peer, Some(50), Path::new("/home/a/.consort/run"), &|id| id == agent())
    }

    fn base() -> Table {
        Table::default().with(1, 0, "init", "").with(50, 1, "consort daemon run", "").with(
            10,
            1,
            "bash",
            "PATH=/bin",
        )
    }

    #[test]
    fn a_process_of_a_persons_shell_speaks_for_the_person() {
        assert_eq!(judged(base().with(20, 10, "consort approve", "PATH=/bin"), 20), Speaker::Person);
    }

    #[test]
    fn whatever_is_below_a_runner_speaks_for_its_agent_also_with_a_clean_environment() {
        for parent in [60, 61, 62] {
            let table = base()
                .with(60, 50, RUNNER, "")
                .with(61, 60, "claude", "")
                .with(62, 61, "sh -c x", "")
                .with(70, parent, "consort approve", "");
            assert_eq!(judged(table, 70), Speaker::Agent(None), "{parent}");
        }
        let outlived = base().with(60, 1, RUNNER, "").with(70, 60, "consort approve", "");
        assert_eq!(judged(outlived, 70), Speaker::Agent(None), "a runner whose daemon is another by now");
    }

    #[test]
    fn a_mark_is_enough_and_so_is_the_mark_of_a_parent() {
        let known = Speaker::Agent(Some(agent()));
        assert_eq!(judged(base().with(70, 1, "consort approve", &marks()), 70), known);
        for mark in [format!("{AGENT_MARK}={}", agent()), format!("{PROCESS_MARK}={}.1", agent())] {
            assert_eq!(judged(base().with(70, 1, "consort approve", &mark), 70), known, "{mark}");
        }
        let below = base().with(69, 1, "sh", &marks()).with(70, 69, "consort approve", "");
        assert_eq!(judged(below, 70), known);
    }

    #[test]
    fn the_agents_of_another_home_are_people_here() {
        let stranger = AgentId::new(Uuid::from_u128(8));
        let table = base().with(60, 1, OTHER_RUNNER, "").with(
            70,
            60,
            "consort approve",
            &format!("{AGENT_MARK}={stranger} {PROCESS_MARK}={stranger}.1"),
        );
        assert_eq!(judged(table, 70), Speaker::Person);
    }

    #[test]
    fn what_the_daemon_runs_is_no_person() {
        assert_eq!(judged(base().with(70, 50, "sh -c setup", ""), 70), Speaker::Daemon);
    }

    #[test]
    fn what_cannot_be_told_is_no_person() {
        let is_unknown = |speaker: Speaker| matches!(speaker, Speaker::Unknown { .. });
        assert!(is_unknown(judged(base(), 0)), "no number");
        assert!(is_unknown(judged(base(), 99)), "gone");
        let hides = Table { hidden: vec![70], ..base().with(70, 10, "consort", "") };
        assert!(is_unknown(judged(hides, 70)), "hides its environment");
        let restless = Table { restless: Some(70), ..base().with(70, 10, "consort", "") };
        assert!(is_unknown(judged(restless, 70)), "its parents change all the time");
        let round = base().with(70, 71, "a", "").with(71, 70, "b", "");
        assert!(is_unknown(judged(round, 70)), "its parents go round");
    }

    #[test]
    fn a_parent_of_another_user_hides_no_agent() {
        let table = Table { hidden: vec![10], ..base().with(20, 10, "consort", "") };
        assert_eq!(judged(table, 20), Speaker::Person);
    }

    #[test]
    fn a_command_line_is_a_runners_only_with_its_folder_in_the_home() {
        let runners = Path::new("/h/run");
        assert!(is_runner(b"/x/consort\0runner\0--dir\0/h/run/a-1\0", runners));
        for other in
            ["consort\0runner\0--dir\0/other/run/a-1\0", "consort\0runner\0", "runner\0--dir", "", "\0\0"]
        {
            assert!(!is_runner(other.as_bytes(), runners), "{other:?}");
        }
    }
}
