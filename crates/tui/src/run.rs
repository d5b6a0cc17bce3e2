//! The loop: waits for the keyboard, the daemon, signals, threads and time in one place, and draws when something changed.
//!
//! Nothing here runs while nothing happens: there is no timer but those that [`App::due`] asks for.

use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use consort_daemon::client::{Client, ClientError};
use consort_daemon::home::Home;
use consort_model::Attachment;
use ratatui::layout::Rect;
use rustix::event::{PollFd, PollFlags, Timespec};
use thiserror::Error;

use crate::app::{App, Connection, Editing, Effect};
use crate::input::Decoder;
use crate::link::{Link, Message};
use crate::memory::Notices;
use crate::outside;
use crate::pace::{Cause, Pace};
use crate::paint::Canvas;
use crate::pictures;
use crate::settings_file;
use crate::terminal::Terminal;
use crate::text::picture::Picture;
use crate::view;

/// How long to wait before the daemon is looked for again, at first and at most.
const RETRY: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));

/// Why the screen could not be shown.
#[derive(Debug, Error)]
pub enum ScreenError {
    /// The terminal cannot be used.
    #[error("the terminal cannot be used: {0}")]
    Terminal(#[from] io::Error),
    /// The daemon cannot be reached or started.
    #[error(transparent)]
    Daemon(#[from] ClientError),
}

/// What a thread found out.
enum Found {
    Files(PathBuf, Vec<String>),
    Branch(PathBuf, Option<String>),
    Image(Result<Attachment, String>),
    Pictures(Vec<(pictures::Key, Option<Picture>)>),
    Started(Result<(), String>),
    Notified(Result<(), String>),
}

struct Loop {
    app: App,
    link: Link,
    home: Home,
    program: PathBuf,
    canvas: Canvas,
    decoder: Decoder,
    escape_at: Option<Instant>,
    retry_at: Option<Instant>,
    retry_after: Duration,
    pace: Pace,
    found: (Sender<Found>, Receiver<Found>),
    wake: (UnixStream, UnixStream),
    /// Whether pictures are being drawn.
    drawing: bool,
    leaving: bool,
}

/// Shows the screen until a person leaves it.
pub fn run(app: App, home: Home, program: PathBuf) -> Result<(), ScreenError> {
    let mut terminal = Terminal::take()?;
    let wake = UnixStream::pair()?;
    wake.0.set_nonblocking(true)?;
    wake.1.set_nonblocking(true)?;
    let mut screen = Loop {
        app,
        link: Link::default(),
        home,
        program,
        canvas: Canvas::new(Terminal::size()),
        decoder: Decoder::default(),
        escape_at: None,
        retry_at: None,
        retry_after: RETRY.0,
        pace: Pace::default(),
        found: channel(),
        wake,
        drawing: false,
        leaving: false,
    };
    screen.app.cell = Terminal::cell();
    screen.connect(true);
    let outcome = screen.go(&mut terminal);
    screen.app.keep_unsent(screen.link.unsent());
    screen.save();
    // There is nobody to forget anything if the terminal is gone.
    drop(write_all(screen.app.pictures.forgetting().as_bytes()));
    drop(terminal);
    outcome
}

impl Loop {
    fn go(&mut self, terminal: &mut Terminal) -> Result<(), ScreenError> {
        while !self.leaving {
            self.app.tick(Instant::now(), wall());
            self.effects(terminal)?;
            self.write_link();
            if self.leaving {
                break;
            }
            self.draw()?;
            self.wait(terminal)?;
        }
        Ok(())
    }

    /// When the next frame may be drawn.
    fn frame_due(&self, now: Instant) -> Instant {
        let damage = self.app.damage;
        let cause = match (damage.urgent, damage.all) {
            (true, _) => Cause::Person,
            (false, true) => Cause::Change,
            (false, false) => Cause::Text,
        };
        self.pace.due(cause).unwrap_or(now)
    }

    /// Draws, unless the last frame is too young.
    fn draw(&mut self) -> io::Result<()> {
        let now = Instant::now();
        if !self.app.damage.any() || self.frame_due(now) > now {
            return Ok(());
        }
        let cursor = view::draw(&mut self.app, &mut self.canvas.next);
        let mut bytes = Vec::new();
        self.canvas.frame(cursor, &mut bytes);
        if !bytes.is_empty() {
            write_all(&bytes)?;
        }
        self.pace.drawn(now);
        self.draw_pictures();
        Ok(())
    }

    /// Has the next pictures drawn that the views miss, unless some are being drawn.
    fn draw_pictures(&mut self) {
        let wanted = if self.drawing { vec![] } else { self.app.pictures.wanted() };
        if !wanted.is_empty() {
            self.drawing = true;
            self.spawn(move || {
                Found::Pictures(wanted.into_iter().map(|wanted| (wanted.key, wanted.draw())).collect())
            });
        }
    }

    fn pictures_drawn(&mut self, drawn: Vec<(pictures::Key, Option<Picture>)>) -> io::Result<()> {
        self.drawing = false;
        for (key, picture) in drawn {
            if let Some(picture) = &picture {
                write_all(picture.sequence.as_bytes())?;
            }
            self.app.picture_drawn(key, picture);
        }
        Ok(())
    }

    /// Begins anew on a terminal of which nothing is known.
    fn begin_anew(&mut self) {
        self.canvas.reset(Terminal::size());
        self.app.forget_pictures();
    }

    /// Waits until something happens, and takes it in.
    fn wait(&mut self, terminal: &mut Terminal) -> io::Result<()> {
        let now = Instant::now();
        let frame = self.app.damage.any().then(|| self.frame_due(now));
        // Text that streams is read when it is drawn, not word by word.
        let patient =
            frame.is_some_and(|due| due > now) && self.app.damage.is_text() && !self.link.is_asking();
        let due = [frame, self.app.due(), self.escape_at, self.retry_at].into_iter().flatten().min();
        let timeout = due.map(|due| {
            // A moment more, so that what is due is due when one wakes.
            let left = due.saturating_duration_since(now) + Duration::from_micros(200);
            Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) }
        });
        let stdin = io::stdin();
        let ready = {
            let mut waits = vec![
                PollFd::from_borrowed_fd(stdin.as_fd(), PollFlags::IN),
                PollFd::from_borrowed_fd(terminal.wake(), PollFlags::IN),
                PollFd::from_borrowed_fd(self.wake.0.as_fd(), PollFlags::IN),
            ];
            if let Some((socket, writing)) = self.link.interest().filter(|_| !patient) {
                let flags = if writing { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
                waits.push(PollFd::from_borrowed_fd(socket, flags));
            }
            match rustix::event::poll(&mut waits, timeout.as_ref()) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            waits.iter().map(|wait| wait.revents()).collect::<Vec<_>>()
        };
        let happened = |at: usize| ready.get(at).is_some_and(|flags| !flags.is_empty());
        self.app.tick(Instant::now(), wall());
        if happened(1) {
            self.signals(terminal);
        }
        if happened(0) {
            self.keyboard()?;
        } else if self.escape_at.is_some_and(|at| at <= Instant::now()) {
            self.escape_at = None;
            let mut inputs = Vec::new();
            self.decoder.settle(&mut inputs);
            inputs.into_iter().for_each(|input| self.app.input(input));
        }
        if happened(2) {
            self.take_found()?;
        }
        if happened(3) || patient {
            self.read_link();
        }
        if self.retry_at.is_some_and(|at| at <= Instant::now()) {
            self.retry_at = None;
            self.connect(false);
        }
        Ok(())
    }

    fn signals(&mut self, terminal: &mut Terminal) {
        let signalled = terminal.signalled();
        if signalled.resized {
            let size = Terminal::size();
            if size != self.canvas.area() {
                self.canvas.reset(size);
                self.app.cell = Terminal::cell();
            }
            self.app.redraw();
        }
        self.leaving |= signalled.ended;
    }

    fn keyboard(&mut self) -> io::Result<()> {
        let mut bytes = [0; 16 << 10];
        let count = match rustix::io::read(io::stdin(), &mut bytes) {
            // The terminal is gone.
            Ok(0) => {
                self.leaving = true;
                return Ok(());
            }
            Ok(count) => count,
            Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => return Ok(()),
            Err(rustix::io::Errno::IO) => {
                self.leaving = true;
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        };
        let mut inputs = Vec::new();
        self.decoder.feed(&bytes[..count], &mut inputs);
        self.escape_at = self.decoder.patience().map(|patience| Instant::now() + patience);
        for input in inputs {
            self.app.input(input);
        }
        Ok(())
    }

    /// Connects to the daemon; starts it where none runs and `start` says so.
    fn connect(&mut self, start: bool) {
        match UnixStream::connect(self.home.socket()) {
            Ok(stream) => match self.link.connect(stream) {
                Ok(()) => {
                    self.retry_after = RETRY.0;
                    self.app.connected();
                }
                Err(error) => self.lost(&error.to_string()),
            },
            Err(_) if start => self.start_daemon(),
            Err(_) => {
                self.retry_at = Some(Instant::now() + self.retry_after);
                self.retry_after = (self.retry_after * 2).min(RETRY.1);
            }
        }
    }

    fn start_daemon(&mut self) {
        let (home, program) = (self.home.clone(), self.program.clone());
        self.spawn(move || {
            let outcome =
                Client::connect_or_start(&home, &program).map(drop).map_err(|error| error.to_string());
            Found::Started(outcome)
        });
    }

    fn lost(&mut self, why: &str) {
        self.link.drop_connection();
        self.app.disconnected(why);
        self.retry_after = RETRY.0;
        self.retry_at = Some(Instant::now() + self.retry_after);
    }

    fn write_link(&mut self) {
        if let Err(error) = self.link.write() {
            self.lost(&error.to_string());
        }
    }

    fn read_link(&mut self) {
        let mut messages = Vec::new();
        let outcome = self.link.read(&mut messages);
        for message in messages {
            match message {
                Message::Notification(notification) => self.app.notification(*notification),
                Message::Answer(reply, answer) => self.app.answered(reply, answer),
            }
        }
        if let Err(error) = outcome {
            let why = match error.kind() {
                io::ErrorKind::UnexpectedEof => "it ended".to_owned(),
                _ => error.to_string(),
            };
            self.lost(&why);
        }
    }

    /// Runs something slow on a thread of its own.
    fn spawn(&self, work: impl FnOnce() -> Found + Send + 'static) {
        let sender = self.found.0.clone();
        let Ok(mut wake) = self.wake.1.try_clone() else { return };
        std::thread::spawn(move || {
            // Nobody hears it if the screen is gone, and a full pipe wakes it too.
            drop(sender.send(work()));
            drop(wake.write(&[0]));
        });
    }

    fn take_found(&mut self) -> io::Result<()> {
        let mut drained = [0; 64];
        while matches!(io::Read::read(&mut self.wake.0, &mut drained), Ok(read) if read > 0) {}
        while let Ok(found) = self.found.1.try_recv() {
            match found {
                Found::Files(folder, files) => self.app.files_listed(folder, files),
                Found::Image(image) => self.app.image_read(image),
                Found::Pictures(drawn) => self.pictures_drawn(drawn)?,
                Found::Branch(folder, branch) => self.app.branch_read(folder, branch),
                Found::Notified(Ok(())) => {}
                Found::Notified(Err(why)) => self.app.complain(why),
                Found::Started(Ok(())) => self.connect(false),
                Found::Started(Err(why)) => {
                    self.app.disconnected(&why);
                    if let Connection::Lost { starting, why: reason } = &mut self.app.connection {
                        *starting = false;
                        *reason = why;
                    }
                    self.app.redraw();
                }
            }
        }
        Ok(())
    }

    fn effects(&mut self, terminal: &mut Terminal) -> io::Result<()> {
        for effect in self.app.take_effects() {
            match effect {
                Effect::Call(call, reply) => self.link.call(*call, reply),
                Effect::Quit => self.leaving = true,
                Effect::Save => self.save(),
                Effect::ReadKeys => self.app.set_keys(&settings_file::read(&self.home.config())),
                Effect::Redraw => self.begin_anew(),
                Effect::Suspend => {
                    terminal.lend(suspend)?;
                    self.begin_anew();
                }
                Effect::Edit(editing, text) => {
                    let config = self.home.config();
                    let outcome = terminal.lend(|| match editing {
                        Editing::Prompt => outside::edit(Some(&text), None),
                        Editing::Config => outside::edit(None, Some(config)),
                    })?;
                    self.begin_anew();
                    self.app.tick(Instant::now(), wall());
                    if editing == Editing::Config {
                        self.app.set_keys(&settings_file::read(&self.home.config()));
                    }
                    self.app.edited(editing, outcome);
                }
                Effect::Copy(text) => write_all(outside::copy_sequence(&text).as_bytes())?,
                Effect::Notify(text) => self.notify(text)?,
                Effect::PasteImage => self.spawn(|| Found::Image(outside::clipboard_image())),
                Effect::AttachImage(path) => self.spawn(move || Found::Image(outside::read_image(&path))),
                Effect::ListFiles(folder) => self.spawn(move || {
                    let files = outside::list_files(&folder);
                    Found::Files(folder, files)
                }),
                Effect::Branch(folder) => self.spawn(move || {
                    let branch = outside::branch(&folder);
                    Found::Branch(folder, branch)
                }),
                Effect::StartDaemon => self.start_daemon(),
                Effect::Demo => {
                    let program = self.program.clone();
                    let outcome = terminal.lend(|| outside::play_demo(&program))?;
                    self.begin_anew();
                    // What is said now is said for a while from now on.
                    self.app.tick(Instant::now(), wall());
                    self.app.demo_over(outcome);
                }
            }
        }
        Ok(())
    }

    fn notify(&mut self, text: String) -> io::Result<()> {
        write_all(outside::notify_sequence(&text).as_bytes())?;
        if self.app.memory.notices == Notices::Desktop {
            self.spawn(move || Found::Notified(outside::notify_desktop(&text)));
        }
        Ok(())
    }

    fn save(&mut self) {
        let memory = self.app.to_remember();
        if let Err(error) = memory.save(&self.home.root().join("ui.json")) {
            self.app.complain(format!("what the screen remembers cannot be kept: {error}"));
        }
    }
}

/// Stops the program until it is continued.
fn suspend() {
    // A program that cannot stop itself just goes on.
    rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::TSTP)
        .unwrap_or_default();
}

fn write_all(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout();
    out.write_all(bytes)?;
    out.flush()
}

fn wall() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// The size that views are drawn for where there is no terminal.
pub fn area(columns: u16, rows: u16) -> Rect {
    Rect::new(0, 0, columns, rows)
}
