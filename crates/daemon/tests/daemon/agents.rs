//! Agents at work: several at once, their statuses, their queues, interrupts, companions.

use consort_daemon::protocol::{Call, NewPrompt, Sent, codes};
use consort_model::event::AgentEvent;
use consort_model::{AgentId, Event, ItemBody, Lifecycle, PromptId, SettledBy, Status, TurnOutcome};
use consort_testkit::harness::processes::{self, Role};
use consort_testkit::harness::{Client, Home, LIMIT};
use uuid::Uuid;

/// The prompts in an agent's transcript, in order.
fn delivered(client: &Client, agent: AgentId) -> Vec<String> {
    let items = client.items(agent);
    let text = |body| match body {
        ItemBody::User { text, .. } => Some(text),
        _ => None,
    };
    items.into_iter().filter_map(|item| text(item.body)).collect()
}

#[test]
fn an_agent_answers_a_prompt() {
    let home = Home::started();
    let client = home.client();
    let (agent, prompt) = client.new_agent_with("scripted", "hello");
    let after = client.wait_turn(agent, prompt);
    assert_eq!(after.status(), Status::Idle);
    assert_eq!(after.last_outcome, Some(TurnOutcome::Completed));
    assert_eq!(client.said(agent), "You said: hello");
}

#[test]
fn one_agent_delays_no_other_whatever_it_does() {
    let home = Home::started();
    let client = home.client();
    let busy: Vec<AgentId> =
        ["[[hang]]", "[[hang-deaf]]", "[[flood n=30000 size=200]]", "[[garbage]] [[hang]]"]
            .map(|steps| client.new_agent_with("scripted", steps).0)
            .to_vec();
    for id in &busy {
        client.wait_agent(*id, "its turn began", |agent| agent.turn.is_some());
    }
    let agent = client.new_agent("scripted");
    for n in 0..5 {
        assert_eq!(client.run(agent, &format!("[[say {n}]]")).last_outcome, Some(TurnOutcome::Completed));
    }
    assert_eq!(client.said(agent), "0\n1\n2\n3\n4");
    for id in [busy[0], busy[1], busy[3]] {
        assert_eq!(client.view(id).status, Status::Working);
    }
}

#[test]
fn an_agent_goes_through_every_status() {
    let home = Home::with_config("[limits]\nstalled_after_ms = 300\ncrashes_before_parking = 9");
    home.start_daemon();
    let client = home.client();
    let (agent, _) = client.new_agent_with("scripted", "[[ask execute ls]] [[wait 2000]] [[crash]]");
    let mut seen = Vec::new();
    let mut note = |status: Status| {
        client.wait_status(agent, status);
        seen.push(status);
    };
    note(Status::NeedsInput);
    client.allow(&client.wait_ask(agent));
    note(Status::Stalled);
    note(Status::Failed);
    let again = client.send(agent, "[[wait 100]]");
    note(Status::Working);
    client.wait_turn(agent, again);
    note(Status::Idle);
    client.close(agent);
    note(Status::Closed);
    let began =
        client.look(|followed| followed.events.iter().filter(|stamped| starts(&stamped.event)).count());
    assert_eq!(began, 2, "it was created and started again: {seen:?}");
}

fn starts(event: &Event) -> bool {
    matches!(event, Event::Agent { change: AgentEvent::Created { .. } | AgentEvent::Starting { .. }, .. })
}

#[test]
fn a_stalled_agent_that_goes_on_works_again() {
    let home = Home::with_config("[limits]\nstalled_after_ms = 200");
    home.start_daemon();
    let client = home.client();
    let (agent, prompt) = client.new_agent_with("scripted", "[[wait 1200]] [[say back]] [[wait 100]]");
    client.wait_status(agent, Status::Stalled);
    client.wait_status(agent, Status::Working);
    client.wait_turn(agent, prompt);
    assert_eq!(client.said(agent), "back");
}

