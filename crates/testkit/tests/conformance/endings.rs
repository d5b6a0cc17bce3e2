//! Turns that are stopped, killed, outlived or taken up again.

use consort_daemon::protocol::{Call, Done};
use consort_model::{
    Answer, GrantScope, Item, ItemBody, NoticeLevel, SettledBy, Status, ToolStatus, TurnOutcome,
};
use consort_testkit::clis::Cli;
use consort_testkit::harness::{self, processes};

use crate::stage::Stage;

/// What the slow command of the scripts runs.
const SLOW: &str = "sleep 30";

pub fn api_error(stage: &mut Stage) {
    let turn = stage.turn("[[error-400]]");
    match &turn.agent.last_outcome {
        Some(TurnOutcome::Failed { message }) => {
            assert!(message.contains("Scripted: the request is not valid"), "{message:?}");
        }
        other => panic!("the turn should have failed, but: {other:?}"),
    }
    stage.turn("[[say It goes on.]]").completed().says("It goes on.");
}

pub fn retry(stage: &mut Stage) {
    let before = stage.now().usage;
    // Codex does not tell what it tries again at once. A word of its own, since the server counts by it.
    let failures = if stage.cli == Cli::Codex { 2 } else { 1 };
    let turn = stage.turn(&format!("[[error-first {failures} {}]]", stage.agent));
    turn.completed().says("At last.");
    let told = |item: &Item| match &item.body {
        ItemBody::Notice { level, text } => *level == NoticeLevel::Warning && text.contains("again"),
        _ => false,
    };
    let silent = !matches!(stage.cli, Cli::Claude | Cli::Codex);
    assert_eq!(turn.items.iter().any(told), !silent, "{:#?}", turn.items);
    let asked = stage.model.conversation();
    assert_eq!(asked.iter().filter(|request| request.scenario == "error-first").count(), failures + 1);
    // What failed costs nothing, and what was said is said once.
    let grown = |after: Option<u64>, before: Option<u64>| after.unwrap_or(0) - before.unwrap_or(0);
    let after = turn.agent.usage;
    assert_eq!(grown(after.input_tokens, before.input_tokens), 11, "{before:?} {after:?}");
    assert_eq!(grown(after.output_tokens, before.output_tokens), 7, "{before:?} {after:?}");
    assert_eq!(turn.said().matches("At last.").count(), 1, "{:#?}", turn.items);
}

pub fn retries_end(stage: &mut Stage) {
    if stage.cli == Cli::Gemini {
        // With the models that it offers, one of which an earlier scenario chose, it tries for longer than a test waits.
        stage.renew();
    }
    let turn = stage.turn("[[error-500]]");
    match &turn.agent.last_outcome {
        Some(TurnOutcome::Failed { message }) => {
            // Codex says it in its own words.
            let words = if stage.cli == Cli::Codex { "high demand" } else { "Scripted: an internal error" };
            assert!(message.contains(words), "{message:?}");
        }
        other => panic!("the turn should have failed, but: {other:?}"),
    }
    let asked = stage.model.conversation();
    assert!(asked.iter().filter(|request| request.scenario == "error-500").count() > 1, "it tried again");
    goes_on(stage);
}

pub fn interrupt_streaming(stage: &mut Stage) {
    let (prompt, from) = stage.send("[[slow]]");
    stage.wait_said(from, "tick 3");
    stage.client.interrupt(stage.agent);
    let turn = stage.finish(prompt, from, nothing_asked);
    turn.ended(TurnOutcome::Interrupted).says("tick 3").without_trouble();
    assert!(!turn.said().contains("tick 100,"), "it was not stopped");
    goes_on(stage);
}

pub fn interrupt_tool(stage: &mut Stage) {
    let (prompt, from) = run_slowly(stage);
    stage.client.interrupt(stage.agent);
    let turn = stage.finish(prompt, from, nothing_asked);
    turn.ended(TurnOutcome::Interrupted).without_trouble();
    assert_eq!(turn.tool().status, ToolStatus::Failed, "{:#?}", turn.tool());
    harness::poll("the command is stopped", || (!is_slow(stage)).then_some(()));
    goes_on(stage);
}

pub fn interrupt_approval(stage: &mut Stage) {
    std::fs::remove_file(stage.file("shell.txt")).ok();
    let (prompt, from) = stage.send("[[shell]]");
    stage.client.wait_ask(stage.agent);
    stage.client.wait_status(stage.agent, Status::NeedsInput);
    stage.client.interrupt(stage.agent);
    stage.client.wait_agent(stage.agent, "its turn is over", |agent| {
        agent.taken.contains(&prompt) && agent.turn.is_none() && agent.asks.is_empty()
    });
    let turn = stage.since(from);
    turn.ended(TurnOutcome::Interrupted).without_trouble();
    assert!(turn.settled_by(|by| by == SettledBy::Cancelled), "{:#?}", turn.asks());
    assert_eq!(turn.tool().status, ToolStatus::Failed, "{:#?}", turn.tool());
    assert!(!stage.file("shell.txt").exists());
    goes_on(stage);
}

