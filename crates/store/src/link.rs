//! What connects an agent with its runner: the driver's state, the offset of the next frame to process, and the frames
//! to the agent that the runner has not confirmed.
//!
//! There is one link per agent, of the newest generation that was written. It changes in the same transaction as the
//! events that the frames caused, so that no frame is processed twice or skipped.

use consort_model::AgentId;
use rusqlite::{Connection, OptionalExtension, Row, params};
use uuid::Uuid;

use crate::rows::{id, number};

/// What connects an agent with its runner.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Link {
    /// Whose.
    pub agent: AgentId,
    /// Of which process.
    pub generation: u32,
    /// The driver's state as the driver wrote it.
    pub driver_state: Option<Vec<u8>>,
    /// The offset of the first frame that is not processed yet.
    pub next_offset: u64,
    /// Numbered frames to the agent that the runner has not confirmed, in order.
    pub outbox: Vec<(u64, Vec<u8>)>,
    /// The highest number ever used in this generation; 0 if none was.
    pub last_input: u64,
}

/// A change to a link. One of a newer generation than what is stored starts afresh; one of an older is ignored.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LinkChange {
    /// Whose.
    pub agent: AgentId,
    /// Of which process.
    pub generation: u32,
    /// The driver's new state; none: as it was.
    pub driver_state: Option<Vec<u8>>,
    /// The offset of the next frame; none: as it was.
    pub next_offset: Option<u64>,
    /// Numbered frames to be sent.
    pub outbox: Vec<(u64, Vec<u8>)>,
    /// The runner has everything up to this number.
    pub confirmed_input: Option<u64>,
    /// Removes the link: its runner is gone for good.
    pub forget: bool,
}

impl LinkChange {
    /// A change of nothing yet.
    pub fn new(agent: AgentId, generation: u32) -> Self {
        Self {
            agent,
            generation,
            driver_state: None,
            next_offset: None,
            outbox: Vec::new(),
            confirmed_input: None,
            forget: false,
        }
    }

    /// Whether it only follows what an agent says: its driver is as it was and nothing goes out, so nobody waits for it.
    pub(crate) fn only_follows(&self) -> bool {
        self.next_offset.is_some() && self.driver_state.is_none() && self.outbox.is_empty() && !self.forget
    }

    /// How much of a batch it takes up.
    pub(crate) fn size(&self) -> usize {
        let outbox: usize = self.outbox.iter().map(|(_, frame)| frame.len()).sum();
        outbox + self.driver_state.as_ref().map_or(0, Vec::len)
    }

    /// Takes in a later change, if one row written is the same as both; otherwise gives it back.
    pub(crate) fn absorb(&mut self, later: Self) -> Option<Self> {
        if self.generation != later.generation || self.forget || later.forget {
            return Some(later);
        }
        self.driver_state = later.driver_state.or(self.driver_state.take());
        self.next_offset = later.next_offset.or(self.next_offset);
        self.outbox.extend(later.outbox);
        self.confirmed_input = later.confirmed_input.max(self.confirmed_input);
        None
    }

    /// Writes it.
    pub(crate) fn write(&self, connection: &Connection) -> rusqlite::Result<()> {
        let agent = id(self.agent.uuid());
        if self.forget {
            let stored = generation(connection, self.agent)?;
            if stored.is_some_and(|stored| stored <= self.generation) {
                clear(connection, &agent)?;
            }
            return Ok(());
        }
        if self.update(connection, &agent)? == 0 {
            if generation(connection, self.agent)?.is_some_and(|stored| stored > self.generation) {
                return Ok(());
            }
            clear(connection, &agent)?;
            connection
                .prepare_cached(
                    "INSERT INTO links (agent, generation, next_offset, last_input) VALUES (?1, ?2, 0, 0)",
                )?
                .execute(params![agent, self.generation])?;
            self.update(connection, &agent)?;
        }
        if let Some(state) = &self.driver_state {
            connection
                .prepare_cached(
                    "INSERT INTO driver_states (agent, state) VALUES (?1, ?2)
                     ON CONFLICT (agent) DO UPDATE SET state = excluded.state",
                )?
                .execute(params![agent, state])?;
        }
        for (input, frame) in &self.outbox {
            connection
                .prepare_cached("INSERT OR REPLACE INTO outbox (agent, number, frame) VALUES (?1, ?2, ?3)")?
                .execute(params![agent, number(*input), frame])?;
        }
        if let Some(confirmed) = self.confirmed_input {
            connection
                .prepare_cached("DELETE FROM outbox WHERE agent = ?1 AND number <= ?2")?
                .execute(params![agent, number(confirmed)])?;
        }
        Ok(())
    }

