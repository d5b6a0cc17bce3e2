//! Sessions that are taken up again, and those that cannot be.

use consort_daemon::protocol::{Call, Done};
use consort_model::{ItemBody, Lifecycle, NoticeLevel, Status, TurnOutcome};
use consort_testkit::harness::Home;

#[test]
fn a_reopened_agent_takes_up_its_session() {
    for (name, flags) in [
        ("resume", vec!["--no-load"]),
        ("load", vec!["--no-resume"]),
        ("late", vec!["--no-resume", "--late-replay"]),
    ] {
        let home = Home::new();
        let state = home.elsewhere().display().to_string();
        let args: Vec<&str> = ["--state-dir", &state].into_iter().chain(flags).collect();
        home.profile(name, &args);
        home.start_daemon();
        let client = home.client();
        let (agent, prompt) = client.new_agent_with(name, "[[say first]]");
        client.wait_turn(agent, prompt);
        let session = client.view(agent).session.unwrap();
        client.close(agent);
        client.reopen(agent);
        let after = client.run(agent, "[[say second]]");
        let taken_up = after.session.unwrap();
        assert_eq!((taken_up.id.as_str(), taken_up.resumed), (session.as_str(), true), "{name}");
        let prompts =
            client.items(agent).into_iter().filter(|item| matches!(item.body, ItemBody::User { .. }));
        assert_eq!(prompts.count(), 2, "{name}: what is replayed is not written down again");
        assert_eq!(client.said(agent), "first\nsecond", "{name}");
    }
}

#[test]
fn a_session_that_cannot_be_taken_up_begins_anew_with_a_warning() {
    let home = Home::new();
    home.profile("forgetful", &["--no-load", "--no-resume"]);
    home.start_daemon();
    let client = home.client();
    let (agent, prompt) = client.new_agent_with("forgetful", "[[say first]]");
    client.wait_turn(agent, prompt);
    let session = client.view(agent).session;
    client.close(agent);
    client.reopen(agent);
    assert_eq!(client.run(agent, "[[say second]]").last_outcome, Some(TurnOutcome::Completed));
    assert_ne!(client.view(agent).session, session);
    assert_eq!(client.said(agent), "first\nsecond");
    let notices = client.notices(agent);
    assert!(notices.iter().any(|(level, _)| *level == NoticeLevel::Warning), "{notices:?}");
}

#[test]
fn a_session_that_the_agent_lost_begins_anew_with_a_warning() {
    let home = Home::new();
    let state = home.elsewhere();
    home.profile("keeps", &["--state-dir", state.to_str().unwrap()]);
    home.start_daemon();
    let client = home.client();
    let (agent, prompt) = client.new_agent_with("keeps", "[[say first]]");
    client.wait_turn(agent, prompt);
    client.close(agent);
    std::fs::remove_dir_all(&state).unwrap();
    client.reopen(agent);
    assert_eq!(client.run(agent, "[[say second]]").last_outcome, Some(TurnOutcome::Completed));
    let notices = client.notices(agent);
    assert!(notices.iter().any(|(level, _)| *level == NoticeLevel::Warning), "{notices:?}");
}

#[test]
fn agents_rest_after_a_stop_and_a_prompt_wakes_them() {
    let home = Home::new();
    let state = home.elsewhere().display().to_string();
    home.profile("keeps", &["--state-dir", &state]);
    home.start_daemon();
    let client = home.client();
    let (agent, prompt) = client.new_agent_with("keeps", "[[say first]]");
    client.wait_turn(agent, prompt);
    let session = client.view(agent).session;
    client.call::<Done>(&Call::Stop { force: false, keep_agents: false });
    drop(client);
    assert!(home.wait_for_daemon_end());
    assert!(home.processes().is_empty());
    home.start_daemon();
    let client = home.client();
    assert_eq!(client.view(agent).status, Status::Idle);
    assert_eq!(client.snapshot().agents[&agent].lifecycle, Lifecycle::Resting);
    assert_eq!(home.processes().len(), 1, "a resting agent has no process");
    assert_eq!(client.run(agent, "[[say second]]").last_outcome, Some(TurnOutcome::Completed));
    assert_eq!(client.view(agent).session, session);
    assert_eq!(client.said(agent), "first\nsecond");
}

#[test]
fn what_can_be_chosen_for_a_session_is_offered_and_chosen() {
    let home = Home::new();
    home.profile("choosy", &["--config-options", "--modes", "ask,code", "--commands"]);
    home.start_daemon();
    let client = home.client();
    let agent = client.new_agent("choosy");
    let ready = client.wait_agent(agent, "its options are there", |agent| {
        agent.status() == Status::Idle && !agent.options.is_empty() && !agent.commands.is_empty()
    });
    for option in &ready.options {
        let value = option.choices.last().unwrap().id.clone();
        let choose =
            Call::Choose { agent: agent.to_string(), option: option.id.clone(), value: value.clone() };
        client.call::<Done>(&choose);
        client.wait_agent(agent, "it is chosen", |agent| {
            agent.options.iter().any(|now| now.id == option.id && now.current == value)
        });
    }
    client.refused(&Call::Choose { agent: agent.to_string(), option: "no".into(), value: "such".into() });
}
