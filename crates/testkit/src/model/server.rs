//! The server: sockets, threads, the record of requests, and when each event goes out.
//!
//! One thread a connection, blocked while nothing happens; no timers while idle. It keeps nothing between two requests
//! that an answer depends on. The invariant: after [`Server`] is dropped no thread and no socket of it is left.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fs::File;
use std::io::{self, BufReader, ErrorKind, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use super::choose::{Chosen, choose};
use super::conversation::{Api, Conversation};
use super::http::{self, Answer, Request};
use super::reply::{self, Event, Reply};
use super::script::{End, Failure, LONGEST_PAUSE_MS, Script, ScriptError};

const MOST_CONNECTIONS: usize = 256;
/// A CLI's request can be 100 kB.
const MOST_RECORDED: usize = 256;
const STACK: usize = 1024 * 1024;

/// How to start a server.
#[derive(Debug, Default)]
pub struct Options {
    /// Zero: whichever is free.
    pub port: u16,
    /// Over the built-in scenarios.
    pub script: Script,
    /// Every request is appended here, one JSON value in a line.
    pub log: Option<File>,
}

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("cannot listen on 127.0.0.1:{port}: {error}; choose another port, or 0 for a free one")]
    Listen { port: u16, error: io::Error },
    #[error("cannot start the thread that accepts connections: {0}")]
    Thread(io::Error),
    #[error(transparent)]
    Script(#[from] ScriptError),
}

/// A request as it came, and what it was answered with.
#[derive(Clone, Debug)]
pub struct Recorded {
    pub method: String,
    pub path: String,
    pub query: String,
    /// Names in lower case.
    pub headers: BTreeMap<String, String>,
    /// Null where there was none, or none that is JSON.
    pub body: Value,
    /// Empty where the request was no conversation, `side` where it was beside one.
    pub scenario: String,
    /// Counted from zero.
    pub step: usize,
}

/// A running scripted model. It stops when it is dropped.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    acceptor: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    script: Script,
    requests: Mutex<VecDeque<Recorded>>,
    /// How many requests were answered with an error that passes, by their marker.
    failed: Mutex<HashMap<String, u64>>,
    arrived: Condvar,
    connections: Mutex<Connections>,
    /// A connection ended, or the server stops.
    changed: Condvar,
    log: Option<Mutex<File>>,
}

#[derive(Debug, Default)]
struct Connections {
    stopped: bool,
    next: u64,
    open: HashMap<u64, TcpStream>,
}

impl Server {
    /// Starts with the built-in scenarios on a free port.
    pub fn start() -> Result<Self, StartError> {
        Self::start_with(Options::default())
    }

    pub fn start_with(options: Options) -> Result<Self, StartError> {
        let script = options.script.over(Script::built_in()?);
        let port = options.port;
        let listen = |error| StartError::Listen { port, error };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(listen)?;
        let address = listener.local_addr().map_err(listen)?;
        let shared = Arc::new(Shared {
            script,
            requests: Mutex::default(),
            failed: Mutex::default(),
            arrived: Condvar::new(),
            connections: Mutex::default(),
            changed: Condvar::new(),
            log: options.log.map(Mutex::new),
        });
        let accepting = Arc::clone(&shared);
        let acceptor = std::thread::Builder::new()
            .name("model".into())
            .spawn(move || accept(&listener, &accepting))
            .map_err(StartError::Thread)?;
        Ok(Self { address, shared, acceptor: Some(acceptor) })
    }

    /// `http://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The last requests, oldest first.
    pub fn requests(&self) -> Vec<Recorded> {
        lock(&self.shared.requests).iter().cloned().collect()
    }

    /// The requests that are part of a conversation: no side calls, no lists of models.
    pub fn conversation(&self) -> Vec<Recorded> {
        let talk = |request: &Recorded| !matches!(request.scenario.as_str(), "" | "side");
        self.requests().into_iter().filter(talk).collect()
    }

    /// Waits until the requests are as wanted; whether they became so in time.
    pub fn wait_for(&self, within: Duration, wanted: impl Fn(&VecDeque<Recorded>) -> bool) -> bool {
        let requests = lock(&self.shared.requests);
        let waited = self.shared.arrived.wait_timeout_while(requests, within, |requests| !wanted(requests));
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }

