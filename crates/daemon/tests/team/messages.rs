//! Messages and questions between agents.

use consort_hub::teamwork::Answered;
use consort_hub::{HubError, NewAgent};
use consort_model::{Actor, AgentId, Brief, LetterState, Refusal, Relation};
use uuid::Uuid;

use crate::stage::{LONG, SHORT, Stage};

async fn companion(stage: &Stage, owner: AgentId) -> AgentId {
    let id = AgentId::new(Uuid::now_v7());
    let new = NewAgent {
        id,
        profile: Some("scripted".to_owned()),
        name: None,
        cwd: stage.home.work(),
        relation: Relation::Companion { owner },
        permissions: None,
        worktree: None,
        prompt: None,
        brief: Brief::default(),
    };
    stage.hub.create(Actor::Agent(owner), new).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_wakes_its_recipient_and_its_state_is_seen() {
    let stage = Stage::new().await;
    let (one, two) = (stage.agent("[[hang]]").await, stage.agent("").await);
    let sent = stage.hub.send_message(one, two, "[[say thanks]]".to_owned()).await.unwrap();
    let read = |state| state == Some(LetterState::Read);
    stage.until("it was read", two, |agent| read(agent.letters.back().map(|letter| letter.state))).await;
    assert_eq!(stage.look(two).letters.back().map(|letter| letter.prompt), Some(sent.id));

    // A working one gets several as one turn.
    for n in 0..3 {
        let sent = stage.hub.send_message(two, one, format!("number {n}")).await.unwrap();
        assert_eq!(sent.state, LetterState::Queued);
    }
    let shown = stage.hub.check_messages(one).await.unwrap();
    assert_eq!(
        shown.iter().map(|message| message.text.as_str()).collect::<Vec<_>>(),
        ["number 0", "number 1", "number 2"]
    );
    assert_eq!(shown[0].from, stage.look(two).name);
    stage.hub.interrupt(Actor::Person, one).await.unwrap();
    let after = stage.until("its turn is over", one, |agent| agent.turn.is_none()).await;
    assert!(after.queue.is_empty(), "it has read them");
    stage.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn several_messages_make_one_turn_and_say_who_wrote_them() {
    let stage = Stage::new().await;
    let (one, two) = (stage.agent("").await, stage.agent("[[hang]]").await);
    for n in 0..3 {
        stage.hub.send_message(one, two, format!("number {n}")).await.unwrap();
    }
    stage.hub.interrupt(Actor::Person, two).await.unwrap();
    stage
        .until("it has read them", two, |agent| {
            agent.last_outcome == Some(consort_model::TurnOutcome::Completed)
        })
        .await;
    assert_eq!(stage.told(two).await.len(), 4);
    let said = stage.hub.items(two, None, None, 100).await.unwrap();
    let said: String = said
        .iter()
        .filter_map(|item| match &item.body {
            consort_model::ItemBody::Text { text } => Some(text.as_str()),
            _ => None,
        })
        .collect();
    let name = stage.look(one).name;
    assert_eq!(
        said.matches(&format!("[Message from agent `{name}`, not from a person]")).count(),
        3,
        "{said}"
    );
    stage.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_is_answered_in_the_call_or_by_a_message() {
    let stage = Stage::new().await;
    let (one, two) = (stage.agent("").await, stage.agent("").await);
    let asked = stage.hub.ask_agent(one, two, "which? [[say blue]]".to_owned(), LONG).await.unwrap();
    let Answered::Answer { text, .. } = asked else { panic!("{asked:?}") };
    assert_eq!(text, "blue");

    let asked = stage.hub.ask_agent(one, two, "[[wait 700]] [[say green]]".to_owned(), SHORT).await.unwrap();
    assert!(matches!(asked, Answered::Later { .. }), "{asked:?}");
    stage.until("the answer came", one, |agent| agent.last_outcome.is_some()).await;
    let told = stage.told(one).await;
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].ends_with("green"), "{told:?}");

    // Who waits for one cannot be asked back.
    let hub = stage.hub.clone();
    let call = tokio::spawn(async move { hub.ask_agent(one, two, "[[hang]]".to_owned(), LONG).await });
    stage.until("it waits", one, |agent| !agent.waits.is_empty()).await;
    let circle = stage.hub.ask_agent(two, one, "no, you".to_owned(), LONG).await.unwrap_err().to_string();
    assert!(circle.contains("waits for you already"), "{circle}");
    stage.hub.close(Actor::Person, two).await.unwrap();
    let closed = call.await.unwrap().unwrap();
    assert!(matches!(&closed, Answered::Answer { text, .. } if text.contains("closed")), "{closed:?}");
    stage.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn companions_and_owners_see_each_other_alone() {
    let stage = Stage::new().await;
    let (owner, stranger) = (stage.agent("").await, stage.agent("").await);
    let companion = companion(&stage, owner).await;
    let refused = stage.hub.send_message(stranger, companion, "hi".to_owned()).await;
    assert!(matches!(refused, Err(HubError::Refused(Refusal::NoSuchAgent { .. }))), "{refused:?}");
    stage.hub.send_message(companion, owner, "hi".to_owned()).await.unwrap();
    stage.until("the owner read it", owner, |agent| agent.last_outcome.is_some()).await;
    let (sent, refused) = stage.hub.broadcast(owner, "all of you".to_owned()).await.unwrap();
    assert_eq!((sent.len(), refused.len()), (2, 0));
    stage.hub.close(Actor::Person, owner).await.unwrap();
    assert!(stage.look(companion).is_closed());
    stage.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_agents_that_thank_each_other_are_stopped_with_advice() {
    let stage = Stage::with("[limits]\nmessages_between_two = 4").await;
    let (one, two) = (stage.agent("[[hang]]").await, stage.agent("[[hang]]").await);
    for n in 0..4 {
        let (from, to) = if n % 2 == 0 { (one, two) } else { (two, one) };
        stage.hub.send_message(from, to, "thank you".to_owned()).await.unwrap();
    }
    let refused = stage.hub.send_message(one, two, "no, thank you".to_owned()).await.unwrap_err().to_string();
    assert!(refused.contains("end your turn without another message"), "{refused}");
    stage.finish().await;
}
