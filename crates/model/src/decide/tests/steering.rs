//! What a running turn is given beside the prompt that began it.

use crate::agent::{Agent, Prompt, TurnOutcome};
use crate::command::Refusal;
use crate::decide::testing::*;
use crate::decide::*;
use crate::event::AgentEvent;
use crate::ids::{AgentId, PromptId, Timestamp};
use crate::profile::DriverKind;
use crate::signal::Signal;
use crate::team::LetterState;
use crate::transcript::Writer;

fn steering(n: u128) -> Prompt {
    Prompt { steers: true, ..prompt(n, "also this") }
}

fn number(prompt: Option<&Prompt>) -> Option<u128> {
    prompt.map(|prompt| prompt.id.uuid().as_u128())
}

/// A team with an agent that works by a driver that can be steered.
fn at_work() -> (Team, AgentId) {
    let mut team = Team::new();
    let subject = team.primary(1);
    team.working(subject);
    team.state.agents.get_mut(&subject).unwrap().driver = DriverKind::Codex;
    (team, subject)
}

fn offer(team: &mut Team, subject: AgentId) -> PromptId {
    let prompt = steerable(team.agent(subject)).unwrap().clone();
    let mut writer = Writer::new(team.agent(subject), Timestamp(0));
    writer.offer(&prompt);
    team.change(subject, writer.finish());
    prompt.id
}

fn hears(team: &mut Team, subject: AgentId, signal: Signal) {
    let mut writer = Writer::new(team.agent(subject), Timestamp(0));
    writer.signal(signal, &[], &mut || uuid(77));
    team.change(subject, writer.finish());
}

#[test]
fn only_a_turn_that_goes_on_and_can_take_more_is_given_more() {
    let (mut team, subject) = at_work();
    team.send(subject, &prompt(10, "later")).unwrap();
    assert_eq!(steerable(team.agent(subject)), None, "an ordinary prompt waits");
    team.send(subject, &steering(11)).unwrap();
    let agent = team.agent(subject).clone();
    assert_eq!(number(steerable(&agent)), Some(11), "before those that wait for a turn of their own");
    type Change = fn(&mut Agent);
    let table: [(&str, Change); 6] = [
        ("cannot be steered", |agent| agent.driver = DriverKind::Acp),
        ("is being stopped", |agent| agent.turn.as_mut().unwrap().interrupted = true),
        ("gave its result", |agent| agent.turn.as_mut().unwrap().yielded = true),
        ("works on nothing", |agent| agent.turn = None),
        ("was shown it", |agent| agent.shown.extend([(PromptId::new(uuid(11)), true)])),
        ("was given it", |agent| agent.offered.push(PromptId::new(uuid(11)))),
    ];
    for (what, change) in table {
        let mut agent = agent.clone();
        change(&mut agent);
        assert_eq!(steerable(&agent), None, "one that {what}");
    }
}

#[test]
fn a_prompt_that_waits_joins_the_running_turn_when_it_is_sent_again_to_steer() {
    let (mut team, subject) = at_work();
    team.send(subject, &prompt(10, "later")).unwrap();
    team.send(subject, &prompt(10, "later")).unwrap();
    assert_eq!(steerable(team.agent(subject)), None, "sending it again changes nothing");
    team.send(subject, &steering(10)).unwrap();
    let agent = team.agent(subject);
    assert_eq!((agent.queue.len(), agent.queue[0].text.as_str()), (1, "later"));
    assert_eq!(number(steerable(agent)), Some(10));
    let given = offer(&mut team, subject);
    hears(&mut team, subject, Signal::Joined { key: given.to_string() });
    assert_eq!(send(&team.state, subject, &steering(10)), Ok(vec![]), "what was taken in is not said twice");
}

#[test]
fn a_prompt_that_waits_stays_as_it_is_where_no_turn_takes_more() {
    let (mut team, subject) = at_work();
    team.send(subject, &prompt(10, "later")).unwrap();
    team.state.agents.get_mut(&subject).unwrap().driver = DriverKind::Acp;
    assert_eq!(send(&team.state, subject, &steering(10)), Ok(vec![]));
}

#[test]
fn what_a_turn_takes_in_is_delivered_and_what_it_does_not_is_delivered_after_it() {
    let (mut team, subject) = at_work();
    team.send(subject, &steering(10)).unwrap();
    team.send(subject, &steering(11)).unwrap();
    let (first, second) = (offer(&mut team, subject), offer(&mut team, subject));
    assert!(joins(team.agent(subject), first) && joins(team.agent(subject), second));
    hears(&mut team, subject, Signal::Joined { key: first.to_string() });
    assert!(team.agent(subject).knows_prompt(first), "sent again it is recognised");
    team.end_turn(subject);
    assert_eq!(deliverable(team.agent(subject)), None, "the agent may begin a turn with it by itself");
    hears(&mut team, subject, Signal::NotJoined { key: second.to_string() });
    let next = deliverable(team.agent(subject)).unwrap();
    assert_eq!(next.iter().map(|prompt| (prompt.id, prompt.steers)).collect::<Vec<_>>(), [(second, false)]);
    team.begin_turn(subject);
    assert_eq!(steerable(team.agent(subject)), None);
    assert!(team.agent(subject).queue.is_empty());
}

#[test]
fn what_a_turn_was_given_cannot_be_edited_and_comes_back_when_the_process_ends() {
    let (mut team, subject) = at_work();
    team.send(subject, &steering(10)).unwrap();
    let given = offer(&mut team, subject);
    for text in [Some("else"), None] {
        assert!(matches!(edit_queued(&team.state, subject, given, text), Err(Refusal::Invalid { .. })));
    }
    team.fail(subject, 5);
    let agent = team.agent(subject);
    assert!(agent.offered.is_empty());
    assert_eq!(number(agent.queue.front()), Some(10));
    edit_queued(&team.state, subject, given, Some("else")).unwrap();
}

#[test]
fn a_message_joins_the_turn_of_an_agent_that_works_and_is_shown_once() {
    let (mut team, subject) = at_work();
    let sender = team.primary(2);
    team.ready(sender);
    let sent = send_message(&team.state, subject, &message(20, sender), Timestamp(0)).unwrap();
    team.apply(sent);
    let given = offer(&mut team, subject);
    let (shown, _) = show_messages(&team.state, subject).unwrap();
    assert_eq!(shown, [], "it is on its way already");
    hears(&mut team, subject, Signal::Joined { key: given.to_string() });
    let letter = team.agent(subject).letters.back().unwrap();
    assert_eq!((letter.prompt, letter.state), (given, LetterState::Delivered));
    team.end_turn_with(subject, TurnOutcome::Completed);
    assert_eq!(deliverable(team.agent(subject)), None);
}

#[test]
fn a_question_that_joins_a_turn_is_answered_by_its_end() {
    let (mut team, subject) = at_work();
    let sender = team.primary(2);
    team.working(sender);
    let wait = crate::ids::WaitId::new(uuid(30));
    let asked = inquire(&team.state, subject, &message(20, sender), wait, Timestamp(0)).unwrap();
    team.apply(asked);
    let given = offer(&mut team, subject);
    hears(&mut team, subject, Signal::Joined { key: given.to_string() });
    assert_eq!(answerable(team.agent(subject)), []);
    team.end_turn(subject);
    assert_eq!(answerable(team.agent(subject)), [given]);
    team.change(subject, vec![AgentEvent::Answered { prompt: given, text: "yes".into() }]);
}
