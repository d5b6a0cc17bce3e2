//! The child and its process tree: starting it, reaping, finding every descendant, signalling.
//!
//! The runner is a child subreaper, so a descendant whose parent has died becomes the runner's own child, also one that
//! moved to a session of its own. Two facts follow, and everything here rests on them: the tree is gone exactly when
//! the runner has no child left, and the parent chain in `/proc` finds every descendant.

use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use rustix::process::{
    Pid, Signal, WaitOptions, getpid, getppid, kill_process, kill_process_group, set_child_subreaper,
    set_parent_process_death_signal, setsid, wait,
};

use crate::protocol::Exit;
use crate::spec::{SPEC_VERSION, Spec, Stdin};

/// A child that was started, with the runner's ends of its pipes.
pub struct Started {
    pub pid: Pid,
    pub stdin: Option<OwnedFd>,
    pub stdout: OwnedFd,
    /// Absent if stderr is merged into stdout.
    pub stderr: Option<OwnedFd>,
}

/// Why a child could not be started; names the program and the reason, never arguments or environment.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(
        "the runner does not know version {0} of the start order; restart the daemon with the same program"
    )]
    Version(u32),
    #[error("{program} could not be started: its working directory {cwd} is not a directory")]
    WorkingDirectory { program: String, cwd: String },
    #[error("{program} could not be started: there is no such program")]
    NotFound { program: String },
    #[error("{program} could not be started: the interpreter it names, or its loader, does not exist")]
    InterpreterNotFound { program: String },
    #[error("{program} could not be started: {reason}")]
    Other { program: String, reason: io::Error },
}

/// Makes this process the leader of its own session and the adoptive parent of orphaned descendants.
pub fn become_runner() -> io::Result<()> {
    match setsid() {
        // A leader of a process group cannot start a session: then it is the spawner's doing, and as good.
        Ok(_) | Err(rustix::io::Errno::PERM) => {}
        Err(error) => return Err(error.into()),
    }
    set_child_subreaper(Some(getpid()))?;
    Ok(())
}

/// Starts the child in its own session and process group, with exactly the spec's environment.
pub fn start(spec: &Spec) -> Result<Started, StartError> {
    if spec.version != SPEC_VERSION {
        return Err(StartError::Version(spec.version));
    }
    if !spec.cwd.is_dir() {
        let cwd = spec.cwd.display().to_string();
        return Err(StartError::WorkingDirectory { program: spec.program.clone(), cwd });
    }
    spawn(spec).map_err(|reason| match reason.kind() {
        io::ErrorKind::NotFound if spec.program.contains('/') && spec.cwd.join(&spec.program).exists() => {
            StartError::InterpreterNotFound { program: spec.program.clone() }
        }
        io::ErrorKind::NotFound => StartError::NotFound { program: spec.program.clone() },
        _ => StartError::Other { program: spec.program.clone(), reason },
    })
}

fn spawn(spec: &Spec) -> io::Result<Started> {
    let (stdout, child_stdout) = io::pipe()?;
    let mut command = Command::new(&spec.program);
    command
        .args(&spec.args)
        .env_clear()
        .envs(spec.env.iter().map(|(key, value)| (key, value)))
        .current_dir(&spec.cwd);
    command.stdin(match spec.stdin {
        Stdin::Pipe => Stdio::piped(),
        Stdin::Null => Stdio::null(),
    });
    if spec.merge_stderr {
        command.stderr(child_stdout.try_clone()?);
    } else {
        command.stderr(Stdio::piped());
    }
    command.stdout(child_stdout);
    let runner = getpid();
    // SAFETY: between fork and exec only async-signal-safe system calls are made, and nothing is allocated.
    unsafe {
        command.pre_exec(move || {
            setsid()?;
            set_parent_process_death_signal(Some(Signal::KILL))?;
            // A runner that died before the line above would never send that signal.
            if getppid() != Some(runner) {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            Ok(())
        });
    }
    let mut child = command.spawn()?;
    Ok(Started {
        pid: Pid::from_child(&child),
        stdin: child.stdin.take().map(OwnedFd::from),
        stdout: stdout.into(),
        stderr: child.stderr.take().map(OwnedFd::from),
    })
}

/// What reaping found.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Reaped {
    /// How the main child ended, if it was among the reaped.
    pub exit: Option<Exit>,
    /// Whether no descendant is left at all.
    pub tree_gone: bool,
}

/// Reaps every dead child, adopted ones too.
pub fn reap(main: Pid) -> Reaped {
    let mut reaped = Reaped::default();
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) if pid == main => {
                reaped.exit = Some(match (status.exit_status(), status.terminating_signal()) {
                    (Some(code), _) => Exit::Code(code),
                    (None, Some(signal)) => Exit::Signal(signal),
                    (None, None) => Exit::Unknown,
                });
            }
            Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
            Ok(None) => return reaped,
            // No child is left, so no descendant is.
            Err(_) => return Reaped { tree_gone: true, ..reaped },
        }
    }
}

