//! What agents ask of their host: files inside their folder, and commands.

use std::os::unix::fs::symlink;

use consort_model::{Status, TurnOutcome};
use consort_testkit::harness::processes::{self, Role};
use consort_testkit::harness::{Home, LIMIT, poll};

#[test]
fn an_agent_reads_and_writes_files_in_its_folder() {
    let home = Home::started();
    let client = home.client();
    std::fs::write(home.work().join("notes.txt"), "one\ntwo\nthree\n").unwrap();
    let agent = client.new_agent("scripted");
    for (steps, said) in [
        ("[[fs-read notes.txt]]", "fs_read: one\ntwo\nthree\n"),
        ("[[fs-read line=2 limit=1 notes.txt]]", "fs_read: two\n"),
        ("[[fs-write new/deep.txt hello]]", "fs_write: written"),
        ("[[fs-read new/deep.txt]]", "fs_read: hello"),
    ] {
        client.run(agent, steps);
        assert!(client.said(agent).ends_with(said), "{steps}: {}", client.said(agent));
    }
    assert_eq!(std::fs::read_to_string(home.work().join("new/deep.txt")).unwrap(), "hello");
}

#[test]
fn an_agent_reaches_no_file_outside_of_its_folder() {
    let home = Home::started();
    let client = home.client();
    let outside = home.elsewhere();
    std::fs::write(outside.join("secret.txt"), "hidden").unwrap();
    symlink(&outside, home.work().join("link")).unwrap();
    symlink(outside.join("secret.txt"), home.work().join("file-link")).unwrap();
    symlink(outside.join("new.txt"), home.work().join("dangling")).unwrap();
    let agent = client.new_agent("scripted");
    let absolute = outside.join("secret.txt").display().to_string();
    for path in [
        absolute.as_str(),
        "../e/secret.txt",
        "link/secret.txt",
        "file-link",
        "dangling",
        "/etc/hostname",
        ".",
    ] {
        for steps in [format!("[[fs-read {path}]]"), format!("[[fs-write {path} overwritten]]")] {
            let after = client.run(agent, &steps);
            assert_eq!(after.last_outcome, Some(TurnOutcome::Completed), "{steps}");
        }
    }
    let said = client.said(agent);
    assert!(!said.contains("hidden") && !said.contains("fs_write: written"), "{said}");
    assert_eq!(std::fs::read_to_string(outside.join("secret.txt")).unwrap(), "hidden");
    assert!(!outside.join("new.txt").exists());
}

#[test]
fn commands_run_are_waited_for_killed_and_cut_to_their_limit() {
    let home = Home::started();
    let client = home.client();
    let agent = client.new_agent("scripted");
    for (steps, said) in [
        ("[[terminal echo hello]]", "terminal: exit 0\nhello\n"),
        ("[[terminal sh -c \"echo out; echo err >&2; exit 3\"]]", "terminal: exit 3\nout\nerr\n"),
        ("[[terminal pwd]]", &format!("terminal: exit 0\n{}\n", home.work().display())),
        ("[[terminal limit=4 printf 123456789]]", "terminal: exit 0 (truncated)\n6789"),
        ("[[terminal kill sleep 600]]", "terminal: signal"),
        ("[[terminal /nowhere/program]]", "terminal: "),
    ] {
        client.run(agent, steps);
        let all = client.said(agent);
        let last = all.rsplit("terminal: ").next().map(|last| format!("terminal: {last}")).unwrap();
        assert!(last.starts_with(said), "{steps}: {last:?}");
    }
    let children = home.processes().into_iter().filter(|process| process.role() == Role::Child).count();
    assert_eq!(children, 1, "only the agent is left: {:?}", home.processes());
}

#[test]
fn a_command_outlives_the_daemon_that_started_it() {
    let home = Home::started();
    let client = home.client();
    let script = "[[terminal sh -c \"echo begin; sleep 1.5; echo end\"]]";
    let (agent, prompt) = client.new_agent_with("scripted", script);
    poll("the command runs", || {
        home.processes().iter().any(|process| process.command.starts_with("sh -c")).then_some(())
    });
    drop(client);
    for _ in 0..3 {
        home.restart();
    }
    let client = home.client();
    assert_eq!(client.view(agent).status, Status::Working);
    client.wait_turn(agent, prompt);
    assert_eq!(client.said(agent), "terminal: exit 0\nbegin\nend\n");
}

#[test]
fn a_command_ends_with_the_agent_that_runs_it() {
    let home = Home::started();
    let client = home.client();
    let (agent, _) = client.new_agent_with("scripted", "[[terminal sleep 600]]");
    poll("the command runs", || {
        home.processes().iter().any(|process| process.command == "sleep 600").then_some(())
    });
    client.close(agent);
    let left = || home.processes().into_iter().filter(|process| process.role() != Role::Daemon);
    assert_eq!(left().find(|process| process.role() == Role::Child), None);
    // A runner has let go of everything and is about to end.
    for runner in left() {
        assert!(processes::wait_until_gone(runner.pid, LIMIT), "{runner:?}");
    }
}
