//! The least that a daemon has to do: opens a database with as many tables as Consort's, listens on a Unix socket, and
//! answers one request. What a cold start of `consort` is measured against.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixListener;
use std::path::Path;

use anyhow::Context;
use rusqlite::Connection;

/// As many tables as Consort's database has.
const TABLES: u32 = 10;

fn main() -> anyhow::Result<()> {
    let folder = std::env::args_os().nth(1).context("name the folder")?;
    let folder = Path::new(&folder);
    std::fs::create_dir_all(folder)?;
    let mut database = Connection::open(folder.join("reference.db"))?;
    database.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
    database.pragma_update(None, "synchronous", "FULL")?;
    let found: u32 = database.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if found == 0 {
        let transaction = database.transaction()?;
        for table in 0..TABLES {
            transaction
                .execute_batch(&format!("CREATE TABLE t{table} (id INTEGER PRIMARY KEY, body TEXT)"))?;
        }
        transaction.commit()?;
    }
    let socket = folder.join("s");
    match std::fs::remove_file(&socket) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
        _ => {}
    }
    let listener = UnixListener::bind(&socket)?;
    let mut stdout = io::stdout().lock();
    stdout.write_all(b"ready\n")?;
    stdout.flush()?;
    let (mut stream, _) = listener.accept()?;
    let mut request = String::new();
    BufReader::new(&stream).read_line(&mut request)?;
    stream.write_all(b"{}\n")?;
    Ok(())
}
