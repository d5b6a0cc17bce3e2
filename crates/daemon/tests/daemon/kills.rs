//! `kill -9` of the daemon at the worst moments: nothing that was acknowledged is lost, no turn ends.

use consort_model::{ItemBody, SettledBy, Status, TurnOutcome};
use consort_testkit::harness::Home;

/// The text of a whole stream.
fn words(count: usize) -> String {
    (0..count).map(|n| format!("word{n} ")).collect()
}

#[test]
fn a_turn_goes_on_through_kills_in_its_middle() {
    let home = Home::started();
    let client = home.client();
    let (agent, prompt) = client.new_agent_with("scripted", "[[stream n=300 rate=150]] [[say end]]");
    client.wait_text(agent, "word10 ");
    drop(client);
    for _ in 0..4 {
        home.restart();
        let client = home.client();
        let items = client.look(|followed| followed.state.agents[&agent].cursor.clone());
        client.wait_agent(agent, "it goes on", |agent| agent.cursor != items || agent.turn.is_none());
    }
    let client = home.client();
    let after = client.wait_turn(agent, prompt);
    assert_eq!(after.last_outcome, Some(TurnOutcome::Completed));
    assert_eq!(client.said(agent), format!("{}end", words(300)));
}

#[test]
fn a_turn_that_ended_while_no_daemon_was_there_is_complete() {
    let home = Home::started();
    let client = home.client();
    let (agent, prompt) =
        client.new_agent_with("scripted", "[[stream n=100 rate=400]] [[tool read notes]] [[say end]]");
    client.wait_text(agent, "word0 ");
    drop(client);
    home.kill_daemon();
    // The journal is all that grows now; its growth ends with the turn.
    let journal = home.runner_folders().remove(0);
    wait_until_quiet(&journal);
    home.start_daemon();
    let client = home.client();
    let after = client.wait_turn(agent, prompt);
    assert_eq!(after.last_outcome, Some(TurnOutcome::Completed));
    assert!(client.said(agent).starts_with(&words(100)), "{}", client.said(agent));
    assert_eq!(client.items(agent).iter().filter(|item| matches!(item.body, ItemBody::Tool(_))).count(), 1);
}

/// Waits until the files of a folder have not grown for a while: the kernel tells nothing about an idle process.
fn wait_until_quiet(folder: &std::path::Path) {
    let size = || -> u64 {
        let files = std::fs::read_dir(folder).unwrap().flatten();
        files.filter_map(|file| file.metadata().ok()).map(|metadata| metadata.len()).sum()
    };
    let mut last = (size(), 0);
    for _ in 0..400 {
        std::thread::sleep(std::time::Duration::from_millis(25));
        let now = size();
        last = if now == last.0 { (now, last.1 + 1) } else { (now, 0) };
        if last.1 == 20 {
            return;
        }
    }
    panic!("{} does not come to rest", folder.display());
}

#[test]
fn an_open_approval_survives_and_its_answer_reaches_the_agent_once() {
    let home = Home::started();
    let client = home.client();
    let (agent, prompt) = client.new_agent_with("scripted", "[[ask execute ls]] [[say done]]");
    let ask = client.wait_ask(agent);
    drop(client);
    home.restart();
    let client = home.client();
    assert_eq!(client.wait_ask(agent), ask);
    assert_eq!(client.view(agent).status, Status::NeedsInput);
    client.allow(&ask);
    drop(client);
    // Right after the acknowledgement: the answer may not have left the daemon yet.
    home.restart();
    let client = home.client();
    client.wait_turn(agent, prompt);
    let said = client.said(agent);
    assert_eq!((said.matches("allowed: ").count(), said.matches("done").count()), (1, 1), "{said}");
    let settled: Vec<_> = client
        .items(agent)
        .into_iter()
        .filter_map(|item| match item.body {
            ItemBody::Ask { settlement, .. } => settlement,
            _ => None,
        })
        .collect();
    assert_eq!(settled.len(), 1);
    assert_eq!(settled[0].by, SettledBy::Person);
}

