//! The real CLIs as a team.

use consort_daemon::protocol::{Call, InboxEntry, NewProfile};
use consort_model::{
    ApprovalPolicy, DriverKind, LetterState, PermissionMode, ProfileSummary, SandboxMode, Status, TaskResult,
    TurnOutcome,
};
use consort_testkit::clis::Cli;
use consort_testkit::harness::{Client, Home};
use consort_testkit::model::{self, Script, Server};

use crate::{children, times_told, wait_results};

const SCRIPT: &str = r#"{"scenarios": {
    "team": {"steps": [
        {"calls": [
            {"mcp": {"server": "consort", "tool": "spawn_subagent", "arguments":
                {"task": "Look around. [[give from codex]]", "profile": "codex", "label": "look around"}}},
            {"mcp": {"server": "consort", "tool": "spawn_subagent", "arguments":
                {"task": "[[edit notes.txt old new]] [[mcp yield_to_parent {\"result\": \"from scripted\"}]]",
                 "profile": "scripted", "label": "edit the notes"}}}]},
        {"calls": [{"mcp": {"server": "consort", "tool": "wait_for_agents", "arguments": {"all": true}}}]},
        {"text": "The team is done: {results}"}]},
    "give": {"steps": [
        {"calls": [{"mcp": {"server": "consort", "tool": "yield_to_parent", "arguments": "{\"result\": \"{arg}\"}"}}]},
        {"delay_ms": 1500, "text": "nobody hears this"}]},
    "hanging-team": {"steps": [
        {"calls": [
            {"mcp": {"server": "consort", "tool": "spawn_subagent", "arguments":
                {"task": "[[hang]]", "profile": "codex"}}},
            {"mcp": {"server": "consort", "tool": "spawn_subagent", "arguments":
                {"task": "[[hang]]", "profile": "scripted"}}}]},
        {"calls": [{"mcp": {"server": "consort", "tool": "wait_for_agents", "arguments": {"all": true}}}]},
        {"text": "never"}]},
    "companion": {"steps": [
        {"calls": [{"mcp": {"server": "consort", "tool": "create_agent", "arguments":
            {"companion": true, "profile": "scripted", "name": "buddy"}}}]},
        {"calls": [{"mcp": {"server": "consort", "tool": "send_message", "arguments":
            {"to": "buddy", "text": "[[say hello]]"}}}]},
        {"text": "{results}"}]},
    "talk": {"steps": [
        {"calls": [{"mcp": {"server": "consort", "tool": "ask_agent", "arguments":
            {"agent": "other", "question": "Which colour? [[say blue]]"}}}]},
        {"text": "It says: {result}"}]}
}}"#;

struct Stage {
    home: Home,
    client: Client,
    model: Server,
}

/// A home with profiles of Claude Code and Codex; none where they are not installed.
fn stage() -> Option<Stage> {
    for cli in [Cli::Claude, Cli::Codex] {
        cli.find().expect("the CLIs are installed")?;
    }
    let script = Script::parse(SCRIPT).expect("the script can be played");
    let model = Server::start_with(model::Options { script, ..Default::default() }).expect("a server");
    let home = Home::started();
    let client = home.client();
    for cli in [Cli::Claude, Cli::Codex] {
        let profile = cli.profile(&model.url(), &home.elsewhere().join(cli.name())).expect("a profile");
        let codex = cli == Cli::Codex;
        let new = NewProfile {
            name: cli.name().to_owned(),
            driver: if codex { DriverKind::Codex } else { DriverKind::Claude },
            command: Some(profile.command.display().to_string()),
            args: profile.args,
            environment: profile.environment.iter().map(|(name, value)| format!("{name}={value}")).collect(),
            default_model: None,
            default_permissions: PermissionMode::Default,
            sandbox_mode: codex.then_some(SandboxMode::WorkspaceWrite),
            approval_policy: codex.then_some(ApprovalPolicy::OnRequest),
        };
        let _: ProfileSummary = client.call(&Call::AddProfile(new));
    }
    Some(Stage { home, client, model })
}

