//! The grammar of the command line.

mod profiles;
mod rules;

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand};
use consort_model::PermissionMode;

pub use profiles::{AddProfile, EditProfile, Profiles};
pub use rules::{AddRule, Rules};

/// Runs a team of coding agents.
///
/// Agents work at the same time and keep working when this program, the terminal or the daemon ends. A daemon starts by
/// itself when a command needs it. CONSORT_HOME moves settings, data and sockets to one folder (default: ~/.consort).
#[derive(Parser, Debug)]
#[command(
    name = "consort",
    version,
    after_help = "Exit codes are stable: `consort help exit-codes` lists them.\n\n\
                  Example: consort run \"make the tests pass\" --profile gemini",
    disable_help_subcommand = false
)]
pub struct Arguments {
    /// What to do; none: the terminal UI, or an overview where there is no terminal.
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// `consort messages`.
#[derive(Args, Debug)]
pub struct Messages {
    /// Only those that this agent wrote or got: its name, its id, or a unique beginning or end of the id.
    pub agent: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// What to do.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Run an agent for one task, here: stream what it does, ask for approvals, exit by the outcome.
    #[command(after_help = "Example: consort run \"update the changelog\" --permissions accept-edits")]
    Run(Run),
    /// Create an agent and print its id; does not wait for its turn.
    #[command(after_help = "Example: consort new --profile gemini --name fixer \"look at the failing test\"")]
    New(New),
    /// List the agents.
    #[command(visible_alias = "ls", after_help = "Example: consort agents --all")]
    Agents(Agents),
    /// List the sessions that an agent's program keeps of a folder, also those that Consort did not begin.
    #[command(
        after_help = "Example: consort sessions --profile codex\n\n`consort new --resume SESSION` goes on with one."
    )]
    Sessions(Sessions),
    /// Send a prompt to an agent; while it works the prompt waits for its turn, or joins the running one with --steer.
    #[command(
        after_help = "Example: consort send fixer \"now the other one\" --wait\n         consort send fixer --steer \"leave the tests alone\""
    )]
    Send(Send),
    /// List the prompts that wait for an agent, in order; change, drop or steer with one.
    #[command(
        after_help = "Example: consort queue fixer\n         consort queue fixer --drop 3f2a9c1e\n         consort queue fixer --edit 3f2a9c1e \"only the first one\"\n         consort queue fixer --steer 3f2a9c1e"
    )]
    Queue(Queue),
    /// Print an agent's transcript.
    #[command(after_help = "Example: consort log fixer --follow")]
    Log(Log),
    /// List what the agents ask of a person, oldest first.
    #[command(after_help = "Example: consort inbox")]
    Inbox(JsonOnly),
    /// List the messages between agents, oldest first, and how far they are.
    #[command(after_help = "Example: consort messages fixer")]
    Messages(Messages),
    /// Allow what an agent asks for.
    #[command(after_help = "Example: consort approve 3f2a9c1e --session")]
    Approve(Approve),
    /// Deny what an agent asks for.
    #[command(after_help = "Example: consort deny 3f2a9c1e --message \"use the test database\"")]
    Deny(Deny),
    /// Answer an agent's question, or choose one of the answers that it offers.
    #[command(after_help = "Example: consort answer 3f2a9c1e '{\"colour\": \"blue\"}'")]
    Answer(AnswerAsk),
    /// Stop an agent's turn; the agent stays.
    #[command(after_help = "Example: consort interrupt fixer")]
    Interrupt(OneAgent),
    /// Close an agent with all that is bound to it; its transcript stays.
    #[command(after_help = "Example: consort close fixer")]
    Close(SomeAgents),
    /// Create an agent whose conversation branches off from another's.
    #[command(after_help = "Example: consort fork fixer --name braver \"Now without the workaround\"")]
    Fork(Fork),
    /// Take up a closed or failed agent again.
    #[command(after_help = "Example: consort reopen fixer")]
    Reopen(OneAgent),
    /// End an agent's process and start another that takes up the session: what was edited in its profile applies.
    #[command(after_help = "Example: consort restart fixer")]
    Restart(OneAgent),
    /// Let an agent run by another profile of the same driver.
    #[command(after_help = "Example: consort rebind fixer work")]
    Rebind(Rebind),
    /// Give an agent another name.
    #[command(after_help = "Example: consort rename fixer reviewer")]
    Rename(Rename),
    /// Change what an agent's approvals follow.
    #[command(after_help = "Example: consort mode fixer accept-edits")]
    Mode(Mode),
    /// Choose a value for an option of an agent's session, or list what can be chosen.
    #[command(after_help = "Example: consort choose fixer model fast")]
    Choose(Choose),
    /// Show what an agent changed: since its branch began if it has a worktree, else since the last commit.
    #[command(after_help = "Example: consort diff fixer --stat")]
    Diff(Diff),
    /// The git worktrees of agents.
    #[command(subcommand, after_help = "Example: consort worktrees finish fixer")]
    Worktrees(Worktrees),
    /// Standing allowances.
    #[command(subcommand, after_help = "Example: consort rules list")]
    Rules(Rules),
    /// Configured ways to run an agent.
    #[command(
        subcommand,
        after_help = "Example: consort profiles add local --driver acp --command my-agent --arg --acp"
    )]
    Profiles(Profiles),
    /// Take over the settings of another program.
    #[command(
        subcommand,
        after_help = "Example: consort import cc-insights ~/.config/cc-insights/config.json"
    )]
    Import(Import),
    /// The process that holds everything together; starts by itself.
    #[command(subcommand, after_help = "Example: consort daemon status --json")]
    Daemon(Daemon),
    /// Show a team at work on a scratch repository, without any agent installed; cleans up after itself.
    #[command(after_help = "Example: consort demo")]
    Demo {
        /// Play without a person: allow everything that is asked and tell what happens.
        #[arg(long)]
        headless: bool,
    },
    /// Check what Consort needs to work, and say what to do about what is broken.
    #[command(after_help = "Example: consort doctor")]
    Doctor(JsonOnly),
    /// Print the completions for a shell.
    #[command(
        after_help = "Example: consort completions bash > ~/.local/share/bash-completion/completions/consort"
    )]
    Completions {
        /// Which shell.
        shell: clap_complete::Shell,
    },
    /// List the exit codes.
    #[command(long_about = concat_exit_codes())]
    ExitCodes,
    /// Serve the team tools on standard input and output, for agents that take tools in no other way; started by agents.
    #[command(hide = true)]
    Mcp,
    /// Play an agent by a script; for the demo.
    #[command(hide = true, disable_help_flag = true)]
    ScriptedAgent {
        /// Its options.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        options: Vec<String>,
    },
    /// Hold one agent's process; started by the daemon.
    #[command(hide = true)]
    Runner {
        /// The runner's folder.
        #[arg(long)]
        dir: PathBuf,
    },
}

