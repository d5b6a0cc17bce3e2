//! Sub-agents' results: by yield, by last words after a reminder, into the call or as a message, once.

use std::os::unix::fs::PermissionsExt;

use consort_hub::HubError;
use consort_hub::teamwork::Spawn;
use consort_model::relation::TaskResult;
use consort_model::{Actor, Status, TurnOutcome};

use crate::stage::{LONG, SHORT, Stage, prompt, task};

#[tokio::test(flavor = "multi_thread")]
async fn a_sub_agent_that_does_not_yield_is_reminded_once_and_then_its_last_words_are_the_result() {
    let stage = Stage::new().await;
    let parent = stage.agent("[[hang]]").await;
    let child = stage.spawn(parent, "[[say not this]] [[tool read a.txt]]").await;
    let waited = stage.hub.wait_for_agents(parent, vec![child], true, LONG, |_| {}).await.unwrap();
    assert_eq!(waited.finished[0].result.as_deref(), Some("42"));
    assert_eq!(waited.finished[0].status, "done");
    assert!(waited.unfinished.is_empty());
    let told = stage.told(child).await;
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].contains("yield_to_parent") && told[1].contains("still waits for your result"));
    assert!(stage.look(parent).queue.is_empty(), "it came in the call, so not as a message");
    stage.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_yield_ends_the_turn_and_wakes_a_parent_that_does_not_wait() {
    let stage = Stage::new().await;
    let parent = stage.agent("").await;
    let child = stage.spawn(parent, "[[stream n=100000 rate=100]]").await;
    stage.until("it works", child, |agent| agent.turn.is_some()).await;
    stage.hub.yield_to_parent(child, "the answer".to_owned()).await.unwrap();
    let after = stage.until("its turn is over", child, |agent| agent.turn.is_none()).await;
    assert_eq!(after.last_outcome, Some(TurnOutcome::Completed), "it is not an interrupt");
    stage.until("the parent was woken", parent, |agent| agent.last_outcome.is_some()).await;
    assert_eq!(stage.told_of(parent, child).await, 1);
    assert!(stage.told(parent).await[0].ends_with("the answer"));
    let again = stage.hub.yield_to_parent(child, "another".to_owned()).await;
    assert!(matches!(again, Err(HubError::Refused(_))));
    let not_one = stage.hub.yield_to_parent(parent, "x".to_owned()).await.unwrap_err().to_string();
    assert!(not_one.contains("only a sub-agent"), "{not_one}");
    assert_eq!(stage.look(child).queue.len(), 0, "nobody reminds who is done");
    stage.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_that_is_given_up_leaves_the_result_as_a_message() {
    let stage = Stage::new().await;
    let parent = stage.agent("").await;
    let child = stage.spawn(parent, "[[hang]]").await;
    let hub = stage.hub.clone();
    let call =
        tokio::spawn(async move { hub.wait_for_agents(parent, vec![child], true, LONG, |_| {}).await });
    stage.until("it waits", parent, |agent| !agent.waits.is_empty()).await;
    call.abort();
    stage.until("it waits no more", parent, |agent| agent.waits.is_empty()).await;
    stage.hub.yield_to_parent(child, "42".to_owned()).await.unwrap();
    stage.until("the parent was woken", parent, |agent| agent.last_outcome.is_some()).await;
    assert_eq!(stage.told_of(parent, child).await, 1);
    stage.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bounded_wait_is_continued_and_any_gives_what_is_new() {
    let stage = Stage::new().await;
    let parent = stage.agent("[[hang]]").await;
    let slow = stage.spawn(parent, "[[hang]]").await;
    let quick = stage.spawn(parent, "[[hang]]").await;
    let nothing = stage.hub.wait_for_agents(parent, vec![], false, SHORT, |_| {}).await.unwrap();
    assert_eq!((nothing.finished.len(), nothing.unfinished.len()), (0, 2));
    stage.hub.yield_to_parent(quick, "first".to_owned()).await.unwrap();
    let first = stage.hub.wait_for_agents(parent, vec![slow, quick], false, LONG, |_| {}).await.unwrap();
    assert_eq!(first.finished[0].result.as_deref(), Some("first"));
    // It came between two waits, so a message about it waits; the continued wait showed it, so the message need not come.
    stage.hub.yield_to_parent(slow, "second".to_owned()).await.unwrap();
    let second = stage.hub.wait_for_agents(parent, vec![slow, quick], true, LONG, |_| {}).await.unwrap();
    assert_eq!(second.finished.len(), 2);
    stage.hub.interrupt(Actor::Person, parent).await.unwrap();
    stage.until("its turn is over", parent, |agent| agent.turn.is_none()).await;
    for child in [slow, quick] {
        assert_eq!(stage.told_of(parent, child).await, 0, "it came twice");
    }
    stage.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_that_ends_while_a_parent_waits_loses_no_result() {
    let mut stage = Stage::new().await;
    let parent = stage.agent("").await;
    let child = stage.spawn(parent, "[[wait 600]]").await;
    let hub = stage.hub.clone();
    let call =
        tokio::spawn(async move { hub.wait_for_agents(parent, vec![child], true, LONG, |_| {}).await });
    stage.until("it waits", parent, |agent| !agent.waits.is_empty()).await;
    stage.restart().await;
    call.abort();
    stage.until("the parent was told", parent, |agent| agent.last_outcome.is_some()).await;
    assert!(stage.look(parent).waits.is_empty());
    assert_eq!(stage.told_of(parent, child).await, 1);
    stage.restart().await;
    assert_eq!(stage.told_of(parent, child).await, 1, "it came once more after another start");
    stage.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_result_is_cut_and_all_of_it_in_a_file() {
    let stage = Stage::new().await;
    let parent = stage.agent("[[hang]]").await;
    let child = stage.spawn(parent, "[[hang]]").await;
    let long = format!("begin {} end", "x".repeat(100_000));
    stage.hub.yield_to_parent(child, long.clone()).await.unwrap();
    let waited = stage.hub.wait_for_agents(parent, vec![child], true, LONG, |_| {}).await.unwrap();
    let outcome = &waited.finished[0];
    let file = std::path::PathBuf::from(outcome.result_file.as_ref().unwrap());
    assert_eq!(std::fs::read_to_string(&file).unwrap(), long);
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let short = outcome.result.as_ref().unwrap();
    assert!(short.starts_with("begin x") && short.ends_with("x end") && short.len() < 40_000);
    assert!(short.contains(&file.display().to_string()));
    stage.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_parent_learns_how_a_task_ended_without_a_result() {
    let stage = Stage::new().await;
    let parent = stage.agent("[[hang]]").await;
    let failed = stage.spawn(parent, "[[crash 3]]").await;
    let closed = stage.spawn(parent, "[[hang]]").await;
    stage.until("it works", closed, |agent| agent.turn.is_some()).await;
    stage.hub.close(Actor::Person, closed).await.unwrap();
    let waited = stage.hub.wait_for_agents(parent, vec![failed, closed], true, LONG, |_| {}).await.unwrap();
    let statuses: Vec<&str> = waited.finished.iter().map(|outcome| outcome.status.as_str()).collect();
    assert_eq!(statuses, ["failed", "closed"]);
    assert!(waited.finished[0].result.as_ref().unwrap().contains("exited with code 3"));
    stage.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_sub_agent_stays_open_and_the_parent_is_told() {
    let stage = Stage::new().await;
    let parent = stage.agent("").await;
    let child = stage.spawn(parent, "[[hang]]").await;
    stage.until("it works", child, |agent| agent.turn.is_some()).await;
    stage.hub.interrupt(Actor::Person, child).await.unwrap();
    let after = stage.until("its turn is over", child, |agent| agent.turn.is_none()).await;
    assert_eq!((after.status(), after.relation.result()), (Status::Idle, None));
    stage.until("the parent was told", parent, |agent| agent.last_outcome.is_some()).await;
    assert!(stage.told(parent).await[0].contains("waits for a person"));
    // A person goes on with it.
    stage.hub.send(child, prompt("[[say 43]]")).await.unwrap();
    let done = stage.until("it is done", child, |agent| agent.relation.result().is_some()).await;
    assert_eq!(done.relation.result(), Some(&TaskResult::Yielded { text: "42".into(), file: None }));
    stage.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn files_go_with_a_task_and_what_cannot_be_spawned_leaves_nothing() {
    let stage = Stage::new().await;
    let parent = stage.agent("[[hang]]").await;
    std::fs::write(stage.home.work().join("notes.txt"), "remember").unwrap();
    std::fs::write(stage.home.elsewhere().join("secret.txt"), "secret").unwrap();
    let spawn =
        Spawn { files: vec!["notes.txt".into()], label: Some("take  notes".into()), ..task("[[hang]]") };
    let child = stage.hub.spawn(parent, spawn).await.unwrap();
    let record = stage.look(child);
    assert_eq!((record.name.as_str(), record.brief.label.as_deref()), ("take-notes", Some("take  notes")));
    let before = stage.hub.with(|state| state.agents.len());
    let secret = stage.home.elsewhere().join("secret.txt");
    let refused = [
        Spawn { task: " ".into(), ..task("") },
        Spawn { files: vec!["missing.txt".into()], ..task("x") },
        Spawn { files: vec![secret], ..task("x") },
        Spawn { cwd: Some("/".into()), ..task("x") },
        Spawn { profile: Some("nobody".into()), ..task("x") },
    ];
    for spawn in refused {
        assert!(stage.hub.spawn(parent, spawn.clone()).await.is_err(), "{spawn:?}");
    }
    let below = stage.hub.spawn(child, task("x")).await.unwrap_err().to_string();
    assert!(below.contains("how deep"), "{below}");
    assert_eq!(stage.hub.with(|state| state.agents.len()), before);
    stage.finish().await;
}
