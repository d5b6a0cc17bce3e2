//! The database file: where it is, how a connection to it is set up, its tables, and how an older one is brought up to
//! date.
//!
//! The version of a database is the number of [`STEPS`] that made it, in SQLite's `user_version`. Steps only ever get
//! added at the end. Before the first step on an existing database a copy of it is put beside it.

use std::fs::{self, DirBuilder, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, MAIN_DB, OpenFlags, TransactionBehavior};

use crate::error::{OpenError, sentence};

/// The name of the database in its folder.
pub const DATABASE_FILE: &str = "consort.db";

/// Marks the file as Consort's: "cnst" in SQLite's `application_id`.
const APPLICATION_ID: i32 = 0x636e_7374;

/// How long to wait for another program that holds the file, before saying so.
const BUSY_TIMEOUT: Duration = Duration::from_secs(2);

/// What makes a database of today, one step per version.
///
/// - `items` is clustered by agent and place, so that a page is a short walk from anywhere. `body` is the item's body as
///   JSON without the text that is still in the next two.
/// - `item_text` and `text_tails` hold the text of items that are being written until it is folded in (see `text`).
/// - `agents.record` is the agent as of the last event that was not about its transcript alone, or changed a tool's item;
///   what happened to its cursor since follows from `items` (see `load`).
/// - `links` is apart from `driver_states`, since its offsets change with every frame and must stay small.
/// - `meta` has one row: the number of the last event, and the version of the JSON in all the others.
pub(crate) const STEPS: &[&str] = &["
    CREATE TABLE meta (
        one INTEGER PRIMARY KEY CHECK (one = 1), seq INTEGER NOT NULL, model_version INTEGER NOT NULL);
    INSERT INTO meta (one, seq, model_version) VALUES (1, 0, 0);
    CREATE TABLE events (seq INTEGER PRIMARY KEY, at INTEGER NOT NULL, agent BLOB, body TEXT NOT NULL);
    CREATE TABLE agents (
        id BLOB NOT NULL PRIMARY KEY, created_at INTEGER NOT NULL, closed INTEGER NOT NULL, record TEXT NOT NULL);
    CREATE TABLE items (
        agent BLOB NOT NULL, idx INTEGER NOT NULL, turn BLOB, at INTEGER NOT NULL, done INTEGER NOT NULL,
        within TEXT, kind TEXT NOT NULL, body TEXT NOT NULL,
        PRIMARY KEY (agent, idx)) WITHOUT ROWID;
    CREATE TABLE item_text (
        agent BLOB NOT NULL, idx INTEGER NOT NULL, offset INTEGER NOT NULL, text TEXT NOT NULL,
        PRIMARY KEY (agent, idx, offset)) WITHOUT ROWID;
    CREATE TABLE text_tails (
        agent BLOB NOT NULL, idx INTEGER NOT NULL, offset INTEGER NOT NULL, text TEXT NOT NULL,
        PRIMARY KEY (agent, idx)) WITHOUT ROWID;
    CREATE TABLE rules (id BLOB NOT NULL PRIMARY KEY, body TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE links (
        agent BLOB NOT NULL PRIMARY KEY, generation INTEGER NOT NULL, next_offset INTEGER NOT NULL,
        last_input INTEGER NOT NULL) WITHOUT ROWID;
    CREATE TABLE driver_states (agent BLOB NOT NULL PRIMARY KEY, state BLOB NOT NULL);
    CREATE TABLE outbox (
        agent BLOB NOT NULL, number INTEGER NOT NULL, frame BLOB NOT NULL,
        PRIMARY KEY (agent, number)) WITHOUT ROWID;
    CREATE TABLE settings (key TEXT NOT NULL PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
"];

/// Makes the folder (0700) and the file (0600) where they are missing. SQLite gives its side files the same rights.
pub(crate) fn prepare(dir: &Path) -> Result<PathBuf, OpenError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| OpenError::Io { path, source }
    };
    DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(failed(dir))?;
    let path = dir.join(DATABASE_FILE);
    private_file(&path).map_err(failed(&path))?;
    Ok(path)
}

/// Makes the file if it is missing, for this user only.
fn private_file(path: &Path) -> io::Result<()> {
    let file = OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(path)?;
    if file.metadata()?.permissions().mode() & 0o077 != 0 {
        file.set_permissions(Permissions::from_mode(0o600))?;
    }
    Ok(())
}

/// A connection for the writer.
pub(crate) fn connect(path: &Path) -> Result<Connection, OpenError> {
    let open = || {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(BUSY_TIMEOUT)?;
        // The first statement that reads the file: one that is no database is found out before anything is written.
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
        Ok(connection)
    };
    let connection = open().map_err(|error| OpenError::sqlite(path, &error))?;
    check_ours(&connection, path)?;
    let set_up = || {
        connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.pragma_update(None, "cache_size", -2048)?;
        connection.pragma_update(None, "mmap_size", 0)?;
        // The checkpointer's thread does it.
        connection.pragma_update_and_check(None, "wal_autocheckpoint", 0, |_| Ok(()))?;
        connection.set_prepared_statement_cache_capacity(48);
        Ok(())
    };
    set_up().map_err(|error: rusqlite::Error| OpenError::sqlite(path, &error))?;
    Ok(connection)
}

/// A connection for a reader.
pub(crate) fn connect_reader(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.pragma_update(None, "cache_size", -512)?;
    Ok(connection)
}

/// Refuses a database that another program made.
fn check_ours(connection: &Connection, path: &Path) -> Result<(), OpenError> {
    let read = || {
        let id: i32 = connection.query_row("PRAGMA application_id", [], |row| row.get(0))?;
        let tables: u32 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
        Ok((id, tables))
    };
    let (id, tables) = read().map_err(|error| OpenError::sqlite(path, &error))?;
    if id == APPLICATION_ID || (id == 0 && tables == 0) {
        Ok(())
    } else {
        Err(OpenError::NotOurs { path: path.to_owned() })
    }
}

/// Runs the steps that the database does not have yet, each in its own transaction.
pub(crate) fn migrate(connection: &mut Connection, path: &Path, steps: &[&str]) -> Result<(), OpenError> {
    let failed = |error: rusqlite::Error| OpenError::sqlite(path, &error);
    let found: u32 = connection.query_row("PRAGMA user_version", [], |row| row.get(0)).map_err(failed)?;
    let known = u32::try_from(steps.len()).unwrap_or(u32::MAX);
    if found > known {
        return Err(OpenError::Newer { path: path.to_owned(), found, known });
    }
    if found > 0 && found < known {
        back_up(connection, path, found)?;
    }
    for (version, step) in (1..=known).zip(steps).skip(found as usize) {
        let mut run = || {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            transaction.execute_batch(step)?;
            transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
            transaction.pragma_update(None, "user_version", version)?;
            transaction.commit()
        };
        run().map_err(failed)?;
    }
    Ok(())
}

/// Refuses records that a newer model wrote, and marks the database as written by this one.
pub(crate) fn check_model(connection: &Connection, path: &Path, known: u32) -> Result<(), OpenError> {
    let failed = |error: rusqlite::Error| OpenError::sqlite(path, &error);
    let found: u32 =
        connection.query_row("SELECT model_version FROM meta", [], |row| row.get(0)).map_err(failed)?;
    if found > known {
        return Err(OpenError::Newer { path: path.to_owned(), found, known });
    }
    if found < known {
        connection.execute("UPDATE meta SET model_version = ?1", [known]).map_err(failed)?;
    }
    Ok(())
}

/// Where the copy of a database of this version is put.
pub(crate) fn backup_path(path: &Path, version: u32) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".backup-v{version}"));
    PathBuf::from(name)
}

