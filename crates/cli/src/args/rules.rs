//! The grammar of `consort rules`.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{ArgGroup, Args, Subcommand};
use consort_model::{Effect, ToolKind};

use super::JsonOnly;

/// `consort rules`.
#[derive(Subcommand, Debug)]
pub enum Rules {
    /// List the rules.
    List(JsonOnly),
    /// Add a rule.
    #[command(
        after_help = "Examples:\n  consort rules add allow --command 'cargo test *' --project\n  consort rules add deny --path '**/.env' \
                      --all\n  consort rules add allow --title 'github: get_*' --profile work"
    )]
    Add(AddRule),
    /// Remove a rule.
    #[command(after_help = "Example: consort rules remove 5b1e77aa")]
    Remove {
        /// What `consort rules list` shows: the id, or the beginning or end of it.
        rule: String,
    },
}

/// `consort rules add`.
#[derive(Args, Debug)]
#[command(group = ArgGroup::new("subject").required(true), group = ArgGroup::new("scope").required(true))]
pub struct AddRule {
    /// Whether such calls run without asking, or not at all. A denial wins.
    #[arg(value_parser = effect())]
    pub effect: Effect,
    /// Commands like this; `*` at the end stands for any further words, elsewhere for any characters of a word.
    #[arg(long, value_name = "PATTERN", group = "subject", allow_hyphen_values = true)]
    pub command: Option<String>,
    /// Files like this (repeatable): `*` and `?` within a name, `**` for any folders. A relative pattern is taken from the
    /// project's folder on, or else from each agent's.
    #[arg(long = "path", value_name = "PATTERN", group = "subject")]
    pub paths: Vec<String>,
    /// Tools with a title like this, such as `github: *`.
    #[arg(long, value_name = "PATTERN", group = "subject")]
    pub title: Option<String>,
    /// Only this kind of call.
    #[arg(long, value_name = "KIND", value_parser = tool_kind())]
    pub tool: Option<ToolKind>,
    /// For one agent: its name or id.
    #[arg(long, value_name = "AGENT", group = "scope")]
    pub agent: Option<String>,
    /// For the agents of a profile: its name or id.
    #[arg(long, value_name = "PROFILE", group = "scope")]
    pub profile: Option<String>,
    /// For the agents that work in a folder; none given: this one.
    #[arg(long, value_name = "FOLDER", group = "scope", num_args = 0..=1, default_missing_value = ".")]
    pub project: Option<PathBuf>,
    /// For all agents.
    #[arg(long, group = "scope")]
    pub all: bool,
    /// Print the rule as JSON.
    #[arg(long)]
    pub json: bool,
}

fn effect() -> impl TypedValueParser<Value = Effect> {
    PossibleValuesParser::new(["allow", "deny"])
        .map(|word| if word == "deny" { Effect::Deny } else { Effect::Allow })
}

fn tool_kind() -> impl TypedValueParser<Value = ToolKind> {
    PossibleValuesParser::new(KINDS.map(ToolKind::verb)).try_map(|word| {
        let kind = KINDS.into_iter().find(|kind| kind.verb() == word);
        kind.ok_or_else(|| format!("unknown kind `{word}`"))
    })
}

const KINDS: [ToolKind; 9] = [
    ToolKind::Read,
    ToolKind::Search,
    ToolKind::Edit,
    ToolKind::Delete,
    ToolKind::Move,
    ToolKind::Execute,
    ToolKind::Fetch,
    ToolKind::Think,
    ToolKind::Other,
];
