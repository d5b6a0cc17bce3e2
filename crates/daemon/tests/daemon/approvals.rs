//! Approvals and questions: answered once, by a person or by a rule that a person set.

use consort_daemon::protocol::{Answered, AskAnswer, Call, NewRule, NewRuleScope, RuleView, codes};
use consort_model::policy::Subject;
use consort_model::{
    AgentId, Answer, Effect, GrantScope, ItemBody, RuleId, RuleOrigin, SettledBy, Settlement, Status,
    TurnOutcome,
};
use consort_testkit::harness::{Client, Home};
use serde_json::json;
use uuid::Uuid;

/// How the asks of an agent were settled, in order.
fn settlements(client: &Client, agent: AgentId) -> Vec<Settlement> {
    let settlement = |body| match body {
        ItemBody::Ask { settlement, .. } => settlement,
        _ => None,
    };
    client.items(agent).into_iter().filter_map(|item| settlement(item.body)).collect()
}

fn deny(message: Option<&str>) -> Answer {
    Answer::Deny { message: message.map(str::to_owned) }
}

#[test]
fn an_answer_reaches_the_agent_and_is_recorded() {
    let home = Home::started();
    let client = home.client();
    let once = Answer::allow(GrantScope::Once);
    let choose = Answer::Choose { option: "reject-always".to_owned() };
    for (answer, steps, said, outcome) in [
        (once, "[[ask execute ls]]", "allowed: allow-once", TurnOutcome::Completed),
        (deny(None), "[[ask execute ls]]", "rejected: reject-once", TurnOutcome::Completed),
        (choose, "[[ask execute reject-always ls]]", "rejected: reject-always", TurnOutcome::Completed),
        (Answer::Stop, "[[ask execute ls]]", "", TurnOutcome::Interrupted),
    ] {
        let (agent, prompt) = client.new_agent_with("scripted", steps);
        let ask = client.wait_ask(agent);
        let inbox = client.inbox();
        assert_eq!(inbox.len(), 1);
        assert_eq!((inbox[0].id, inbox[0].agent, inbox[0].kind.as_str()), (ask.id, agent, "approval"));
        client.answer(&ask, answer.clone());
        let after = client.wait_turn(agent, prompt);
        assert_eq!(after.last_outcome, Some(outcome), "{answer:?}");
        let text = client.said(agent);
        assert!(text.contains(said) && text.matches("ed: ").count() <= 1, "{answer:?}: {text:?}");
        let settled = settlements(&client, agent);
        assert_eq!(settled.len(), 1);
        assert_eq!((settled[0].answer.as_ref(), settled[0].by), (Some(&answer), SettledBy::Person));
        assert!(client.inbox().is_empty());
    }
}

#[test]
fn a_denial_with_a_message_tells_the_agent_what_to_do_instead() {
    let home = Home::started();
    let client = home.client();
    let (agent, _) = client.new_agent_with("scripted", "[[ask execute rm]]");
    let answer = deny(Some("use the other one"));
    client.answer(&client.wait_ask(agent), answer.clone());
    // The protocol has no place for words with a denial, so they follow as a prompt.
    client.wait_text(agent, "You said: ");
    client.wait_status(agent, Status::Idle);
    let said = client.said(agent);
    assert!(said.contains("rejected: reject-once") && said.contains("use the other one"), "{said}");
    assert_eq!(settlements(&client, agent)[0].answer, Some(answer));
}

#[test]
fn a_session_rule_covers_its_agent_and_an_always_rule_its_profile() {
    let home = Home::started();
    let client = home.client();
    let ask = "[[ask execute input={\"command\":\"make\"} make]]";
    for (scope, reaches_others) in [(GrantScope::Session, false), (GrantScope::Always, true)] {
        let (agent, prompt) = client.new_agent_with("scripted", ask);
        client.answer(&client.wait_ask(agent), Answer::allow(scope));
        client.wait_turn(agent, prompt);
        let again = client.run(agent, ask);
        assert_eq!(again.last_outcome, Some(TurnOutcome::Completed));
        let by_rule = |settlement: &Settlement| matches!(settlement.by, SettledBy::Rule { .. });
        assert!(by_rule(&settlements(&client, agent)[1]), "{scope:?}");
        let (other, prompt) = client.new_agent_with("scripted", ask);
        if reaches_others {
            client.wait_turn(other, prompt);
            assert!(by_rule(&settlements(&client, other)[0]));
        } else {
            client.wait_status(other, Status::NeedsInput);
            client.close(other);
        }
        let (different, _) =
            client.new_agent_with("scripted", "[[ask execute input={\"command\":\"rm\"} rm]]");
        client.wait_status(different, Status::NeedsInput);
        client.close(different);
    }
    let rules: Vec<RuleView> = client.call(&Call::ListRules {});
    assert_eq!(rules.len(), 2, "{rules:?}");
    for rule in rules {
        client.call::<serde_json::Value>(&Call::RemoveRule { rule: rule.id });
    }
    let (agent, _) = client.new_agent_with("scripted", ask);
    client.wait_status(agent, Status::NeedsInput);
}

