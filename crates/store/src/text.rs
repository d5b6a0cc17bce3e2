//! Text that is being written.
//!
//! An item's body is written once when it begins and once when it is done. What comes between is kept in pieces: the
//! newest in `text_tails`, whose few short rows lie close together, so that a commit in which many agents say a word
//! each writes few pages; and what a tail has no room for in `item_text`.
//!
//! Invariant: body, then pieces by offset, then tail, is all that was said.

use consort_model::{AgentId, ItemBody, ItemIndex};
use rusqlite::{Connection, OptionalExtension, params};

use crate::rows::{id, number};

/// How many bytes a tail may have. Longer ones make the table of tails larger, shorter ones overflow more often: with
/// a hundred agents that say a word per commit, fewest pages are written about here.
const TAIL: usize = 512;

/// Adds to an item's text.
pub(crate) fn append(
    connection: &Connection,
    agent: AgentId,
    index: ItemIndex,
    offset: u64,
    text: &str,
) -> rusqlite::Result<()> {
    let (agent, index, offset) = (id(agent.uuid()), number(index.0), number(offset));
    let room = TAIL.checked_sub(text.len());
    if let Some(room) = room {
        let grown = connection
            .prepare_cached(
                "UPDATE text_tails SET text = text || ?3
                 WHERE agent = ?1 AND idx = ?2 AND octet_length(text) <= ?4",
            )?
            .execute(params![agent, index, text, number(room as u64)])?;
        if grown > 0 {
            return Ok(());
        }
    }
    connection
        .prepare_cached(
            "INSERT INTO item_text (agent, idx, offset, text)
             SELECT agent, idx, offset, text FROM text_tails WHERE agent = ?1 AND idx = ?2",
        )?
        .execute(params![agent, index])?;
    if room.is_some() {
        connection
            .prepare_cached(
                "INSERT OR REPLACE INTO text_tails (agent, idx, offset, text) VALUES (?1, ?2, ?3, ?4)",
            )?
            .execute(params![agent, index, offset, text])?;
    } else {
        connection
            .prepare_cached("DELETE FROM text_tails WHERE agent = ?1 AND idx = ?2")?
            .execute(params![agent, index])?;
        connection
            .prepare_cached("INSERT INTO item_text (agent, idx, offset, text) VALUES (?1, ?2, ?3, ?4)")?
            .execute(params![agent, index, offset, text])?;
    }
    Ok(())
}

/// What was said after the item's body, joined.
pub(crate) fn pieces(connection: &Connection, agent: AgentId, index: ItemIndex) -> rusqlite::Result<String> {
    let key = params![id(agent.uuid()), number(index.0)];
    let mut whole = String::new();
    for sql in [
        "SELECT text FROM item_text WHERE agent = ?1 AND idx = ?2 ORDER BY offset",
        "SELECT text FROM text_tails WHERE agent = ?1 AND idx = ?2",
    ] {
        let mut statement = connection.prepare_cached(sql)?;
        let mut rows = statement.query(key)?;
        while let Some(row) = rows.next()? {
            whole.push_str(row.get_ref(0)?.as_str()?);
        }
    }
    Ok(whole)
}

/// Puts the pieces into the item itself, which is done.
pub(crate) fn fold(connection: &Connection, agent: AgentId, index: ItemIndex) -> rusqlite::Result<()> {
    let key = id(agent.uuid());
    let pieces = pieces(connection, agent, index)?;
    let grown = if pieces.is_empty() {
        None
    } else {
        let body: Option<String> = connection
            .prepare_cached("SELECT body FROM items WHERE agent = ?1 AND idx = ?2")?
            .query_row(params![key, number(index.0)], |row| row.get(0))
            .optional()?;
        body.and_then(|body| grow(&body, &pieces))
    };
    // A body that cannot be read keeps its pieces beside it: nothing is thrown away that a repair could use.
    connection
        .prepare_cached("UPDATE items SET done = 1, body = coalesce(?3, body) WHERE agent = ?1 AND idx = ?2")?
        .execute(params![key, number(index.0), grown])?;
    if grown.is_some() {
        forget(connection, &key, index)?;
    }
    Ok(())
}

fn grow(body: &str, pieces: &str) -> Option<String> {
    let mut body: ItemBody = serde_json::from_str(body).ok()?;
    extend(&mut body, pieces);
    serde_json::to_string(&body).ok()
}

/// Adds pieces to the end of a text item.
pub(crate) fn extend(body: &mut ItemBody, pieces: &str) {
    if let ItemBody::Text { text } | ItemBody::Thinking { text } = body {
        text.push_str(pieces);
    }
}

/// Drops the pieces: the body holds everything.
pub(crate) fn forget(connection: &Connection, agent: &[u8; 16], index: ItemIndex) -> rusqlite::Result<()> {
    for sql in [
        "DELETE FROM item_text WHERE agent = ?1 AND idx = ?2",
        "DELETE FROM text_tails WHERE agent = ?1 AND idx = ?2",
    ] {
        connection.prepare_cached(sql)?.execute(params![agent, number(index.0)])?;
    }
    Ok(())
}