    /// Serves until the process ends.
    pub fn serve(mut self) {
        if let Some(acceptor) = self.acceptor.take() {
            // The thread cannot be stopped from here any more, and a panic in it has said why.
            drop(acceptor.join());
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let mut connections = lock(&self.shared.connections);
        connections.stopped = true;
        for connection in connections.open.values() {
            close(connection);
        }
        drop(connections);
        self.shared.changed.notify_all();
        if let Some(acceptor) = self.acceptor.take() {
            // `accept` has no other way to be woken.
            drop(TcpStream::connect(self.address));
            drop(acceptor.join());
        }
        let connections = lock(&self.shared.connections);
        let ended = self.shared.changed.wait_while(connections, |connections| !connections.open.is_empty());
        drop(ended);
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for connection in listener.incoming() {
        let mut connections = lock(&shared.connections);
        if connections.stopped {
            return;
        }
        // A peer that left before it was accepted is nobody's loss.
        let Ok(mut connection) = connection else { continue };
        if connections.open.len() >= MOST_CONNECTIONS {
            drop(connections);
            let answer = Answer::json(503, &json!({"error": {"message": "too many connections"}}));
            drop(answer.write(&mut connection, false));
            continue;
        }
        let Ok(kept) = connection.try_clone() else { continue };
        let number = connections.next;
        connections.next += 1;
        connections.open.insert(number, kept);
        drop(connections);
        let serving = Arc::clone(shared);
        let thread = std::thread::Builder::new().name("model-connection".into()).stack_size(STACK);
        let spawned = thread.spawn(move || {
            let open = Open { shared: &serving, number };
            serve(connection, &serving);
            drop(open);
        });
        if spawned.is_err() {
            lock(&shared.connections).open.remove(&number);
        }
    }
}

/// Takes the connection off the list however its thread ends.
struct Open<'a> {
    shared: &'a Shared,
    number: u64,
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        if let Some(connection) = lock(&self.shared.connections).open.remove(&self.number) {
            close(&connection);
        }
        self.shared.changed.notify_all();
    }
}

/// Closes both ways. A peer that is gone already is what was wanted.
fn close(connection: &TcpStream) {
    drop(connection.shutdown(Shutdown::Both));
}

/// Whether the connection can take another request.
#[derive(PartialEq)]
enum After {
    Keep,
    Close,
}

fn serve(connection: TcpStream, shared: &Shared) {
    // Events are small and are to arrive when they are written.
    drop(connection.set_nodelay(true));
    let Ok(reading) = connection.try_clone() else { return };
    let mut reader = BufReader::new(reading);
    let mut writer = &connection;
    loop {
        let request = match http::read_request(&mut reader, &mut writer) {
            Ok(Some(request)) => request,
            Ok(None) => return,
            Err(error) => {
                if let Some(status) = error.status() {
                    let answer = Answer::json(status, &json!({"error": {"message": error.to_string()}}));
                    drop(answer.write(&mut writer, false));
                }
                return;
            }
        };
        let keep = request.keep_alive;
        // An error here is a peer that left, which is the end of the connection and of nothing else.
        if !matches!(respond(&connection, request, shared), Ok(After::Keep)) || !keep {
            return;
        }
    }
}

/// What a request is for.
enum Route {
    Talk { api: Api, whole: bool, model: String },
    CountTokens(Api),
    Models,
    Alive,
    Unknown,
}

fn route(request: &Request) -> Route {
    let talk = |api| Route::Talk { api, whole: false, model: String::new() };
    let path = request.path.trim_end_matches('/');
    if request.method != "POST" {
        return match path {
            "" => Route::Alive,
            _ if path.ends_with("/models") => Route::Models,
            _ => Route::Unknown,
        };
    }
    if let Some((before, action)) = path.rsplit_once(':') {
        let model = before.rsplit('/').next().unwrap_or_default().to_owned();
        return match action {
            "streamGenerateContent" => Route::Talk { api: Api::Gemini, whole: false, model },
            "generateContent" => Route::Talk { api: Api::Gemini, whole: true, model },
            "countTokens" => Route::CountTokens(Api::Gemini),
            _ => Route::Unknown,
        };
    }
    match path {
        _ if path.ends_with("/messages/count_tokens") => Route::CountTokens(Api::Messages),
        _ if path.ends_with("/messages") => talk(Api::Messages),
        _ if path.ends_with("/chat/completions") => talk(Api::Chat),
        _ if path.ends_with("/responses") => talk(Api::Responses),
        _ => Route::Unknown,
    }
}