#[test]
fn a_pattern_that_a_person_grants_covers_its_commands_and_a_denial_wins() {
    let home = Home::started();
    let client = home.client();
    let add = |effect, pattern: &str| {
        let subject = Subject::Command { pattern: pattern.to_owned() };
        let id = RuleId::new(Uuid::now_v7());
        Call::AddRule(NewRule { id, effect, scope: NewRuleScope::All, tool: None, subject })
    };
    let deny: RuleView = client.call(&add(Effect::Deny, "git push *"));
    assert_eq!((deny.effect, deny.origin), (Effect::Deny, RuleOrigin::Added));
    assert_eq!(client.refused(&add(Effect::Deny, "a; b")).code, codes::REFUSED);

    let (agent, prompt) = client.new_agent_with("scripted", "[[ask execute git status]]");
    let ask = client.wait_ask(agent);
    let grant =
        |pattern: &str| Answer::Allow { scope: GrantScope::Session, pattern: Some(pattern.to_owned()) };
    let wrong = Call::Answer { ask: ask.id.to_string(), answer: grant("cargo *") };
    assert_eq!(client.refused(&wrong).code, codes::REFUSED, "it must cover the call at hand");
    client.answer(&ask, grant("git *"));
    client.wait_turn(agent, prompt);

    client.run(agent, "[[ask execute git log --oneline]]");
    client.run(agent, "[[ask execute git push origin]]");
    let settled = settlements(&client, agent);
    assert!(matches!(settled[1].answer, Some(Answer::Allow { .. })), "{settled:?}");
    assert!(matches!(settled[2].answer, Some(Answer::Deny { .. })), "{settled:?}");
    assert_eq!(settled[2].by, SettledBy::Rule { rule: deny.id });
    client.send(agent, "[[ask execute git log; rm x]]");
    client.wait_status(agent, Status::NeedsInput);
}

