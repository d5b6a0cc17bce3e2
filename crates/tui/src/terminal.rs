//! The terminal itself: taken over at the start, given back at the end, whatever the end is.
//!
//! Owns raw mode, the alternate screen, and the signals that concern a screen. A panic and a deadly signal give the terminal
//! back before anything else is said.

use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use ratatui::layout::Rect;
use rustix::termios::{OptionalActions, Termios};

/// Alternate screen, bracketed paste, focus reports, mouse reports, keys that can be told apart.
const TAKE: &str = "\x1b[?1049h\x1b[?2004h\x1b[?1004h\x1b[?1000h\x1b[?1002h\x1b[?1006h\x1b[>1u";
const GIVE_BACK: &str =
    "\x1b[<u\x1b[?1006l\x1b[?1002l\x1b[?1000l\x1b[?1004l\x1b[?2004l\x1b[0m\x1b[?1049l\x1b[?25h";
/// The questions for the background's colour and the terminal's name.
const ASK: &str = "\x1b]11;?\x1b\\\x1b[>0q";

/// How the terminal was before, for as long as it is taken.
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);

/// A terminal that is taken over.
pub struct Terminal {
    signals: Signals,
}

struct Signals {
    wake: UnixStream,
    resized: Arc<AtomicBool>,
    ended: Arc<AtomicBool>,
    interrupted: Arc<AtomicBool>,
}

/// What signals said since the last look.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Signalled {
    /// The terminal has another size.
    pub resized: bool,
    /// The program is to end.
    pub ended: bool,
}

impl Terminal {
    /// Takes the terminal over.
    pub fn take() -> io::Result<Self> {
        let signals = Signals::register()?;
        take(true)?;
        let before = std::panic::take_hook();
        let screen = std::thread::current().id();
        std::panic::set_hook(Box::new(move |panic| {
            // A thread beside the screen's own may fail without a word; the screen goes on.
            if std::thread::current().id() == screen {
                give_back();
                before(panic);
            }
        }));
        Ok(Self { signals })
    }

    /// Its size.
    pub fn size() -> Rect {
        let size = rustix::termios::tcgetwinsize(io::stdout());
        let (columns, rows) = size.map_or((80, 24), |size| (size.ws_col, size.ws_row));
        // Some terminals say 0 while they start.
        Rect::new(0, 0, if columns == 0 { 80 } else { columns }, if rows == 0 { 24 } else { rows })
    }

    /// The pixels of its cells, across and down; usual ones where it does not say.
    pub fn cell() -> (u16, u16) {
        match rustix::termios::tcgetwinsize(io::stdout()) {
            Ok(size) if size.ws_xpixel >= size.ws_col && size.ws_ypixel >= size.ws_row => {
                (size.ws_xpixel / size.ws_col.max(1), size.ws_ypixel / size.ws_row.max(1))
            }
            _ => (8, 16),
        }
    }

    /// Becomes readable when a signal came.
    pub fn wake(&self) -> BorrowedFd<'_> {
        self.signals.wake.as_fd()
    }

    /// What signals said since the last look.
    pub fn signalled(&mut self) -> Signalled {
        let mut drained = [0; 64];
        while matches!(io::Read::read(&mut self.signals.wake, &mut drained), Ok(read) if read > 0) {}
        Signalled {
            resized: self.signals.resized.swap(false, Ordering::Relaxed),
            ended: self.signals.ended.swap(false, Ordering::Relaxed)
                | self.signals.interrupted.swap(false, Ordering::Relaxed),
        }
    }

    /// Gives the terminal to someone else for a while.
    pub fn lend<R>(&mut self, work: impl FnOnce() -> R) -> io::Result<R> {
        give_back();
        let outcome = work();
        // Ctrl-c was meant for whoever had the terminal.
        self.signals.interrupted.store(false, Ordering::Relaxed);
        take(false)?;
        Ok(outcome)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        give_back();
        // The default hook is what was there before anything of ours.
        drop(std::panic::take_hook());
    }
}

impl Signals {
    fn register() -> io::Result<Self> {
        use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGWINCH};
        let (wake, sender) = UnixStream::pair()?;
        wake.set_nonblocking(true)?;
        sender.set_nonblocking(true)?;
        let resized = Arc::new(AtomicBool::new(false));
        let ended = Arc::new(AtomicBool::new(false));
        let interrupted = Arc::new(AtomicBool::new(false));
        let flags = [
            (SIGWINCH, &resized),
            (SIGCONT, &resized),
            (SIGTERM, &ended),
            (SIGHUP, &ended),
            (SIGINT, &interrupted),
            (SIGQUIT, &interrupted),
        ];
        for (signal, flag) in flags {
            signal_hook::flag::register(signal, Arc::clone(flag))?;
            signal_hook::low_level::pipe::register(signal, sender.try_clone()?)?;
        }
        Ok(Self { wake, resized, ended, interrupted })
    }
}

fn take(first: bool) -> io::Result<()> {
    let before = rustix::termios::tcgetattr(io::stdin())?;
    let mut raw = before.clone();
    raw.make_raw();
    // Not `Flush`: what was typed while the program started is not lost.
    rustix::termios::tcsetattr(io::stdin(), OptionalActions::Now, &raw)?;
    *BEFORE.lock().unwrap_or_else(PoisonError::into_inner) = Some(before);
    let mut out = io::stdout();
    out.write_all(TAKE.as_bytes())?;
    if first {
        out.write_all(ASK.as_bytes())?;
    }
    out.flush()
}

/// Harmless when the terminal is not taken.
fn give_back() {
    let Some(before) = BEFORE.lock().unwrap_or_else(PoisonError::into_inner).take() else { return };
    let mut out = io::stdout();
    // There is nobody left to tell if the terminal is gone.
    drop(out.write_all(GIVE_BACK.as_bytes()).and_then(|()| out.flush()));
    rustix::termios::tcsetattr(io::stdin(), OptionalActions::Flush, &before).unwrap_or_default();
}
