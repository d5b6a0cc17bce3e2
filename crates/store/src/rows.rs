//! From events to rows: what one batch of changes writes.
//!
//! Each event is stored in exactly one place. Those of a transcript become `items` and pieces of text; all others become
//! rows of `events`, and the record of the agent they concern is written anew, once per batch (and now and then while
//! its transcript grows, so that loading it stays quick). A batch that only
//! streams text costs one small row per agent, since pieces of one item that follow each other are joined.
//!
//! Everything that can fail because of what a change says (its JSON) fails in [`Batch::stage`], before the batch has
//! taken it up; what fails in [`Batch::write`] is the disk's fault and concerns the whole batch.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use consort_model::event::AgentEvent;
use consort_model::{
    AgentId, Event, Item, ItemBody, ItemIndex, RevisionKey, Rule, RuleId, Stamped, State, Timestamp,
};
use rusqlite::{Connection, OptionalExtension, params};
use uuid::Uuid;

use crate::link::LinkChange;
use crate::text;

/// So many items may be added before an agent's record is written although nothing else happened to it.
const MAX_CATCHING_UP: u64 = 256;

/// How many bytes a page of the database has.
const PAGE: usize = 4096;

/// An id as it is stored.
pub(crate) fn id(id: Uuid) -> [u8; 16] {
    id.into_bytes()
}

/// A count as it is stored.
pub(crate) fn number(count: u64) -> i64 {
    count.cast_signed()
}

/// One statement to run.
enum Row {
    Event { seq: u64, at: Timestamp, agent: Option<AgentId>, body: String },
    ItemAdded { agent: AgentId, stamped: Arc<Stamped>, body: String },
    ItemChanged { agent: AgentId, index: ItemIndex, done: bool, kind: &'static str, body: String },
    TextAppended { agent: AgentId, index: ItemIndex, offset: u64, text: String },
    TextDone { agent: AgentId, index: ItemIndex },
    RuleSet { rule: RuleId, body: String },
    RuleRemoved { rule: RuleId },
    Setting { key: String, value: Option<String> },
}

/// The rows of changes that are committed together.
#[derive(Default)]
pub(crate) struct Batch {
    rows: Vec<Row>,
    /// Where the last row of an agent's transcript is, to join text with it.
    last_row: HashMap<AgentId, usize>,
    /// Agents whose record has to be written.
    agents: BTreeSet<AgentId>,
    /// Agents whose transcript has new items.
    grown: BTreeSet<AgentId>,
    links: Vec<LinkChange>,
    last_link: HashMap<AgentId, usize>,
    size: usize,
    /// Whether the commit waits for the disk.
    pub(crate) to_disk: bool,
}

/// The rows of one change, not yet part of a batch.
pub(crate) struct Staged(Vec<Row>);

impl Batch {
    /// Turns the events of one change into rows.
    pub(crate) fn stage(events: &[Arc<Stamped>]) -> serde_json::Result<Staged> {
        let mut rows = Vec::with_capacity(events.len());
        for stamped in events {
            stage_event(stamped, &mut rows)?;
        }
        Ok(Staged(rows))
    }

    /// Takes up the rows of a change.
    pub(crate) fn add(&mut self, staged: Staged, link: Option<LinkChange>) {
        for row in staged.0 {
            self.add_row(row);
        }
        let Some(link) = link else { return };
        self.size += link.size();
        let place = self.last_link.get(&link.agent).copied();
        let left = match place.and_then(|place| self.links.get_mut(place)) {
            Some(earlier) => earlier.absorb(link),
            None => Some(link),
        };
        if let Some(link) = left {
            self.last_link.insert(link.agent, self.links.len());
            self.links.push(link);
        }
    }

    /// Takes up a setting.
    pub(crate) fn set(&mut self, key: String, value: Option<String>) {
        self.add_row(Row::Setting { key, value });
        self.to_disk = true;
    }

    /// Roughly how many pages it writes.
    pub(crate) fn pages(&self) -> usize {
        self.rows.len() + self.agents.len() + self.links.len() + self.size / PAGE
    }

    /// Roughly how many bytes it writes.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    fn add_row(&mut self, row: Row) {
        self.size += row.size();
        match &row {
            Row::Event { agent, .. } => self.agents.extend(*agent),
            Row::TextAppended { agent, index, text, .. } => {
                let last = self.last_row.get(agent).and_then(|place| self.rows.get_mut(*place));
                if let Some(Row::TextAppended { index: growing, text: whole, .. }) = last
                    && growing == index
                {
                    whole.push_str(text);
                    return;
                }
                self.last_row.insert(*agent, self.rows.len());
            }
            Row::ItemAdded { agent, .. } => {
                self.last_row.insert(*agent, self.rows.len());
                self.grown.insert(*agent);
            }
            Row::ItemChanged { agent, kind, .. } => {
                self.last_row.insert(*agent, self.rows.len());
                // Which tools run is in the record alone: an item does not tell whether its process is still there.
                if *kind == "tool" {
                    self.agents.insert(*agent);
                }
            }
            Row::TextDone { agent, .. } => {
                self.last_row.insert(*agent, self.rows.len());
            }
            Row::RuleSet { .. } | Row::RuleRemoved { .. } | Row::Setting { .. } => {}
        }
        self.rows.push(row);
    }

