//! What Consort keeps: the state and the transcripts in SQLite, the profiles and limits in `config.toml`.
//!
//! Owns `consort.db`: its schema and migrations, the one writer thread in which every change is decided, committed and
//! applied, and the pages that are read back. Leaves what may happen to `model` (a change brings its own decision) and
//! who asks for it to the hub.
//!
//! Invariant: decisions are taken one after the other, each against the newest state, and nothing is visible (in the
//! shared state, to the listener, or in an answer) before it is committed; what somebody was promised is on disk by then.

pub mod availability;
mod checkpoint;
pub mod config;
mod error;
mod link;
mod load;
mod read;
mod rows;
mod schema;
#[cfg(test)]
mod tests;
mod text;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use consort_model::{
    AgentId, Event, Item, ItemIndex, Limits, MODEL_VERSION, ProfileSummary, Refusal, RevisionKey, Stamped,
    State, Timestamp,
};
use rusqlite::Connection;

pub use availability::look_up;
pub use error::{CommitError, OpenError, ReadError};
pub use link::{Link, LinkChange};
pub use read::Page;
pub use schema::DATABASE_FILE;

/// Called in the writer thread after each commit with its events, in order, and the state they led to.
///
/// It must be quick and must not wait for the store. Somebody who took a snapshot meanwhile may be told of events that
/// the snapshot already holds; their numbers tell.
pub type Listener = Box<dyn Fn(&[Arc<Stamped>], &State) + Send>;

/// Decides a change against the newest state; the time is the one its events are stamped with.
pub type Decide = Box<dyn FnOnce(&State, Timestamp) -> Result<Vec<Event>, Refusal> + Send>;

/// The store: cheap to clone, used from any thread.
#[derive(Clone)]
pub struct Store {
    state: Arc<RwLock<State>>,
    writer: writer::Handle,
    readers: Arc<read::Readers>,
}

/// The database, brought up to date and not yet at work.
pub struct Database {
    connection: Connection,
    path: PathBuf,
    revision_key: RevisionKey,
}

impl Database {
    /// Opens or makes the database in `dir` and migrates it.
    pub fn open(dir: &Path) -> Result<Self, OpenError> {
        let path = schema::prepare(dir)?;
        let mut connection = schema::connect(&path)?;
        schema::migrate(&mut connection, &path, schema::STEPS)?;
        schema::check_model(&connection, &path, MODEL_VERSION)?;
        let revision_key =
            rows::revision_key(&connection).map_err(|error| OpenError::sqlite(&path, &error))?;
        Ok(Self { connection, path, revision_key })
    }

    /// What revisions of profiles are made with here.
    pub fn revision_key(&self) -> RevisionKey {
        self.revision_key
    }

    /// The settings whose keys begin with `prefix`, by the rest of their keys.
    pub fn settings(&self, prefix: &str) -> Result<Vec<(String, String)>, OpenError> {
        rows::settings(&self.connection, prefix).map_err(|error| OpenError::sqlite(&self.path, &error))
    }

    /// Loads the state and begins to take changes.
    ///
    /// Profiles and limits live in `config.toml`, so the caller brings them.
    pub fn start(
        self,
        profiles: Vec<ProfileSummary>,
        limits: Limits,
        listener: Listener,
    ) -> Result<Opened, OpenError> {
        let Self { connection, path, .. } = self;
        let state = load::state(&connection, &path, profiles, limits)?;
        let links = link::all(&connection).map_err(|error| OpenError::sqlite(&path, &error))?;
        let shared = Arc::new(RwLock::new(state.clone()));
        let writer = writer::start(connection, path.clone(), state, Arc::clone(&shared), listener)
            .map_err(|source| OpenError::Io { path: path.clone(), source })?;
        let store = Store { state: shared, writer, readers: Arc::new(read::Readers::new(path)) };
        Ok(Opened { store, links })
    }
}

/// A store that was just opened.
pub struct Opened {
    /// The store.
    pub store: Store,
    /// Every connection between an agent and its runner that was not forgotten.
    pub links: Vec<Link>,
}

/// Something that is to happen.
pub struct Change {
    /// Decides whether it may, and what exactly it is. Runs in the writer thread: no waiting, no I/O.
    pub decide: Decide,
    /// What is committed with it about the agent's runner; written only if the decision was not a refusal.
    pub link: Option<LinkChange>,
    /// Whether it outlives a power cut too, and not only the end of this process. Whatever somebody was promised must; what
    /// an agent's process said need not, since the process is gone as well then.
    pub to_disk: bool,
}

impl Change {
    /// A change that is all in its decision, and that somebody is promised.
    pub fn new(
        decide: impl FnOnce(&State, Timestamp) -> Result<Vec<Event>, Refusal> + Send + 'static,
    ) -> Self {
        Self { decide: Box::new(decide), link: None, to_disk: true }
    }

    /// Commits this with it.
    #[must_use]
    pub fn with_link(mut self, link: LinkChange) -> Self {
        self.link = Some(link);
        self
    }
}

/// A change that is on disk, applied and published.
#[derive(Clone, Debug)]
pub struct Committed {
    /// The number of its first event; if it has none, the number that the next event gets.
    pub first_seq: u64,
    /// Its events.
    pub events: Vec<Arc<Stamped>>,
}

impl Store {
    /// Opens the database in `dir` and starts it, for callers whose profiles need no key.
    pub fn open(
        dir: &Path,
        profiles: Vec<ProfileSummary>,
        limits: Limits,
        listener: Listener,
    ) -> Result<Opened, OpenError> {
        Database::open(dir)?.start(profiles, limits, listener)
    }

    /// Looks at the newest committed state. Holds a lock meanwhile: be short, and do not call the store inside.
    pub fn with<R>(&self, look: impl FnOnce(&State) -> R) -> R {
        look(&self.state.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Decides, commits, applies and publishes a change.
    ///
    /// Waits while the queue of changes is full. A change that was handed over happens even if the caller stops waiting.
    pub async fn commit(&self, change: Change) -> Result<Committed, CommitError> {
        self.writer.commit(change).await
    }

    /// A page of an agent's transcript in ascending order. Its cost does not depend on the transcript's length.
    pub async fn items(&self, agent: AgentId, page: Page) -> Result<Vec<Item>, ReadError> {
        self.readers.run(move |connection| read::page(connection, agent, page)).await
    }

    /// One item of an agent's transcript.
    pub async fn item(&self, agent: AgentId, index: ItemIndex) -> Result<Option<Item>, ReadError> {
        self.readers.run(move |connection| read::item(connection, agent, index)).await
    }

    /// What connects an agent with its runner.
    pub async fn link(&self, agent: AgentId) -> Result<Option<Link>, ReadError> {
        self.readers.run(move |connection| Ok(link::one(connection, agent)?)).await
    }

    /// The value of a setting.
    pub async fn setting(&self, key: &str) -> Result<Option<String>, ReadError> {
        let key = key.to_owned();
        self.readers.run(move |connection| Ok(rows::setting(connection, &key)?)).await
    }

    /// Sets a setting, or with none takes it away.
    pub async fn set_setting(&self, key: &str, value: Option<String>) -> Result<(), CommitError> {
        self.writer.set(key.to_owned(), value).await
    }

    /// Commits what was handed over before, ends the writer and waits for that, blocking the thread. Later changes are
    /// answered [`CommitError::Stopped`].
    pub fn close(self) {
        self.readers.close();
        self.writer.stop();
    }

    /// Runs SQL on the writer's own connection, for tests that take the disk's part.
    #[cfg(test)]
    fn interfere(&self, sql: &'static str) {
        self.writer.interfere(sql);
    }
}
