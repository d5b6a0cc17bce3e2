//! What each real CLI can do through Consort: the one table of scenarios.
//!
//! Owns which scenarios there are, and for each CLI whether it has the feature and, if not, why not. The suite in
//! `tests/conformance` runs every scenario that this table says works; `cargo xtask agents-table` writes the table into
//! `docs/agents.md`. The invariant: nothing stands in the docs as working that the suite does not run.

use std::fmt::Write;

use crate::clis::Cli;

/// Where the table begins and ends in `docs/agents.md`.
const BEGIN: &str = "<!-- The table below is written by `cargo xtask agents-table`. -->";
const END: &str = "<!-- The end of the table. -->";

/// One row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    /// What the suite calls it.
    pub name: &'static str,
    /// What it proves, for people.
    pub about: &'static str,
    /// In the order of [`Cli::ALL`].
    support: [Support; Cli::ALL.len()],
}

/// Whether a CLI has a feature.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Support {
    /// It has, and the suite proves it.
    Works,
    /// It has, but for this; the suite proves the rest.
    But(&'static str),
    /// It has not, for this reason.
    Lacks(&'static str),
    /// Consort has not yet what it needs.
    Later(&'static str),
    /// It may have; the suite does not try, for this reason.
    Untested(&'static str),
}

use Support::{But, Lacks, Later, Untested, Works};

/// Why an image that an agent read is not shown.
const NO_IMAGE: &str = "tells which file it looked at, without the image";

/// Why an ACP agent is not steered.
const NO_STEERING: &str = "a prompt is a turn in ACP, so it waits";

/// Why a command in the background is tried with two CLIs only.
const NOT_SCRIPTED: &str = "the scripts start one only in the ways of Claude Code and Codex";

const ALL: [Support; 5] = [Works; 5];

/// All scenarios, in the order in which they are run on one agent.
pub const SCENARIOS: &[Scenario] = &[
    Scenario { name: "plain", about: "Answers a prompt, streamed", support: ALL },
    Scenario { name: "two-turns", about: "Remembers the turn before", support: ALL },
    Scenario { name: "thinking", about: "Shows what it thinks", support: ALL },
    Scenario { name: "tool-allowed", about: "Asks for approval of a command, and runs it", support: ALL },
    Scenario { name: "tool-denied", about: "Leaves a denied command alone", support: ALL },
    Scenario { name: "tool-denied-with-text", about: "Is told why a command was denied", support: ALL },
    Scenario { name: "always", about: "Is not asked again for what is always allowed", support: ALL },
    Scenario { name: "edit-with-diff", about: "Shows the change of a file before it is made", support: ALL },
    Scenario { name: "new-file", about: "Shows a new file before it is written", support: ALL },
    Scenario { name: "parallel", about: "Several approvals in one answer", support: ALL },
    Scenario {
        name: "question",
        about: "Asks a question with choices",
        support: [
            Works,
            But("only in its plan mode"),
            Lacks("offers its model no such tool over ACP"),
            Lacks("offers its model no such tool over ACP"),
            Works,
        ],
    },
    Scenario {
        name: "task-list",
        about: "Shows its list of tasks",
        support: [Works, Works, Lacks("tells that a list was set, but not what is on it"), Works, Works],
    },
    Scenario {
        name: "plan",
        about: "Plans first, and presents the plan",
        support: [
            Works,
            But("the plan comes as text, without an approval"),
            But("as the file that it wrote it to"),
            Lacks("offers its model no tool to present one"),
            Works,
        ],
    },
    Scenario {
        name: "sub-agent",
        about: "Nests what a sub-agent of its own does",
        support: [
            Works,
            But("it goes on after the turn"),
            Lacks("its policy denies them over ACP"),
            But("only the result is told"),
            But("only the result is told"),
        ],
    },
    Scenario { name: "permission-mode", about: "Edits without asking where a person set that", support: ALL },
    Scenario { name: "model-change", about: "Changes its model between turns", support: ALL },
    Scenario { name: "mode-change", about: "Changes its own mode between turns", support: ALL },
    Scenario { name: "image", about: "Sees an image in a prompt", support: ALL },
    Scenario {
        name: "image-read",
        about: "Shows an image that it read from a file",
        support: [Works, Lacks(NO_IMAGE), Lacks(NO_IMAGE), Works, Works],
    },
    Scenario { name: "slash-command", about: "Offers slash commands and takes them", support: ALL },
    Scenario {
        name: "usage",
        about: "Tells what it used",
        support: [Works, Works, But("without its thinking and its context"), Works, Works],
    },
    Scenario { name: "mcp-tool", about: "Calls a tool of an MCP server of Consort's", support: ALL },
    Scenario {
        name: "steer",
        about: "Takes a prompt into the turn that runs",
        support: [Works, Works, Lacks(NO_STEERING), Lacks(NO_STEERING), Lacks(NO_STEERING)],
    },
    Scenario {
        name: "background",
        about: "A command goes on after the turn, and is shown to",
        support: [Works, Works, Untested(NOT_SCRIPTED), Untested(NOT_SCRIPTED), Untested(NOT_SCRIPTED)],
    },
    Scenario {
        name: "sessions",
        about: "Lists its earlier sessions, and takes one up as a new agent",
        support: [Works, Works, Lacks("lists none over ACP"), Works, Works],
    },
    Scenario { name: "api-error", about: "Says why its model failed, and goes on", support: ALL },
    Scenario {
        name: "retry",
        about: "Tries again while its model's server fails, and then answers",
        support: [Works, Works, But("in silence"), But("in silence"), But("in silence")],
    },
    Scenario {
        name: "retries-end",
        about: "Says why once it has tried often enough",
        support: [Works, Works, Works, Lacks("tries again for ever; an interrupt ends it"), Works],
    },
    Scenario { name: "interrupt-streaming", about: "Stops while it answers", support: ALL },
    Scenario {
        name: "interrupt-tool",
        about: "Stops while a command runs, and the command with it",
        support: ALL,
    },
    Scenario { name: "interrupt-approval", about: "Stops while it waits for an approval", support: ALL },
    Scenario {
        name: "daemon-killed-streaming",
        about: "Its turn goes on while the daemon is killed and started again",
        support: ALL,
    },
    Scenario {
        name: "daemon-killed-approval",
        about: "An approval outlives a killed daemon and is answered after it",
        support: ALL,
    },
    Scenario {
        name: "agent-killed",
        about: "Is killed in a turn; reopened, it remembers what was said",
        support: ALL,
    },
    Scenario {
        name: "daemon-stopped",
        about: "Is ended with the daemon; the next prompt takes up its session",
        support: ALL,
    },
    Scenario {
        name: "close-in-tool",
        about: "Closed while a command runs, it leaves no process",
        support: ALL,
    },
];

impl Scenario {
    /// Whether a CLI has the feature.
    pub fn support(&self, cli: Cli) -> Support {
        Cli::ALL.iter().position(|other| *other == cli).map_or(Lacks("is not known"), |at| self.support[at])
    }
}

impl Support {
    /// Whether the suite runs it.
    pub fn runs(self) -> bool {
        matches!(self, Works | But(_))
    }

    fn cell(self) -> String {
        match self {
            Works => "works".to_owned(),
            But(limit) => format!("works, {limit}"),
            Lacks(reason) => format!("no: {reason}"),
            Later(reason) => format!("later: {reason}"),
            Untested(reason) => format!("not tested: {reason}"),
        }
    }
}

/// The table as it stands in the docs.
pub fn table() -> String {
    let mut table = String::from("| |");
    for cli in Cli::ALL {
        // Writing into a string cannot fail.
        write!(table, " {cli} {} |", cli.version()).ok();
    }
    table.push_str("\n| --- |");
    table.push_str(&" --- |".repeat(Cli::ALL.len()));
    table.push('\n');
    for scenario in SCENARIOS {
        write!(table, "| {} (`{}`) |", scenario.about, scenario.name).ok();
        for cli in Cli::ALL {
            write!(table, " {} |", scenario.support(cli).cell()).ok();
        }
        table.push('\n');
    }
    table
}

/// The text of `docs/agents.md` with the table as it is now; none where it has no place for one.
pub fn with_table(docs: &str) -> Option<String> {
    let (before, rest) = docs.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}\n\n{}\n{END}{after}", table()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_docs_have_the_table_as_it_is() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/agents.md");
        let docs = std::fs::read_to_string(path).unwrap();
        assert!(
            with_table(&docs).as_deref() == Some(docs.as_str()),
            "docs/agents.md is out of date; `cargo xtask agents-table` writes it"
        );
    }

    #[test]
    fn no_scenario_has_the_name_of_another() {
        let names: std::collections::BTreeSet<_> = SCENARIOS.iter().map(|scenario| scenario.name).collect();
        assert_eq!(names.len(), SCENARIOS.len());
    }
}
