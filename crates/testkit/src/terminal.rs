//! A terminal for programs under test: a PTY, what a person would see on it, and when.
//!
//! Owns one program from its start to its end. Answers what programs ask a terminal (attributes, the cursor's place, colours,
//! modes), since some wait for that before they draw. What the screen should look like is left to the caller.
//!
//! Invariant: nothing here waits for time to pass; every wait ends with output, the program's end, or its limit.

use std::io;
use std::num::NonZero;
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use thiserror::Error;

/// What is kept of a program's latest output, in bytes.
const KEPT: usize = 64 << 10;

/// Why a terminal did not show what was waited for.
#[derive(Debug, Error)]
pub enum TerminalError {
    /// Not within the limit.
    #[error("not on the screen within {} s: {wanted}\n{screen}", .limit.as_secs_f64())]
    Late {
        /// What was waited for.
        wanted: String,
        /// How long.
        limit: Duration,
        /// What is there instead.
        screen: String,
    },
    /// The program ended.
    #[error("the program ended before: {wanted}\n{screen}")]
    Ended {
        /// What was waited for.
        wanted: String,
        /// What is there instead.
        screen: String,
    },
    /// The terminal itself failed.
    #[error("the terminal cannot be used: {0}")]
    Io(#[from] io::Error),
}

/// What came of a look at the program's output.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Heard {
    /// Something was written.
    Output,
    /// Nothing, until the deadline.
    Nothing,
    /// The program ended.
    End,
}

/// A program in a terminal.
pub struct Terminal {
    child: Child,
    device: OwnedFd,
    screen: vt100::Parser<Answers>,
    latest: Vec<u8>,
    count: u64,
    heard_at: Instant,
}

/// `setsid --ctty`, to which a program and its arguments are added: it makes the terminal the program's own, so that a
/// resize reaches it. Costs the start of one more process.
pub const OWN_TERMINAL: [&str; 2] = ["setsid", "--ctty"];

impl Terminal {
    /// Starts a program in a terminal of this size.
    pub fn open(command: &mut Command, columns: u16, rows: u16) -> io::Result<Self> {
        let device = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
        grantpt(&device)?;
        unlockpt(&device)?;
        let name = ptsname(&device, Vec::new())?;
        let name = name.to_str().map_err(io::Error::other)?;
        tcsetwinsize(&device, size(columns, rows))?;
        rustix::io::ioctl_fionbio(&device, true)?;
        let theirs = || {
            let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NOCTTY | rustix::fs::OFlags::CLOEXEC;
            rustix::fs::open(name, flags, rustix::fs::Mode::empty())
        };
        command.stdin(Stdio::from(theirs()?)).stdout(Stdio::from(theirs()?)).stderr(Stdio::from(theirs()?));
        let child = command.env_remove("NO_COLOR").env("TERM", "xterm-256color").spawn();
        // Else its end would never be heard of.
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let screen = vt100::Parser::new_with_callbacks(cells(rows), cells(columns), 0, Answers::default());
        Ok(Self { child: child?, device, screen, latest: Vec::new(), count: 0, heard_at: Instant::now() })
    }

    /// The program's process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What is seen.
    pub fn text(&self) -> String {
        self.screen.screen().contents()
    }

    /// How many bytes were written so far.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// When something was written last.
    pub fn heard_at(&self) -> Instant {
        self.heard_at
    }

    /// The latest output as it was written.
    pub fn latest(&self) -> String {
        String::from_utf8_lossy(&self.latest).into_owned()
    }

    /// Types.
    pub fn write(&mut self, keys: &str) -> io::Result<()> {
        self.send(keys.as_bytes())
    }

