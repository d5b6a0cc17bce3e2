//! The shape in which events and state are stored and sent. Whoever changes a pinned line here changes what older
//! databases and clients hold, and owes a migration or a new `MODEL_VERSION`.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::*;
use crate::agent::{Lifecycle, PromptOrigin, Turn, Writing};
use crate::ask::{Answer, AnswerOption, AskBody, GrantScope, OptionKind, Question, SettledBy};
use crate::decide::testing::{agent, failure, id, prompt, state, tool, uuid};
use crate::ids::ToolCallId;
use crate::item::{Attachment, Diff, Image, NoticeLevel, PlanStatus, ToolCall, ToolKind};
use crate::policy::{Effect, RuleOrigin, RuleScope, Subject};
use crate::relation::Relation;
use crate::session::Choice;
use crate::state::State;
use crate::team::{Awaited, Brief, Inquiry, Task};

fn whole_call() -> ToolCall {
    ToolCall {
        input: json!({"command": "ls", "n": 1.5}),
        output: "a\nb".into(),
        raw_output: json!([1, null]),
        images: vec![Image { mime_type: "image/png".into(), data: "AA==".into() }],
        diffs: vec![Diff { path: "a".into(), old_text: Some("x".into()), new_text: "y".into() }],
        locations: vec!["a:1".into()],
        meta: json!({"k": {}}),
        ..tool(ToolKind::Execute, "ls")
    }
}

fn approval() -> Ask {
    let option = AnswerOption { id: "o".into(), name: "Yes".into(), kind: OptionKind::AllowAlways };
    Ask {
        id: AskId::new(uuid(60)),
        key: "7".into(),
        item: ItemIndex(3),
        at: Timestamp(5),
        title: "ls".into(),
        body: AskBody::Approval { tool: whole_call(), options: vec![option] },
    }
}

fn question() -> Ask {
    let schema = json!({"type": "object"});
    let question = Question { text: "Which?".into(), schema, url: Some("https://x".into()) };
    Ask { body: AskBody::Question(question), ..approval() }
}

fn bodies() -> Vec<ItemBody> {
    let settlement = |answer, by| Some(Settlement { answer, by, at: Timestamp(6) });
    let asked =
        |ask: Ask, settlement| ItemBody::Ask { ask: ask.id, title: ask.title, body: ask.body, settlement };
    let answers = [
        Answer::allow(GrantScope::Session),
        Answer::Deny { message: Some("no".into()) },
        Answer::Choose { option: "o".into() },
        Answer::Reply { value: json!({"a": 1}) },
        Answer::Stop,
    ];
    let settlers = [
        SettledBy::Person,
        SettledBy::Rule { rule: RuleId::new(uuid(70)) },
        SettledBy::Mode,
        SettledBy::Relation { parent: id(1) },
        SettledBy::Cancelled,
        SettledBy::AgentEnded,
    ];
    let image = Attachment::Image(Image { mime_type: "image/png".into(), data: "AA==".into() });
    let file = Attachment::File { path: "/a".into(), text: "t".into() };
    let mut bodies = vec![
        ItemBody::User {
            prompt: PromptId::new(uuid(50)),
            origin: PromptOrigin::Agent { agent: id(2) },
            text: "hi".into(),
            attachments: vec![image, file],
        },
        ItemBody::Text { text: "said \u{0}\"\\ü".into() },
        ItemBody::Thinking { text: "hm".into() },
        ItemBody::Tool(whole_call()),
        ItemBody::Tool(tool(ToolKind::Other, "bare")),
        ItemBody::Image(Image { mime_type: "image/png".into(), data: "AA==".into() }),
        ItemBody::Plan { entries: vec![PlanEntry { text: "a".into(), status: PlanStatus::InProgress }] },
        ItemBody::Notice { level: NoticeLevel::Warning, text: "mind".into() },
        ItemBody::Unknown { label: "x".into(), raw: json!({"kind": "text", "event": 1}) },
        asked(approval(), None),
        asked(question(), None),
    ];
    bodies.extend(answers.into_iter().map(|answer| {
        let settlement = settlement(Some(answer), SettledBy::Person);
        asked(question(), settlement)
    }));
    bodies.extend(settlers.into_iter().map(|by| asked(approval(), settlement(None, by))));
    bodies
}

