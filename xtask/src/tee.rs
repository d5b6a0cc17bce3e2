//! `xtask tee LOG PROGRAM ARGS...`: runs a program and writes down when each line went in and came out.
//!
//! For benchmarks that need to know when a CLI itself wrote something. A line is passed on first and written down then,
//! as `NANOSECONDS in|out LINE`, by the clock that all processes of a machine share.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, bail};
use rustix::time::{ClockId, clock_gettime};

/// Which way a line went.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    In,
    Out,
}

/// One line of a log.
pub struct Passed {
    pub at: u64,
    pub way: Way,
    pub line: String,
}

/// The clock that lines are stamped with.
pub fn monotonic_nanoseconds() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned()
}

/// Runs the program until its output ends.
pub fn run(args: &[String]) -> anyhow::Result<()> {
    let [log, program, args @ ..] = args else { bail!("xtask tee LOG PROGRAM ARGS...") };
    let log = File::options().create(true).append(true).open(log).context("the log cannot be opened")?;
    let log = Arc::new(Mutex::new(log));
    let mut child = Command::new(program)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("{program} cannot be run"))?;
    let (stdin, stdout) = (child.stdin.take().context("no pipe")?, child.stdout.take().context("no pipe")?);
    let incoming = Arc::clone(&log);
    // Ends with this process: a program that has ended needs no more input.
    std::thread::spawn(move || pass(std::io::stdin(), stdin, "in", &incoming));
    pass(stdout, std::io::stdout(), "out", &log)?;
    let status = child.wait()?;
    std::process::exit(status.code().unwrap_or(1));
}

fn pass(from: impl Read, mut to: impl Write, way: &str, log: &Mutex<File>) -> anyhow::Result<()> {
    let mut from = BufReader::with_capacity(64 << 10, from);
    let mut line = Vec::new();
    while from.read_until(b'\n', &mut line)? > 0 {
        let at = monotonic_nanoseconds();
        to.write_all(&line)?;
        to.flush()?;
        let mut entry = format!("{at} {way} ").into_bytes();
        entry.append(&mut line);
        log.lock().unwrap_or_else(PoisonError::into_inner).write_all(&entry)?;
    }
    Ok(())
}

/// What a log holds so far; a line that is still being written is left out.
pub fn read(log: &Path) -> anyhow::Result<Vec<Passed>> {
    let bytes = std::fs::read(log).with_context(|| format!("{} cannot be read", log.display()))?;
    Ok(String::from_utf8_lossy(&bytes).lines().filter_map(parse).collect())
}

fn parse(line: &str) -> Option<Passed> {
    let (at, rest) = line.split_once(' ')?;
    let (way, line) = rest.split_once(' ')?;
    let way = if way == "in" { Way::In } else { Way::Out };
    Some(Passed { at: at.parse().ok()?, way, line: line.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_passed_on_and_written_down_with_its_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let log = Mutex::new(File::create(&path).unwrap());
        let mut passed = Vec::new();
        let before = monotonic_nanoseconds();
        pass(&b"{\"a\": 1}\nrest"[..], &mut passed, "out", &log).unwrap();
        assert_eq!(passed, b"{\"a\": 1}\nrest");
        let lines = read(&path).unwrap();
        assert_eq!(lines[0].line, "{\"a\": 1}");
        assert_eq!(lines[0].way, Way::Out);
        assert!(lines[0].at >= before && lines[1].at >= lines[0].at);
    }
}
