//! The daemon's logs: one file a day, the last week kept. Secrets never reach them, because what holds secrets (profiles,
//! specs, environments) shows none in its `Debug` form.

use std::path::Path;

use anyhow::Context;
use tracing_appender::non_blocking::{NonBlockingBuilder, WorkerGuard};
use tracing_appender::rolling::{RollingFileAppender, Rotation};
use tracing_subscriber::filter::LevelFilter;

/// Lines that may wait to be written; later ones are dropped. Room for all of them is made at the start, so a generous
/// limit would cost megabytes and milliseconds in every daemon.
const WAITING_LINES: usize = 4096;

/// Starts logging to `folder`; what is waiting is written when the guard is dropped. `CONSORT_LOG` names another level
/// than `info`.
pub fn start(folder: &Path) -> anyhow::Result<WorkerGuard> {
    let files = RollingFileAppender::builder()
        .rotation(Rotation::DAILY)
        .filename_prefix("daemon")
        .filename_suffix("log")
        .max_log_files(7)
        .build(folder)
        .with_context(|| format!("no log can be written in {}", folder.display()))?;
    let (writer, guard) = NonBlockingBuilder::default().buffered_lines_limit(WAITING_LINES).finish(files);
    let level =
        std::env::var("CONSORT_LOG").ok().and_then(|level| level.parse().ok()).unwrap_or(LevelFilter::INFO);
    tracing_subscriber::fmt()
        .with_writer(writer)
        .with_ansi(false)
        .with_max_level(level)
        .with_target(false)
        .init();
    Ok(guard)
}