fn respond(connection: &TcpStream, request: Request, shared: &Shared) -> io::Result<After> {
    let mut writer = connection;
    let head_only = request.method == "HEAD";
    let route = route(&request);
    let tokens = request.body.len() / 4;
    let parsed = serde_json::from_slice(&request.body);
    let attempts = request.headers.get("x-stainless-retry-count").and_then(|count| count.parse().ok());
    let answer = match route {
        Route::Talk { api, whole, model } => {
            let body = match parsed {
                Ok(body) => body,
                Err(error) => {
                    record(shared, request, Value::Null, None);
                    let message = format!("The body is not JSON: {error}");
                    Answer::json(400, &json!({"error": {"message": message}})).write(&mut writer, false)?;
                    return Ok(After::Keep);
                }
            };
            let mut conversation = Conversation::read(api, &body);
            if api == Api::Gemini {
                conversation.model = model;
                conversation.stream = !whole;
            }
            let chosen = choose(&shared.script, &conversation);
            record(shared, request, body, Some(&chosen));
            return talk(connection, api, &conversation, &chosen, attempts, shared);
        }
        Route::CountTokens(Api::Gemini) => Answer::json(200, &json!({"totalTokens": tokens})),
        Route::CountTokens(_) => Answer::json(200, &json!({"input_tokens": tokens})),
        Route::Models => Answer::json(200, &models()),
        Route::Alive => Answer::json(200, &json!({})),
        Route::Unknown => {
            let message = format!("{} {} is not served here.", request.method, request.path);
            Answer::json(404, &json!({"error": {"message": message, "type": "not_found_error"}}))
        }
    };
    record(shared, request, parsed.unwrap_or_default(), None);
    answer.write(&mut writer, head_only)?;
    Ok(After::Keep)
}

/// A list that the clients of every API can read.
fn models() -> Value {
    let names = ["scripted-model", "scripted-model-2"];
    let data = names.map(|name| {
        json!({"id": name, "type": "model", "object": "model", "display_name": name, "created": 0,
               "created_at": "2026-01-01T00:00:00Z", "owned_by": "consort"})
    });
    let models = names.map(|name| json!({"name": format!("models/{name}"), "displayName": name}));
    json!({"object": "list", "data": data, "models": models, "has_more": false})
}

/// Plays a step.
fn talk(
    connection: &TcpStream,
    api: Api,
    conversation: &Conversation,
    chosen: &Chosen,
    attempts: Option<u64>,
    shared: &Shared,
) -> io::Result<After> {
    let mut writer = connection;
    let step = &chosen.step;
    pause(connection, shared, Duration::from_millis(step.delay_ms))?;
    let failure = step.error.as_ref().filter(|failure| fails(failure, attempts, chosen, shared));
    if let Some(failure) = failure {
        let mut answer = Answer::json(failure.status, &reply::failure(api, failure));
        if let Some(seconds) = failure.retry_after {
            answer.headers.push(("retry-after", seconds.to_string()));
        }
        answer.write(&mut writer, false)?;
        return Ok(After::Keep);
    }
    let reply = Reply::new(chosen, conversation);
    if !conversation.stream {
        if step.end == End::Hang {
            pause(connection, shared, Duration::from_millis(LONGEST_PAUSE_MS))?;
        }
        Answer::json(200, &reply.whole(api)).write(&mut writer, false)?;
        return Ok(After::Keep);
    }
    let mut events = reply.events(api);
    if step.end != End::Normal {
        let end = events.iter().rposition(|event| event.delta).map_or(events.len(), |last| last + 1);
        events.truncate(end);
    }
    http::begin_events(&mut writer)?;
    stream(connection, &events, Duration::from_millis(step.pace_ms), shared)?;
    match step.end {
        End::Normal => {
            http::end_events(&mut writer)?;
            Ok(After::Keep)
        }
        End::Cut => Ok(After::Close),
        End::Hang => {
            pause(connection, shared, Duration::from_millis(LONGEST_PAUSE_MS))?;
            Ok(After::Close)
        }
    }
}