#[test]
fn prompts_wait_in_order_and_can_be_changed_or_dropped_while_they_wait() {
    let home = Home::started();
    let client = home.client();
    let (agent, first) = client.new_agent_with("scripted", "[[wait 60000]]");
    client.wait_status(agent, Status::Working);
    let ids: Vec<PromptId> = (0..5).map(|n| client.send(agent, &format!("[[say {n}]]"))).collect();
    let edit = |prompt, text: Option<&str>| Call::EditPrompt {
        agent: agent.to_string(),
        prompt,
        text: text.map(str::to_owned),
    };
    client.call::<serde_json::Value>(&edit(ids[1], Some("[[say one]]")));
    client.call::<serde_json::Value>(&edit(ids[3], None));
    assert_eq!(client.refused(&edit(ids[2], Some("  "))).code, codes::REFUSED);
    assert_eq!(client.refused(&edit(first, Some("too late"))).code, codes::REFUSED);
    assert_eq!(client.refused(&edit(ids[3], Some("gone"))).code, codes::REFUSED);
    client.interrupt(agent);
    client.wait_turn(agent, ids[4]);
    assert_eq!(client.said(agent), "0\none\n2\n4");
    assert_eq!(client.view(agent).queued, 0);
}

#[test]
fn the_same_prompt_sent_again_is_one_prompt() {
    let home = Home::started();
    let client = home.client();
    let agent = client.new_agent("scripted");
    let id = PromptId::new(Uuid::now_v7());
    let send = || Call::Send {
        agent: agent.to_string(),
        prompt: NewPrompt { id, text: "once".to_owned(), attachments: vec![] },
    };
    for _ in 0..3 {
        let sent: Sent = client.call(&send());
        assert_eq!(sent.prompt, id);
    }
    client.wait_turn(agent, id);
    client.call::<Sent>(&send());
    home.restart();
    let client = home.client();
    client.call::<Sent>(&send());
    let last = client.send(agent, "[[say last]]");
    client.wait_turn(agent, last);
    assert_eq!(delivered(&client, agent), ["once", "[[say last]]"]);
}

#[test]
fn the_same_agent_asked_for_again_is_one_agent() {
    let home = Home::started();
    let client = home.client();
    let new = client.new_agent_request("scripted");
    let first: serde_json::Value = client.call(&Call::CreateAgent(new.clone()));
    let second: serde_json::Value = client.call(&Call::CreateAgent(new));
    assert_eq!(first["id"], second["id"]);
    assert_eq!(client.snapshot().agents.len(), 1);
}

#[test]
fn an_interrupt_ends_a_turn_wherever_it_is() {
    let home = Home::started();
    let client = home.client();
    for (steps, until) in [
        ("[[stream n=100000 rate=200]]", Status::Working),
        ("[[wait 600000]]", Status::Working),
        ("[[hang]]", Status::Working),
        ("[[ask execute rm]]", Status::NeedsInput),
        ("[[ask execute patient rm]]", Status::NeedsInput),
        ("[[ask-many 3]]", Status::NeedsInput),
        ("[[elicit]]", Status::NeedsInput),
        ("[[terminal sleep 600]]", Status::Working),
        ("[[tool execute delay=600000 build]]", Status::Working),
    ] {
        let (agent, prompt) = client.new_agent_with("scripted", steps);
        client.wait_status(agent, until);
        client.interrupt(agent);
        let after = client.wait_turn(agent, prompt);
        assert_eq!(after.last_outcome, Some(TurnOutcome::Interrupted), "{steps}");
        assert_eq!(after.status(), Status::Idle, "{steps}");
        for item in client.items(agent) {
            if let ItemBody::Ask { settlement, .. } = item.body {
                assert_eq!(settlement.unwrap().by, SettledBy::Cancelled, "{steps}");
            }
        }
        assert_eq!(client.run(agent, "[[say on]]").last_outcome, Some(TurnOutcome::Completed), "{steps}");
    }
    assert!(client.inbox().is_empty());
}

#[test]
fn an_interrupt_of_a_starting_agent_drops_what_it_was_started_for() {
    let home = Home::new();
    home.profile("slow", &["--init-delay", "1500"]);
    home.start_daemon();
    let client = home.client();
    let (agent, prompt) = client.new_agent_with("slow", "never");
    assert_eq!(client.view(agent).status, Status::Starting);
    client.interrupt(agent);
    client.wait_agent(agent, "its prompt is dropped", |agent| agent.queue.is_empty());
    let after = client.wait_status(agent, Status::Idle);
    assert!(after.taken.contains(&prompt));
    assert!(delivered(&client, agent).is_empty());
    client.run(agent, "later");
    assert_eq!(delivered(&client, agent), ["later"]);
}

