//! One line on standard error that says what a command waits for. Only on a terminal, and never left behind.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use crate::output::{columns, cut, exact};

/// Time between two pictures.
const INTERVAL: Duration = Duration::from_millis(125);

const PICTURES: [&str; 8] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠇"];

/// The progress line.
pub struct Progress {
    terminal: bool,
    text: String,
    shown: bool,
    begun: Instant,
    last: Option<Instant>,
    picture: usize,
}

impl Progress {
    /// A line on standard error, if that is a terminal that can clear it.
    pub fn new() -> Self {
        let dumb = std::env::var_os("TERM").is_none_or(|terminal| terminal == "dumb");
        Self {
            terminal: std::io::stderr().is_terminal() && !dumb,
            text: String::new(),
            shown: false,
            begun: Instant::now(),
            last: None,
            picture: 0,
        }
    }

    /// Changes what it says; shown with the next [`Self::tick`].
    pub fn set(&mut self, text: &str) {
        if self.terminal {
            self.text = exact(text);
        }
    }

    /// Draws it if it is time, and tells when to draw again; none: never.
    pub fn tick(&mut self) -> Option<Instant> {
        if !self.terminal || self.text.is_empty() {
            return None;
        }
        let now = Instant::now();
        match self.last {
            Some(last) if now < last + INTERVAL => return Some(last + INTERVAL),
            _ => {}
        }
        self.last = Some(now);
        self.picture = (self.picture + 1) % PICTURES.len();
        let seconds = self.begun.elapsed().as_secs();
        let line = format!("{} {} · {seconds}s", PICTURES[self.picture], self.text.replace('\n', " "));
        let mut stderr = std::io::stderr();
        let width = columns(&stderr).unwrap_or(80).saturating_sub(1);
        // A progress line that cannot be drawn is no reason to stop.
        drop(write!(stderr, "\r{}\x1b[K", cut(&line, width)));
        self.shown = true;
        Some(now + INTERVAL)
    }

    /// Takes it off the screen; a later [`Self::tick`] draws it again, so that fast output does not make it flicker.
    pub fn clear(&mut self) {
        if std::mem::take(&mut self.shown) {
            drop(write!(std::io::stderr(), "\r\x1b[K"));
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}