/// An agent with everything that can be in one.
fn full_agent() -> Agent {
    let mut agent = agent(1);
    agent.created_by = Some(id(2));
    agent.relation = Relation::SubAgent {
        parent: id(2),
        tool_call: Some(ToolCallId::new("t")),
        result: Some(TaskResult::Yielded { text: "42".into(), file: None }),
    };
    agent.lifecycle = Lifecycle::Failed(failure("it broke"));
    agent.brief = Brief {
        label: Some("look around".into()),
        model: Some("m".into()),
        tools: Some(vec!["read".into()]),
    };
    agent.task = Task {
        reminded: true,
        report: Report::HandedOut { certain: false },
        worked_ms: 5,
        working_since: Some(Timestamp(3)),
    };
    agent.waits = vec![wait()];
    agent.shown.insert(PromptId::new(uuid(50)), true);
    agent.offered.push(PromptId::new(uuid(51)));
    let (from, at) = (id(2), Timestamp(3));
    agent.letters.push_back(crate::team::Letter::new(PromptId::new(uuid(51)), from, at, "hi"));
    agent.inquiries.push(Inquiry {
        prompt: PromptId::new(uuid(51)),
        by: from,
        turn: Some(TurnId::new(uuid(90))),
        answer: Some("blue".into()),
        report: Report::Due,
    });
    agent.crashes = vec![Timestamp(-1)];
    agent.turn = Some(Turn {
        id: TurnId::new(uuid(90)),
        started_at: Timestamp(1),
        interrupted: true,
        stalled: true,
        yielded: true,
    });
    agent.last_outcome = Some(TurnOutcome::Stopped { reason: "limit".into() });
    agent.queue.push_back(prompt(50, "later"));
    agent.taken.push_back(PromptId::new(uuid(51)));
    agent.asks = vec![approval(), question()];
    agent.session = Some(SessionInfo { id: "s".into(), program: "agent 1".into(), ..SessionInfo::default() });
    agent.options = options();
    agent.commands = commands();
    agent.plan = vec![PlanEntry { text: "a".into(), status: PlanStatus::Completed }];
    agent.usage = usage();
    agent.title = Some("A title".into());
    agent.cursor.items = u64::MAX;
    agent.cursor.tools.insert(ToolCallId::new("t1"), ItemIndex(4));
    agent.cursor.plan = Some(ItemIndex(2));
    agent.cursor.writing =
        Some(Writing { index: ItemIndex(5), thinking: true, len: 9, within: Some(ToolCallId::new("t1")) });
    agent
}

fn options() -> Vec<SessionOption> {
    let choice = Choice { id: "fast".into(), name: "Fast".into(), description: Some("quick".into()) };
    let option = SessionOption {
        id: "mode".into(),
        name: "Mode".into(),
        current: "fast".into(),
        choices: vec![choice],
    };
    vec![option]
}

fn commands() -> Vec<SlashCommand> {
    vec![SlashCommand { name: "plan".into(), description: "Plans".into(), hint: Some("what".into()) }]
}

fn usage() -> Usage {
    Usage { input_tokens: Some(u64::MAX), cost: Some(0.1), ..Usage::default() }
}

fn rule(scope: RuleScope, subject: Subject) -> Event {
    let rule = Rule {
        id: RuleId::new(uuid(70)),
        effect: Effect::Allow,
        scope,
        tool: Some(ToolKind::Edit),
        subject,
        at: Timestamp(5),
        origin: RuleOrigin::Unrecorded,
    };
    Event::RuleAdded { rule }
}