    /// Has the record of an agent written, too, where loading it would otherwise have many items to catch up with.
    pub(crate) fn bound_catching_up(&mut self, state: &State, recorded: &HashMap<AgentId, u64>) {
        for id in &self.grown {
            let items = state.agents.get(id).map_or(0, |agent| agent.cursor.items);
            if recorded.get(id).is_none_or(|recorded| items >= recorded + MAX_CATCHING_UP) {
                self.agents.insert(*id);
            }
        }
    }

    /// The agents whose record is written.
    pub(crate) fn recorded(&self) -> impl Iterator<Item = AgentId> {
        self.agents.iter().copied()
    }

    /// Writes everything in one transaction. `state` is what the batch leads to.
    pub(crate) fn write(&self, connection: &Connection, state: &State) -> rusqlite::Result<()> {
        connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        for row in &self.rows {
            row.write(connection)?;
        }
        for id in &self.agents {
            write_agent(connection, state, *id)?;
        }
        for link in &self.links {
            link.write(connection)?;
        }
        connection.prepare_cached("UPDATE meta SET seq = ?1")?.execute([number(state.seq)])?;
        connection.prepare_cached("COMMIT")?.execute([])?;
        Ok(())
    }

    /// Whether it writes nothing but perhaps the number of the last event.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.links.is_empty()
    }
}

fn stage_event(stamped: &Arc<Stamped>, rows: &mut Vec<Row>) -> serde_json::Result<()> {
    let Event::Agent { agent, change } = &stamped.event else {
        match &stamped.event {
            Event::RuleAdded { rule } => rows.push(rule_row(rule)?),
            Event::RuleRemoved { rule } => rows.push(Row::RuleRemoved { rule: *rule }),
            // Lives in config.toml; only its number is kept.
            Event::ProfilesChanged { .. } | Event::LimitsChanged { .. } => return Ok(()),
            Event::Agent { .. } => {}
        }
        rows.push(event_row(stamped, None)?);
        return Ok(());
    };
    let agent = *agent;
    let row = match change {
        AgentEvent::ItemAdded { item } => {
            Row::ItemAdded { agent, stamped: Arc::clone(stamped), body: serde_json::to_string(&item.body)? }
        }
        AgentEvent::ItemChanged { index, done, body } => Row::ItemChanged {
            agent,
            index: *index,
            done: *done,
            kind: kind(body),
            body: serde_json::to_string(body)?,
        },
        AgentEvent::TextAppended { index, offset, text } => {
            Row::TextAppended { agent, index: *index, offset: *offset, text: text.clone() }
        }
        AgentEvent::TextDone { index } => Row::TextDone { agent, index: *index },
        _ => event_row(stamped, Some(agent))?,
    };
    rows.push(row);
    Ok(())
}

fn event_row(stamped: &Stamped, agent: Option<AgentId>) -> serde_json::Result<Row> {
    let body = serde_json::to_string(&stamped.event)?;
    Ok(Row::Event { seq: stamped.seq, at: stamped.at, agent, body })
}

fn rule_row(rule: &Rule) -> serde_json::Result<Row> {
    Ok(Row::RuleSet { rule: rule.id, body: serde_json::to_string(rule)? })
}

impl Row {
    fn size(&self) -> usize {
        64 + match self {
            Self::Event { body, .. }
            | Self::ItemAdded { body, .. }
            | Self::ItemChanged { body, .. }
            | Self::RuleSet { body, .. } => body.len(),
            Self::TextAppended { text, .. } => text.len(),
            Self::Setting { value, .. } => value.as_ref().map_or(0, String::len),
            Self::TextDone { .. } | Self::RuleRemoved { .. } => 0,
        }
    }