/// Whether an error is still to be answered with.
fn fails(failure: &Failure, attempts: Option<u64>, chosen: &Chosen, shared: &Shared) -> bool {
    let words = &chosen.words;
    if let Some(most) = failure.first.as_deref().and_then(|first| words.fill(first).trim().parse().ok()) {
        let marker = format!("{} {}", chosen.scenario, words.fill("{arg}"));
        let mut failed = lock(&shared.failed);
        let before = failed.entry(marker).or_default();
        *before += 1;
        return *before <= most;
    }
    let tried = matches!((failure.attempts, attempts), (Some(most), Some(made)) if made >= most);
    let until = failure.until_ms.as_deref().and_then(|until| words.fill(until).trim().parse::<u128>().ok());
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    !tried && until.is_none_or(|until| now < until)
}

fn stream(connection: &TcpStream, events: &[Event], pace: Duration, shared: &Shared) -> io::Result<()> {
    let mut writer = connection;
    let mut said = false;
    for event in events {
        if event.delta && std::mem::replace(&mut said, true) {
            pause(connection, shared, pace)?;
        }
        http::write_event(&mut writer, &event.bytes)?;
    }
    Ok(())
}

/// Waits, and ends early with an error where the client leaves or the server stops.
fn pause(connection: &TcpStream, shared: &Shared, how_long: Duration) -> io::Result<()> {
    if how_long.is_zero() {
        return Ok(());
    }
    let until = Instant::now() + how_long;
    connection.set_read_timeout(Some(how_long))?;
    let peeked = connection.peek(&mut [0]);
    connection.set_read_timeout(None)?;
    match peeked {
        Ok(0) => Err(ErrorKind::ConnectionAborted.into()),
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => Ok(()),
        Err(error) if error.kind() != ErrorKind::Interrupted => Err(error),
        // The client has already sent its next request: its leaving can no longer be seen.
        _ => {
            let left = until.saturating_duration_since(Instant::now());
            let connections = lock(&shared.connections);
            let waited = shared.changed.wait_timeout_while(connections, left, |open| !open.stopped);
            match waited.unwrap_or_else(PoisonError::into_inner).0.stopped {
                true => Err(ErrorKind::ConnectionAborted.into()),
                false => Ok(()),
            }
        }
    }
}

fn record(shared: &Shared, request: Request, body: Value, chosen: Option<&Chosen>) {
    let recorded = Recorded {
        method: request.method,
        path: request.path,
        query: request.query,
        headers: request.headers,
        body,
        scenario: chosen.map(|chosen| chosen.scenario.clone()).unwrap_or_default(),
        step: chosen.map_or(0, |chosen| chosen.at),
    };
    if let Some(log) = &shared.log {
        // People may point a CLI with a key of their own at this.
        let secret = |name: &str| name.contains("key") || name == "authorization" || name == "cookie";
        let headers: BTreeMap<_, _> = recorded.headers.iter().filter(|(name, _)| !secret(name)).collect();
        let line = json!({
            "method": recorded.method, "path": recorded.path, "query": recorded.query,
            "headers": headers, "scenario": recorded.scenario, "step": recorded.step,
            "body": recorded.body,
        });
        if let Err(error) = lock(log).write_all(format!("{line}\n").as_bytes()) {
            eprintln!("consort-testkit model: cannot write to the log: {error}");
        }
    }
    let mut requests = lock(&shared.requests);
    if requests.len() == MOST_RECORDED {
        requests.pop_front();
    }
    requests.push_back(recorded);
    shared.arrived.notify_all();
}

/// Takes a lock whether or not a thread died with it: the data is only ever replaced whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
