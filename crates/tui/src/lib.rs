//! The terminal UI: a client of the daemon that shows a team of agents on one screen.
//!
//! Owns what is on the screen and which key does what. Leaves everything that lasts to the daemon: what is shown comes from
//! a replica of its state, what is done is a command to it, and closing the screen stops nothing.
//!
//! - [`app`]: everything the screen knows, without any I/O. [`transcript`], [`pictures`], [`desk`], [`tree`], [`editor`] are parts of it.
//! - [`view`]: from that to a buffer. [`text`]: text on its way there. [`paint`]: from the buffer to the terminal.
//! - [`input`], [`keys`]: from the terminal to actions. [`overlay`]: what lies over everything else.
//! - [`run`]: the loop, at the pace of [`pace`]. [`link`]: the daemon. [`terminal`], [`outside`], [`memory`]: the machine around it.

pub mod app;
pub mod desk;
pub mod editor;
pub mod input;
pub mod keys;
pub mod link;
pub mod memory;
mod outside;
pub mod overlay;
mod pace;
pub mod paint;
pub mod pictures;
pub mod run;
#[cfg(test)]
mod scenes;
pub mod settings_file;
pub mod terminal;
#[cfg(test)]
mod testing;
pub mod text;
pub mod transcript;
pub mod tree;
pub mod view;

use std::path::PathBuf;

use consort_daemon::home::Home;

use app::App;
use keys::Action;
use memory::Memory;
use run::ScreenError;
use text::theme::Theme;

/// What the screen says first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Greeting {
    /// What to do in the demo.
    Demo,
}

/// Opens the screen and stays until a person leaves it. `program` is the `consort` binary, to start the daemon with;
/// `greeting` is what to say first, with the keys as they are configured.
pub fn open(
    home: Home,
    program: PathBuf,
    cwd: PathBuf,
    greeting: Option<Greeting>,
) -> Result<(), ScreenError> {
    let memory = Memory::load(&home.root().join("ui.json"));
    let settings = settings_file::read(&home.config());
    let (keys, mut problems) = keys::Keys::new(&settings.keys);
    problems.extend(settings.problem);
    let chosen = memory.theme.as_deref().and_then(Theme::named);
    let theme = chosen.unwrap_or_else(outside::theme_of_environment);
    let mut app = App::new(memory, keys, theme, cwd);
    app.terminal_shows(outside::means_of_environment());
    if let Some(problem) = problems.first() {
        app.complain(problem.clone());
    }
    if let Some(Greeting::Demo) = greeting {
        let (needy, quit) = (app.keys.label(Action::NextNeedy), app.keys.label(Action::Quit));
        app.say(format!(
            "The demo: the team asks you before it changes anything; {needy} goes there, {quit} leaves"
        ));
    }
    app.problems = problems;
    run::run(app, home, program)
}