    fn write(&self, connection: &Connection) -> rusqlite::Result<()> {
        match self {
            Self::Event { seq, at, agent, body } => {
                let agent = agent.map(|agent| id(agent.uuid()));
                connection
                    .prepare_cached("INSERT INTO events (seq, at, agent, body) VALUES (?1, ?2, ?3, ?4)")?
                    .execute(params![number(*seq), at.0, agent, body])?;
            }
            Self::ItemAdded { agent, stamped, body } => {
                if let Event::Agent { change: AgentEvent::ItemAdded { item }, .. } = &stamped.event {
                    add_item(connection, *agent, item, body)?;
                }
            }
            Self::ItemChanged { agent, index, done, kind, body } => {
                let agent = id(agent.uuid());
                connection
                    .prepare_cached(
                        "UPDATE items SET done = ?3, kind = ?4, body = ?5 WHERE agent = ?1 AND idx = ?2",
                    )?
                    .execute(params![agent, number(index.0), done, kind, body])?;
                if matches!(*kind, "text" | "thinking") {
                    text::forget(connection, &agent, *index)?;
                }
            }
            Self::TextAppended { agent, index, offset, text } => {
                text::append(connection, *agent, *index, *offset, text)?;
            }
            Self::TextDone { agent, index } => text::fold(connection, *agent, *index)?,
            Self::RuleSet { rule, body } => {
                connection
                    .prepare_cached("INSERT OR REPLACE INTO rules (id, body) VALUES (?1, ?2)")?
                    .execute(params![id(rule.uuid()), body])?;
            }
            Self::RuleRemoved { rule } => {
                connection.prepare_cached("DELETE FROM rules WHERE id = ?1")?.execute([id(rule.uuid())])?;
            }
            Self::Setting { key, value: Some(value) } => {
                connection
                    .prepare_cached("INSERT OR REPLACE INTO settings (key, value) VALUES (?1, ?2)")?
                    .execute(params![key, value])?;
            }
            Self::Setting { key, value: None } => {
                connection.prepare_cached("DELETE FROM settings WHERE key = ?1")?.execute([key])?;
            }
        }
        Ok(())
    }
}

fn add_item(connection: &Connection, agent: AgentId, item: &Item, body: &str) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "INSERT OR REPLACE INTO items (agent, idx, turn, at, done, within, kind, body)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        )?
        .execute(params![
            id(agent.uuid()),
            number(item.index.0),
            item.turn.map(|turn| id(turn.uuid())),
            item.at.0,
            item.done,
            item.within.as_ref().map(|call| call.as_str()),
            kind(&item.body),
            body,
        ])?;
    Ok(())
}

fn write_agent(connection: &Connection, state: &State, agent: AgentId) -> rusqlite::Result<()> {
    let Some(agent) = state.agents.get(&agent) else { return Ok(()) };
    let record = serde_json::to_string(agent)
        .map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))?;
    connection
        .prepare_cached(
            "INSERT INTO agents (id, created_at, closed, record) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (id) DO UPDATE SET closed = excluded.closed, record = excluded.record",
        )?
        .execute(params![id(agent.id.uuid()), agent.created_at.0, agent.is_closed(), record])?;
    Ok(())
}

/// The value of a setting.
pub(crate) fn setting(connection: &Connection, key: &str) -> rusqlite::Result<Option<String>> {
    connection
        .prepare_cached("SELECT value FROM settings WHERE key = ?1")?
        .query_row([key], |row| row.get(0))
        .optional()
}

/// The settings whose keys begin with `prefix`, by the rest of their keys.
pub(crate) fn settings(connection: &Connection, prefix: &str) -> rusqlite::Result<Vec<(String, String)>> {
    let mut statement = connection.prepare(
        "SELECT substr(key, length(?1) + 1), value FROM settings WHERE substr(key, 1, length(?1)) = ?1",
    )?;
    statement.query_map([prefix], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
}

/// What revisions of profiles are made with: random, made once.
pub(crate) fn revision_key(connection: &Connection) -> rusqlite::Result<RevisionKey> {
    const KEY: &str = "profile_revision_key";
    let kept = |connection| {
        let number = |text: String| u128::from_str_radix(&text, 16).ok();
        setting(connection, KEY).map(|text| text.and_then(number))
    };
    let number = match kept(connection)? {
        Some(number) => number,
        None => {
            connection.execute("INSERT OR REPLACE INTO settings VALUES (?1, hex(randomblob(16)))", [KEY])?;
            kept(connection)?.unwrap_or_default()
        }
    };
    Ok(RevisionKey::new(number.to_le_bytes()))
}

/// The kind of an item, for those who look into the database with other tools.
fn kind(body: &ItemBody) -> &'static str {
    match body {
        ItemBody::User { .. } => "user",
        ItemBody::Text { .. } => "text",
        ItemBody::Thinking { .. } => "thinking",
        ItemBody::Image(_) => "image",
        ItemBody::Tool(_) => "tool",
        ItemBody::Plan { .. } => "plan",
        ItemBody::Ask { .. } => "ask",
        ItemBody::Notice { .. } => "notice",
        ItemBody::Unknown { .. } => "unknown",
    }
}
