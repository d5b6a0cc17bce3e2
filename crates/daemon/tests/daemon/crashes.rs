//! Agents whose processes end by themselves or are ended by others.

use consort_daemon::protocol::{Call, NewPrompt, codes};
use consort_model::{AgentId, Failure, Lifecycle, PromptId, Status, TurnOutcome};
use consort_testkit::harness::processes::{self, Role};
use consort_testkit::harness::{Client, Home, LIMIT, poll};
use uuid::Uuid;

fn failure(client: &Client, agent: AgentId) -> Failure {
    match client.wait_status(agent, Status::Failed).lifecycle {
        Lifecycle::Failed(failure) => failure,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_crash_is_told_with_its_code_and_last_words_and_the_next_prompt_starts_again() {
    let home = Home::started();
    let client = home.client();
    let (agent, _) =
        client.new_agent_with("scripted", "[[say x]] [[stderr the end is near]] [[wait 50]] [[crash 7]]");
    let failed = failure(&client, agent);
    assert_eq!((failed.exit_code, failed.parked), (Some(7), false));
    assert!(failed.stderr_tail.contains("the end is near"), "{failed:?}");
    let record = client.snapshot().agents.remove(&agent).unwrap();
    assert!(matches!(record.last_outcome, Some(TurnOutcome::Failed { .. })));
    assert_eq!(client.run(agent, "[[say again]]").last_outcome, Some(TurnOutcome::Completed));
    assert_eq!(client.said(agent), "x\nagain");
}

#[test]
fn a_signal_that_kills_an_agent_is_told() {
    let home = Home::started();
    let client = home.client();
    let (agent, _) = client.new_agent_with("scripted", "[[kill-self]]");
    assert_eq!(failure(&client, agent).signal, Some(9));
}

#[test]
fn a_line_cut_short_by_a_crash_is_no_reason_to_lose_the_rest() {
    let home = Home::started();
    let client = home.client();
    let (agent, _) = client.new_agent_with("scripted", "[[say whole]] [[torn]]");
    assert_eq!(failure(&client, agent).exit_code, Some(1));
    assert_eq!(client.said(agent), "whole");
    client.run(agent, "[[say next]]");
    assert_eq!(client.said(agent), "whole\nnext");
}

#[test]
fn three_crashes_park_an_agent_until_it_is_reopened() {
    let home = Home::started();
    let client = home.client();
    let agent = client.new_agent("scripted");
    for n in 1..=3 {
        client.send(agent, "[[crash]]");
        let parked = |agent: &consort_model::Agent| {
            agent.crashes.len() == n && matches!(agent.lifecycle, Lifecycle::Failed(_))
        };
        client.wait_agent(agent, "it crashed", parked);
    }
    assert!(failure(&client, agent).parked);
    let prompt = NewPrompt { id: PromptId::new(Uuid::now_v7()), text: "x".to_owned(), attachments: vec![] };
    assert_eq!(client.refused(&Call::Send { agent: agent.to_string(), prompt }).code, codes::REFUSED);
    client.reopen(agent);
    assert_eq!(client.run(agent, "[[say back]]").last_outcome, Some(TurnOutcome::Completed));
}

#[test]
fn a_program_that_cannot_be_started_fails_its_agent_with_the_reason() {
    let home = Home::new();
    home.profile("dies", &["--crash-on-start", "3"]);
    home.profile("errs", &["--init-error"]);
    home.start_daemon();
    let client = home.client();
    for (profile, said) in [("dies", "3"), ("errs", "initialize")] {
        let (agent, _) = client.new_agent_with(profile, "x");
        let failed = failure(&client, agent);
        assert!(failed.message.contains(said), "{profile}: {failed:?}");
        assert_eq!(client.view(agent).queued, 1, "{profile}: the prompt waits for a reopening");
    }
}

#[test]
fn a_killed_runner_fails_its_agent_and_leaves_no_process() {
    let home = Home::started();
    let client = home.client();
    let (agent, _) = client
        .new_agent_with("scripted", "[[say kept]] [[spawn-orphan]] [[spawn-orphan same-group]] [[hang]]");
    client.wait_text(agent, "orphan: ");
    let bystander = client.new_agent("scripted");
    client.wait_status(bystander, Status::Idle);
    let orphans =
        || home.processes().into_iter().filter(|process| process.command.starts_with("sleep")).count();
    poll("both are there", || (orphans() == 2).then_some(()));
    kill_runner(&home, &client, agent);
    failure(&client, agent);
    for process in processes::with_mark(&format!("CONSORT_AGENT_ID={agent}")) {
        assert!(processes::wait_until_gone(process.pid, LIMIT), "{process:?} is left over");
    }
    assert!(client.said(agent).contains("kept"));
    assert_eq!(client.run(bystander, "[[say here]]").last_outcome, Some(TurnOutcome::Completed));
    assert_eq!(client.run(agent, "[[say back]]").last_outcome, Some(TurnOutcome::Completed));
}

/// Kills the runner of an agent's newest process.
fn kill_runner(home: &Home, client: &Client, agent: AgentId) {
    let generation = client.snapshot().agents[&agent].generation;
    let id = agent.uuid().simple().to_string();
    let dir = home.paths().runners().join(format!("{}-{generation}", &id[id.len() - 12..]));
    let runner = home
        .processes()
        .into_iter()
        .find(|process| process.role() == Role::Runner && process.command.ends_with(dir.to_str().unwrap()))
        .expect("its runner is there");
    processes::kill(runner.pid);
}

#[test]
fn what_an_agent_started_goes_with_it() {
    let home = Home::started();
    let client = home.client();
    let (agent, prompt) = client.new_agent_with("scripted", "[[spawn-orphan]] [[spawn-orphan hold]]");
    client.wait_turn(agent, prompt);
    client.close(agent);
    let left: Vec<_> = home.processes().into_iter().filter(|process| process.role() == Role::Child).collect();
    assert!(left.is_empty(), "{left:?}");
    let (agent, _) = client.new_agent_with("scripted", "[[spawn-orphan]] [[wait 50]] [[crash]]");
    failure(&client, agent);
    client.close(agent);
    for process in home.processes().into_iter().filter(|process| process.role() == Role::Child) {
        assert!(processes::wait_until_gone(process.pid, LIMIT), "{process:?} is left over");
    }
}
