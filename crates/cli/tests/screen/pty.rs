//! A terminal for tests: a PTY, and what a person would see on it.

use std::fs::File;
use std::io::{Read, Write};
use std::num::NonZero;
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Instant;

use consort_testkit::harness::{Home, LIMIT, processes};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

/// A program in a terminal.
pub struct Pty {
    child: Child,
    keyboard: File,
    bytes: Receiver<Vec<u8>>,
    screen: vt100::Parser,
    raw: Vec<u8>,
}

impl Pty {
    /// `consort` in a terminal of this size.
    pub fn open(home: &Home, columns: u16, rows: u16) -> Self {
        let ours: OwnedFd = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&ours).unwrap();
        unlockpt(&ours).unwrap();
        let name = ptsname(&ours, Vec::new()).unwrap();
        tcsetwinsize(&ours, size(columns, rows)).unwrap();
        let theirs = || {
            let mut options = std::fs::OpenOptions::new();
            options.read(true).write(true).open(name.to_str().unwrap()).unwrap()
        };
        // `setsid --ctty` makes the terminal the program's own, so that a resize reaches it.
        let mut command: Command = home.command("setsid".as_ref());
        command.arg("--ctty").arg(&home.programs().consort);
        command.env_remove("NO_COLOR").env("TERM", "xterm-256color");
        let child = command
            .stdin(Stdio::from(theirs()))
            .stdout(Stdio::from(theirs()))
            .stderr(Stdio::from(theirs()))
            .spawn()
            .expect("setsid of util-linux is there");
        let mut reader = File::from(ours.try_clone().unwrap());
        let (sender, bytes) = channel();
        std::thread::spawn(move || {
            let mut chunk = [0; 16 << 10];
            while let Ok(count) = reader.read(&mut chunk) {
                if count == 0 || sender.send(chunk[..count].to_vec()).is_err() {
                    break;
                }
            }
        });
        let cells = |count: u16| NonZero::new(count).unwrap();
        let screen = vt100::Parser::new(cells(rows), cells(columns), 0);
        Self { child, keyboard: File::from(ours), bytes, screen, raw: Vec::new() }
    }

    /// Types.
    pub fn write(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    /// Gives the terminal another size.
    pub fn resize(&mut self, columns: u16, rows: u16) {
        let cells = |count: u16| NonZero::new(count).unwrap();
        self.screen.screen_mut().set_size(cells(rows), cells(columns));
        tcsetwinsize(&self.keyboard, size(columns, rows)).unwrap();
    }

    /// Waits until a text is on the screen.
    pub fn wait_for(&mut self, text: &str) {
        self.wait_until(text, |screen| screen.contains(text));
    }

    /// Waits until the screen is as wanted.
    pub fn wait_until(&mut self, what: &str, wanted: impl Fn(&str) -> bool) {
        let deadline = Instant::now() + LIMIT;
        loop {
            let text = self.screen.screen().contents();
            if wanted(&text) {
                return;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            match self.bytes.recv_timeout(left) {
                Ok(bytes) => {
                    self.screen.process(&bytes);
                    self.raw.extend(bytes);
                }
                Err(RecvTimeoutError::Timeout) => {
                    panic!("not on the screen within the limit: {what}\n{text}")
                }
                Err(RecvTimeoutError::Disconnected) => panic!("the program ended before: {what}\n{text}"),
            }
        }
    }

    /// Leaves by key and waits for the program's end.
    pub fn leave(mut self) {
        self.write("\x11");
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{status}");
    }

    /// Ends the program with a signal; everything it wrote.
    pub fn terminate(mut self) -> String {
        let pid = i32::try_from(self.child.id()).unwrap();
        processes::signal(pid, rustix::process::Signal::TERM);
        self.child.wait().unwrap();
        while let Ok(bytes) = self.bytes.try_recv() {
            self.raw.extend(bytes);
        }
        String::from_utf8_lossy(&self.raw).into_owned()
    }
}

impl Drop for Pty {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn size(columns: u16, rows: u16) -> Winsize {
    Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }
}