#[test]
fn of_two_clients_that_answer_one_wins_and_the_other_is_told() {
    let home = Home::started();
    let clients = [home.client(), home.client()];
    let (agent, prompt) = clients[0].new_agent_with("scripted", "[[ask execute ls]]");
    let ask = clients[0].wait_ask(agent);
    clients[1].wait_ask(agent);
    let call = Call::Answer { ask: ask.id.to_string(), answer: Answer::allow(GrantScope::Once) };
    let wires = [0, 1].map(|_| home_wire(&home));
    let outcomes: Vec<serde_json::Value> = std::thread::scope(|scope| {
        let call = &call;
        let threads: Vec<_> =
            wires.into_iter().map(|mut wire| scope.spawn(move || wire.call(call).unwrap())).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let won = outcomes.iter().filter(|outcome| outcome.get("result").is_some()).count();
    assert_eq!(won, 1, "{outcomes:?}");
    let lost = outcomes.iter().find(|outcome| outcome.get("error").is_some()).unwrap();
    assert_eq!(lost["error"]["code"], codes::REFUSED);
    for client in &clients {
        client.wait_turn(agent, prompt);
    }
    assert_eq!(clients[0].said(agent).matches("allowed: ").count(), 1);
    assert_eq!(settlements(&clients[1], agent).len(), 1);
    assert_eq!(clients[1].refused(&call).code, codes::REFUSED);
}

fn home_wire(home: &Home) -> consort_testkit::harness::Wire {
    consort_testkit::harness::Wire::greeted(&home.paths().socket()).unwrap()
}

#[test]
fn asks_that_are_open_at_once_are_answered_each_by_itself() {
    let home = Home::started();
    let client = home.client();
    let (agent, prompt) = client.new_agent_with("scripted", "[[ask-many 3 execute cmd]]");
    let asks = client.wait_until("three are open", |state| {
        Some(state.agents.get(&agent)?.asks.clone()).filter(|asks| asks.len() == 3)
    });
    client.answer(&asks[2], deny(None));
    client.allow(&asks[0]);
    client.wait_agent(agent, "one is left", |agent| agent.asks.len() == 1);
    client.allow(&asks[1]);
    client.wait_turn(agent, prompt);
    let said = client.said(agent);
    assert_eq!((said.matches("allowed: ").count(), said.matches("rejected: ").count()), (2, 1), "{said}");
}

#[test]
fn what_to_do_instead_of_several_denied_calls_is_said_once() {
    let home = Home::started();
    let client = home.client();
    let (agent, _) = client.new_agent_with("scripted", "[[ask-many 3 execute cmd]]");
    let asks = client.wait_until("three are open", |state| {
        Some(state.agents.get(&agent)?.asks.clone()).filter(|asks| asks.len() == 3)
    });
    let instead = deny(Some("[[say instead]]"));
    let answers = asks.iter().map(|ask| AskAnswer { ask: ask.id, answer: instead.clone() }).collect();
    let told: Vec<Answered> = client.call(&Call::AnswerMany { answers });
    assert!(told.iter().all(|told| told.answered), "{told:?}");
    client.wait_agent(agent, "all was said", |agent| agent.turn.is_none() && agent.queue.is_empty());
    assert_eq!(client.said(agent).matches("instead").count(), 1);
}

#[test]
fn several_are_answered_together_and_only_those_that_were_named() {
    let home = Home::started();
    let client = home.client();
    let (agent, prompt) = client.new_agent_with("scripted", "[[ask-many 4 execute cmd]]");
    let asks = client.wait_until("four are open", |state| {
        Some(state.agents.get(&agent)?.asks.clone()).filter(|asks| asks.len() == 4)
    });
    client.answer(&asks[0], deny(None));
    let allow = Answer::allow(GrantScope::Once);
    let one = |ask: consort_model::AskId, answer: &Answer| AskAnswer { ask, answer: answer.clone() };
    let unknown = consort_model::AskId::new(Uuid::now_v7());
    let wrong = Answer::Choose { option: "no such".to_owned() };
    let answers =
        vec![one(asks[0].id, &allow), one(asks[1].id, &allow), one(unknown, &allow), one(asks[2].id, &wrong)];
    let told: Vec<Answered> = client.call(&Call::AnswerMany { answers });
    assert_eq!(told.iter().map(|told| told.answered).collect::<Vec<_>>(), [false, true, false, false]);
    let message = |at: usize| told[at].error.as_ref().unwrap().message.clone();
    assert!(message(0).contains("a person denied it"), "{}", message(0));
    assert!(message(2).contains("never asked"), "{}", message(2));
    assert!(message(3).contains("does not fit"), "{}", message(3));
    client.wait_agent(agent, "two are left", |agent| agent.asks.len() == 2);
    // A new client, after a crash, sees those two and the one that came late still learns why.
    drop(client);
    home.restart();
    let client = home.client();
    assert_eq!(client.inbox().iter().map(|entry| entry.id).collect::<Vec<_>>(), [asks[2].id, asks[3].id]);
    let late = Call::AnswerMany { answers: vec![one(asks[1].id, &deny(None))] };
    let told: Vec<Answered> = client.call(&late);
    assert!(told[0].error.as_ref().unwrap().message.contains("a person allowed it"), "{told:?}");
    let rest = vec![one(asks[3].id, &allow), one(asks[2].id, &allow)];
    let told: Vec<Answered> = client.call(&Call::AnswerMany { answers: rest });
    assert!(told.iter().all(|told| told.answered), "{told:?}");
    client.wait_turn(agent, prompt);
    let said = client.said(agent);
    assert_eq!((said.matches("allowed: ").count(), said.matches("rejected: ").count()), (3, 1), "{said}");
}

#[test]
fn of_many_clients_that_answer_the_same_batch_each_request_has_one_winner() {
    let home = Home::started();
    let client = home.client();
    let (agent, prompt) = client.new_agent_with("scripted", "[[ask-many 12 execute cmd]]");
    let asks = client.wait_until("all are open", |state| {
        Some(state.agents.get(&agent)?.asks.clone()).filter(|asks| asks.len() == 12)
    });
    let batch = |turned: bool, answer: &Answer| {
        let mut answers: Vec<AskAnswer> =
            asks.iter().map(|ask| AskAnswer { ask: ask.id, answer: answer.clone() }).collect();
        if turned {
            answers.reverse();
        }
        Call::AnswerMany { answers }
    };
    let allow = Answer::allow(GrantScope::Once);
    let calls =
        [batch(false, &allow), batch(true, &allow), batch(false, &deny(None)), batch(true, &deny(None))];
    let wires = [0; 4].map(|_| home_wire(&home));
    let told: Vec<Answered> = std::thread::scope(|scope| {
        let threads: Vec<_> = wires
            .into_iter()
            .zip(&calls)
            .map(|(mut wire, call)| scope.spawn(move || wire.call(call).unwrap()["result"].clone()))
            .collect();
        let answers = threads.into_iter().map(|thread| thread.join().unwrap());
        answers.flat_map(|answer| serde_json::from_value::<Vec<Answered>>(answer).unwrap()).collect()
    });
    assert_eq!(told.len(), 48);
    for ask in &asks {
        let won = told.iter().filter(|told| told.ask == ask.id && told.answered).count();
        assert_eq!(won, 1, "{}", ask.id);
    }
    let lost = told.iter().filter_map(|told| told.error.as_ref());
    lost.for_each(|error| assert!(error.message.contains("a person "), "{}", error.message));
    client.wait_turn(agent, prompt);
    assert_eq!(settlements(&client, agent).len(), 12);
    assert_eq!(client.said(agent).matches("ed: ").count(), 12);
}

#[test]
fn open_requests_survive_a_crash_and_a_cancelled_turn_answers_them_as_cancelled() {
    let home = Home::started();
    let client = home.client();
    let (agent, prompt) = client.new_agent_with("scripted", "[[ask-many 2 execute cmd]]");
    let open = |client: &Client| {
        client.wait_until("two are open", |state| {
            Some(state.agents.get(&agent)?.asks.clone()).filter(|asks| asks.len() == 2)
        })
    };
    let before = open(&client);
    drop(client);
    home.restart();
    let client = home.client();
    assert_eq!(open(&client), before);
    client.interrupt(agent);
    client.wait_turn(agent, prompt);
    let settled = settlements(&client, agent);
    assert!(settled.iter().all(|it| it.by == SettledBy::Cancelled && it.answer.is_none()), "{settled:?}");
    assert_eq!(settled.len(), 2);
    let error = client.refused(&Call::Answer { ask: before[0].id.to_string(), answer: deny(None) });
    assert!(error.message.contains("it was cancelled"), "{}", error.message);
}

#[test]
fn the_permission_mode_answers_what_it_covers() {
    let home = Home::started();
    let client = home.client();
    let agent = client.new_agent("scripted");
    let mode = |permissions| Call::SetPermissions { agent: agent.to_string(), permissions };
    client.call::<serde_json::Value>(&mode(consort_model::PermissionMode::Bypass));
    assert_eq!(client.run(agent, "[[ask execute rm]]").last_outcome, Some(TurnOutcome::Completed));
    assert_eq!(settlements(&client, agent)[0].by, SettledBy::Mode);
    client.call::<serde_json::Value>(&mode(consort_model::PermissionMode::Default));
    client.send(agent, "[[ask execute rm]]");
    client.wait_status(agent, Status::NeedsInput);
}

#[test]
fn a_question_is_answered_by_a_form_or_denied() {
    let home = Home::started();
    let client = home.client();
    let reply = Answer::Reply { value: json!({"name": "Ada", "colour": "blue"}) };
    for (answer, said) in [(reply, "elicitation: accept"), (deny(None), "elicitation: decline")] {
        let (agent, prompt) = client.new_agent_with("scripted", "[[elicit Which one?]]");
        let ask = client.wait_ask(agent);
        assert_eq!(client.inbox()[0].kind, "question");
        let wrong = Call::Answer { ask: ask.id.to_string(), answer: Answer::allow(GrantScope::Once) };
        assert_eq!(client.refused(&wrong).code, codes::REFUSED);
        client.answer(&ask, answer);
        client.wait_turn(agent, prompt);
        let text = client.said(agent);
        assert!(text.contains(said), "{text}");
        assert_eq!(text.contains("Ada"), said.contains("accept"), "{text}");
    }
}

#[test]
fn an_agent_that_wants_a_login_asks_for_it_and_then_works() {
    let home = Home::new();
    home.profile("locked", &["--auth", "password"]);
    home.start_daemon();
    let client = home.client();
    let (agent, prompt) = client.new_agent_with("locked", "[[say in]]");
    let ask = client.wait_ask(agent);
    let entry = client.inbox().remove(0);
    assert_eq!((entry.id, entry.kind.as_str()), (ask.id, "question"));
    client.answer(&ask, Answer::Reply { value: json!("password") });
    client.wait_turn(agent, prompt);
    assert_eq!(client.said(agent), "in");
}
