//! Reading transcripts, on connections of their own beside the writer's.
//!
//! Items lie in the order of their transcript, so a page costs what it holds and not what was said before. Reads run on
//! the runtime's blocking threads, a few at a time; the connections are kept with small caches.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use consort_model::{AgentId, Item, ItemBody, ItemIndex, Timestamp, ToolCallId, TurnId};
use rusqlite::{Connection, OptionalExtension, Row, params};
use tokio::sync::Semaphore;
use uuid::Uuid;

use crate::error::{ReadError, RowError};
use crate::rows::{id, number};
use crate::{schema, text};

/// How many reads run at once.
const READERS: usize = 4;
/// How many connections are kept when nobody reads.
const KEPT: usize = 2;
/// The most items of one page.
const MAX_ITEMS: usize = 1000;
/// A page ends early after this many bytes, so that a few huge items do not fill the memory.
const MAX_BYTES: usize = 8 << 20;

/// Which part of a transcript. It holds fewer than `limit` items at an end of the transcript, or where items are so
/// large that the page is cut short (then the ones nearest to the position are given; the next page goes on from there).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Page {
    /// The last items.
    Last {
        /// At most so many.
        limit: usize,
    },
    /// The items just before this one, without it.
    Before {
        /// This one.
        index: ItemIndex,
        /// At most so many.
        limit: usize,
    },
    /// This one and the items after it.
    From {
        /// This one.
        index: ItemIndex,
        /// At most so many.
        limit: usize,
    },
}

/// Connections for reading.
pub(crate) struct Readers {
    path: PathBuf,
    idle: Mutex<Vec<Connection>>,
    running: Semaphore,
}

impl Readers {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, idle: Mutex::new(Vec::new()), running: Semaphore::new(READERS) }
    }

    /// Runs a read on a blocking thread.
    pub(crate) async fn run<T: Send + 'static>(
        self: &std::sync::Arc<Self>,
        read: impl FnOnce(&Connection) -> Result<T, RowError> + Send + 'static,
    ) -> Result<T, ReadError> {
        let stopped = |reason: String| ReadError::Unavailable { reason };
        let _running = self.running.acquire().await.map_err(|_| stopped("the store is closed".to_owned()))?;
        let readers = std::sync::Arc::clone(self);
        tokio::task::spawn_blocking(move || {
            let connection = readers.take().map_err(|error| RowError::from(error).read(&readers.path))?;
            let result = read(&connection);
            readers.put_back(connection);
            result.map_err(|error| error.read(&readers.path))
        })
        .await
        .map_err(|error| stopped(format!("reading the database was broken off: {error}")))?
    }

    fn take(&self) -> rusqlite::Result<Connection> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        idle.map_or_else(|| schema::connect_reader(&self.path), Ok)
    }

    fn put_back(&self, connection: Connection) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < KEPT && !self.running.is_closed() {
            idle.push(connection);
        }
    }

    /// Lets go of the file; reads that begin later fail.
    pub(crate) fn close(&self) {
        self.running.close();
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

/// A page of a transcript, in ascending order.
pub(crate) fn page(connection: &Connection, agent: AgentId, page: Page) -> Result<Vec<Item>, RowError> {
    let (sql, position, limit) = match page {
        Page::Last { limit } => (BACKWARDS, i64::MAX, limit),
        Page::Before { index, limit } => (BACKWARDS, clamp(index), limit),
        Page::From { index, limit } => (FORWARDS, clamp(index), limit),
    };
    // One transaction, so that items and pieces of text are of the same moment.
    let transaction = connection.unchecked_transaction()?;
    let mut items = select(&transaction, sql, agent, position, limit.min(MAX_ITEMS))?;
    for item in &mut items {
        complete(&transaction, agent, item)?;
    }
    if !matches!(page, Page::From { .. }) {
        items.reverse();
    }
    Ok(items)
}

/// One item.
pub(crate) fn item(
    connection: &Connection,
    agent: AgentId,
    index: ItemIndex,
) -> Result<Option<Item>, RowError> {
    let transaction = connection.unchecked_transaction()?;
    let item = transaction
        .prepare_cached("SELECT idx, turn, at, done, within, body FROM items WHERE agent = ?1 AND idx = ?2")?
        .query_row(params![id(agent.uuid()), clamp(index)], |row| Ok(from_row(row)))
        .optional()?;
    let mut item = item.transpose()?;
    if let Some(item) = &mut item {
        complete(&transaction, agent, item)?;
    }
    Ok(item)
}

/// All items from this place on, without the pieces of text that are not folded yet.
pub(crate) fn added_since(
    connection: &Connection,
    agent: AgentId,
    first: u64,
) -> Result<Vec<Item>, RowError> {
    let mut statement = connection.prepare_cached(FORWARDS)?;
    let mut rows = statement.query(params![id(agent.uuid()), number(first), -1])?;
    let mut items = Vec::new();
    while let Some(row) = rows.next()? {
        items.push(from_row(row)?);
    }
    Ok(items)
}

const BACKWARDS: &str = "SELECT idx, turn, at, done, within, body FROM items
     WHERE agent = ?1 AND idx < ?2 ORDER BY idx DESC LIMIT ?3";
const FORWARDS: &str = "SELECT idx, turn, at, done, within, body FROM items
     WHERE agent = ?1 AND idx >= ?2 ORDER BY idx LIMIT ?3";

/// A place that may come from a client, however large.
fn clamp(index: ItemIndex) -> i64 {
    i64::try_from(index.0).unwrap_or(i64::MAX)
}

fn select(
    connection: &Connection,
    sql: &str,
    agent: AgentId,
    position: i64,
    limit: usize,
) -> Result<Vec<Item>, RowError> {
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(params![id(agent.uuid()), position, number(limit as u64)])?;
    let mut items = Vec::new();
    let mut size = 0;
    while let Some(row) = rows.next()? {
        size += row.get_ref(5)?.as_str().map_or(0, str::len);
        if size > MAX_BYTES && !items.is_empty() {
            break;
        }
        items.push(from_row(row)?);
    }
    Ok(items)
}

fn from_row(row: &Row<'_>) -> Result<Item, RowError> {
    let index = row.get::<_, i64>(0)?.cast_unsigned();
    let body = row.get_ref(5)?.as_str().map_err(rusqlite::Error::from)?;
    let body: ItemBody = serde_json::from_str(body).map_err(|error| RowError::Unreadable {
        what: format!("an item (number {index})"),
        reason: error.to_string(),
    })?;
    Ok(Item {
        index: ItemIndex(index),
        turn: row.get::<_, Option<[u8; 16]>>(1)?.map(|turn| TurnId::new(Uuid::from_bytes(turn))),
        at: Timestamp(row.get(2)?),
        done: row.get(3)?,
        within: row.get::<_, Option<String>>(4)?.map(ToolCallId::new),
        body,
    })
}

/// Adds the pieces of text that are not folded in yet.
fn complete(connection: &Connection, agent: AgentId, item: &mut Item) -> Result<(), RowError> {
    if !item.done && matches!(item.body, ItemBody::Text { .. } | ItemBody::Thinking { .. }) {
        text::extend(&mut item.body, &text::pieces(connection, agent, item.index)?);
    }
    Ok(())
}
