//! Budgets of time and tokens stop sub-agents cleanly.

use consort_model::relation::TaskResult;

use crate::stage::{Stage, task};

#[tokio::test(flavor = "multi_thread")]
async fn a_sub_agent_that_works_too_long_is_stopped_and_the_parent_told() {
    let stage = Stage::with("[limits]\nsubagent_seconds = 1").await;
    let parent = stage.agent("").await;
    let child = stage.spawn(parent, "[[hang]]").await;
    let waits = stage.spawn(parent, "[[ask execute ls]]").await;
    let after = stage.until("it is stopped", child, |agent| agent.relation.result().is_some()).await;
    assert!(matches!(after.relation.result(), Some(TaskResult::Stopped { .. })));
    stage.until("its turn is over", child, |agent| agent.turn.is_none()).await;
    stage.until("the parent was told", parent, |agent| agent.last_outcome.is_some()).await;
    assert_eq!(stage.told_of(parent, child).await, 1);
    assert_eq!(stage.look(waits).relation.result(), None, "waiting for a person takes no time");
    assert!(!stage.look(child).is_closed(), "a person can still look at it");
    stage.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tree_that_used_up_its_tokens_stops_as_a_whole() {
    let stage = Stage::with("[limits]\ntree_tokens = 100\nsubagents_per_parent = 2").await;
    let parent = stage.agent("[[hang]]").await;
    let busy = stage.spawn(parent, "[[hang]]").await;
    stage.until("it works", busy, |agent| agent.turn.is_some()).await;
    let greedy = stage.spawn(parent, "[[turn-usage input=90 output=20]] [[say x]]").await;
    let queued = stage.spawn(parent, "[[hang]]").await;
    for id in [busy, greedy, queued] {
        let after = stage.until("it is stopped", id, |agent| agent.relation.result().is_some()).await;
        let result = after.relation.result().cloned();
        assert!(matches!(result, Some(TaskResult::Stopped { .. })), "{result:?}");
    }
    stage.until("its turn is over", busy, |agent| agent.turn.is_none()).await;
    assert!(stage.look(queued).is_closed());
    let more = stage.hub.spawn(parent, task("[[hang]]")).await.unwrap_err().to_string();
    assert!(more.contains("100 tokens"), "{more}");
    stage.finish().await;
}