#[test]
fn a_claude_agent_spawns_a_codex_and_an_acp_sub_agent_and_goes_on_with_their_results() {
    let Some(Stage { home, client, model: _model }) = stage() else { return };
    std::fs::write(home.work().join("notes.txt"), "old").unwrap();
    let (parent, prompt) = client.new_agent_with("claude", "[[team]]");
    // The edit asks a person, with the label and the parent of who asks; the answer comes from the command line.
    let asking = client.wait_until("a sub-agent asks", |state| {
        let asks =
            |agent: &&consort_model::Agent| agent.relation.parent() == Some(parent) && !agent.asks.is_empty();
        state.agents.values().find(asks).cloned()
    });
    let inbox = home.consort(&["inbox", "--json"]);
    let inbox: Vec<InboxEntry> = serde_json::from_slice(&inbox.stdout).unwrap();
    assert_eq!((inbox.len(), inbox[0].agent), (1, asking.id));
    assert_eq!(inbox[0].chain, [client.view(parent).name]);
    let approved = home.consort(&["approve", &inbox[0].id.to_string()]);
    assert!(approved.status.success(), "{approved:?}");

    let after = client.wait_turn(parent, prompt);
    assert_eq!(after.last_outcome, Some(TurnOutcome::Completed));
    let said = client.said(parent);
    assert!(said.contains("from codex") && said.contains("from scripted"), "{said}");
    assert_eq!(std::fs::read_to_string(home.work().join("notes.txt")).unwrap(), "new");
    for (child, result) in wait_results(&client, parent, 2) {
        let TaskResult::Yielded { text, .. } = &result else { panic!("{result:?}") };
        assert_eq!(times_told(&client, parent, text), 1, "{text:?} came more than once");
        let child = client.wait_agent(child, "its turn is over", |agent| agent.turn.is_none());
        assert_eq!(child.last_outcome, Some(TurnOutcome::Completed));
        assert!(!client.said(child.id).contains("nobody hears this"), "a yield ends the turn");
    }
    drop(client);
    home.finish();
}

#[test]
fn an_interrupt_at_the_top_stops_the_whole_team() {
    let Some(Stage { home, client, model: _model }) = stage() else { return };
    let (parent, prompt) = client.new_agent_with("claude", "[[hanging-team]]");
    client.wait_until("both work and the parent waits", |state| {
        let mine = state.agents.values().filter(|agent| agent.relation.parent() == Some(parent));
        let working = mine.filter(|agent| agent.status() == Status::Working).count();
        (working == 2 && !state.agents.get(&parent)?.waits.is_empty()).then_some(())
    });
    client.interrupt(parent);
    client.wait_turn(parent, prompt);
    for child in children(&client, parent) {
        let after = client.wait_agent(child.id, "its turn is over", |agent| agent.turn.is_none());
        assert_eq!(after.last_outcome, Some(TurnOutcome::Interrupted));
        assert_eq!(after.relation.result(), None, "it stays open for a person");
    }
    assert!(client.view(parent).queued == 0, "nothing wakes who was interrupted");
    client.close(parent);
    for child in children(&client, parent) {
        assert_eq!(client.view(child.id).status, Status::Closed);
    }
    drop(client);
    home.finish();
}

#[test]
fn a_companion_is_made_written_to_and_closed_with_its_owner() {
    let Some(Stage { home, client, model: _model }) = stage() else { return };
    let (owner, prompt) = client.new_agent_with("claude", "[[companion]]");
    client.wait_turn(owner, prompt);
    let buddy = client.wait_until("it has read the message", |state| {
        let buddy = state.agents.values().find(|agent| agent.relation.owner() == Some(owner))?;
        (buddy.letters.back()?.state == LetterState::Read).then(|| buddy.clone())
    });
    assert_eq!(client.said(buddy.id), "hello");
    let listed = home.consort(&["messages", "--json"]);
    let listed: serde_json::Value = serde_json::from_slice(&listed.stdout).unwrap();
    assert_eq!((&listed[0]["to_name"], &listed[0]["state"]), (&"buddy".into(), &"read".into()));
    client.close(owner);
    assert_eq!(client.view(buddy.id).status, Status::Closed);
    drop(client);
    home.finish();
}

#[test]
fn two_agents_talk_with_each_other() {
    let Some(Stage { home, client, model: _model }) = stage() else { return };
    let other = client.create("codex", |new| new.name = Some("other".to_owned())).id;
    client.wait_status(other, Status::Idle);
    let (asker, prompt) = client.new_agent_with("claude", "[[talk]]");
    client.wait_turn(asker, prompt);
    let said = client.said(asker);
    assert!(said.contains("blue") && said.contains("not a person"), "{said}");
    assert!(times_told(&client, other, "Which colour?") == 1);
    assert!(client.look(|followed| followed.state.agents[&other].inquiries.is_empty()));
    drop(client);
    home.finish();
}
