//! `consort`, the command line: renders what the daemon knows and sends it commands. Keeps nothing itself.
//!
//! - [`args`]: the grammar. [`exit`]: the codes and sentences that commands end with.
//! - [`link`]: calls to the daemon, sent again where that is harmless. [`follow`]: its state, live.
//! - [`screen`]: the terminal UI, where no command is given. [`turn`], [`run`]: waiting for a turn. [`tail`]: a
//!   transcript as it grows. [`terminal`]: asking a person.
//! - [`render`], [`diff`], [`output`], [`progress`]: text for people.
//! - one module per group of commands: [`agents`], [`log`], [`inbox`], [`rules`], [`worktrees`], [`profiles`], [`import`],
//!   [`daemon`], [`doctor`], [`demo`].
//!
//! Invariant: a short command stays short. No async runtime, no thread and no file is opened before a command needs it.

mod agents;
mod args;
mod daemon;
mod demo;
mod diff;
mod doctor;
mod exit;
mod follow;
mod import;
mod inbox;
mod link;
mod log;
mod messages;
mod output;
mod profiles;
mod progress;
mod prompt;
mod queue;
mod render;
mod rules;
mod run;
mod screen;
mod sessions;
mod tail;
mod terminal;
mod turn;
mod worktrees;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use args::{Arguments, Command};
use exit::Stop;

fn main() -> ExitCode {
    // A runner is started once per agent: it should not pay for the whole grammar.
    let mut words = std::env::args_os().skip(1);
    if words.next().is_some_and(|word| word == "runner")
        && words.next().is_some_and(|word| word == "--dir")
        && let Some(dir) = words.next()
    {
        return consort_runner::serve::main(dir.into());
    }
    // Nor should the screen, which a person waits for, and the daemon, which the first command waits for.
    let words: Vec<_> = std::env::args_os().skip(1).collect();
    let outcome = if words.is_empty() && screen::is_wanted() {
        screen::open()
    } else if words == ["daemon", "run", "--detached"] {
        daemon::run(true)
    } else {
        dispatch(Arguments::parse())
    };
    match outcome {
        Ok(code) => code,
        Err(Stop { exit, message, .. }) => {
            if let Some(message) = message {
                output::note(&message);
            }
            exit.into()
        }
    }
}

fn dispatch(arguments: Arguments) -> Result<ExitCode, Stop> {
    let Some(command) = arguments.command else {
        agents::overview()?;
        return Ok(ExitCode::SUCCESS);
    };
    match command {
        Command::Run(args) => run::run(&args)?,
        Command::New(args) => agents::new(&args)?,
        Command::Agents(args) => agents::agents(&args)?,
        Command::Sessions(args) => sessions::sessions(&args)?,
        Command::Send(args) => run::send(&args)?,
        Command::Queue(args) => queue::queue(&args)?,
        Command::Log(args) => log::log(&args)?,
        Command::Inbox(args) => inbox::inbox(args.json)?,
        Command::Messages(args) => messages::messages(&args)?,
        Command::Approve(args) => inbox::approve(&args)?,
        Command::Deny(args) => inbox::deny(&args)?,
        Command::Answer(args) => inbox::answer(&args)?,
        Command::Interrupt(args) => agents::interrupt(&args.agent)?,
        Command::Close(args) => agents::close(&args.agents)?,
        Command::Fork(args) => agents::fork(&args)?,
        Command::Reopen(args) => agents::reopen(&args.agent)?,
        Command::Restart(args) => agents::restart(&args.agent)?,
        Command::Rebind(args) => agents::rebind(&args)?,
        Command::Rename(args) => agents::rename(&args)?,
        Command::Mode(args) => agents::mode(&args)?,
        Command::Choose(args) => agents::choose(&args)?,
        Command::Diff(args) => worktrees::diff(&args)?,
        Command::Worktrees(command) => worktrees::worktrees(&command)?,
        Command::Rules(command) => rules::rules(&command)?,
        Command::Profiles(command) => profiles::profiles(&command)?,
        Command::Import(command) => import::import(&command)?,
        Command::Daemon(command) => return daemon::daemon(&command),
        Command::Demo { headless } => demo::demo(headless)?,
        Command::Doctor(args) => doctor::doctor(args.json)?,
        Command::Completions { shell } => completions(shell)?,
        Command::ExitCodes => output::print_line(exit::TABLE)?,
        Command::Mcp => consort_mcp::bridge::run().map_err(|error| Stop::failed(error.to_string()))?,
        Command::ScriptedAgent { options } => return demo::scripted_agent(options),
        Command::Runner { dir } => return Ok(consort_runner::serve::main(dir)),
    }
    Ok(ExitCode::SUCCESS)
}

/// `consort completions`.
fn completions(shell: clap_complete::Shell) -> Result<(), Stop> {
    // Into memory first: the generator panics when its reader goes away.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "consort", &mut script);
    let mut output = output::Output::json();
    output.write(&String::from_utf8_lossy(&script))?;
    output.flush()
}