/// Copies the database. The copy gets its name only when it is whole.
fn back_up(connection: &Connection, path: &Path, version: u32) -> Result<(), OpenError> {
    let target = backup_path(path, version);
    let partial = target.with_extension("partial");
    let failed = |reason: String| OpenError::Backup { path: target.clone(), reason };
    match fs::remove_file(&partial) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error.to_string())),
        _ => {}
    }
    private_file(&partial).map_err(|error| failed(error.to_string()))?;
    connection
        .backup(MAIN_DB, &partial, None::<fn(rusqlite::backup::Progress)>)
        .map_err(|error| failed(sentence(&partial, &error)))?;
    fs::File::open(&partial)
        .and_then(|file| file.sync_all())
        .and_then(|()| fs::rename(&partial, &target))
        .map_err(|error| failed(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: &str = "CREATE TABLE a (x INTEGER); INSERT INTO a VALUES (1);";
    const SECOND: &str = "ALTER TABLE a ADD COLUMN y INTEGER DEFAULT 7;";

    fn open(dir: &Path, steps: &[&str]) -> Result<Connection, OpenError> {
        let path = prepare(dir)?;
        let mut connection = connect(&path)?;
        migrate(&mut connection, &path, steps)?;
        Ok(connection)
    }

    fn version(path: &Path) -> u32 {
        let connection = Connection::open(path).unwrap();
        connection.query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap()
    }

    #[test]
    fn an_older_database_is_migrated_and_kept_beside() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(DATABASE_FILE);
        drop(open(dir.path(), &[FIRST]).unwrap());
        assert!(!backup_path(&path, 0).exists(), "a new database needs no backup");
        let connection = open(dir.path(), &[FIRST, SECOND]).unwrap();
        let row = connection.query_row("SELECT x, y FROM a", [], |row| Ok((row.get(0)?, row.get(1)?)));
        assert_eq!(row.unwrap(), (1, 7));
        let backup = backup_path(&path, 1);
        assert_eq!((version(&path), version(&backup)), (2, 1));
        assert_eq!(backup.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        drop(connection);
        fs::remove_file(&backup).unwrap();
        drop(open(dir.path(), &[FIRST, SECOND]).unwrap());
        assert!(!backup.exists(), "nothing to migrate, nothing to back up");
    }

    #[test]
    fn a_step_that_fails_leaves_the_database_at_the_step_before() {
        let dir = tempfile::tempdir().unwrap();
        drop(open(dir.path(), &[FIRST]).unwrap());
        let broken = "INSERT INTO a VALUES (2); INSERT INTO nowhere VALUES (1);";
        assert!(open(dir.path(), &[FIRST, broken]).is_err());
        let connection = open(dir.path(), &[FIRST]).unwrap();
        let rows: u32 = connection.query_row("SELECT count(*) FROM a", [], |row| row.get(0)).unwrap();
        assert_eq!(rows, 1);
    }

    #[test]
    fn a_newer_database_is_refused_in_a_clear_sentence() {
        let dir = tempfile::tempdir().unwrap();
        drop(open(dir.path(), &[FIRST, SECOND]).unwrap());
        let error = open(dir.path(), &[FIRST]).unwrap_err();
        assert!(matches!(error, OpenError::Newer { found: 2, known: 1, .. }));
        assert!(error.to_string().contains("written by a newer version of Consort"), "{error}");
    }

    #[test]
    fn records_of_a_newer_model_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let connection = open(dir.path(), STEPS).unwrap();
        let path = dir.path().join(DATABASE_FILE);
        check_model(&connection, &path, 1).unwrap();
        check_model(&connection, &path, 2).unwrap();
        let error = check_model(&connection, &path, 1).unwrap_err();
        assert!(matches!(error, OpenError::Newer { found: 2, known: 1, .. }));
    }

    #[test]
    fn what_is_no_database_of_consort_is_refused_and_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(DATABASE_FILE);
        let text = "a diary, ".repeat(1000);
        fs::write(&path, &text).unwrap();
        assert!(matches!(open(dir.path(), &[FIRST]), Err(OpenError::NotOurs { .. })));
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
        fs::remove_file(&path).unwrap();
        Connection::open(&path).unwrap().execute_batch("CREATE TABLE theirs (x)").unwrap();
        let before = fs::read(&path).unwrap();
        assert!(matches!(open(dir.path(), &[FIRST]), Err(OpenError::NotOurs { .. })));
        assert_eq!(fs::read(&path).unwrap(), before);
    }

    #[test]
    fn the_real_steps_make_a_database() {
        let dir = tempfile::tempdir().unwrap();
        let connection = open(dir.path(), STEPS).unwrap();
        let mode: String = connection.query_row("PRAGMA journal_mode", [], |row| row.get(0)).unwrap();
        let synchronous: u32 = connection.query_row("PRAGMA synchronous", [], |row| row.get(0)).unwrap();
        assert_eq!((mode.as_str(), synchronous), ("wal", 2));
    }
}
