//! Whatever happened, reopening the database gives the state and the transcripts that the events led to.

use std::collections::BTreeMap;

use consort_model::policy::{Effect, RuleOrigin, Subject};
use consort_model::transcript::Writer;
use consort_model::{
    AskBody, PlanEntry, PlanStatus, Prompt, PromptId, PromptOrigin, Question, Rule, RuleId, RuleScope,
    Signal, ToolCall, ToolCallId, ToolKind, ToolStatus, TurnId, TurnOutcome,
};
use proptest::prelude::*;
use rusqlite::Connection;

use super::*;
use crate::{LinkChange, Page};

#[derive(Clone, Debug)]
enum Step {
    Signals(u128, Vec<Signal>),
    StartTurn(u128),
    Rename(u128, String),
    Close(u128),
    Rule(u128),
    RuleRemoved(u128),
    Profiles,
    Link(u128, u32, u64),
}

fn signal() -> impl Strategy<Value = Signal> {
    let within = prop::option::weighted(0.2, Just(ToolCallId::new("outer")));
    let tool = (0..4_u8, any::<bool>(), "[a-zé]{0,4}").prop_map(|(id, over, output)| {
        let status = if over { ToolStatus::Completed } else { ToolStatus::Running };
        let call = ToolCall {
            status,
            input: serde_json::json!({ "n": id }),
            output,
            ..ToolCall::new(ToolCallId::new(format!("call-{id}")), ToolKind::Execute, "ls")
        };
        Signal::Tool { call, within: None }
    });
    let question = Question { text: "which".into(), schema: Default::default(), url: None };
    prop_oneof![
        6 => ("[a-zß🎻\\\\\"\n]{0,6}", within.clone()).prop_map(|(text, within)| Signal::Text { text, within }),
        1 => "[a-z]{200,400}".prop_map(|text| Signal::Text { text, within: None }),
        2 => ("[a-z]{1,3}", within).prop_map(|(text, within)| Signal::Thinking { text, within }),
        1 => Just(Signal::MessageEnd),
        3 => tool,
        1 => "[a-z]{1,3}".prop_map(|text| {
            Signal::Plan(vec![PlanEntry { text, status: PlanStatus::Pending }])
        }),
        1 => any::<u32>().prop_map(|n| {
            let cost = Some(f64::from(n) / 7.0);
            Signal::Usage(Usage { input_tokens: Some(n.into()), cost, ..Usage::default() })
        }),
        1 => "[a-z]{1,3}".prop_map(Signal::Title),
        1 => (0..3_u8).prop_map(move |key| {
            let body = AskBody::Question(question.clone());
            Signal::Ask { key: key.to_string(), title: "which".into(), body }
        }),
        1 => (0..3_u8).prop_map(|key| Signal::AskWithdrawn { key: key.to_string() }),
        1 => Just(Signal::TurnEnded(TurnOutcome::Completed)),
        1 => Just(Signal::Unknown { label: "odd".into(), raw: serde_json::json!([1.5, null]) }),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let agent = 1..=3_u128;
    prop_oneof![
        12 => (agent.clone(), prop::collection::vec(signal(), 1..5)).prop_map(|(a, s)| Step::Signals(a, s)),
        2 => agent.clone().prop_map(Step::StartTurn),
        1 => (agent.clone(), "[a-z]{1,5}").prop_map(|(a, name)| Step::Rename(a, name)),
        1 => agent.clone().prop_map(Step::Close),
        1 => (1..4_u128).prop_map(Step::Rule),
        1 => (1..4_u128).prop_map(Step::RuleRemoved),
        1 => Just(Step::Profiles),
        3 => (agent, 1..3_u32, 0..100_u64).prop_map(|(a, generation, n)| Step::Link(a, generation, n)),
    ]
}

fn change(step: Step, number: u128) -> Change {
    let fresh = 1000 * (number + 1);
    let of = |n: u128, events: Vec<AgentEvent>| events.into_iter().map(move |e| Event::of(agent_id(n), e));
    match step {
        Step::Signals(n, signals) => Change::new(move |state, at| {
            let mut writer = Writer::new(state.agent(agent_id(n))?, at);
            let mut next = fresh;
            for signal in signals {
                writer.signal(signal, &[], &mut || {
                    next += 1;
                    Uuid::from_u128(next)
                });
            }
            Ok(of(n, writer.finish()).collect())
        }),
        Step::StartTurn(n) => Change::new(move |state, at| {
            let mut writer = Writer::new(state.agent(agent_id(n))?, at);
            let id = PromptId::new(Uuid::from_u128(fresh));
            let origin = PromptOrigin::Person;
            let prompt = Prompt { id, origin, text: "do".into(), attachments: vec![], steers: false, at };
            writer.push(AgentEvent::PromptQueued { prompt: prompt.clone() });
            writer.start_turn(TurnId::new(Uuid::from_u128(fresh)), &[prompt]);
            Ok(of(n, writer.finish()).collect())
        }),
        Step::Rename(n, name) => Change::new(move |_, _| Ok(vec![renamed(n, &name)])),
        Step::Close(n) => Change::new(move |_, _| Ok(of(n, vec![AgentEvent::Closed]).collect())),
        Step::Rule(n) => Change::new(move |_, at| {
            let subject = Subject::Exact { title: "ls".into(), input: String::new() };
            let scope = RuleScope::Agent { agent: agent_id(1) };
            let id = RuleId::new(Uuid::from_u128(n));
            let (tool, effect, origin) = (Some(ToolKind::Read), Effect::Deny, RuleOrigin::Added);
            Ok(vec![Event::RuleAdded { rule: Rule { id, effect, scope, tool, subject, at, origin } }])
        }),
        Step::RuleRemoved(n) => {
            Change::new(move |_, _| Ok(vec![Event::RuleRemoved { rule: RuleId::new(Uuid::from_u128(n)) }]))
        }
        Step::Profiles => Change::new(|_, _| Ok(vec![Event::ProfilesChanged { profiles: vec![] }])),
        Step::Link(n, generation, input) => Change::new(|_, _| Ok(vec![])).with_link(LinkChange {
            next_offset: Some(input * 10),
            outbox: vec![(input, vec![1, 2])],
            confirmed_input: (input % 3 == 0).then_some(input / 2),
            driver_state: (input % 2 == 0).then(|| vec![input as u8]),
            ..LinkChange::new(agent_id(n), generation)
        }),
    }
}

/// What the events say, taken in one by one as a client would.
#[derive(Default)]
struct Replica {
    state: State,
    items: BTreeMap<AgentId, Vec<Item>>,
}

impl Replica {
    fn apply(&mut self, stamped: &Stamped) {
        assert_eq!(stamped.seq, self.state.seq + 1, "numbers have no gap");
        self.state.apply(stamped);
        let Event::Agent { agent, change } = &stamped.event else { return };
        let items = self.items.entry(*agent).or_default();
        match change {
            AgentEvent::ItemAdded { item } => items.push(item.clone()),
            AgentEvent::ItemChanged { index, done, body } => {
                let item = &mut items[index.0 as usize];
                item.done = *done;
                item.body = body.clone();
            }
            AgentEvent::TextAppended { index, offset, text } => {
                if let ItemBody::Text { text: whole } | ItemBody::Thinking { text: whole } =
                    &mut items[index.0 as usize].body
                {
                    assert_eq!(*offset, whole.len() as u64);
                    whole.push_str(text);
                }
            }
            AgentEvent::TextDone { index } => items[index.0 as usize].done = true,
            _ => {}
        }
    }
}

async fn check(fixture: &Fixture, replica: &Replica) {
    assert_eq!(fixture.state(), replica.state);
    for (agent, expected) in &replica.items {
        let mut items = Vec::new();
        let mut page = Page::Last { limit: 7 };
        loop {
            let mut earlier = fixture.store.items(*agent, page).await.unwrap();
            let Some(first) = earlier.first() else { break };
            page = Page::Before { index: first.index, limit: 7 };
            earlier.append(&mut items);
            items = earlier;
        }
        assert_eq!(items, *expected);
    }
}

/// Every stored event reads back as what was published, and no other is stored.
fn check_events(dir: &Path, published: &[Arc<Stamped>]) {
    let database = Connection::open(dir.join("consort.db")).unwrap();
    let mut statement = database.prepare("SELECT seq, at, body FROM events ORDER BY seq").unwrap();
    let stored: Vec<Stamped> = statement
        .query_map([], |row| Ok((row.get::<_, i64>(0)?, row.get(1)?, row.get::<_, String>(2)?)))
        .unwrap()
        .map(|row| row.unwrap())
        .map(|(seq, at, body)| Stamped {
            seq: seq as u64,
            at: Timestamp(at),
            event: serde_json::from_str(&body).unwrap(),
        })
        .collect();
    let expected: Vec<Stamped> = published
        .iter()
        .filter(|stamped| match &stamped.event {
            Event::Agent { change, .. } => !change.is_transcript(),
            Event::ProfilesChanged { .. } | Event::LimitsChanged { .. } => false,
            _ => true,
        })
        .map(|stamped| (**stamped).clone())
        .collect();
    assert_eq!(stored, expected);
}

/// Runs each group of steps as changes that wait at the same time, and reopens the store after each.
async fn run(groups: Vec<Vec<Step>>) {
    let dir = tempfile::tempdir().unwrap();
    let mut fixture = Fixture::open(dir.path());
    let mut replica = Replica { state: fixture.state(), ..Replica::default() };
    let mut published = Vec::new();
    fixture.commit((1..=3).map(created).collect()).await.unwrap();
    let mut number = 0;
    for group in groups {
        let mut tasks = Vec::new();
        for step in group {
            let store = fixture.store.clone();
            let change = change(step, number);
            number += 1;
            tasks.push(tokio::spawn(async move { store.commit(change).await }));
        }
        for task in tasks {
            task.await.unwrap().unwrap();
        }
        let told = fixture.told();
        for stamped in &told {
            replica.apply(stamped);
        }
        published.extend(told);
        check(&fixture, &replica).await;
        let links = links(&fixture).await;
        fixture.store.close();
        fixture = Fixture::open(dir.path());
        check(&fixture, &replica).await;
        assert_eq!(fixture.links, links);
    }
    check_events(dir.path(), &published);
}

async fn links(fixture: &Fixture) -> Vec<Link> {
    let mut links = Vec::new();
    for n in 1..=3 {
        links.extend(fixture.store.link(agent_id(n)).await.unwrap());
    }
    links
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn reopening_gives_the_state_that_the_events_led_to(
        groups in prop::collection::vec(prop::collection::vec(step(), 1..12), 1..5),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(run(groups));
    }
}
