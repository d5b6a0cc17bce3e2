//! The tools that an agent was given. Where its program cannot be told which ones, calls of others are denied.

use crate::agent::Agent;
use crate::item::{ToolCall, ToolKind};

/// What the titles of Consort's own tools begin with, which are no part of any list.
const OWN: &str = "consort: ";

/// Whether an agent may use this tool: any, unless it was given a list, by kinds or by names.
pub(super) fn is_given(agent: &Agent, call: &ToolCall) -> bool {
    let Some(tools) = &agent.brief.tools else { return true };
    let named = |tool: &str| {
        call.title == tool
            || call.title.strip_prefix(tool).is_some_and(|rest| rest.starts_with([' ', ':', '(']))
    };
    call.title.starts_with(OWN) || tools.iter().any(|tool| tool == word(call.tool) || named(tool))
}

/// The word for a kind of tool, as agents and people list it.
pub fn word(kind: ToolKind) -> &'static str {
    match kind {
        ToolKind::Read => "read",
        ToolKind::Search => "search",
        ToolKind::Edit => "edit",
        ToolKind::Delete => "delete",
        ToolKind::Move => "move",
        ToolKind::Execute => "execute",
        ToolKind::Fetch => "fetch",
        ToolKind::Think => "think",
        ToolKind::Other => "other",
    }
}