pub fn daemon_killed_streaming(stage: &mut Stage) {
    let (prompt, from) = stage.send("[[steady]]");
    stage.wait_said(from, "beat 3");
    stage.kill_daemon();
    let turn = stage.finish(prompt, from, nothing_asked);
    turn.completed().without_trouble();
    let beats: String = (1..=60).map(|beat| format!("beat {beat}, ")).collect();
    assert_eq!(turn.said().trim_end(), beats.trim_end());
    goes_on(stage);
}

pub fn daemon_killed_approval(stage: &mut Stage) {
    std::fs::remove_file(stage.file("shell.txt")).ok();
    let (prompt, from) = stage.send("[[shell]]");
    let asked = stage.client.wait_ask(stage.agent);
    stage.kill_daemon();
    assert_eq!(stage.client.wait_ask(stage.agent).id, asked.id);
    let turn = stage.finish(prompt, from, |_| Answer::allow(GrantScope::Once));
    turn.completed().without_trouble();
    assert_eq!(turn.asks().len(), 1, "{:#?}", turn.asks());
    assert!(stage.file("shell.txt").exists());
}

pub fn agent_killed(stage: &mut Stage) {
    // Gemini writes its session in place: a kill in that very moment leaves a file that it cannot read itself. Consort says so
    // and begins anew, and whether the agent remembers is tried again.
    let torn = |stage: &Stage, from: u64| {
        let lost = |item: &Item| matches!(&item.body, ItemBody::Notice { text, .. } if text.contains("this is a new one"));
        stage.cli == Cli::Gemini && stage.since(from).items.iter().any(lost)
    };
    for _ in 0..3 {
        let from = kill_and_reopen(stage);
        if !torn(stage, from) {
            break;
        }
    }
    remembers(stage, "marzipan");
}

/// Kills the agent in the middle of an answer and opens it again; the first item of that answer.
fn kill_and_reopen(stage: &mut Stage) -> u64 {
    stage.turn("[[say Remember the word marzipan.]]").completed();
    stage.until_session_can_be_loaded();
    let (_, from) = stage.send("[[steady]]");
    stage.wait_said(from, "beat 3");
    let children =
        stage.home.processes().into_iter().filter(|process| process.role() == processes::Role::Child);
    for child in children {
        processes::kill(child.pid);
    }
    let failed = stage.client.wait_status(stage.agent, Status::Failed);
    assert!(failed.turn.is_none(), "{failed:#?}");
    assert!(stage.since(from).said().contains("beat 3"));
    stage.client.reopen(stage.agent);
    stage.client.wait_status(stage.agent, Status::Idle);
    from
}

pub fn daemon_stopped(stage: &mut Stage) {
    stage.turn("[[say Remember the word nougat.]]").completed();
    stage.until_session_can_be_loaded();
    let _: Done = stage.client.call(&Call::Stop { force: false, keep_agents: false });
    assert!(stage.home.wait_for_daemon_end());
    let left = processes::wait_until_none(stage.home.root(), harness::LIMIT);
    assert!(left.is_empty(), "{left:#?}");
    stage.home.start_daemon();
    stage.client = stage.home.client();
    remembers(stage, "nougat");
}

pub fn close_in_tool(stage: &mut Stage) {
    run_slowly(stage);
    stage.client.close(stage.agent);
    stage.client.wait_status(stage.agent, Status::Closed);
    let left = || {
        let processes = stage.home.processes();
        processes.into_iter().filter(|process| process.role() != processes::Role::Daemon).count()
    };
    harness::poll("no process is left", || (left() == 0).then_some(()));
    assert!(!is_slow(stage));
}

/// Runs the slow command, up to where it runs.
fn run_slowly(stage: &Stage) -> (consort_model::PromptId, u64) {
    std::fs::remove_file(stage.file("slow-began.txt")).ok();
    let sent = stage.send("[[shell-slow]]");
    let ask = stage.client.wait_ask(stage.agent);
    stage.client.allow(&ask);
    harness::poll("the command runs", || stage.file("slow-began.txt").exists().then_some(()));
    harness::poll("the command runs", || is_slow(stage).then_some(()));
    sent
}

fn is_slow(stage: &Stage) -> bool {
    stage.home.processes().iter().any(|process| process.command == SLOW)
}

pub fn goes_on(stage: &Stage) {
    stage.turn("[[say It goes on.]]").completed().says("It goes on.");
}

/// A new process knows what was said before it.
fn remembers(stage: &Stage, word: &str) {
    let turn = stage.turn("[[say Taken up again.]]");
    turn.completed().says("Taken up again.");
    assert!(turn.agent.session.as_ref().is_some_and(|session| session.resumed), "{:#?}", turn.agent.session);
    assert!(stage.request("say").body.to_string().contains(word), "it forgot {word}");
    assert!(!turn.said().contains("beat"), "history came as new text: {:#?}", turn.items);
}

fn nothing_asked(ask: &consort_model::Ask) -> Answer {
    panic!("nothing should be asked, but: {ask:#?}")
}
