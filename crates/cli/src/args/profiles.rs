//! The grammar of `consort profiles`.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};
use consort_model::{ApprovalPolicy, DriverKind, PermissionMode, SandboxMode};

use super::{JsonOnly, permission_mode};

/// `consort profiles`.
#[derive(Subcommand, Debug)]
pub enum Profiles {
    /// List the profiles.
    List(JsonOnly),
    /// Add a profile.
    #[command(
        after_help = "Example: consort profiles add work --driver acp --command gemini --arg --acp --env API_KEY=… --env -HTTP_PROXY"
    )]
    Add(AddProfile),
    /// Change a profile; agents that run by it are to be restarted then.
    #[command(
        after_help = "Example: consort profiles edit work --model fast --env API_KEY=… --drop-env DEBUG"
    )]
    Edit(EditProfile),
    /// Add a profile that is like another, secrets included.
    #[command(after_help = "Example: consort profiles duplicate work home")]
    Duplicate {
        /// Name or id of the one that is there.
        profile: String,
        /// Name of the new one.
        name: String,
    },
    /// Remove a profile; its agents' transcripts stay.
    Remove {
        /// Its name or id.
        profile: String,
        /// Even if agents run by it.
        #[arg(long)]
        force: bool,
    },
    /// Use a profile where none is named.
    Default {
        /// Its name or id.
        profile: String,
    },
    /// Look again which profiles can be used here, and why not, and which versions their programs have.
    Check {
        /// Name or id of one; none: all.
        profile: Option<String>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
}

/// `consort profiles add`.
#[derive(Args, Debug)]
pub struct AddProfile {
    /// Its name.
    pub name: String,
    /// The protocol it speaks.
    #[arg(long, value_parser = driver())]
    pub driver: DriverKind,
    /// Its program; none: the driver's own.
    #[arg(long, value_name = "PROGRAM")]
    pub command: Option<String>,
    /// An argument of the program (repeatable, in order).
    #[arg(long = "arg", value_name = "A", allow_hyphen_values = true)]
    pub args: Vec<String>,
    /// A change to its environment: KEY=VALUE sets, KEY= empties, -KEY removes (repeatable).
    #[arg(long = "env", value_name = "KEY=VALUE|-KEY", allow_hyphen_values = true)]
    pub environment: Vec<String>,
    /// The model it starts with.
    #[arg(long)]
    pub model: Option<String>,
    /// What its agents' approvals follow.
    #[arg(long, value_name = "MODE", value_parser = permission_mode())]
    pub permissions: Option<PermissionMode>,
    /// For codex: what its commands may do by themselves.
    #[arg(long, value_name = "MODE", value_parser = words(SandboxMode::ALL, SandboxMode::word))]
    pub sandbox: Option<String>,
    /// For codex: when it asks.
    #[arg(long, value_name = "POLICY", value_parser = words(ApprovalPolicy::ALL, ApprovalPolicy::word))]
    pub approval_policy: Option<String>,
}

/// `consort profiles edit`.
#[derive(Args, Debug)]
pub struct EditProfile {
    /// Its name or id.
    pub profile: String,
    /// Another name; the id stays.
    #[arg(long)]
    pub name: Option<String>,
    /// Its program; empty: the driver's own.
    #[arg(long, value_name = "PROGRAM")]
    pub command: Option<String>,
    /// An argument of the program (repeatable, in order), in place of all those before.
    #[arg(long = "arg", value_name = "A", allow_hyphen_values = true)]
    pub args: Vec<String>,
    /// No arguments.
    #[arg(long, conflicts_with = "args")]
    pub no_args: bool,
    /// A change to its environment, in place of what is said about the same variable (repeatable).
    #[arg(long = "env", value_name = "KEY=VALUE|-KEY", allow_hyphen_values = true)]
    pub environment: Vec<String>,
    /// Say nothing about this variable any more (repeatable).
    #[arg(long = "drop-env", value_name = "KEY")]
    pub environment_dropped: Vec<String>,
    /// The model it starts with; empty: the agent's own choice.
    #[arg(long)]
    pub model: Option<String>,
    /// What the approvals of new agents follow.
    #[arg(long, value_name = "MODE", value_parser = permission_mode())]
    pub permissions: Option<PermissionMode>,
    /// For codex: what its commands may do by themselves; none: as Codex is configured.
    #[arg(long, value_name = "MODE", value_parser = words_or_none(SandboxMode::ALL, SandboxMode::word))]
    pub sandbox: Option<String>,
    /// For codex: when it asks; none: as Codex is configured.
    #[arg(long, value_name = "POLICY", value_parser = words_or_none(ApprovalPolicy::ALL, ApprovalPolicy::word))]
    pub approval_policy: Option<String>,
}

fn driver() -> impl TypedValueParser<Value = DriverKind> {
    PossibleValuesParser::new(DriverKind::ALL.map(DriverKind::word))
        .try_map(|word| word.parse::<DriverKind>())
}

fn words<T: Copy>(all: &[T], word: fn(T) -> &'static str) -> PossibleValuesParser {
    PossibleValuesParser::new(all.iter().map(|value| word(*value)))
}

fn words_or_none<T: Copy>(all: &[T], word: fn(T) -> &'static str) -> PossibleValuesParser {
    PossibleValuesParser::new(all.iter().map(|value| word(*value)).chain(["none"]))
}
