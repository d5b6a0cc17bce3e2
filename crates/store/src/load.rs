//! The state as it was when the database was last committed to.
//!
//! An agent's record is not written for events of its transcript, so its cursor may lag behind. What is missing follows
//! from the items: those added since are taken in again, and how far the text that is being written has come is
//! counted.

use std::collections::BTreeMap;
use std::path::Path;

use consort_model::event::AgentEvent;
use consort_model::{Agent, AgentId, ItemBody, Limits, ProfileSummary, Rule, State};
use rusqlite::Connection;
use serde::de::DeserializeOwned;

use crate::error::{OpenError, RowError};
use crate::read;

/// Loads everything but the transcripts.
pub(crate) fn state(
    connection: &Connection,
    path: &Path,
    profiles: Vec<ProfileSummary>,
    limits: Limits,
) -> Result<State, OpenError> {
    let load = || -> Result<State, RowError> {
        let seq: i64 = connection.query_row("SELECT seq FROM meta", [], |row| row.get(0))?;
        let rules = records::<Rule>(connection, "SELECT body FROM rules", "a rule")?;
        let mut agents = BTreeMap::new();
        for mut agent in records::<Agent>(connection, "SELECT record FROM agents", "the record of an agent")?
        {
            catch_up(connection, &mut agent)?;
            agents.insert(agent.id, agent);
        }
        Ok(State {
            seq: seq.cast_unsigned(),
            agents,
            rules: rules.into_iter().map(|rule| (rule.id, rule)).collect(),
            profiles,
            limits,
        })
    };
    load().map_err(|error| error.open(path))
}

fn records<T: DeserializeOwned>(connection: &Connection, sql: &str, what: &str) -> Result<Vec<T>, RowError> {
    let mut statement = connection.prepare(sql)?;
    let mut rows = statement.query([])?;
    let mut records = Vec::new();
    while let Some(row) = rows.next()? {
        let json = row.get_ref(0)?.as_str().map_err(rusqlite::Error::from)?;
        let record = serde_json::from_str(json)
            .map_err(|error| RowError::Unreadable { what: what.to_owned(), reason: error.to_string() })?;
        records.push(record);
    }
    Ok(records)
}

/// Brings the cursor of a record up to the items that are there.
fn catch_up(connection: &Connection, agent: &mut Agent) -> Result<(), RowError> {
    for item in read::added_since(connection, agent.id, agent.cursor.items)? {
        agent.cursor.apply(&AgentEvent::ItemAdded { item });
    }
    if let Some(writing) = &mut agent.cursor.writing {
        match written(connection, agent.id, writing.index)? {
            Some(len) => writing.len = len,
            None => agent.cursor.writing = None,
        }
    }
    Ok(())
}

/// How many bytes a text item has, if it is still being written.
fn written(
    connection: &Connection,
    agent: AgentId,
    index: consort_model::ItemIndex,
) -> Result<Option<u64>, RowError> {
    let item = read::item(connection, agent, index)?.filter(|item| !item.done);
    Ok(item.and_then(|item| match item.body {
        ItemBody::Text { text } | ItemBody::Thinking { text } => Some(text.len() as u64),
        _ => None,
    }))
}