fn concat_exit_codes() -> String {
    format!("Exit codes:\n\n{}", crate::exit::TABLE)
}

/// `--json` and nothing else.
#[derive(Args, Debug)]
pub struct JsonOnly {
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// What goes with a prompt.
#[derive(Args, Debug, Default)]
pub struct Attach {
    /// Attach a text file (repeatable).
    #[arg(long = "file", value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Attach an image: PNG, JPEG, GIF or WebP (repeatable).
    #[arg(long = "image", value_name = "FILE")]
    pub images: Vec<PathBuf>,
}

/// A git worktree for a new agent.
#[derive(Args, Debug, Default)]
pub struct WorktreeOptions {
    /// Let it work in a git worktree and branch of its own; NAME names both, without it they are named like the agent.
    #[arg(long, value_name = "NAME", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub worktree: Option<String>,
    /// The branch that the worktree begins at and goes back to; none: the one that is checked out.
    #[arg(long, value_name = "BRANCH", requires = "worktree")]
    pub base: Option<String>,
}

/// `consort diff`.
#[derive(Args, Debug)]
pub struct Diff {
    /// Its name, its id, or the beginning or end of the id.
    pub agent: String,
    /// Only these files, by their paths in the repository.
    #[arg(value_name = "PATH", conflicts_with = "stat")]
    pub paths: Vec<String>,
    /// Only the files, with how many lines were added and removed.
    #[arg(long)]
    pub stat: bool,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// `consort worktrees`.
#[derive(Subcommand, Debug)]
pub enum Worktrees {
    /// List the worktrees that agents have.
    List(JsonOnly),
    /// Bring a worktree's branch home: up to date with its base, the base moved forward to it, the worktree removed.
    #[command(after_help = "Example: consort worktrees finish fixer --merge")]
    Finish {
        /// Its agent, its name, its branch or its folder.
        #[arg(value_name = "AGENT|WORKTREE")]
        worktree: String,
        /// Put its commits on top of the base; this is the default.
        #[arg(long, conflicts_with = "merge")]
        rebase: bool,
        /// Merge the base into it instead.
        #[arg(long)]
        merge: bool,
        /// Leave the worktree, its branch and its agents as they are.
        #[arg(long)]
        keep: bool,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Remove a worktree and its branch, and close the agents in it; refused if there is work in it.
    #[command(after_help = "Example: consort worktrees remove fixer")]
    Remove {
        /// Its agent, its name, its branch or its folder.
        #[arg(value_name = "AGENT|WORKTREE")]
        worktree: String,
        /// Even if there is work in it that is not merged or not committed.
        #[arg(long)]
        force: bool,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
}

/// `consort run`.
#[derive(Args, Debug)]
pub struct Run {
    /// The task; `-` reads it from standard input.
    pub task: String,
    /// The profile; none: the default one.
    #[arg(long, short)]
    pub profile: Option<String>,
    /// The agent's name; none: one is made from the profile's.
    #[arg(long, short)]
    pub name: Option<String>,
    /// Where it works; none: here.
    #[arg(long, value_name = "DIR")]
    pub cwd: Option<PathBuf>,
    /// What its approvals follow; none: as the profile says.
    #[arg(long, value_name = "MODE", value_parser = permission_mode())]
    pub permissions: Option<PermissionMode>,
    #[command(flatten)]
    pub worktree: WorktreeOptions,
    #[command(flatten)]
    pub attach: Attach,
    /// Print one JSON object per item, and one with the outcome at the end.
    #[arg(long)]
    pub json: bool,
    /// Show the agent's thinking too.
    #[arg(long)]
    pub thinking: bool,
    /// Leave the agent open at the end.
    #[arg(long)]
    pub keep: bool,
    /// Interrupt the agent after so many seconds.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=31_536_000))]
    pub timeout: Option<u64>,
}

/// `consort new`.
#[derive(Args, Debug)]
pub struct New {
    /// The first prompt; `-` reads it from standard input.
    pub prompt: Option<String>,
    /// The profile; none: the default one.
    #[arg(long, short)]
    pub profile: Option<String>,
    /// The agent's name; none: one is made from the profile's.
    #[arg(long, short)]
    pub name: Option<String>,
    /// Where it works; none: here.
    #[arg(long, value_name = "DIR")]
    pub cwd: Option<PathBuf>,
    /// What its approvals follow; none: as the profile says.
    #[arg(long, value_name = "MODE", value_parser = permission_mode())]
    pub permissions: Option<PermissionMode>,
    /// Make it a companion of this agent.
    #[arg(long, value_name = "AGENT")]
    pub companion_of: Option<String>,
    /// Go on with this session of the profile's program; `consort sessions` lists them.
    #[arg(long, value_name = "SESSION", conflicts_with = "worktree")]
    pub resume: Option<String>,
    #[command(flatten)]
    pub worktree: WorktreeOptions,
    #[command(flatten)]
    pub attach: Attach,
    /// Print JSON: {"id": …, "name": …}.
    #[arg(long)]
    pub json: bool,
}

/// `consort agents`.
#[derive(Args, Debug)]
pub struct Agents {
    /// Closed ones too.
    #[arg(long, short)]
    pub all: bool,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// `consort sessions`.
#[derive(Args, Debug)]
pub struct Sessions {
    /// The profile whose program is asked; none: the default one.
    #[arg(long, short)]
    pub profile: Option<String>,
    /// The folder they worked in; none: this one.
    #[arg(long, value_name = "DIR")]
    pub cwd: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// `consort send`.
#[derive(Args, Debug)]
pub struct Send {
    /// Its name, its id, or the beginning or end of the id.
    pub agent: String,
    /// The prompt; `-` reads it from standard input.
    pub text: String,
    /// Give it to the turn that runs, at its next safe point, instead of letting it wait for its own.
    #[arg(long, short)]
    pub steer: bool,
    /// Wait until its turn is over, print what the agent says, and exit by the outcome.
    #[arg(long, short)]
    pub wait: bool,
    #[command(flatten)]
    pub attach: Attach,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// `consort queue`.
#[derive(Args, Debug)]
pub struct Queue {
    /// Its name, its id, or the beginning or end of the id.
    pub agent: String,
    /// Take this prompt back: its id, or the beginning or end of it.
    #[arg(long, value_name = "ID")]
    pub drop: Option<String>,
    /// Give this prompt another text.
    #[arg(long, num_args = 2, value_names = ["ID", "TEXT"], conflicts_with = "drop")]
    pub edit: Option<Vec<String>>,
    /// Give this prompt to the turn that runs, where the agent can take it.
    #[arg(long, value_name = "ID", conflicts_with_all = ["drop", "edit"])]
    pub steer: Option<String>,
    /// Print JSON.
    #[arg(long, conflicts_with_all = ["drop", "edit"])]
    pub json: bool,
}

/// `consort log`.
#[derive(Args, Debug)]
pub struct Log {
    /// Its name, its id, or the beginning or end of the id.
    pub agent: String,
    /// Go on with what happens from now on.
    #[arg(long, short)]
    pub follow: bool,
    /// Only the last N items.
    #[arg(long, short = 'n', value_name = "N", conflicts_with = "from")]
    pub tail: Option<u64>,
    /// Begin with this item, counted from 0.
    #[arg(long, value_name = "INDEX")]
    pub from: Option<u64>,
    /// At most N items.
    #[arg(long, value_name = "N", conflicts_with = "follow")]
    pub limit: Option<u64>,
    /// Tool calls with their whole output and diffs.
    #[arg(long)]
    pub full: bool,
    /// Print one JSON object per item.
    #[arg(long)]
    pub json: bool,
}

/// Which requests are answered.
#[derive(Args, Debug)]
pub struct Which {
    /// What `consort inbox` shows: the id, or the beginning or end of it.
    #[arg(required_unless_present = "all", conflicts_with_all = ["all", "agent"], value_name = "ID")]
    pub ids: Vec<String>,
    /// All that are open now of the agent named with --agent; each is shown, and no others are answered.
    #[arg(long, requires = "agent")]
    pub all: bool,
    /// The agent whose requests --all means: its name, its id, or the beginning or end of the id.
    #[arg(long, value_name = "AGENT", requires = "all")]
    pub agent: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// `consort approve`.
#[derive(Args, Debug)]
pub struct Approve {
    #[command(flatten)]
    pub which: Which,
    /// And calls like it by any agent of this profile from now on, kept as a rule.
    #[arg(long, conflicts_with_all = ["session", "project"])]
    pub always: bool,
    /// And calls like it by any agent that works in this agent's folder, kept as a rule.
    #[arg(long, conflicts_with = "session")]
    pub project: bool,
    /// And calls like it by this agent.
    #[arg(long)]
    pub session: bool,
    /// Which calls are like it: a command pattern such as `git *`, a path pattern such as `src/**`, or the title of a tool
    /// such as `github: *`; without it, the very same call. Implies --session if nothing else is said.
    #[arg(long, value_name = "PATTERN", allow_hyphen_values = true)]
    pub pattern: Option<String>,
    /// Let it run with this input instead of its own, as a JSON object; for agents whose protocol can carry that.
    #[arg(long, value_name = "JSON", conflicts_with_all = ["always", "project", "session", "pattern"])]
    pub input: Option<String>,
}

/// `consort fork`.
#[derive(Args, Debug)]
pub struct Fork {
    /// The agent to branch off from: id, beginning or end of the id, or name.
    pub agent: String,
    /// The new agent's name.
    #[arg(long)]
    pub name: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
    /// The first prompt.
    pub prompt: Option<String>,
}

/// `consort deny`.
#[derive(Args, Debug)]
pub struct Deny {
    #[command(flatten)]
    pub which: Which,
    /// What the agent should do instead.
    #[arg(long, short, allow_hyphen_values = true, conflicts_with = "stop")]
    pub message: Option<String>,
    /// Stop its turn as well.
    #[arg(long)]
    pub stop: bool,
}

/// `consort answer`.
#[derive(Args, Debug)]
pub struct AnswerAsk {
    /// What `consort inbox` shows: the id, or the beginning or end of it.
    pub id: String,
    /// The answer: text, a JSON object that fits the question, or the id of an answer that the agent offers.
    #[arg(value_name = "TEXT|JSON", allow_hyphen_values = true)]
    pub value: String,
}

/// One agent.
#[derive(Args, Debug)]
pub struct OneAgent {
    /// Its name, its id, or the beginning or end of the id.
    pub agent: String,
}

/// One agent or several.
#[derive(Args, Debug)]
pub struct SomeAgents {
    /// Names, ids, or beginnings or ends of ids.
    #[arg(required = true, value_name = "AGENT")]
    pub agents: Vec<String>,
}

/// `consort rename`.
#[derive(Args, Debug)]
pub struct Rename {
    /// Its name, its id, or the beginning or end of the id.
    pub agent: String,
    /// The new name.
    pub name: String,
}

/// `consort rebind`.
#[derive(Args, Debug)]
pub struct Rebind {
    /// Its name, its id, or the beginning or end of the id.
    pub agent: String,
    /// Name or id of the profile.
    pub profile: String,
}

/// `consort import`.
#[derive(Subcommand, Debug)]
pub enum Import {
    /// Add the agents of CC-Insights as profiles; those that are there already are left alone.
    #[command(after_help = "Example: consort import cc-insights ~/.config/cc-insights/config.json")]
    CcInsights {
        /// Its config.json.
        file: PathBuf,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
}

/// `consort mode`.
#[derive(Args, Debug)]
pub struct Mode {
    /// Its name, its id, or the beginning or end of the id.
    pub agent: String,
    /// The permission mode.
    #[arg(value_parser = permission_mode())]
    pub mode: PermissionMode,
}

/// `consort choose`.
#[derive(Args, Debug)]
pub struct Choose {
    /// Its name, its id, or the beginning or end of the id.
    pub agent: String,
    /// The option, such as `model`; none: list them.
    pub option: Option<String>,
    /// The value; none: list what can be chosen.
    pub value: Option<String>,
}

/// `consort daemon`.
#[derive(Subcommand, Debug)]
pub enum Daemon {
    /// Start it, if none runs, and print its process id.
    Start,
    /// End it and the agents' processes; asks first if agents are working.
    Stop {
        /// Even if agents are working.
        #[arg(long)]
        force: bool,
        /// Leave the agents running for the next daemon.
        #[arg(long)]
        keep_agents: bool,
    },
    /// Say how it is; exits 3 if none runs.
    Status(JsonOnly),
    /// Be the daemon, in the foreground.
    Run {
        /// Say on standard output when it listens, then keep quiet.
        #[arg(long, hide = true)]
        detached: bool,
    },
}

fn permission_mode() -> impl TypedValueParser<Value = PermissionMode> {
    PossibleValuesParser::new(PermissionMode::ALL.map(PermissionMode::word))
        .try_map(|word| word.parse::<PermissionMode>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;
    use consort_model::DriverKind;

    fn parse(line: &str) -> Result<Command, clap::Error> {
        let words = shell_words(line);
        Arguments::try_parse_from(words).map(|arguments| arguments.command.unwrap())
    }

    fn shell_words(line: &str) -> Vec<String> {
        line.split(' ').map(|word| word.replace('_', " ")).collect()
    }

    #[test]
    fn the_grammar_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn every_command_has_an_example() {
        for command in Arguments::command().get_subcommands().filter(|command| !command.is_hide_set()) {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            let exempt = ["exit-codes", "help"].contains(&command.get_name());
            assert!(exempt || help.contains("Example: consort "), "`{}` has no example", command.get_name());
        }
    }

    #[test]
    fn values_of_profiles_add_may_begin_with_a_dash() {
        let line = "consort profiles add p --driver acp --command agent --arg --acp --arg -v --env A=1 --env -B --env C=";
        let Ok(Command::Profiles(Profiles::Add(add))) = parse(line) else { panic!("not parsed") };
        assert_eq!(add.args, ["--acp", "-v"]);
        assert_eq!(add.environment, ["A=1", "-B", "C="]);
        assert_eq!(add.driver, DriverKind::Acp);
    }

    #[test]
    fn the_fixed_grammar_is_accepted() {
        for line in [
            "consort new --profile p --name n --cwd /tmp --json do_it",
            "consort new --profile p",
            "consort agents --json",
            "consort send a text --wait --json",
            "consort send a -",
            "consort log a --json",
            "consort log a --follow --tail 5",
            "consort inbox --json",
            "consort approve x --always",
            "consort approve x --session",
            "consort deny x --message -no",
            "consort answer x -1",
            "consort restart a",
            "consort rebind a p",
            "consort profiles check --json",
            "consort profiles check p",
            "consort profiles duplicate p q",
            "consort profiles edit p --name q --command c --arg -v --env -K --drop-env X --model m --permissions plan",
            "consort profiles edit p --no-args --sandbox none --approval-policy never",
            "consort profiles add p --driver codex --sandbox readOnly --approval-policy onRequest",
            "consort import cc-insights config.json",
            "consort daemon status --json",
            "consort daemon stop --force --keep-agents",
            "consort daemon run --detached",
            "consort run task --profile p --permissions accept-edits --keep --timeout 5",
            "consort runner --dir /tmp/x",
            "consort approve x y z --json",
            "consort approve --agent a --all --session",
            "consort deny --agent a --all --message no",
            "consort new --worktree do_it",
            "consort new --worktree=fix --base main do_it",
            "consort run --worktree=fix task",
            "consort diff a --stat --json",
            "consort diff a src/x src/y",
            "consort worktrees list --json",
            "consort worktrees finish a --merge --keep --json",
            "consort worktrees finish a --rebase",
            "consort worktrees remove a --force",
        ] {
            if let Err(error) = parse(line) {
                panic!("{line}: {error}");
            }
        }
    }

    #[test]
    fn wrong_usage_exits_2() {
        for line in [
            "consort nonsense",
            "consort approve",
            "consort approve x --always --session",
            "consort mode a fast",
            "consort profiles edit p --arg x --no-args",
            "consort profiles add p --driver codex --sandbox none",
            "consort new --base main",
            "consort approve --all",
            "consort approve --agent a x",
            "consort deny --agent a --all x",
            "consort worktrees finish a --merge --rebase",
            "consort diff a x --stat",
        ] {
            assert_eq!(parse(line).unwrap_err().exit_code(), 2, "{line}");
        }
    }
}
