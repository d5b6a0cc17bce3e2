//! Reaching a runner that may or may not be there yet.

use std::path::Path;
use std::time::Duration;

use consort_runner::client::{self, Error, Receiver, Sender};
use consort_runner::protocol::Welcome;

/// How often a folder is tried that another runner holds, and the pause between.
const TRIES: u32 = 10;
const PAUSE: Duration = Duration::from_millis(100);

/// Connects to the runner of `dir`, and starts one first where none is.
///
/// A daemon that was killed while it started a runner leaves one that does not listen yet but holds the folder. Such a
/// one ends by itself or comes to listen soon; until then a second one cannot be started.
pub async fn reach_or_spawn(program: &Path, dir: &Path) -> Result<(Welcome, Sender, Receiver), Error> {
    let mut tries = 0;
    loop {
        match client::connect(dir, 0).await {
            Err(Error::Gone { .. }) => {}
            other => return other,
        }
        tries += 1;
        match client::spawn(program, &[], dir).await {
            Ok(()) => return client::connect(dir, 0).await,
            Err(Error::NotReady { .. }) if tries < TRIES => tokio::time::sleep(PAUSE).await,
            Err(error) => return Err(error),
        }
    }
}