/// At least one of each kind.
fn changes() -> Vec<AgentEvent> {
    let prompt_id = PromptId::new(uuid(50));
    let settlement = Settlement { answer: Some(Answer::Stop), by: SettledBy::Person, at: Timestamp(6) };
    let item = |body| Item {
        index: ItemIndex(1),
        turn: Some(TurnId::new(uuid(90))),
        at: Timestamp(5),
        done: false,
        within: Some(ToolCallId::new("t")),
        body,
    };
    let outcomes = [
        TurnOutcome::Completed,
        TurnOutcome::Interrupted,
        TurnOutcome::Stopped { reason: "limit".into() },
        TurnOutcome::Failed { message: "it broke".into() },
    ];
    let results = [
        TaskResult::Yielded { text: "42".into(), file: None },
        TaskResult::Yielded { text: "4...2".into(), file: Some("/x/all.txt".into()) },
        TaskResult::Failed { reason: "it broke".into() },
        TaskResult::Stopped { reason: "too long".into() },
        TaskResult::Closed,
    ];
    let mut changes = vec![
        AgentEvent::Created { record: Box::new(agent(1)) },
        AgentEvent::Created { record: Box::new(full_agent()) },
        AgentEvent::Renamed { name: "bee".into() },
        AgentEvent::Rebound { profile: ProfileId::new("q"), driver: DriverKind::Claude },
        AgentEvent::Starting { generation: 2, profile_revision: None },
        AgentEvent::SessionLost,
        AgentEvent::Ready { session: SessionInfo::default() },
        AgentEvent::Rested,
        AgentEvent::Failed { failure: Failure { signal: Some(9), parked: true, ..failure("it broke") } },
        AgentEvent::Closed,
        AgentEvent::PromptQueued { prompt: prompt(50, "go") },
        AgentEvent::PromptEdited { prompt: prompt_id, text: "go on".into() },
        AgentEvent::PromptDropped { prompt: prompt_id },
        AgentEvent::PromptSteered { prompt: prompt_id },
        AgentEvent::PromptOffered { prompt: prompt_id },
        AgentEvent::PromptJoined { prompt: prompt_id },
        AgentEvent::PromptReturned { prompt: prompt_id },
        AgentEvent::TurnStarted { turn: TurnId::new(uuid(90)), prompts: vec![prompt_id] },
        AgentEvent::TurnInterrupted,
        AgentEvent::TurnStalled { stalled: true },
        AgentEvent::TextAppended { index: ItemIndex(1), offset: 4, text: "more".into() },
        AgentEvent::TextDone { index: ItemIndex(1) },
        AgentEvent::Asked { ask: approval() },
        AgentEvent::Asked { ask: question() },
        AgentEvent::Settled { ask: AskId::new(uuid(60)), settlement },
        AgentEvent::PlanChanged { plan: vec![] },
        AgentEvent::UsageChanged { usage: usage() },
        AgentEvent::OptionsChanged { options: options() },
        AgentEvent::CommandsChanged { commands: commands() },
        AgentEvent::TitleChanged { title: "A title".into() },
        AgentEvent::NoteChanged { note: Some("reading the tests".into()) },
        AgentEvent::TeamToolsConnected,
        AgentEvent::TaskReminded,
        AgentEvent::WaitBegan { wait: wait() },
        AgentEvent::WaitEnded { wait: wait().id },
        AgentEvent::Inquired { prompt: prompt_id, by: id(2) },
        AgentEvent::Answered { prompt: prompt_id, text: "blue".into() },
        AgentEvent::MessagesShown { prompts: vec![prompt_id], certain: true },
        AgentEvent::MessagesHidden { prompts: vec![prompt_id] },
        AgentEvent::MessagesRead { prompts: vec![prompt_id] },
    ];
    for report in [Report::Due, Report::HandedOut { certain: true }, Report::Made] {
        changes.push(AgentEvent::TaskReported { report });
        changes.push(AgentEvent::AnswerReported { prompt: prompt_id, report });
    }
    changes.extend(outcomes.map(|outcome| AgentEvent::TurnEnded { outcome }));
    changes.extend(results.map(|result| AgentEvent::TaskSettled { result }));
    changes.push(AgentEvent::WorktreeAdded { worktree: worktree() });
    changes.push(AgentEvent::WorktreeRemoved { path: "/w/fix".into() });
    changes.extend(PermissionMode::ALL.map(|permissions| AgentEvent::PermissionsChanged { permissions }));
    for body in bodies() {
        changes.push(AgentEvent::ItemChanged { index: ItemIndex(1), done: true, body: body.clone() });
        changes.push(AgentEvent::ItemAdded { item: item(body) });
    }
    changes
}

