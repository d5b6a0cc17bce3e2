//! What goes into a running turn, and what goes on after it.

use consort_daemon::protocol::{Call, NewPrompt, Sent};
use consort_model::{Answer, GrantScope, ItemBody, PromptId, ToolStatus, TurnOutcome};
use consort_testkit::clis::Cli;
use consort_testkit::harness;
use uuid::Uuid;

use crate::endings::goes_on;
use crate::stage::{Stage, Turn};

pub fn steer(stage: &mut Stage) {
    with_a_tool(stage);
    while_it_answers(stage);
    one_that_waits(stage);
    into_a_turn_that_is_stopped(stage);
    goes_on(stage);
}

/// It is taken in with the result of the tool, also where the daemon is killed before that.
fn with_a_tool(stage: &mut Stage) {
    let words = "Mind the blue gate.";
    let (prompt, from) = stage.send("[[shell]]");
    stage.client.wait_ask(stage.agent);
    let steered = send_steering(stage, words);
    assert!(
        stage.now().queue.iter().any(|waiting| waiting.id == steered),
        "it is visible until it is taken in"
    );
    stage.kill_daemon();
    let turn = stage.finish(prompt, from, |_| Answer::allow(GrantScope::Once));
    turn.completed().says("The command said:").without_trouble();
    assert!(stage.request("shell").body.to_string().contains(words), "its model has read it");
    is_said_once(&turn, steered);
    let turns: std::collections::BTreeSet<_> = turn.items.iter().filter_map(|item| item.turn).collect();
    assert_eq!(turns.len(), 1, "{:#?}", turn.items);
    let place = turn.items.iter().position(|item| is(&item.body, steered)).unwrap();
    assert!(matches!(turn.items[place + 1..], [.., _]), "the answer comes after it: {:#?}", turn.items);
}

/// The prompt is answered after what is said already. Codex breaks off for it; Claude ends its answer first.
fn while_it_answers(stage: &Stage) {
    let (_, from) = stage.send("[[steady]]");
    stage.wait_said(from, "beat 3");
    let steered = send_steering(stage, "[[say It was steered.]]");
    let turn = stage.finish(steered, from, |ask| panic!("nothing should be asked, but: {ask:#?}"));
    turn.completed().says("beat 3").says("It was steered.").without_trouble();
    assert_eq!(turn.said().contains("beat 60"), stage.cli == Cli::Claude, "{:#?}", turn.items);
    is_said_once(&turn, steered);
}

/// A prompt that waits for a turn of its own joins the running one when it is sent again to steer.
fn one_that_waits(stage: &Stage) {
    let (_, from) = stage.send("[[steady]]");
    stage.wait_said(from, "beat 3");
    let prompt = NewPrompt {
        id: PromptId::new(Uuid::now_v7()),
        text: "[[say It waited.]]".to_owned(),
        attachments: vec![],
    };
    let agent = stage.agent.to_string();
    let sent: Sent = stage.client.call(&Call::Send { agent: agent.clone(), prompt: prompt.clone() });
    assert_eq!((sent.joins, sent.waiting_behind), (false, Some(0)));
    let sent: Sent = stage.client.call(&Call::Steer { agent, prompt: prompt.clone() });
    assert!(sent.joins, "{sent:?}");
    let turn = stage.finish(prompt.id, from, |ask| panic!("nothing should be asked, but: {ask:#?}"));
    turn.completed().says("beat 3").says("It waited.").without_trouble();
    assert_eq!(turn.said().contains("beat 60"), stage.cli == Cli::Claude, "{:#?}", turn.items);
    is_said_once(&turn, prompt.id);
}

/// What a turn is stopped before it took in is delivered after it. Codex takes it in at once.
fn into_a_turn_that_is_stopped(stage: &Stage) {
    let (_, from) = stage.send("[[slow]]");
    stage.wait_said(from, "tick 3");
    let steered = send_steering(stage, "[[say After the stop.]]");
    stage.client.interrupt(stage.agent);
    let turn = stage.finish(steered, from, |ask| panic!("nothing should be asked, but: {ask:#?}"));
    turn.without_trouble();
    assert!(!turn.said().contains("tick 100,"), "it was not stopped");
    is_said_once(&turn, steered);
    if stage.cli == Cli::Claude {
        turn.completed();
        assert_eq!(turn.said().matches("After the stop.").count(), 1, "{:#?}", turn.items);
    }
}

fn send_steering(stage: &Stage, text: &str) -> PromptId {
    let id = PromptId::new(Uuid::now_v7());
    let prompt = NewPrompt { id, text: text.to_owned(), attachments: vec![] };
    let sent: Sent = stage.client.call(&Call::Steer { agent: stage.agent.to_string(), prompt });
    assert!(sent.joins, "{sent:?}");
    id
}

fn is(body: &ItemBody, wanted: PromptId) -> bool {
    matches!(body, ItemBody::User { prompt, .. } if *prompt == wanted)
}

fn is_said_once(turn: &Turn, prompt: PromptId) {
    let count = turn.items.iter().filter(|item| is(&item.body, prompt)).count();
    assert_eq!(count, 1, "{:#?}", turn.items);
    assert!(turn.agent.queue.is_empty() && turn.agent.offered.is_empty(), "{:#?}", turn.agent);
}

pub fn background(stage: &mut Stage) {
    let began = stage.file("background-began.txt");
    let (prompt, from) = stage.send(&format!("[[background-{}]]", stage.cli.name()));
    let turn = stage.finish(prompt, from, |_| Answer::allow(GrantScope::Once));
    turn.completed().says("It runs.").without_trouble();
    let tool = turn.tool();
    assert!(!tool.status.is_over() || tool.status == ToolStatus::Completed, "{tool:#?}");
    harness::poll("the command runs", || began.exists().then_some(()));
    // It goes on through another turn, and ends as the same item.
    stage.turn("[[say Meanwhile.]]").ended(TurnOutcome::Completed).says("Meanwhile.");
    std::fs::write(stage.file("background-end.txt"), "").unwrap();
    let id = tool.id.clone();
    let mut seen = None;
    stage.client.wait_until("the command has ended", |state| {
        if seen.replace(state.seq) == Some(state.seq) {
            return None;
        }
        let turn = stage.since(from);
        let tools = turn.tools();
        let [tool] = tools.as_slice() else { panic!("it is one item: {:#?}", turn.items) };
        assert_eq!(tool.id, id);
        assert_ne!(tool.status, ToolStatus::Failed, "{tool:#?}");
        (tool.status == ToolStatus::Completed && turn.agent.turn.is_none()).then_some(())
    });
}
