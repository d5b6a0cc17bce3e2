//! Sessions and their state files.
//!
//! A state file `<session id>.jsonl` begins with a line of what the session was opened with and goes on with the
//! updates the client saw, its own messages among them. Without a state dir a session lives and dies with the process
//! and has no history.

use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value, json};

use super::wire::{RpcError, lock};

pub struct Session {
    pub id: String,
    pub cwd: PathBuf,
    pub mcp_servers: Value,
    state: Mutex<State>,
}

struct State {
    log: Option<File>,
    title: Option<String>,
    mode: Option<String>,
    config: Map<String, Value>,
    /// Tool kinds that the user allowed for good.
    allowed: HashSet<String>,
}

/// What a state file says.
pub struct Stored {
    pub cwd: PathBuf,
    pub title: Option<String>,
    pub updates: Vec<Value>,
}

impl Session {
    pub fn create(dir: Option<&Path>, params: &Value, mode: Option<String>) -> Result<Self, RpcError> {
        let cwd = absolute_cwd(params)?;
        let id = fresh_id();
        let log = match dir {
            Some(dir) => {
                let open = || -> std::io::Result<File> {
                    std::fs::create_dir_all(dir)?;
                    let mut log = OpenOptions::new().create_new(true).append(true).open(path_of(dir, &id))?;
                    append(&mut log, &json!({"cwd": cwd}))?;
                    Ok(log)
                };
                Some(open().map_err(|error| state_error(&id, &error))?)
            }
            None => None,
        };
        Ok(Self::with(id, cwd, params, log, None, mode))
    }

    /// Opens a session that a state file holds, to go on with it.
    pub fn reopen(
        dir: &Path,
        id: &str,
        params: &Value,
        mode: Option<String>,
    ) -> Result<(Self, Stored), RpcError> {
        let stored = read(dir, id)?;
        let cwd = absolute_cwd(params)?;
        let open = || -> std::io::Result<File> {
            let mut log = OpenOptions::new().append(true).open(path_of(dir, id))?;
            // Ends a line that a kill cut short, so that the next one stands alone; an empty line means nothing.
            log.write_all(b"\n")?;
            Ok(log)
        };
        let log = open().map_err(|error| state_error(id, &error))?;
        Ok((Self::with(id.to_owned(), cwd, params, Some(log), stored.title.clone(), mode), stored))
    }

    fn with(
        id: String,
        cwd: PathBuf,
        params: &Value,
        log: Option<File>,
        title: Option<String>,
        mode: Option<String>,
    ) -> Self {
        let state = State { log, title, mode, config: Map::new(), allowed: HashSet::new() };
        Self { id, cwd, mcp_servers: params["mcpServers"].clone(), state: Mutex::new(state) }
    }

    /// Appends an update to the state file; to be called before the update goes out.
    pub fn record(&self, update: &Value) {
        let mut state = lock(&self.state);
        if update["sessionUpdate"] == "session_info_update" {
            state.title = update["title"].as_str().map(str::to_owned);
        }
        if let Some(log) = &mut state.log
            && let Err(error) = append(log, update)
        {
            eprintln!("consort-testkit agent: cannot write the state of session {}: {error}", self.id);
        }
    }

    /// Whether its updates are written down for a later process.
    pub fn is_recorded(&self) -> bool {
        lock(&self.state).log.is_some()
    }

    pub fn title(&self) -> Option<String> {
        lock(&self.state).title.clone()
    }

    pub fn mode(&self) -> Option<String> {
        lock(&self.state).mode.clone()
    }

    pub fn set_mode(&self, mode: &str) {
        lock(&self.state).mode = Some(mode.to_owned());
    }

    pub fn config(&self, option: &str) -> Option<Value> {
        lock(&self.state).config.get(option).cloned()
    }

    pub fn set_config(&self, option: &str, value: Value) {
        lock(&self.state).config.insert(option.to_owned(), value);
    }

    pub fn allows(&self, kind: &str) -> bool {
        lock(&self.state).allowed.contains(kind)
    }

    pub fn allow(&self, kind: &str) {
        lock(&self.state).allowed.insert(kind.to_owned());
    }
}

/// The ids of the sessions in a state dir; none if it does not exist yet.
pub fn stored_ids(dir: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(dir) else { return Vec::new() };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    names.filter_map(|name| name.strip_suffix(".jsonl").map(str::to_owned)).collect()
}

pub fn read(dir: &Path, id: &str) -> Result<Stored, RpcError> {
    let not_found =
        || RpcError::new(RpcError::NOT_FOUND, format!("Resource not found: session {id} does not exist"));
    // The id comes from the client: it must not lead out of the state dir.
    if id.is_empty() || !id.chars().all(|c| c.is_ascii_alphanumeric() || c == '-') {
        return Err(not_found());
    }
    let text = std::fs::read_to_string(path_of(dir, id)).map_err(|_| not_found())?;
    // A kill can leave half a last line; what is whole counts.
    let mut lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let opened = lines.next().ok_or_else(not_found)?;
    let updates: Vec<Value> = lines.collect();
    let titles = updates.iter().filter(|update| update["sessionUpdate"] == "session_info_update");
    Ok(Stored {
        cwd: opened["cwd"].as_str().unwrap_or("/").into(),
        title: titles.filter_map(|update| update["title"].as_str()).next_back().map(str::to_owned),
        updates,
    })
}

fn append(log: &mut File, value: &Value) -> std::io::Result<()> {
    log.write_all(format!("{value}\n").as_bytes())
}

fn path_of(dir: &Path, id: &str) -> PathBuf {
    dir.join(format!("{id}.jsonl"))
}

fn state_error(id: &str, error: &std::io::Error) -> RpcError {
    RpcError::new(
        RpcError::INTERNAL,
        format!("Internal error: cannot keep the state of session {id}: {error}"),
    )
}

fn absolute_cwd(params: &Value) -> Result<PathBuf, RpcError> {
    match params["cwd"].as_str().map(PathBuf::from) {
        Some(cwd) if cwd.is_absolute() => Ok(cwd),
        _ => Err(RpcError::params("Invalid params: cwd must be an absolute path")),
    }
}

/// Unique across processes that share a state dir.
fn fresh_id() -> String {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let count = COUNTER.fetch_add(1, Ordering::Relaxed);
    format!("scripted-{:x}-{:x}-{count}", since.as_nanos(), std::process::id())
}
