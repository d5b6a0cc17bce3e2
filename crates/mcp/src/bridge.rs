//! `consort mcp`: the endpoint on stdio, for programs that take tools in no other way.
//!
//! Every line that comes in is sent to the endpoint by itself, and every message of its answer is a line that goes out;
//! calls go on side by side. The address and the token come from the environment, where other users cannot read them.

use std::collections::HashMap;
use std::io::{self, BufRead, Read, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use consort_hub::team::{TOKEN_VARIABLE, URL_VARIABLE};
use serde::Deserialize;
use serde_json::{Value, json};
use thiserror::Error;

use crate::client::{Address, ClientError, Exchange, HangUp};

/// The most calls at once.
const MAX_CALLS: usize = 64;

/// The longest line that is taken; the endpoint takes no more either.
const MAX_LINE: u64 = 8 << 20;

/// The codes of JSON-RPC.
const INVALID_REQUEST: i64 = -32600;
const INTERNAL_ERROR: i64 = -32603;

/// Why there is no bridge.
#[derive(Debug, Error)]
pub enum BridgeError {
    /// It was not started by an agent that Consort runs.
    #[error(
        "{URL_VARIABLE} and {TOKEN_VARIABLE} are not set; Consort sets them where it gives this program to an agent"
    )]
    NotGiven,
    /// They make no sense.
    #[error(transparent)]
    Address(#[from] ClientError),
    /// Its input or output is gone.
    #[error(transparent)]
    Io(#[from] io::Error),
}

#[derive(Deserialize, Default)]
struct Line {
    #[serde(default)]
    id: Option<Value>,
    #[serde(default)]
    method: Option<String>,
    #[serde(default)]
    params: Value,
}

/// What the calls share.
struct Bridge<W> {
    address: Address,
    output: Mutex<W>,
    /// What ends the calls that are not answered yet, by their ids.
    open: Mutex<HashMap<String, HangUp>>,
    calls: AtomicUsize,
}

/// Bridges standard input and output until the input ends.
pub fn run() -> Result<(), BridgeError> {
    let variable = |name| std::env::var(name).map_err(|_| BridgeError::NotGiven);
    let address = Address::new(&variable(URL_VARIABLE)?, &variable(TOKEN_VARIABLE)?)?;
    bridge(address, &mut io::stdin().lock(), io::stdout())?;
    Ok(())
}

fn bridge<W: Write + Send + 'static>(
    address: Address,
    input: &mut impl BufRead,
    output: W,
) -> io::Result<()> {
    let bridge = Arc::new(Bridge {
        address,
        output: Mutex::new(output),
        open: Mutex::default(),
        calls: AtomicUsize::new(0),
    });
    let mut running = Vec::new();
    loop {
        let mut line = Vec::new();
        if input.by_ref().take(MAX_LINE).read_until(b'\n', &mut line)? == 0 {
            break;
        }
        if line.len() as u64 == MAX_LINE && !line.ends_with(b"\n") {
            input.skip_until(b'\n')?;
            bridge.fail(&Value::Null, INVALID_REQUEST, "the line is too long");
            continue;
        }
        let Ok(text) = String::from_utf8(line) else {
            bridge.fail(&Value::Null, INVALID_REQUEST, "the line is not UTF-8");
            continue;
        };
        let message: Line = serde_json::from_str(text.trim()).unwrap_or_default();
        if message.method.as_deref() == Some("notifications/cancelled") {
            bridge.cancel(&message.params["requestId"]);
            continue;
        }
        if text.trim().is_empty() {
            continue;
        }
        if bridge.calls.fetch_add(1, Ordering::Relaxed) >= MAX_CALLS {
            bridge.calls.fetch_sub(1, Ordering::Relaxed);
            if let Some(id) = &message.id {
                bridge.fail(id, INTERNAL_ERROR, "too many calls at once; wait for one to end");
            }
            continue;
        }
        running.retain(|call: &std::thread::JoinHandle<()>| !call.is_finished());
        let own = Arc::clone(&bridge);
        running.push(std::thread::spawn(move || {
            own.forward(&text, message.id);
            own.calls.fetch_sub(1, Ordering::Relaxed);
        }));
    }
    // Nobody reads what would still come, but what was begun is told to the end.
    for call in running {
        call.join().ok();
    }
    Ok(())
}

impl<W: Write> Bridge<W> {
    fn forward(&self, text: &str, id: Option<Value>) {
        let key = id.as_ref().map(Value::to_string);
        let mut cancellable = false;
        let outcome = self.address.post(text.trim()).and_then(|exchange| {
            if let Some(key) = &key {
                lock(&self.open).insert(key.clone(), exchange.hang_up()?);
                cancellable = true;
            }
            self.read(exchange)
        });
        // A call that was cancelled is not there any more, and nobody waits for its answer.
        let there = key.is_some_and(|key| lock(&self.open).remove(&key).is_some());
        let cancelled = cancellable && !there;
        if let (Err(error), Some(id), false) = (outcome, id, cancelled) {
            let code =
                if matches!(error, ClientError::Refused { .. }) { INVALID_REQUEST } else { INTERNAL_ERROR };
            self.fail(&id, code, &error.to_string());
        }
    }

    fn read(&self, exchange: Exchange) -> Result<(), ClientError> {
        exchange.read(|message| self.write(message))
    }

    fn cancel(&self, id: &Value) {
        if let Some(call) = lock(&self.open).remove(&id.to_string()) {
            call.now();
        }
    }

    fn fail(&self, id: &Value, code: i64, message: &str) {
        self.write(
            &json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}).to_string(),
        );
    }

    fn write(&self, message: &str) {
        let mut output = lock(&self.output);
        // A reader that is gone ends the input too, and with it the bridge.
        writeln!(output, "{message}").and_then(|()| output.flush()).ok();
    }
}

/// Locks even after a panic elsewhere: every critical section here leaves its data whole.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