/// Sends a signal to the child's process group; false if nobody of the tree is in that group any more.
pub fn signal_group(main: Pid, signal: Signal) -> bool {
    // Asking the tree first keeps a signal from a stranger that was given the number of a group long gone.
    let has_member = descendants().iter().any(|process| process.group == main.as_raw_pid());
    has_member && kill_process_group(main, signal).is_ok()
}

/// Whether anybody of the tree is still in the child's process group.
pub fn group_is_empty(main: Pid) -> bool {
    !descendants().iter().any(|process| process.group == main.as_raw_pid())
}

/// Sends SIGKILL to every descendant that is there now; what they start meanwhile is found by the next call.
pub fn kill_tree() {
    for process in descendants() {
        if let Some(pid) = Pid::from_raw(process.pid)
            && let Err(error) = kill_process(pid, Signal::KILL)
        {
            // Gone already, or not ours to signal (it changed its user): the stop's limit ends the wait for it.
            tracing::debug!(%error, pid = process.pid, "a descendant could not be signalled");
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Process {
    pid: i32,
    parent: i32,
    group: i32,
}

/// All processes whose chain of parents leads to this one.
fn descendants() -> Vec<Process> {
    below(getpid().as_raw_pid(), all_processes())
}

/// Those of `processes` that are below `root`, nearest first.
fn below(root: i32, mut processes: Vec<Process>) -> Vec<Process> {
    let mut found: Vec<Process> = Vec::new();
    let mut parents = vec![root];
    while !parents.is_empty() {
        let (children, rest): (Vec<_>, Vec<_>) = processes
            .into_iter()
            .partition(|process| process.pid != root && parents.contains(&process.parent));
        parents = children.iter().map(|process| process.pid).collect();
        found.extend(children);
        processes = rest;
    }
    found
}

fn all_processes() -> Vec<Process> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok())
        // A process may vanish while the list is read.
        .filter_map(|pid| parse_stat(pid, &read_proc(pid, "stat").ok()?))
        .collect()
}

/// The parent of any process; none if it is gone or hidden.
pub fn parent_of(pid: i32) -> Option<i32> {
    parse_stat(pid, &read_proc(pid, "stat").ok()?).map(|process| process.parent)
}

/// What the kernel tells of a process in one of its files, in one read where it is not long. The usual ways of reading a
/// file ask for its size, which is told as nothing here, and so begin with a few bytes.
pub fn read_proc(pid: i32, file: &str) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(8 << 10);
    std::fs::File::open(format!("/proc/{pid}/{file}"))?.take(u64::MAX).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads `pid (name) state parent group …`; the name may hold anything, so the fields are counted from its end.
fn parse_stat(pid: i32, stat: &[u8]) -> Option<Process> {
    let end_of_name = stat.iter().rposition(|byte| *byte == b')')?;
    let mut fields = std::str::from_utf8(&stat[end_of_name + 1..]).ok()?.split_ascii_whitespace().skip(1);
    let parent = fields.next()?.parse().ok()?;
    let group = fields.next()?.parse().ok()?;
    Some(Process { pid, parent, group })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_process_name_with_brackets_and_spaces_is_read_past() {
        let process = parse_stat(7, b"7 (a) R 1 (b) S 3 5 9 0").unwrap();
        assert_eq!(process, Process { pid: 7, parent: 3, group: 5 });
        assert_eq!(parse_stat(7, b"7 (torn"), None);
        assert_eq!(parse_stat(7, b""), None);
    }

    #[test]
    fn descendants_are_found_through_any_number_of_generations() {
        let process = |pid, parent| Process { pid, parent, group: pid };
        let all =
            vec![process(9, 8), process(2, 1), process(8, 5), process(5, 1), process(7, 4), process(1, 0)];
        let found: Vec<i32> = below(1, all).iter().map(|process| process.pid).collect();
        assert_eq!(found, [2, 5, 8, 9]);
    }

    #[test]
    fn a_missing_program_and_a_missing_directory_are_told_apart() {
        let message = |spec: &Spec| start(spec).err().unwrap().to_string();
        let program = "/no/such/program";
        assert!(message(&Spec::new(program, "/")).contains("no such program"));
        assert!(message(&Spec::new(program, "/no/such/dir")).contains("/no/such/dir is not a directory"));
        let dir = tempfile::tempdir().unwrap();
        let script = dir.path().join("script");
        std::fs::write(&script, "#!/no/such/interpreter\n").unwrap();
        std::fs::set_permissions(&script, PermissionsExt::from_mode(0o700)).unwrap();
        assert!(message(&Spec::new(script.to_str().unwrap(), "/")).contains("interpreter"));
        let denied = message(&Spec::new("/etc/passwd", "/"));
        assert!(denied.contains("/etc/passwd could not be started: Permission denied"), "{denied}");
    }
}
