//! Frames going out: JSON-RPC 2.0, one line each, one write each.
//!
//! Knows JSON-RPC and nothing of sessions. A failed write means that the client is gone, and ends the process: there is
//! nobody left to tell.

use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};

/// A JSON-RPC error, sent or received.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("error {code}: {message}")]
pub struct RpcError {
    pub code: i64,
    pub message: String,
}

impl RpcError {
    pub const INVALID_REQUEST: i64 = -32600;
    pub const METHOD_NOT_FOUND: i64 = -32601;
    pub const INVALID_PARAMS: i64 = -32602;
    pub const INTERNAL: i64 = -32603;
    pub const PARSE: i64 = -32700;
    pub const AUTH_REQUIRED: i64 = -32000;
    pub const NOT_FOUND: i64 = -32002;

    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    pub fn params(message: impl Into<String>) -> Self {
        Self::new(Self::INVALID_PARAMS, message)
    }
}

pub struct Wire {
    out: Mutex<Box<dyn Write + Send>>,
    next_id: AtomicU64,
}

impl Wire {
    pub fn new(out: Box<dyn Write + Send>) -> Self {
        Self { out: Mutex::new(out), next_id: AtomicU64::new(1) }
    }

    /// Writes bytes as they are. Whoever sends a frame ends it with a newline.
    pub fn bytes(&self, bytes: &[u8]) {
        let mut out = lock(&self.out);
        if let Err(error) = out.write_all(bytes).and_then(|()| out.flush()) {
            eprintln!("consort-testkit agent: the client is gone: {error}");
            std::process::exit(0);
        }
    }

    pub fn frame(&self, frame: &Value) {
        let mut line = frame.to_string();
        line.push('\n');
        self.bytes(line.as_bytes());
    }

    pub fn answer(&self, id: &Value, answer: Result<Value, RpcError>) {
        match answer {
            Ok(result) => self.frame(&json!({"jsonrpc": "2.0", "id": id, "result": result})),
            Err(RpcError { code, message }) => {
                self.frame(&json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}))
            }
        }
    }

    pub fn notify(&self, method: &str, params: Value) {
        self.frame(&Self::notification(method, &params));
    }

    pub fn notification(method: &str, params: &Value) -> Value {
        json!({"jsonrpc": "2.0", "method": method, "params": params})
    }

    /// An id for a request to the client; to be expected at the desk before the request goes out.
    pub fn fresh_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    pub fn request(&self, id: u64, method: &str, params: Value) {
        self.frame(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
    }
}

/// Takes a lock whether or not a thread died with it: the data is only ever replaced whole.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
