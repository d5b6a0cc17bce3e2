//! `consort` in a terminal of its own, for tests: what does not go as it should fails the test.

use std::process::Command;

use consort_testkit::harness::{Home, LIMIT, processes};
use consort_testkit::terminal::{OWN_TERMINAL, Terminal};
use rustix::process::Signal;

/// `consort` in a terminal.
pub struct Pty(Terminal);

impl Pty {
    /// `consort` in a terminal of this size.
    pub fn open(home: &Home, columns: u16, rows: u16) -> Self {
        let mut command: Command = home.command(OWN_TERMINAL[0].as_ref());
        command.args(&OWN_TERMINAL[1..]).arg(&home.programs().consort);
        Self(Terminal::open(&mut command, columns, rows).expect("setsid of util-linux is there"))
    }

    /// Types.
    pub fn write(&mut self, keys: &str) {
        self.0.write(keys).unwrap();
    }

    /// Gives the terminal another size.
    pub fn resize(&mut self, columns: u16, rows: u16) {
        self.0.resize(columns, rows).unwrap();
    }

    /// Waits until a text is on the screen.
    pub fn wait_for(&mut self, text: &str) {
        self.wait_until(text, |screen| screen.contains(text));
    }

    /// Waits until the screen is as wanted.
    pub fn wait_until(&mut self, what: &str, wanted: impl Fn(&str) -> bool) {
        self.0.wait_until(what, LIMIT, wanted).unwrap_or_else(|error| panic!("{error}"));
    }

    /// Leaves by key and waits for the program's end.
    pub fn leave(mut self) {
        self.write("\x11");
        let status = self.0.wait_for_end(LIMIT).unwrap_or_else(|error| panic!("{error}"));
        assert!(status.success(), "{status}");
    }

    /// Ends the program with a signal; what it wrote last.
    pub fn terminate(mut self) -> String {
        processes::signal(i32::try_from(self.0.pid()).unwrap(), Signal::TERM);
        self.0.wait_for_end(LIMIT).unwrap_or_else(|error| panic!("{error}"));
        self.0.latest()
    }
}