fn wait() -> Wait {
    let prompt = PromptId::new(uuid(50));
    let on = vec![Awaited::Agent { agent: id(2) }, Awaited::Answer { agent: id(3), prompt }];
    Wait { id: WaitId::new(uuid(95)), on }
}

fn events() -> Vec<Event> {
    let mut events: Vec<Event> = changes().into_iter().map(|change| Event::of(id(1), change)).collect();
    events.extend([
        rule(RuleScope::Agent { agent: id(1) }, Subject::Paths { paths: vec!["/a".into()] }),
        rule(
            RuleScope::Profile { profile: ProfileId::new("p") },
            Subject::Exact { title: "ls".into(), input: "null".into() },
        ),
        Event::RuleRemoved { rule: RuleId::new(uuid(70)) },
        Event::ProfilesChanged { profiles: state().profiles },
        Event::LimitsChanged { limits: crate::Limits { subagent_depth: 4, ..crate::Limits::default() } },
    ]);
    events
}

fn worktree() -> crate::worktree::Worktree {
    crate::worktree::Worktree {
        name: "fix".into(),
        path: "/w/fix".into(),
        branch: "consort/fix".into(),
        base: "main".into(),
        base_commit: "0".repeat(40),
        repository: "/r".into(),
    }
}

/// Which event it is.
fn word(event: &Event) -> String {
    let value = serde_json::to_value(event).unwrap();
    let word = value.get("change").or(value.get("event")).and_then(Value::as_str);
    word.unwrap().to_owned()
}

#[test]
fn every_event_survives_json() {
    for event in events() {
        let stamped = Stamped { seq: u64::MAX, at: Timestamp(i64::MIN), event };
        let text = serde_json::to_string(&stamped).unwrap();
        let back: Stamped = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
        assert_eq!(back, stamped, "{text}");
        let through_value: Stamped = serde_json::from_value(serde_json::to_value(&stamped).unwrap()).unwrap();
        assert_eq!(through_value, stamped);
    }
}

/// Every name that the schema gives to an event or a change.
fn names(schema: &Value, found: &mut BTreeSet<String>) {
    match schema {
        Value::Object(fields) => {
            let tags =
                ["event", "change"].into_iter().filter_map(|tag| fields.get(tag)?.get("const")?.as_str());
            found.extend(tags.map(str::to_owned));
            fields.values().for_each(|field| names(field, found));
        }
        Value::Array(values) => values.iter().for_each(|value| names(value, found)),
        _ => {}
    }
}

#[test]
fn there_is_an_example_of_every_event() {
    let mut named = BTreeSet::new();
    names(&serde_json::to_value(schemars::schema_for!(Event)).unwrap(), &mut named);
    assert!(named.remove("agent"), "the schema has another form: {named:?}");
    let examples: BTreeSet<String> = events().iter().map(word).collect();
    assert_eq!(examples, named);
}