    /// The small statement that every processed frame costs.
    fn update(&self, connection: &Connection, agent: &[u8; 16]) -> rusqlite::Result<usize> {
        let last_input = self.outbox.iter().map(|(number, _)| *number).max().unwrap_or(0);
        connection
            .prepare_cached(
                "UPDATE links SET next_offset = coalesce(?3, next_offset), last_input = max(last_input, ?4)
                 WHERE agent = ?1 AND generation = ?2",
            )?
            .execute(params![agent, self.generation, self.next_offset.map(number), number(last_input)])
    }
}

/// Removes all rows of a link.
fn clear(connection: &Connection, agent: &[u8; 16]) -> rusqlite::Result<()> {
    for sql in [
        "DELETE FROM links WHERE agent = ?1",
        "DELETE FROM driver_states WHERE agent = ?1",
        "DELETE FROM outbox WHERE agent = ?1",
    ] {
        connection.prepare_cached(sql)?.execute([agent])?;
    }
    Ok(())
}

fn generation(connection: &Connection, agent: AgentId) -> rusqlite::Result<Option<u32>> {
    connection
        .prepare_cached("SELECT generation FROM links WHERE agent = ?1")?
        .query_row([id(agent.uuid())], |row| row.get(0))
        .optional()
}

const SELECT: &str = "SELECT agent, generation, next_offset, last_input, state
     FROM links LEFT JOIN driver_states USING (agent)";

/// The link of one agent.
pub(crate) fn one(connection: &Connection, agent: AgentId) -> rusqlite::Result<Option<Link>> {
    // One transaction, so that outbox and link are of the same moment.
    let transaction = connection.unchecked_transaction()?;
    let link = transaction
        .prepare_cached(&format!("{SELECT} WHERE agent = ?1"))?
        .query_row([id(agent.uuid())], from_row)
        .optional()?;
    link.map(|link| with_outbox(&transaction, link)).transpose()
}

/// All links.
pub(crate) fn all(connection: &Connection) -> rusqlite::Result<Vec<Link>> {
    let transaction = connection.unchecked_transaction()?;
    let links =
        transaction.prepare(SELECT)?.query_map([], from_row)?.collect::<rusqlite::Result<Vec<_>>>()?;
    links.into_iter().map(|link| with_outbox(&transaction, link)).collect()
}

fn from_row(row: &Row<'_>) -> rusqlite::Result<Link> {
    Ok(Link {
        agent: AgentId::new(Uuid::from_bytes(row.get(0)?)),
        generation: row.get(1)?,
        next_offset: row.get::<_, i64>(2)?.cast_unsigned(),
        last_input: row.get::<_, i64>(3)?.cast_unsigned(),
        driver_state: row.get(4)?,
        outbox: Vec::new(),
    })
}

fn with_outbox(connection: &Connection, mut link: Link) -> rusqlite::Result<Link> {
    link.outbox = connection
        .prepare_cached("SELECT number, frame FROM outbox WHERE agent = ?1 ORDER BY number")?
        .query_map([id(link.agent.uuid())], |row| Ok((row.get::<_, i64>(0)?.cast_unsigned(), row.get(1)?)))?
        .collect::<rusqlite::Result<Vec<_>>>()?;
    Ok(link)
}