    fn send(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match rustix::io::write(&self.device, bytes) {
                Ok(count) => bytes = &bytes[count..],
                Err(Errno::INTR) => {}
                // A program that does not read must not stop the one that writes.
                Err(Errno::AGAIN) => match poll(&mut [PollFd::new(&self.device, PollFlags::OUT)], None) {
                    Ok(_) | Err(Errno::INTR) => {}
                    Err(error) => return Err(error.into()),
                },
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Gives the terminal another size.
    pub fn resize(&mut self, columns: u16, rows: u16) -> io::Result<()> {
        self.screen.screen_mut().set_size(cells(rows), cells(columns));
        Ok(tcsetwinsize(&self.device, size(columns, rows))?)
    }

    /// Takes in what is written until a deadline; returns after the first of it.
    pub fn hear(&mut self, deadline: Instant) -> io::Result<Heard> {
        let mut heard = Heard::Nothing;
        let mut chunk = [0; 16 << 10];
        loop {
            match rustix::io::read(&self.device, &mut chunk) {
                // The last one of the other side is gone.
                Ok(0) | Err(Errno::IO) => return Ok(if heard == Heard::Output { heard } else { Heard::End }),
                Ok(count) => {
                    if heard == Heard::Nothing {
                        self.heard_at = Instant::now();
                    }
                    heard = Heard::Output;
                    self.take(&chunk[..count])?;
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) if heard == Heard::Output => return Ok(heard),
                Err(Errno::AGAIN) => {
                    let left = deadline.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return Ok(heard);
                    }
                    let left = Timespec::try_from(left).map_err(io::Error::other)?;
                    match poll(
                        &mut [PollFd::from_borrowed_fd(self.device.as_fd(), PollFlags::IN)],
                        Some(&left),
                    ) {
                        Ok(0) => return Ok(heard),
                        Ok(_) | Err(Errno::INTR) => {}
                        Err(error) => return Err(error.into()),
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn take(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.count += bytes.len() as u64;
        self.screen.process(bytes);
        self.latest.extend_from_slice(bytes);
        let surplus = self.latest.len().saturating_sub(KEPT);
        self.latest.drain(..surplus);
        let answers = std::mem::take(&mut self.screen.callbacks_mut().0);
        self.send(&answers)
    }

    /// Waits until a text is on the screen; when it was.
    pub fn wait_for(&mut self, text: &str, limit: Duration) -> Result<Instant, TerminalError> {
        self.wait_until(text, limit, |screen| screen.contains(text))
    }

    /// Waits until the screen is as wanted; when it was.
    pub fn wait_until(
        &mut self,
        what: &str,
        limit: Duration,
        mut wanted: impl FnMut(&str) -> bool,
    ) -> Result<Instant, TerminalError> {
        let deadline = Instant::now() + limit;
        loop {
            let screen = self.text();
            if wanted(&screen) {
                return Ok(self.heard_at);
            }
            let wanted = what.to_owned();
            match self.hear(deadline)? {
                Heard::Output => {}
                Heard::Nothing => return Err(TerminalError::Late { wanted, limit, screen }),
                Heard::End => return Err(TerminalError::Ended { wanted, screen }),
            }
        }
    }

    /// Waits for the program's end and takes in what it writes until then.
    pub fn wait_for_end(&mut self, limit: Duration) -> Result<ExitStatus, TerminalError> {
        let deadline = Instant::now() + limit;
        // Its children may keep the terminal open, so the end of its output is not its own.
        let program =
            pidfd_open(Pid::from_child(&self.child), PidfdFlags::empty()).map_err(io::Error::from)?;
        loop {
            let heard = self.hear(Instant::now())?;
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(TerminalError::Late { wanted: "its end".to_owned(), limit, screen: self.text() });
            }
            let left = Timespec::try_from(left).map_err(io::Error::other)?;
            let mut waits = vec![PollFd::new(&program, PollFlags::IN)];
            if heard != Heard::End {
                waits.push(PollFd::new(&self.device, PollFlags::IN));
            }
            match poll(&mut waits, Some(&left)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(io::Error::from(error).into()),
            }
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It may have ended, which is as good.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// What is to be answered to the program.
#[derive(Default)]
struct Answers(Vec<u8>);

impl vt100::Callbacks for Answers {
    fn unhandled_csi(
        &mut self,
        screen: &mut vt100::Screen,
        first: Option<u8>,
        second: Option<u8>,
        params: &[&[u16]],
        last: char,
    ) {
        let param = params.first().and_then(|param| param.first()).copied().unwrap_or_default();
        match (first, second, param, last) {
            (None, None, 0, 'c') => self.0.extend_from_slice(b"\x1b[?62;22c"),
            (Some(b'>'), None, 0, 'c') => self.0.extend_from_slice(b"\x1b[>1;10;0c"),
            (None, None, 5, 'n') => self.0.extend_from_slice(b"\x1b[0n"),
            (None, None, 6, 'n') => {
                let (row, column) = screen.cursor_position();
                self.0.extend_from_slice(format!("\x1b[{};{}R", row + 1, column + 1).as_bytes());
            }
            (Some(b'?'), None, _, 'u') => self.0.extend_from_slice(b"\x1b[?0u"),
            // A mode that is not known.
            (Some(b'?'), Some(b'$'), mode, 'p') => {
                self.0.extend_from_slice(format!("\x1b[?{mode};0$y").as_bytes());
            }
            _ => {}
        }
    }

    fn unhandled_osc(&mut self, _: &mut vt100::Screen, params: &[&[u8]]) {
        let answer: &[u8] = match params {
            [b"10", b"?"] => b"\x1b]10;rgb:e0e0/e0e0/e0e0\x1b\\",
            [b"11", b"?"] => b"\x1b]11;rgb:1010/1010/1010\x1b\\",
            _ => return,
        };
        self.0.extend_from_slice(answer);
    }
}

fn size(columns: u16, rows: u16) -> Winsize {
    Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }
}

fn cells(count: u16) -> NonZero<u16> {
    NonZero::new(count).unwrap_or(NonZero::<u16>::MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(20);

    fn shell(script: &str) -> Terminal {
        Terminal::open(Command::new("sh").args(["-c", script]), 40, 5).unwrap()
    }

    #[test]
    fn what_a_program_writes_is_seen_and_its_end_is_heard() {
        let mut terminal = shell("printf 'one\\033[2;3Htwo'; read line; echo got $line; exit 3");
        terminal.wait_for("two", LIMIT).unwrap();
        assert_eq!(terminal.text(), "one\n  two");
        terminal.write("x\r").unwrap();
        terminal.wait_for("got x", LIMIT).unwrap();
        assert_eq!(terminal.wait_for_end(LIMIT).unwrap().code(), Some(3));
        assert!(matches!(terminal.wait_for("more", LIMIT), Err(TerminalError::Ended { .. })));
    }

    #[test]
    fn what_does_not_come_is_told_with_what_is_there_instead() {
        let mut terminal = shell("echo here; read line");
        terminal.wait_for("here", LIMIT).unwrap();
        let error = terminal.wait_for("there", Duration::from_millis(20)).unwrap_err().to_string();
        assert!(error.contains("there") && error.contains("here\n"), "{error}");
    }

    #[test]
    fn questions_to_the_terminal_are_answered() {
        // What is answered is echoed, with its control characters spelled out.
        let mut terminal = shell("printf 'ab\\033[6n\\033[c\\033]11;?\\033\\\\'; read line");
        terminal
            .wait_until("the answers", LIMIT, |screen| {
                screen.contains("^[[1;3R")
                    && screen.contains("^[[?62;22c")
                    && screen.contains("^[]11;rgb:1010")
            })
            .unwrap();
    }

    #[test]
    fn another_size_is_told_to_the_program() {
        let mut command = Command::new(OWN_TERMINAL[0]);
        command.args(&OWN_TERMINAL[1..]).args([
            "sh",
            "-c",
            "trap 'stty size' WINCH; echo up; while :; do read line; done",
        ]);
        let mut terminal = Terminal::open(&mut command, 40, 5).unwrap();
        terminal.wait_for("up", LIMIT).unwrap();
        terminal.resize(60, 7).unwrap();
        terminal.wait_for("7 60", LIMIT).unwrap();
    }
}
