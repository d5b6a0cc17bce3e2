//! Who runs, who waits for a slot, and what an interrupt or a close at the top leaves.

use std::collections::BTreeMap;
use std::sync::Arc;

use consort_model::{Actor, AgentId, Status};

use crate::stage::{LONG, Stage, task};

#[tokio::test(flavor = "multi_thread")]
async fn sub_agents_past_the_limit_wait_and_start_when_one_is_done() {
    let stage = Stage::with("[limits]\nsubagents_per_parent = 2").await;
    let parent = stage.agent("[[hang]]").await;
    let mut children = Vec::new();
    for _ in 0..4 {
        children.push(stage.spawn(parent, "[[hang]]").await);
    }
    let statuses = || children.iter().map(|id| stage.look(*id).status()).collect::<Vec<_>>();
    assert_eq!(statuses()[2..], [Status::Queued, Status::Queued]);
    for id in &children[..2] {
        stage.until("it works", *id, |agent| agent.turn.is_some()).await;
    }
    assert_eq!(stage.home.runner_folders().len(), 3, "who is queued has no process");
    stage.hub.yield_to_parent(children[0], "done".to_owned()).await.unwrap();
    stage.until("the next one starts", children[2], |agent| agent.turn.is_some()).await;
    assert_eq!(stage.look(children[3]).status(), Status::Queued);

    stage.hub.interrupt(Actor::Person, parent).await.unwrap();
    assert!(stage.look(children[3]).is_closed(), "it is not started later");
    for id in &children[1..3] {
        // One that was still being started is idle once it has.
        let after = stage.until("its turn is over", *id, |agent| agent.status() == Status::Idle).await;
        assert_eq!(after.relation.result(), None);
    }
    stage.until("the parent's turn is over", parent, |agent| agent.turn.is_none()).await;
    stage.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_parent_that_waits_leaves_its_slot_to_its_children() {
    let stage = Stage::with("[limits]\nsubagents_total = 1\nsubagent_depth = 2").await;
    let top = stage.agent("[[hang]]").await;
    let middle = stage.spawn(top, "[[hang]]").await;
    stage.until("it works", middle, |agent| agent.turn.is_some()).await;
    let low = stage.spawn(middle, "[[say done]]").await;
    assert_eq!(stage.look(low).status(), Status::Queued);
    let waited = stage.hub.wait_for_agents(middle, vec![low], true, LONG, |_| {}).await.unwrap();
    assert_eq!(waited.finished[0].status, "done");
    stage.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupt_at_the_top_stops_every_depth_and_a_close_closes_it() {
    let stage = Stage::with("[limits]\nsubagent_depth = 3").await;
    let top = stage.agent("[[hang]]").await;
    let middle = stage.spawn(top, "[[hang]]").await;
    stage.until("it works", middle, |agent| agent.turn.is_some()).await;
    let low = stage.spawn(middle, "[[hang]]").await;
    stage.until("it works", low, |agent| agent.turn.is_some()).await;
    let starting = stage.spawn(middle, "[[hang]]").await;
    stage.hub.interrupt(Actor::Person, top).await.unwrap();
    for id in [top, middle, low] {
        stage.until("its turn is over", id, |agent| agent.turn.is_none()).await;
    }
    let after = stage.until("it has started", starting, |agent| agent.session.is_some()).await;
    assert!(after.queue.is_empty() && after.turn.is_none(), "it began although it was interrupted");
    let late = stage.hub.spawn(top, task("[[hang]]")).await.unwrap_err().to_string();
    assert!(late.contains("interrupted"), "{late}");
    stage.hub.close(Actor::Person, top).await.unwrap();
    for id in [top, middle, low, starting] {
        assert!(stage.look(id).is_closed());
    }
    assert_eq!(stage.home.runner_folders(), Vec::<std::path::PathBuf>::new());
    stage.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_sub_agents_of_ten_parents_give_every_result_once() {
    let stage = Arc::new(Stage::with("[limits]\nsubagents_per_parent = 4\nsubagents_total = 12").await);
    let mut parents = Vec::new();
    for _ in 0..10 {
        parents.push(stage.agent("[[hang]]").await);
    }
    let work = parents.iter().map(|parent| {
        let (stage, parent) = (Arc::clone(&stage), *parent);
        tokio::spawn(async move {
            let mut children = Vec::new();
            for n in 0..10 {
                let label = Some(format!("part {n}"));
                let spawn = consort_hub::teamwork::Spawn { label, ..task("[[say a part]]") };
                children.push(stage.hub.spawn(parent, spawn).await.unwrap());
            }
            let mut results: BTreeMap<AgentId, u32> = BTreeMap::new();
            while results.len() < children.len() {
                let rest: Vec<AgentId> =
                    children.iter().copied().filter(|child| !results.contains_key(child)).collect();
                let waited = stage.hub.wait_for_agents(parent, rest, false, LONG, |_| {}).await.unwrap();
                for outcome in waited.finished {
                    assert_eq!(outcome.result.as_deref(), Some("42"));
                    *results.entry(outcome.agent).or_default() += 1;
                }
            }
            (parent, results)
        })
    });
    let work: Vec<_> = work.collect();
    let mut all = 0;
    for done in work {
        let (parent, results) = done.await.unwrap();
        stage.hub.interrupt(Actor::Person, parent).await.unwrap();
        stage.until("its turn is over", parent, |agent| agent.turn.is_none()).await;
        for (child, count) in results {
            let told = stage.told_of(parent, child).await;
            assert_eq!((count, told), (1, 0), "a result came twice");
            all += 1;
        }
    }
    assert_eq!(all, 100);
    Arc::into_inner(stage).unwrap().finish().await;
}