#[test]
fn a_full_state_survives_json() {
    let mut state = State { seq: u64::MAX, ..state() };
    let relations = [
        Relation::Primary,
        Relation::Companion { owner: id(1) },
        Relation::SubAgent { parent: id(1), tool_call: None, result: None },
        Relation::SubAgent { parent: id(1), tool_call: None, result: Some(TaskResult::Closed) },
    ];
    let lifecycles = [
        Lifecycle::Queued,
        Lifecycle::Starting,
        Lifecycle::Ready,
        Lifecycle::Resting,
        Lifecycle::Closed { at: Timestamp(3) },
    ];
    state.agents.insert(id(1), full_agent());
    for (n, (relation, lifecycle)) in relations.into_iter().zip(lifecycles).enumerate() {
        let id = id(n as u128 + 2);
        state.agents.insert(id, Agent { id, relation, lifecycle, ..agent(1) });
    }
    for event in events() {
        if let Event::RuleAdded { rule } = event {
            state.rules.insert(rule.id, rule);
        }
    }
    let text = serde_json::to_string(&state).unwrap();
    let back: State = serde_json::from_str(&text).unwrap();
    assert_eq!(back, state);
    assert_eq!(serde_json::to_string(&back).unwrap(), text, "the same state is the same text");
}

#[test]
fn the_shape_on_disk_and_wire_stays() {
    assert_eq!(crate::MODEL_VERSION, 1);
    let (agent, other) = (id(1), id(2));
    let text = |change| {
        let event = Event::of(agent, change);
        serde_json::to_string(&Stamped { seq: 7, at: Timestamp(5), event }).unwrap()
    };
    let head = r#"{"seq":7,"at":5,"event":"agent","agent":"00000000-0000-0000-0000-000000000001","change":"#;
    let message = Prompt { origin: PromptOrigin::Agent { agent: other }, ..prompt(3, "hi") };
    let item = Item {
        index: ItemIndex(0),
        turn: None,
        at: Timestamp(5),
        done: false,
        within: None,
        body: ItemBody::Text { text: "Hello".into() },
    };
    let settlement = Settlement {
        answer: Some(Answer::allow(GrantScope::Always)),
        by: SettledBy::Person,
        at: Timestamp(6),
    };
    let table = [
        (AgentEvent::Closed, r#""closed"}"#),
        (AgentEvent::Starting { generation: 2, profile_revision: None }, r#""starting","generation":2}"#),
        (
            AgentEvent::PromptQueued { prompt: message },
            r#""prompt_queued","prompt":{"id":"00000000-0000-0000-0000-000000000003","origin":{"from":"agent","agent":"00000000-0000-0000-0000-000000000002"},"text":"hi","at":0}}"#,
        ),
        (
            AgentEvent::TurnEnded { outcome: TurnOutcome::Stopped { reason: "limit".into() } },
            r#""turn_ended","outcome":{"outcome":"stopped","reason":"limit"}}"#,
        ),
        (
            AgentEvent::ItemAdded { item },
            r#""item_added","item":{"index":0,"at":5,"done":false,"kind":"text","text":"Hello"}}"#,
        ),
        (
            AgentEvent::Settled { ask: AskId::new(uuid(4)), settlement },
            r#""settled","ask":"00000000-0000-0000-0000-000000000004","settlement":{"answer":{"answer":"allow","scope":"always"},"by":{"by":"person"},"at":6}}"#,
        ),
        (
            AgentEvent::TaskSettled { result: TaskResult::Yielded { text: "42".into(), file: None } },
            r#""task_settled","result":{"result":"yielded","text":"42"}}"#,
        ),
    ];
    for (change, tail) in table {
        assert_eq!(text(change), format!("{head}{tail}"));
    }
}

#[test]
fn an_agents_record_keeps_its_relation_beside_its_name() {
    let child = Agent {
        relation: Relation::SubAgent { parent: id(2), tool_call: None, result: None },
        lifecycle: Lifecycle::Closed { at: Timestamp(3) },
        ..agent(1)
    };
    let value = serde_json::to_value(&child).unwrap();
    assert_eq!(value["relation"], "sub_agent");
    assert_eq!(value["parent"], id(2).to_string());
    assert_eq!(value["lifecycle"], json!({"state": "closed", "at": 3}));
    for absent in ["owner", "result", "tool_call", "crashes", "taken"] {
        assert_eq!(value.get(absent), None, "{absent}");
    }
}
