//! The daemon is killed while parents wait: every result reaches its parent once all the same.

use std::time::Duration;

use consort_model::{AgentId, TaskResult};
use consort_testkit::harness::Home;

use crate::{times_told, wait_results};

/// A home whose profile `worker` says a secret word, some time after it was asked for it.
fn home() -> Home {
    let home = Home::with_config("[limits]\nsubagents_per_parent = 2");
    home.profile("worker", &["--on-prompt", "[[wait 700]] [[say the word is swordfish]]"]);
    home.start_daemon();
    home
}

const SPAWN: &str = r#"[[mcp spawn_subagent {"task": "say the word", "profile": "worker"}]]"#;

#[test]
fn results_come_once_although_the_daemon_is_killed_again_and_again() {
    let home = home();
    // Two run and one is queued; the parent waits for all of them, and waits again when its call breaks off.
    let wait = r#"[[mcp wait_for_agents {"all": true}]]"#;
    let steps = format!("{SPAWN} {SPAWN} {SPAWN} {}", wait.repeat(4));
    let mut client = home.client();
    let parents: Vec<AgentId> = (0..2).map(|_| client.new_agent_with("scripted", &steps).0).collect();
    for kill in 0..4_u64 {
        client.wait_until("a parent has sub-agents", |state| {
            state.agents.values().any(|agent| agent.relation.parent().is_some()).then_some(())
        });
        drop(client);
        // Kills are to come at different moments of the work; nothing is waited for here.
        std::thread::sleep(Duration::from_millis(150 + 390 * kill));
        home.restart();
        client = home.client();
    }
    for parent in parents {
        let results = wait_results(&client, parent, 3);
        for (child, result) in &results {
            assert!(
                matches!(result, TaskResult::Yielded { text, .. } if text.contains("swordfish")),
                "{result:?}"
            );
            let name = client.view(*child).name;
            client.wait_until("the parent has nothing more to do", |state| {
                let agent = state.agents.get(&parent)?;
                (agent.turn.is_none() && agent.queue.is_empty()).then_some(())
            });
            let receipt = format!("result-{child}");
            let told = times_told(&client, parent, &format!("Sub-agent `{name}` is done"));
            let handed = usize::from(times_told(&client, parent, &receipt) > 0);
            assert_eq!(
                told + handed,
                1,
                "the result of {name} came {told} times by message and {handed} by call"
            );
        }
    }
    drop(client);
    home.finish();
}
