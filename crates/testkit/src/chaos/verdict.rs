//! The verdict: what a ledger says against what the transcript shows.

use std::collections::BTreeMap;

use consort_model::team::result_receipt;
use consort_model::{Agent, Answer, Item, ItemBody, SettledBy, TurnId};

use super::ledger::{Expected, Fate, Ledger, SentPrompt};
use crate::harness::Client;

/// Everything that is wrong with one agent.
pub fn of(client: &Client, ledger: &Ledger) -> Vec<String> {
    let snapshot = client.snapshot();
    let mut findings = ledger.findings.clone();
    match snapshot.agents.get(&ledger.agent) {
        Some(agent) => {
            let items = client.items(ledger.agent);
            let mut turns: BTreeMap<TurnId, Vec<&Item>> = BTreeMap::new();
            for item in &items {
                if let Some(turn) = item.turn {
                    turns.entry(turn).or_default().push(item);
                }
            }
            findings.extend(prompts(ledger, agent, &items));
            findings.extend(ledger.prompts.iter().flat_map(|sent| turn(ledger, agent, sent, &turns)));
            findings.extend(answers(ledger, &items));
            let parts = snapshot.agents.values().filter(|part| part.relation.parent() == Some(ledger.agent));
            findings.extend(parts.filter_map(|part| result(ledger, part, &items)));
            if !ledger.names.contains(&agent.name) {
                findings.push(format!("it is called {}, not one of {:?}", agent.name, ledger.names));
            }
            let ordered = items.iter().enumerate().all(|(at, item)| item.index.0 == at as u64);
            if !ordered || agent.cursor.items != items.len() as u64 {
                findings.push("its items are not numbered one by one".to_owned());
            }
        }
        None => findings.push("it is gone".to_owned()),
    }
    let who = format!("{:?} agent {}", ledger.fate, ledger.agent);
    findings.into_iter().map(|finding| format!("{who}: {finding}")).collect()
}

/// Every acknowledged prompt is there once, any other at most once.
fn prompts(ledger: &Ledger, agent: &Agent, items: &[Item]) -> Vec<String> {
    let mut findings = Vec::new();
    for sent in &ledger.prompts {
        let delivered = items
            .iter()
            .filter(|item| matches!(&item.body, ItemBody::User { prompt, .. } if *prompt == sent.id))
            .count();
        let waiting = agent.queue.iter().filter(|prompt| prompt.id == sent.id).count();
        let there = delivered + waiting;
        if there > 1 || (sent.acknowledged && there == 0) {
            let acknowledged = if sent.acknowledged { "acknowledged" } else { "unsure" };
            findings.push(format!(
                "the {acknowledged} prompt {:?} is there {there} times ({delivered} delivered)",
                sent.text
            ));
        }
    }
    findings
}

/// What the agent said in the turn of a prompt is in order and, where it must be, whole.
fn turn(
    ledger: &Ledger,
    agent: &Agent,
    sent: &SentPrompt,
    turns: &BTreeMap<TurnId, Vec<&Item>>,
) -> Vec<String> {
    let is_its = |item: &&&Item| matches!(&item.body, ItemBody::User { prompt, .. } if *prompt == sent.id);
    let Some((id, items)) = turns.iter().find(|(_, items)| items.iter().any(|item| is_its(&item))) else {
        return vec![];
    };
    let said: String = items
        .iter()
        .filter_map(|item| match &item.body {
            ItemBody::Text { text } => Some(text.as_str()),
            _ => None,
        })
        .collect();
    let end = format!("end-{};", sent.tag);
    let ends = said.matches(&end).count();
    let mut findings = Vec::new();
    let mut wrong =
        |what: &str| findings.push(format!("{what} in turn {id} of {:?}: it said {said:?}", sent.text));
    let words: Vec<&str> = said.split_whitespace().filter(|word| word.starts_with("word")).collect();
    if words.iter().enumerate().any(|(at, word)| *word != format!("word{at}")) {
        wrong("words are out of order");
    }
    let replies = said.matches("allowed: ").count() + said.matches("rejected: ").count();
    let whole = ends == 1
        && match &sent.expected {
            Expected::Words(count) => words.len() == *count,
            Expected::Replies(count) => replies == *count,
            Expected::Text(text) => said.matches(text.as_str()).count() == 1,
            Expected::Nothing | Expected::Open => true,
        };
    if ends > 1 || (ends == 1 && !whole) {
        wrong("something is missing or double");
    }
    if let Expected::Replies(count) = sent.expected
        && replies > count
    {
        wrong("an answer reached the agent twice");
    }
    if ledger.fate == Fate::Peaceful && !whole {
        wrong("a turn of a living child was cut off");
    }
    if agent.turn.is_some() {
        wrong("it is still in a turn");
    }
    if items.iter().any(|item| !item.done) {
        wrong("an item is not done");
    }
    findings
}

/// A sub-agent's result came to its parent at most once, and did come to one that was left in peace.
fn result(ledger: &Ledger, part: &Agent, items: &[Item]) -> Option<String> {
    let (message, receipt) = (format!("Sub-agent `{}` is done", part.name), result_receipt(part.id));
    let mut told = 0;
    let mut handed = false;
    for item in items {
        match &item.body {
            ItemBody::User { text, .. } => told += text.matches(&message).count(),
            // A later call may show it again.
            ItemBody::Tool(call) => handed |= call.output.contains(&receipt),
            _ => {}
        }
    }
    let times = told + usize::from(handed);
    let wrong = times > 1 || (times == 0 && ledger.fate == Fate::Peaceful);
    wrong.then(|| {
        let result = part.relation.result();
        format!("the result of {} ({result:?}) came {told} times by message, by call: {handed}", part.name)
    })
}

/// Every acknowledged answer is recorded once, and reached an agent that was left in peace.
fn answers(ledger: &Ledger, items: &[Item]) -> Vec<String> {
    let mut findings = Vec::new();
    for (ask, given) in &ledger.answers {
        let records: Vec<_> = items
            .iter()
            .filter_map(|item| match &item.body {
                ItemBody::Ask { ask: id, settlement, .. } if id == ask => Some((item.turn, settlement)),
                _ => None,
            })
            .collect();
        let [(turn, settlement)] = records.as_slice() else {
            findings.push(format!("{ask:?} has {} records", records.len()));
            continue;
        };
        let by_person = settlement
            .as_ref()
            .filter(|settlement| settlement.by == SettledBy::Person)
            .and_then(|settlement| settlement.answer.as_ref());
        match (&given.acknowledged, by_person) {
            (Some(acknowledged), recorded) if recorded != Some(acknowledged) => {
                findings.push(format!("{acknowledged:?} to {ask:?} is recorded as {settlement:?}"));
            }
            // At the end everything open is allowed.
            (None, Some(recorded))
                if !given.tried.contains(recorded) && !matches!(recorded, Answer::Allow { .. }) =>
            {
                findings.push(format!("{ask:?} is recorded as {recorded:?}, which nobody said"));
            }
            _ => {}
        }
        let Some(recorded) = by_person.filter(|_| ledger.fate == Fate::Peaceful) else { continue };
        let said: String = items
            .iter()
            .filter(|item| item.turn == *turn)
            .filter_map(|item| match &item.body {
                ItemBody::Text { text } => Some(text.as_str()),
                _ => None,
            })
            .collect();
        let word = if matches!(recorded, Answer::Allow { .. }) { "allowed: " } else { "rejected: " };
        if !said.contains(word) {
            findings.push(format!("{recorded:?} to {ask:?} did not reach the agent: it said {said:?}"));
        }
    }
    findings
}
