//! What is known about an agent: how it runs, where, what it used, who is bound to it, and its messages.

use consort_daemon::protocol::MessageView;
use consort_model::{Agent, AgentId, LetterState, TeamTools};
use ratatui::text::{Line, Span};

use crate::app::App;
use crate::text::wrap::Prefix;
use crate::text::{clean, width};
use crate::transcript::item::prose;
use crate::view::duration;

/// Columns for the names of what is told.
const LABEL: usize = 14;

pub(super) fn lines(app: &App, id: AgentId, columns: usize) -> Vec<Line<'static>> {
    let theme = &app.theme;
    let Some(agent) = app.state.agents.get(&id) else {
        return vec![Line::styled("There is no such agent any more.", theme.dim)];
    };
    let mut lines = Vec::new();
    for (label, value) in facts(app, agent) {
        let head = Prefix::hanging(vec![Span::styled(width::fit(label, LABEL).into_owned(), theme.dim)]);
        lines.extend(prose(&value, theme.text, columns, &head));
    }
    let team: Vec<&Agent> = app
        .state
        .agents
        .values()
        .filter(|other| other.relation.bound_to() == Some(id) || other.created_by == Some(id))
        .collect();
    if !team.is_empty() {
        lines.push(Line::default());
        lines.push(Line::styled("Its team", theme.heading_small));
        for other in team {
            let kind = match (other.relation.owner(), other.relation.parent()) {
                (Some(_), _) => "companion",
                (None, Some(_)) => "sub-agent",
                (None, None) => "made by it",
            };
            lines.push(Line::from(vec![
                Span::styled(width::fit(kind, LABEL).into_owned(), theme.dim),
                Span::styled(width::fit(&clean::one_line(&other.name), 24).into_owned(), theme.text),
                Span::styled(format!(" {}", other.status().words()), theme.dim),
            ]));
        }
    }
    lines.push(Line::default());
    lines.push(Line::styled("Messages with other agents", theme.heading_small));
    let messages = MessageView::list(&app.state, Some(id));
    if messages.is_empty() {
        lines.push(Line::styled("none", theme.dim));
    }
    for message in messages.iter().rev() {
        let style = match message.state {
            LetterState::Queued => theme.warning,
            LetterState::Delivered => theme.good,
            LetterState::Read | LetterState::Dropped => theme.dim,
        };
        let age =
            if app.wall > 0 { format!(" {} ago", duration(app.wall - message.at.0)) } else { String::new() };
        lines.push(Line::from(vec![
            Span::styled(clean::one_line(&message.from_name).into_owned(), theme.strong),
            Span::styled(" → ", theme.dim),
            Span::styled(clean::one_line(&message.to_name).into_owned(), theme.strong),
            Span::styled(format!("  {}", message.state.word()), style),
            Span::styled(age, theme.dim),
        ]));
        let indent = Prefix::same(vec![Span::raw("  ")]);
        lines.extend(prose(&clean::one_line(&message.preview), theme.text, columns, &indent));
    }
    lines
}

fn facts(app: &App, agent: &Agent) -> Vec<(&'static str, String)> {
    let mut facts = vec![("status", agent.status().words().to_owned())];
    let profile = match app.state.profile(&agent.profile) {
        Some(profile) => format!("{} ({})", profile.name, agent.driver),
        None => format!("{} ({}), removed", agent.profile, agent.driver),
    };
    facts.push(("profile", profile));
    facts.push(("permissions", agent.permissions.word().to_owned()));
    for option in &agent.options {
        let name = option.choices.iter().find(|choice| choice.id == option.current);
        facts.push(("session", format!("{}: {}", option.name, name.map_or(&option.current, |it| &it.name))));
    }
    facts.push(("folder", agent.cwd.clone()));
    for worktree in &agent.worktrees {
        let text = format!("{} from {} in {}", worktree.branch, worktree.base, worktree.path);
        facts.push(("worktree", text));
    }
    let above = agent.relation.owner().map(|it| ("companion of", it));
    let above = above.or(agent.relation.parent().map(|it| ("works for", it)));
    let above = above.or(agent.created_by.map(|it| ("made by", it)));
    if let Some((label, above)) = above {
        facts.push((label, app.name_of(above)));
    }
    if let Some(label) = &agent.brief.label {
        facts.push(("label", label.clone()));
    }
    if let Some(note) = &agent.note {
        facts.push(("says", note.clone()));
    }
    let usage = &agent.usage;
    if let (Some(used), Some(size)) = (usage.context_used, usage.context_size) {
        facts.push(("context", format!("{used} of {size} tokens")));
    }
    if usage.input_tokens.is_some() || usage.output_tokens.is_some() {
        let count = |tokens: Option<u64>| tokens.unwrap_or(0);
        let text =
            format!("{} tokens read, {} written", count(usage.input_tokens), count(usage.output_tokens));
        facts.push(("used", text));
    }
    if let Some(cost) = usage.cost {
        facts.push(("cost", format!("{}${cost:.4}", super::super::about_cost(agent))));
    }
    if agent.team_tools == TeamTools::Missing {
        facts.push(("team tools", "none: this program takes no MCP server from Consort".to_owned()));
    }
    facts.push(("items", agent.cursor.items.to_string()));
    if let Some(session) = &agent.session {
        facts.push(("its session", session.id.clone()));
    }
    facts.push(("id", agent.id.to_string()));
    facts.into_iter().map(|(label, value)| (label, clean::one_line(&value).into_owned())).collect()
}
