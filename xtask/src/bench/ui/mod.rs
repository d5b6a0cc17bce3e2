//! The terminal UI beside others: tmux as the reference of what a terminal program can be, and other UIs of agents.
//!
//! Every program runs in a PTY of the same size, on the same machine, in turns with the others. Each row is a module of its own;
//! [`stage`] opens our UI on a lab, [`peers`] the others.

mod claudechic;
mod conversation;
pub mod history;
pub mod idle;
pub mod keys;
pub mod many;
pub mod peers;
pub mod stage;
pub mod start;
pub mod stream;
pub mod switch;

use std::time::{Duration, Instant};

use consort_testkit::terminal::{Heard, Terminal};

use super::statistics::{Sample, figure};
use super::table::{Goal, Line};

/// The size of every terminal.
pub const COLUMNS: u16 = 200;
pub const ROWS: u16 = 60;

/// How long a program may take to show something.
pub const LIMIT: Duration = Duration::from_secs(60);

/// What an agent says in the rows that stream: Markdown of all sorts. No brackets and no quotes, which scripts would read.
pub const MARKDOWN: &str = "## What was found\n\nThe parser reads **one token** too many when a block ends with \
    `end`, so the *next* statement is lost. Three places are concerned:\n\n- the loop in `statements`, which does not look \
    ahead\n- the recovery after an error\n- a test that expects the wrong count\n\n```rust\nfn statements(&mut self) -> Vec<Node> \
    {\n    while self.peek() != Token::End {\n        self.push(self.statement());\n    }\n}\n```\n\n| file | lines | risk \
    |\n| --- | --- | --- |\n| parser.rs | 12 | low |\n| recovery.rs | 40 | some |\n\nThe change is small; the tests of the \
    parser pass with it, and 漢字 in comments still count as two columns each.\n\n";

/// Characters of one token in the rows that stream.
pub const TOKEN: usize = 5;

/// How many tokens [`MARKDOWN`] is.
pub fn tokens_of_markdown() -> usize {
    MARKDOWN.chars().count().div_ceil(TOKEN)
}

/// A line that compares medians, smaller being better.
fn compared(name: String, unit: &'static str, ours: &Sample, reference: (&str, &Sample), goal: Goal) -> Line {
    let (other, theirs) = reference;
    Line::new(name, format!("{}{unit}", figure(ours.median())), ours.median() / theirs.median(), "x", goal)
        .against(format!("{}{unit} {other}", figure(theirs.median())))
        .noting(format!("middle half: {}, {other} {}", ours.spread(), theirs.spread()))
}

/// Takes in what a program writes for a while.
fn hear_for(terminal: &mut Terminal, time: Duration) -> anyhow::Result<()> {
    let until = Instant::now() + time;
    while Instant::now() < until && terminal.hear(until)? == Heard::Output {}
    Ok(())
}
