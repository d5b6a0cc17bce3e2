//! The daemon's own life: one per home, its files, its stops.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;

use consort_daemon::protocol::{Call, DaemonStatus, Done, codes};
use consort_model::{Lifecycle, Status, TurnOutcome};
use consort_testkit::harness::processes::{self, Role};
use consort_testkit::harness::{Home, LIMIT};
use rustix::process::Signal;

#[test]
fn eight_daemons_that_start_at_once_end_with_one() {
    let home = Home::new();
    let mut starters: Vec<_> = (0..8)
        .map(|_| {
            let mut command = home.consort_command(&["daemon", "start"]);
            command.stdout(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    let mut said = Vec::new();
    for starter in starters.drain(..) {
        let output = starter.wait_with_output().unwrap();
        assert!(output.status.success());
        said.push(String::from_utf8(output.stdout).unwrap().trim().to_owned());
    }
    let daemon = home.client().daemon_pid();
    assert_eq!(said, vec![daemon.to_string(); 8]);
    for process in home.processes().into_iter().filter(|process| process.pid != daemon) {
        assert!(processes::wait_until_gone(process.pid, LIMIT), "{process:?} runs beside the daemon");
    }
}

#[test]
fn a_second_daemon_in_the_foreground_is_refused() {
    let home = Home::started();
    let output = home.consort(&["daemon", "run"]);
    assert!(!output.status.success());
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("already runs"), "{said}");
}

#[test]
fn stale_sockets_and_locks_are_in_nobodys_way() {
    let home = Home::new();
    // A socket that nobody listens at, and the pid of a process that is not a daemon.
    drop(std::os::unix::net::UnixListener::bind(home.paths().socket()).unwrap());
    std::fs::write(home.paths().lock(), format!("{}\n", std::process::id())).unwrap();
    home.start_daemon();
    let first = home.client().daemon_pid();
    home.kill_daemon();
    assert!(home.paths().socket().exists(), "a killed daemon leaves its socket");
    home.start_daemon();
    let second = home.client().daemon_pid();
    assert_ne!(first, second);
    assert_eq!(std::fs::read_to_string(home.paths().lock()).unwrap().trim(), second.to_string());
    // A file where the socket should be.
    home.kill_daemon();
    std::fs::remove_file(home.paths().socket()).unwrap();
    std::fs::write(home.paths().socket(), "not a socket").unwrap();
    home.start_daemon();
    home.client();
}

#[test]
fn everything_in_a_home_is_closed_to_others() {
    let home = Home::new();
    std::fs::set_permissions(home.root(), std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::remove_file(home.paths().config()).unwrap();
    home.start_daemon();
    home.profile("scripted", &[]);
    let client = home.client();
    let (agent, prompt) = client.new_agent_with("scripted", "x");
    client.wait_turn(agent, prompt);
    client.call::<serde_json::Value>(&Call::ListProfiles {});
    let mut looked_at = 0;
    let mut folders = vec![home.root().to_owned()];
    let mode = |path: &Path| std::fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(home.root()), 0o700);
    assert_eq!(mode(&home.paths().socket()), 0o600);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            if entry.file_type().unwrap().is_dir() {
                assert_eq!(mode(&path), 0o700, "{}", path.display());
                folders.push(path);
            } else {
                looked_at += 1;
                // Logs hold nothing secret and stand in a closed folder.
                let is_log = path.starts_with(home.paths().logs());
                assert!(is_log || mode(&path) == 0o600, "{} is {:o}", path.display(), mode(&path));
            }
        }
    }
    assert!(looked_at >= 5, "only {looked_at} files were found");
}

#[test]
fn a_stop_is_refused_while_agents_work_unless_it_is_meant() {
    let home = Home::started();
    let client = home.client();
    let (working, prompt) = client.new_agent_with("scripted", "[[stream n=100000 rate=50]]");
    let (asking, _) = client.new_agent_with("scripted", "[[ask execute ls]]");
    client.wait_status(working, Status::Working);
    client.wait_status(asking, Status::NeedsInput);
    let error = client.refused(&Call::Stop { force: false, keep_agents: false });
    assert_eq!((error.code, &error.data["working"]), (codes::WOULD_STOP_WORK, &2.into()));
    assert_eq!(client.view(working).status, Status::Working);
    client.call::<Done>(&Call::Stop { force: true, keep_agents: false });
    assert!(home.wait_for_daemon_end());
    assert!(home.processes().is_empty(), "{:?}", home.processes());
    home.start_daemon();
    let client = home.client();
    let after = client.wait_agent(working, "it rests", |agent| agent.lifecycle == Lifecycle::Resting);
    assert_eq!(after.last_outcome, Some(TurnOutcome::Interrupted));
    assert!(after.taken.contains(&prompt));
    assert!(client.inbox().is_empty(), "the ask went with its process");
}

#[test]
fn a_stop_that_keeps_agents_leaves_them_to_the_next_daemon() {
    for signal in [None, Some(Signal::TERM), Some(Signal::INT)] {
        let home = Home::started();
        let client = home.client();
        let (agent, prompt) =
            client.new_agent_with("scripted", "[[stream n=150 rate=150]] [[ask execute ls]]");
        client.wait_text(agent, "word5 ");
        match signal {
            None => drop(client.call::<Done>(&Call::Stop { force: false, keep_agents: true })),
            Some(signal) => processes::signal(client.daemon_pid(), signal),
        }
        drop(client);
        assert!(home.wait_for_daemon_end(), "{signal:?}");
        assert!(!home.paths().socket().exists(), "its socket goes with a daemon that ends in order");
        let roles: Vec<Role> = home.processes().iter().map(processes::Process::role).collect();
        assert_eq!(roles.iter().filter(|role| **role == Role::Runner).count(), 1, "{signal:?}");
        home.start_daemon();
        let client = home.client();
        client.allow(&client.wait_ask(agent));
        client.wait_turn(agent, prompt);
        let words: String = (0..150).map(|n| format!("word{n} ")).collect();
        assert_eq!(client.said(agent), format!("{words}\nallowed: allow-once"), "{signal:?}");
    }
}

#[test]
fn the_hang_up_of_a_terminal_does_not_end_the_daemon() {
    let home = Home::started();
    let client = home.client();
    processes::signal(client.daemon_pid(), Signal::HUP);
    let agent = client.new_agent("scripted");
    assert_eq!(client.run(agent, "[[say here]]").last_outcome, Some(TurnOutcome::Completed));
}

#[test]
fn the_status_counts_agents_and_clients() {
    let home = Home::started();
    let client = home.client();
    let (working, _) = client.new_agent_with("scripted", "[[hang]]");
    let (asking, _) = client.new_agent_with("scripted", "[[ask execute ls]]");
    client.new_agent("scripted");
    let closed = client.new_agent("scripted");
    client.close(closed);
    client.wait_status(working, Status::Working);
    client.wait_status(asking, Status::NeedsInput);
    let status: DaemonStatus = client.call(&Call::Status {});
    assert_eq!((status.agents, status.working, status.needs_input), (3, 1, 1));
    assert_eq!((status.pid as i32, status.clients), (client.daemon_pid(), 2));
    assert_eq!(status.home, home.root());
}

#[test]
fn folders_of_runners_that_no_agent_knows_are_cleared_away() {
    let home = Home::new();
    std::fs::create_dir(home.paths().runners().join("0123456789ab-1")).unwrap();
    home.start_daemon();
    let client = home.client();
    let agent = client.new_agent("scripted");
    client.wait_status(agent, Status::Idle);
    drop(client);
    home.finish();
}
