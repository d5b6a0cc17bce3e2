//! The first words of a connection.
//!
//! A peer that has not said a valid hello yet is kept away from the event loop: it can be silent, slow or talk garbage
//! without touching the child or the daemon that is connected.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::sync::mpsc;

use crate::protocol::{
    FromRunner, HEAD, Hello, Kind, PROTOCOL_VERSION, Refusal, RefusalReason, ToRunner, frame_head,
};

/// How long a peer may take to say hello.
const LIMIT: Duration = Duration::from_secs(10);

/// A peer that said hello in the right version.
pub struct Greeted {
    pub stream: UnixStream,
    pub hello: Hello,
}

/// Waits for the peer's hello and hands the connection on; a peer that says anything else is hung up on.
pub async fn greet(mut stream: UnixStream, greeted: mpsc::Sender<Greeted>) {
    let Ok(Some(hello)) = tokio::time::timeout(LIMIT, read_hello(&mut stream)).await else { return };
    if hello.version == PROTOCOL_VERSION {
        // The receiver is gone only when the runner ends.
        drop(greeted.send(Greeted { stream, hello }).await);
    } else {
        let message = format!(
            "this runner speaks version {PROTOCOL_VERSION} and not {}; use the program that started it",
            hello.version
        );
        refuse(&mut stream, Refusal { reason: RefusalReason::Version, message }).await;
    }
}

/// Says why and hangs up.
async fn refuse(stream: &mut UnixStream, refusal: Refusal) {
    let mut bytes = Vec::new();
    if FromRunner::Refused(refusal).encode(&mut bytes).is_ok() {
        // A peer that does not listen misses the reason, nothing else.
        drop(tokio::time::timeout(LIMIT, stream.write_all(&bytes)).await);
    }
}

async fn read_hello(stream: &mut UnixStream) -> Option<Hello> {
    let mut head = [0; HEAD];
    stream.read_exact(&mut head).await.ok()?;
    let head = frame_head(&head).ok()??;
    if head.kind != Kind::Hello {
        return None;
    }
    let mut payload = vec![0; head.payload];
    stream.read_exact(&mut payload).await.ok()?;
    match ToRunner::decode(head.kind, &payload) {
        Ok(ToRunner::Hello(hello)) => Some(hello),
        _ => None,
    }
}