#[test]
fn an_interrupt_of_an_idle_or_closed_agent_is_harmless() {
    let home = Home::started();
    let client = home.client();
    let agent = client.new_agent("scripted");
    client.wait_status(agent, Status::Idle);
    client.interrupt(agent);
    assert_eq!(client.run(agent, "[[say on]]").last_outcome, Some(TurnOutcome::Completed));
    client.close(agent);
    assert_eq!(client.refused(&Call::Interrupt { agent: agent.to_string() }).code, codes::REFUSED);
}

#[test]
fn an_agent_has_three_companions_at_most_and_they_close_with_it() {
    let home = Home::started();
    let client = home.client();
    let owner = client.new_agent("scripted");
    let companion = |of: AgentId| {
        let mut new = client.new_agent_request("scripted");
        new.companion_of = Some(of.to_string());
        new
    };
    let companions: Vec<AgentId> = (0..3)
        .map(|_| {
            let new = companion(owner);
            let id = new.id;
            client.call::<serde_json::Value>(&Call::CreateAgent(new));
            id
        })
        .collect();
    let processes = home.processes().len();
    for refused in [companion(owner), companion(companions[0])] {
        let error = client.refused(&Call::CreateAgent(refused));
        assert_eq!(error.code, codes::REFUSED, "{}", error.message);
    }
    assert_eq!(client.snapshot().agents.len(), 4, "a refused agent leaves nothing");
    assert!(home.processes().len() <= processes + 8);
    client.close(companions[2]);
    assert_ne!(client.view(owner).status, Status::Closed);
    let freed = companion(owner);
    client.call::<serde_json::Value>(&Call::CreateAgent(freed.clone()));
    client.close(owner);
    for id in companions.into_iter().chain([owner, freed.id]) {
        let closed = matches!(client.snapshot().agents[&id].lifecycle, Lifecycle::Closed { .. });
        assert!(closed, "{id} stays open");
    }
    for process in home.processes().into_iter().filter(|process| process.pid != client.daemon_pid()) {
        assert_eq!(process.role(), Role::Runner, "{process:?} outlives its closed agent");
        assert!(processes::wait_until_gone(process.pid, LIMIT), "{process:?} outlives its closed agent");
    }
}

#[test]
fn a_closed_agent_takes_nothing_until_it_is_reopened() {
    let home = Home::started();
    let client = home.client();
    let agent = client.new_agent("scripted");
    client.close(agent);
    client.close(agent);
    let send = Call::Send {
        agent: agent.to_string(),
        prompt: NewPrompt { id: PromptId::new(Uuid::now_v7()), text: "x".to_owned(), attachments: vec![] },
    };
    assert_eq!(client.refused(&send).code, codes::REFUSED);
    client.reopen(agent);
    assert_eq!(client.run(agent, "[[say open]]").last_outcome, Some(TurnOutcome::Completed));
    assert_eq!(client.refused(&Call::Reopen { agent: agent.to_string() }).code, codes::REFUSED);
}

#[test]
fn a_turn_ends_in_the_way_the_agent_says() {
    let home = Home::started();
    let client = home.client();
    let agent = client.new_agent("scripted");
    let stopped = |reason: &str| TurnOutcome::Stopped { reason: reason.to_owned() };
    for (steps, outcome) in [
        ("[[say x]]", TurnOutcome::Completed),
        ("[[refuse]]", stopped("refusal")),
        ("[[max-tokens]]", stopped("max_tokens")),
        ("[[max-turns]]", stopped("max_turn_requests")),
    ] {
        let got = client.run(agent, steps).last_outcome.unwrap();
        let same_kind = std::mem::discriminant(&got) == std::mem::discriminant(&outcome);
        assert!(same_kind, "{steps}: {got:?}");
    }
    let failed = client.run(agent, "[[error -32050 no luck]]").last_outcome;
    assert!(
        matches!(&failed, Some(TurnOutcome::Failed { message }) if message.contains("no luck")),
        "{failed:?}"
    );
}

#[test]
fn a_full_queue_refuses_the_next_prompt() {
    let home = Home::with_config("[limits]\nqueued_prompts = 3");
    home.start_daemon();
    let client = home.client();
    let (agent, _) = client.new_agent_with("scripted", "[[hang]]");
    client.wait_status(agent, Status::Working);
    for n in 0..3 {
        client.send(agent, &format!("{n}"));
    }
    let prompt = NewPrompt { id: PromptId::new(Uuid::now_v7()), text: "x".to_owned(), attachments: vec![] };
    let error = client.refused(&Call::Send { agent: agent.to_string(), prompt });
    assert!(error.message.contains('3'), "{}", error.message);
}
