//! Approvals and questions: which one is meant, what may be answered to it, and by whom.

use uuid::Uuid;

use super::granted;
use crate::agent::Agent;
use crate::ask::{Answer, Ask, AskBody, SettledBy};
use crate::command::{Actor, Refusal};
use crate::event::Event;
use crate::ids::{AskId, RuleId, Timestamp};
use crate::policy;
use crate::profile::DriverKind;
use crate::state::State;
use crate::transcript::Writer;

/// The open ask that a person means: by id or by a unique beginning or end of it.
pub fn find_ask<'a>(state: &'a State, wanted: &str) -> Result<(&'a Agent, &'a Ask), Refusal> {
    let open = state.inbox();
    let short = wanted.to_ascii_lowercase();
    let fits = |id: AskId| {
        let id = id.to_string();
        id == short || (short.len() >= 4 && (id.starts_with(&short) || id.ends_with(&short)))
    };
    let mut found = open.into_iter().filter(|(_, ask)| fits(ask.id));
    let first = found.next().ok_or_else(|| {
        let past = state.agents.values().flat_map(|agent| &agent.settled).find(|past| fits(past.id));
        Refusal::NotOpen { wanted: wanted.to_owned(), settled: past.map(|past| past.how.clone()) }
    })?;
    if found.next().is_some() {
        let reason = format!("`{wanted}` fits more than one open request; give more of the id");
        return Err(Refusal::Invalid { reason });
    }
    Ok(first)
}

/// Why an ask of an agent cannot be answered any more.
pub fn not_open(agent: Option<&Agent>, ask: AskId) -> Refusal {
    let past = agent.and_then(|agent| agent.settled.iter().find(|past| past.id == ask));
    Refusal::NotOpen { wanted: ask.to_string(), settled: past.map(|past| past.how.clone()) }
}

/// Checks an answer against what was asked. An agent can answer nothing.
pub fn check_answer(
    actor: Actor,
    driver: DriverKind,
    body: &AskBody,
    answer: &Answer,
) -> Result<(), Refusal> {
    if actor != Actor::Person {
        return Err(Refusal::NotAllowed { reason: "only a person answers approvals and questions".into() });
    }
    let wrong = |reason: String| Err(Refusal::WrongAnswer { reason });
    match (body, answer) {
        (AskBody::Approval { options, .. }, Answer::Choose { option }) => {
            if options.iter().any(|offered| offered.id == *option) {
                return Ok(());
            }
            let offered = options.iter().map(|offered| offered.id.as_str()).collect::<Vec<_>>().join(", ");
            wrong(format!("the agent offers no `{option}`, only: {offered}"))
        }
        (AskBody::Approval { .. }, Answer::Reply { value }) if value.is_object() => {
            if driver == DriverKind::Claude {
                return Ok(());
            }
            wrong(format!(
                "an agent with the driver `{driver}` cannot be allowed something else than it asked for"
            ))
        }
        (AskBody::Approval { .. }, Answer::Reply { .. }) => {
            wrong("this is an approval: allow or deny it".to_owned())
        }
        (AskBody::Question(_), Answer::Allow { .. } | Answer::Choose { .. }) => {
            wrong("this is a question: answer it with a text, or deny it".to_owned())
        }
        _ => Ok(()),
    }
}

/// Settles an open ask with a person's answer, and sets the rule that the answer asks for.
pub fn answer(
    agent: &Agent,
    ask: AskId,
    answer: &Answer,
    at: Timestamp,
    fresh: &mut dyn FnMut() -> Uuid,
    resolve: policy::Resolve<'_>,
) -> Result<Vec<Event>, Refusal> {
    let open = agent.asks.iter().find(|open| open.id == ask).ok_or_else(|| not_open(Some(agent), ask))?;
    check_answer(Actor::Person, agent.driver, &open.body, answer)?;
    let rule = granted(agent, open, answer, RuleId::new(fresh()), at, resolve)?;
    let mut writer = Writer::new(agent, at);
    writer.settle(open, Some(answer.clone()), SettledBy::Person);
    let mut events: Vec<Event> =
        writer.finish().into_iter().map(|change| Event::of(agent.id, change)).collect();
    events.extend(rule.map(|rule| Event::RuleAdded { rule }));
    Ok(events)
}
