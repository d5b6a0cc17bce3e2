//! Folding the write-ahead log into the database, beside the writer.
//!
//! A checkpoint waits for the disk, at times for tens of milliseconds. It is made by a thread of its own, so that no
//! change waits for it; the thread begins with the first checkpoint that is due.
//!
//! Invariant: the log grows to about [`LIMIT`] pages at most. Beside a writer that never rests a checkpoint does not come
//! to the log's end, so past the limit one is made that has the writer wait for it.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Builder, JoinHandle};

use rusqlite::Connection;

use crate::schema;

/// A checkpoint is due after about this many pages.
const EVERY: usize = 4_000;
/// Past this many pages in the log (64 MB) the writer has to wait for a checkpoint. The log's file is never cut while work
/// goes on: that, too, takes the disk tens of milliseconds.
const LIMIT: i64 = 16_000;

/// Tells the thread what was written.
pub(crate) struct Checkpointer {
    path: PathBuf,
    /// Pages since the last checkpoint.
    written: usize,
    thread: Option<(SyncSender<()>, JoinHandle<()>)>,
}

impl Checkpointer {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, written: 0, thread: None }
    }

    /// A commit wrote about this many pages.
    pub(crate) fn wrote(&mut self, pages: usize) {
        self.written += pages;
        if self.written < EVERY {
            return;
        }
        self.written = 0;
        if self.thread.is_none() {
            let (due, wake) = sync_channel(1);
            let path = self.path.clone();
            match Builder::new().name("store-checkpoint".to_owned()).spawn(move || run(&path, &wake)) {
                Ok(thread) => self.thread = Some((due, thread)),
                Err(error) => tracing::warn!(%error, "the write-ahead log grows: no thread to fold it in"),
            }
        }
        if let Some((due, _)) = &self.thread {
            // Where one is due already, that one will do.
            due.try_send(()).unwrap_or(());
        }
    }

    /// Ends the thread and waits for that.
    pub(crate) fn stop(&mut self) {
        let Some((due, thread)) = self.thread.take() else { return };
        drop(due);
        if thread.join().is_err() {
            tracing::error!("the store's checkpoint thread panicked");
        }
    }
}

fn run(path: &Path, wake: &Receiver<()>) {
    let mut connection = None;
    while wake.recv().is_ok() {
        let made = match connection.take() {
            Some(connection) => Ok(connection),
            None => schema::connect(path).map_err(|error| error.to_string()),
        };
        let folded = made.and_then(|connection| {
            fold(&connection).map_err(|error| error.to_string())?;
            Ok(connection)
        });
        match folded {
            Ok(same) => connection = Some(same),
            Err(reason) => {
                tracing::warn!(reason, "the write-ahead log was not folded in; the next commits try again")
            }
        }
    }
}

fn fold(connection: &Connection) -> rusqlite::Result<()> {
    let in_log: i64 = connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| row.get(1))?;
    if in_log > LIMIT {
        connection.query_row("PRAGMA wal_checkpoint(RESTART)", [], |_| Ok(()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_the_log_is_folded_in_once_enough_was_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = schema::prepare(folder.path()).unwrap();
        let mut connection = schema::connect(&path).unwrap();
        schema::migrate(&mut connection, &path, schema::STEPS).unwrap();
        connection.execute_batch("CREATE TABLE filling (page BLOB)").unwrap();
        let mut checkpointer = Checkpointer::new(path.clone());
        let fill = |pages: u32| {
            let sql = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
                 INSERT INTO filling SELECT randomblob(4000) FROM n";
            connection.execute(sql, [pages]).unwrap();
        };
        let size = || std::fs::metadata(&path).unwrap().len();

        let before = size();
        fill(10);
        checkpointer.wrote(10);
        checkpointer.stop();
        assert_eq!(size(), before, "too little to be worth it");

        fill(EVERY as u32);
        checkpointer.wrote(EVERY);
        checkpointer.stop();
        assert!(size() > before + EVERY as u64 * 4000);
    }
}