#[test]
fn a_prompt_survives_a_kill_right_after_its_acknowledgement() {
    let home = Home::started();
    let mut sent = Vec::new();
    let client = home.client();
    let agent = client.new_agent("scripted");
    drop(client);
    for n in 0..6 {
        let client = home.client();
        sent.push(client.send(agent, &format!("[[say {n}]]")));
        drop(client);
        home.restart();
    }
    let client = home.client();
    client.wait_turn(agent, sent[5]);
    let delivered: Vec<_> = client
        .items(agent)
        .into_iter()
        .filter_map(|item| match item.body {
            ItemBody::User { prompt, .. } => Some(prompt),
            _ => None,
        })
        .collect();
    assert_eq!(delivered, sent);
    assert_eq!(client.said(agent), "0\n1\n2\n3\n4\n5");
}

#[test]
fn an_agent_that_was_being_started_is_started_once() {
    let home = Home::new();
    home.profile("slow", &["--init-delay", "700"]);
    home.start_daemon();
    for slow in [true, false] {
        let client = home.client();
        let (agent, prompt) = client.new_agent_with(if slow { "slow" } else { "scripted" }, "[[say up]]");
        drop(client);
        for _ in 0..3 {
            home.restart();
        }
        let client = home.client();
        let after = client.wait_turn(agent, prompt);
        assert_eq!(after.last_outcome, Some(TurnOutcome::Completed));
        assert_eq!(client.said(agent), "up");
        assert_eq!(after.generation, 1);
        client.close(agent);
    }
}

#[test]
fn a_close_that_was_cut_short_is_finished_by_the_next_daemon() {
    let home = Home::started();
    let client = home.client();
    let (agent, _) = client.new_agent_with("scripted", "[[hang-deaf]]");
    client.wait_status(agent, Status::Working);
    drop(client);
    let socket = home.paths().socket();
    let mut wire = consort_testkit::harness::Wire::greeted(&socket).unwrap();
    let watch = home.client();
    wire.request(&consort_daemon::protocol::Call::Close { agent: agent.to_string() }).unwrap();
    // Its process is deaf, so ending it takes a while; the close itself is committed first.
    watch.wait_status(agent, Status::Closed);
    drop(watch);
    home.restart();
    let client = home.client();
    assert_eq!(client.view(agent).status, Status::Closed);
    drop(client);
    home.finish();
}

#[test]
fn agents_that_died_with_no_daemon_there_are_failed_with_what_they_said() {
    let home = Home::started();
    let client = home.client();
    let (agent, _) =
        client.new_agent_with("scripted", "[[stream n=20 rate=100]] [[say last]] [[wait 300]] [[crash 5]]");
    client.wait_text(agent, "word3 ");
    let child = home.processes().into_iter().find(|process| process.command.contains(" agent")).unwrap();
    drop(client);
    home.kill_daemon();
    let limit = consort_testkit::harness::LIMIT;
    assert!(consort_testkit::harness::processes::wait_until_gone(child.pid, limit));
    home.start_daemon();
    let client = home.client();
    let failed = client.wait_status(agent, Status::Failed);
    assert!(
        matches!(failed.lifecycle, consort_model::Lifecycle::Failed(failure) if failure.exit_code == Some(5))
    );
    assert_eq!(client.said(agent), format!("{}last", words(20)));
}

#[test]
fn a_runner_killed_while_no_daemon_was_there_leaves_what_it_had_written() {
    let home = Home::started();
    let client = home.client();
    let (agent, _) = client.new_agent_with("scripted", "[[stream n=50 rate=1000]] [[hang]]");
    client.wait_text(agent, "word49 ");
    drop(client);
    home.kill_daemon();
    for process in home.processes() {
        consort_testkit::harness::processes::kill(process.pid);
    }
    home.start_daemon();
    let client = home.client();
    client.wait_status(agent, Status::Failed);
    assert_eq!(client.said(agent), words(50));
    client.reopen(agent);
    assert_eq!(client.run(agent, "[[say back]]").last_outcome, Some(TurnOutcome::Completed));
}

#[test]
fn the_numbers_of_events_are_not_used_again() {
    let home = Home::started();
    let mut last = 0;
    for n in 0..4 {
        let client = home.client();
        let before = client.look(|followed| followed.state.seq);
        assert!(before >= last, "a daemon begins at {before} after {last}");
        // Profiles are kept in `config.toml`, but what is told about them is numbered like everything else.
        home.profile(&format!("p{n}"), &[]);
        client.call::<serde_json::Value>(&consort_daemon::protocol::Call::ListProfiles {});
        last = client.wait_until("the profile is there", |state| {
            state.profiles.iter().any(|profile| profile.name == format!("p{n}")).then_some(state.seq)
        });
        assert!(last > before);
        drop(client);
        home.restart();
    }
}
