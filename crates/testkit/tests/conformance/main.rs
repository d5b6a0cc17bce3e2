//! The real CLIs through a real daemon, against the scripted model: everything that the table of scenarios says works.
//!
//! One test for each CLI. Its scenarios share one agent, since starting a CLI costs seconds; one that fails gets the
//! next a fresh agent, and all failures are told at the end. `CONSORT_SCENARIOS=plain,image` runs only those.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod endings;
mod scenarios;
mod sessions;
mod stage;
mod steering;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use consort_testkit::clis::Cli;
use consort_testkit::conformance::SCENARIOS;
use stage::Stage;

/// What the suite does for a scenario of the table.
fn scenario(name: &str) -> Option<fn(&mut Stage)> {
    let run: fn(&mut Stage) = match name {
        "plain" => scenarios::plain,
        "two-turns" => scenarios::two_turns,
        "thinking" => scenarios::thinking,
        "tool-allowed" => scenarios::tool_allowed,
        "tool-denied" => scenarios::tool_denied,
        "tool-denied-with-text" => scenarios::tool_denied_with_text,
        "always" => scenarios::always,
        "edit-with-diff" => scenarios::edit_with_diff,
        "new-file" => scenarios::new_file,
        "parallel" => scenarios::parallel,
        "question" => scenarios::question,
        "task-list" => scenarios::task_list,
        "plan" => scenarios::plan,
        "sub-agent" => scenarios::sub_agent,
        "permission-mode" => scenarios::permission_mode,
        "model-change" => scenarios::model_change,
        "mode-change" => scenarios::mode_change,
        "image" => scenarios::image,
        "image-read" => scenarios::image_read,
        "slash-command" => scenarios::slash_command,
        "usage" => scenarios::usage,
        "mcp-tool" => scenarios::mcp_tool,
        "steer" => steering::steer,
        "background" => steering::background,
        "sessions" => sessions::sessions,
        "api-error" => endings::api_error,
        "retry" => endings::retry,
        "retries-end" => endings::retries_end,
        "interrupt-streaming" => endings::interrupt_streaming,
        "interrupt-tool" => endings::interrupt_tool,
        "interrupt-approval" => endings::interrupt_approval,
        "daemon-killed-streaming" => endings::daemon_killed_streaming,
        "daemon-killed-approval" => endings::daemon_killed_approval,
        "agent-killed" => endings::agent_killed,
        "daemon-stopped" => endings::daemon_stopped,
        "close-in-tool" => endings::close_in_tool,
        _ => return None,
    };
    Some(run)
}

fn conformance(cli: Cli) {
    if cli.find().expect("the CLI is installed").is_none() {
        return;
    }
    let chosen = std::env::var("CONSORT_SCENARIOS").ok();
    let chosen = |name: &str| chosen.as_ref().is_none_or(|names| names.split(',').any(|one| one == name));
    let mut stage = Stage::new(cli);
    let mut failed = Vec::new();
    for row in SCENARIOS.iter().filter(|row| row.support(cli).runs() && chosen(row.name)) {
        let run = scenario(row.name).expect("the suite has every scenario that runs");
        let began = Instant::now();
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            run(&mut stage);
            stage.is_at_rest();
        }));
        let milliseconds = began.elapsed().as_millis();
        eprintln!(
            "{cli}: {} {} ({milliseconds} ms)",
            row.name,
            if outcome.is_ok() { "works" } else { "FAILED" }
        );
        if outcome.is_err() {
            failed.push(row.name);
            eprintln!("{}", stage.shown());
            stage.renew();
        }
    }
    stage.end();
    assert!(failed.is_empty(), "{cli}: these failed: {}", failed.join(", "));
}

#[test]
fn conformance_of_claude() {
    conformance(Cli::Claude);
}

#[test]
fn conformance_of_codex() {
    conformance(Cli::Codex);
}

#[test]
fn conformance_of_gemini() {
    conformance(Cli::Gemini);
}

#[test]
fn conformance_of_opencode() {
    conformance(Cli::OpenCode);
}

#[test]
fn conformance_of_claude_behind_its_acp_adapter() {
    conformance(Cli::ClaudeAcp);
}

#[test]
fn every_scenario_of_the_table_that_works_for_a_cli_is_run() {
    for row in SCENARIOS {
        let runs = Cli::ALL.iter().any(|cli| row.support(*cli).runs());
        assert!(!runs || scenario(row.name).is_some(), "{}", row.name);
    }
}
