//! Which answers fit which asks, and what an answer leaves.

use serde_json::json;

use crate::ask::{Answer, AnswerOption, AskBody, GrantScope, OptionKind, Question, SettledBy};
use crate::command::{Actor, Refusal};
use crate::decide::testing::*;
use crate::decide::*;
use crate::event::{AgentEvent, Event};
use crate::ids::{AskId, Timestamp};
use crate::item::ToolKind;
use crate::policy::RuleScope;
use crate::profile::DriverKind;

fn approval() -> AskBody {
    let option = AnswerOption { id: "yes".into(), name: "Yes".into(), kind: OptionKind::AllowOnce };
    AskBody::Approval { tool: tool(ToolKind::Execute, "git push"), options: vec![option] }
}

fn question() -> AskBody {
    AskBody::Question(Question { text: "Which one?".into(), schema: json!(null), url: None })
}

fn allow(scope: GrantScope) -> Answer {
    Answer::allow(scope)
}

fn choose(option: &str) -> Answer {
    Answer::Choose { option: option.into() }
}

#[test]
fn answers_fit_what_was_asked() {
    let deny = || Answer::Deny { message: None };
    let reply = || Answer::Reply { value: json!("blue") };
    let table = [
        (approval(), allow(GrantScope::Once), true),
        (approval(), allow(GrantScope::Always), true),
        (approval(), deny(), true),
        (approval(), Answer::Stop, true),
        (approval(), choose("yes"), true),
        (approval(), choose("no"), false),
        (approval(), reply(), false),
        (question(), reply(), true),
        (question(), deny(), true),
        (question(), Answer::Stop, true),
        (question(), allow(GrantScope::Once), false),
        (question(), choose("yes"), false),
    ];
    for (body, answer, fits) in table {
        let checked = check_answer(Actor::Person, DriverKind::Acp, &body, &answer);
        assert_eq!(checked.is_ok(), fits, "{answer:?} to {}", body.kind());
        if !fits {
            assert!(matches!(checked, Err(Refusal::WrongAnswer { .. })));
        }
    }
}

#[test]
fn an_edited_input_fits_only_where_the_protocol_can_carry_it() {
    let edited = Answer::Reply { value: json!({"command": "ls"}) };
    for (driver, fits) in [(DriverKind::Claude, true), (DriverKind::Acp, false), (DriverKind::Codex, false)] {
        assert_eq!(check_answer(Actor::Person, driver, &approval(), &edited).is_ok(), fits, "{driver}");
    }
}

#[test]
fn an_agent_can_answer_nothing_its_own_neither() {
    let answers = [
        allow(GrantScope::Once),
        Answer::Deny { message: None },
        choose("yes"),
        Answer::Reply { value: json!("blue") },
        Answer::Stop,
    ];
    for body in [approval(), question()] {
        for answer in &answers {
            let refused = check_answer(Actor::Agent(id(1)), DriverKind::Claude, &body, answer);
            assert!(matches!(refused, Err(Refusal::NotAllowed { .. })), "{answer:?} to {}", body.kind());
        }
    }
}

#[test]
fn an_ask_is_answered_at_most_once() {
    let mut team = Team::new();
    let agent = team.primary(1);
    team.working(agent);
    let ask = team.ask(agent, 60, approval());
    let wrong = answer(team.agent(agent), ask.id, &choose("no"), Timestamp(7), &mut || uuid(80), &|_| None);
    assert!(matches!(wrong, Err(Refusal::WrongAnswer { .. })));
    assert_eq!(team.agent(agent).status(), Status::NeedsInput);

    let yes = allow(GrantScope::Once);
    let events = answer(team.agent(agent), ask.id, &yes, Timestamp(7), &mut || uuid(80), &|_| None).unwrap();
    let by_person = events.iter().any(|event| {
        matches!(event, Event::Agent { change: AgentEvent::Settled { ask: settled, settlement }, .. }
            if *settled == ask.id
                && settlement.by == SettledBy::Person
                && settlement.answer.as_ref() == Some(&yes))
    });
    assert!(by_person);
    team.apply(events);
    assert_eq!(team.agent(agent).status(), Status::Working);
    assert!(team.state.rules.is_empty());
    let again = answer(team.agent(agent), ask.id, &yes, Timestamp(8), &mut || uuid(81), &|_| None);
    assert!(matches!(again, Err(Refusal::NotOpen { .. })));
}

#[test]
fn an_allowance_beyond_the_call_makes_a_rule() {
    let scope_of = |scope| {
        let mut team = Team::new();
        let agent = team.primary(1);
        let ask = team.ask(agent, 60, approval());
        let events =
            answer(team.agent(agent), ask.id, &allow(scope), Timestamp(7), &mut || uuid(80), &|_| None)
                .unwrap();
        team.apply(events);
        team.state.rules.into_values().map(|rule| rule.scope).next()
    };
    assert_eq!(scope_of(GrantScope::Once), None);
    assert_eq!(scope_of(GrantScope::Session), Some(RuleScope::Agent { agent: id(1) }));
    assert_eq!(scope_of(GrantScope::Always), Some(RuleScope::Profile { profile: agent(1).profile }));
}

#[test]
fn an_open_ask_is_found_by_its_id_or_a_unique_part_of_it() {
    let mut team = Team::new();
    let (one, two) = (team.primary(1), team.primary(2));
    let ask_id = |text: &str| text.parse::<AskId>().unwrap();
    let first = ask_id("01890000-aaaa-7000-8000-00000000bbbb");
    let second = ask_id("01890000-cccc-7000-8000-00000000dddd");
    team.ask(two, second.uuid().as_u128(), approval());
    team.ask(one, first.uuid().as_u128(), question());
    let found = |wanted: &str| find_ask(&team.state, wanted).map(|(agent, ask)| (agent.id, ask.id));
    assert_eq!(found(&first.to_string()), Ok((one, first)));
    assert_eq!(found("01890000-C"), Ok((two, second)));
    assert_eq!(found("dddd"), Ok((two, second)));
    assert!(matches!(found("0189"), Err(Refusal::Invalid { .. })), "it fits both");
    for wanted in ["", "ddd", "eeee", &id(1).to_string()] {
        assert!(matches!(found(wanted), Err(Refusal::NotOpen { .. })), "{wanted:?}");
    }
}

#[test]
fn the_inbox_is_oldest_first_over_all_agents() {
    let mut team = Team::new();
    let (one, two) = (team.primary(1), team.primary(2));
    for (agent, n) in [(two, 61), (one, 63), (one, 62), (two, 60)] {
        team.ask(agent, n, approval());
    }
    let order: Vec<u128> = team.state.inbox().iter().map(|(_, ask)| ask.id.uuid().as_u128()).collect();
    assert_eq!(order, [60, 61, 62, 63]);
}
