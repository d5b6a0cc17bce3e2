//! The agents: creating, listing, and everything that is one call about one agent.

use consort_daemon::protocol::{AgentView, Call, DaemonStatus, Done, NewAgent};
use consort_model::{AgentId, Status, TaskResult, TeamTools, TurnOutcome};
use serde_json::json;
use uuid::Uuid;

use crate::args;
use crate::exit::Stop;
use crate::link::Link;
use crate::output::{
    Output, Paint, Style, age, cut, now, one_line, pad, print_json, print_line, short, text_width, width,
};
use crate::prompt::{prompt, working_directory};

/// `consort new`.
pub fn new(args: &args::New) -> Result<(), Stop> {
    let mut link = Link::new()?;
    let attached = !args.attach.files.is_empty() || !args.attach.images.is_empty();
    let prompt = match &args.prompt {
        Some(text) => Some(prompt(text, &args.attach)?),
        None if attached => Some(prompt("", &args.attach)?),
        None => None,
    };
    let new = NewAgent {
        id: AgentId::new(Uuid::now_v7()),
        profile: args.profile.clone(),
        name: args.name.clone(),
        cwd: working_directory(args.cwd.as_deref())?,
        companion_of: args.companion_of.clone(),
        permissions: args.permissions,
        worktree: crate::worktrees::wish(&args.worktree),
        prompt,
    };
    let call = match &args.resume {
        Some(session) => Call::ResumeSession { session: session.clone(), agent: new },
        None => Call::CreateAgent(new),
    };
    let agent: AgentView = link.call(&call)?;
    print_new(&agent, args.json)
}

fn print_new(agent: &AgentView, json: bool) -> Result<(), Stop> {
    if json {
        return print_json(&json!({ "id": agent.id, "name": agent.name }));
    }
    print_line(&format!("{}  {}", agent.id, one_line(&agent.name)))
}

/// `consort fork`.
pub fn fork(args: &args::Fork) -> Result<(), Stop> {
    let prompt = args.prompt.as_deref().map(|text| prompt(text, &args::Attach::default())).transpose()?;
    let call = Call::Fork {
        agent: args.agent.clone(),
        id: AgentId::new(Uuid::now_v7()),
        name: args.name.clone(),
        prompt,
    };
    let agent: AgentView = Link::new()?.call(&call)?;
    print_new(&agent, args.json)
}

/// `consort agents`.
pub fn agents(args: &args::Agents) -> Result<(), Stop> {
    let mut link = Link::new()?;
    let agents: Vec<AgentView> = link.call(&Call::ListAgents { closed: args.all })?;
    if args.json {
        return print_json(&agents);
    }
    let mut output = Output::human();
    if agents.is_empty() {
        output.line("no agents; `consort new --profile NAME \"task\"` creates one")?;
    } else {
        output.write(&table(&agents, output.paint, width(), now()))?;
    }
    output.flush()
}

/// `consort` without arguments.
pub fn overview() -> Result<(), Stop> {
    let link = Link::new()?;
    let mut output = Output::human();
    // An overview starts nothing: where no daemon runs, that is the news.
    match consort_daemon::client::Client::connect(link.home()) {
        Ok(mut client) => {
            let status: DaemonStatus = client.call(&Call::Status {})?;
            let agents: Vec<AgentView> = client.call(&Call::ListAgents { closed: false })?;
            output.line(&format!(
                "Agents: {} open, {} working, {} in need of a person",
                status.agents, status.working, status.needs_input
            ))?;
            if let Some(trouble) = &status.trouble {
                output.line(&format!("Trouble: {}", one_line(trouble)))?;
            }
            if !agents.is_empty() {
                output.line("")?;
                let table = table(&agents, output.paint, width(), now());
                output.write(&table)?;
            }
        }
        Err(error) => output.line(&error.to_string())?,
    }
    output.line("")?;
    output.line("`consort run \"task\"` runs an agent here, `consort inbox` shows what waits for you, `consort --help` the rest")?;
    output.flush()
}

/// The agents as a table, those that belong to another below it.
fn table(agents: &[AgentView], paint: Paint, width: Option<usize>, now: i64) -> String {
    let rows: Vec<[String; 7]> = tree(agents)
        .into_iter()
        .map(|(depth, agent)| {
            let branch = if depth == 0 { String::new() } else { format!("{}└ ", "  ".repeat(depth - 1)) };
            [
                format!("{branch}{}", one_line(&agent.name)),
                agent.status.words().to_owned(),
                one_line(&agent.profile),
                age(now - agent.working_since.unwrap_or(agent.created_at).0),
                if agent.queued == 0 { "-".to_owned() } else { agent.queued.to_string() },
                short(agent.id),
                what(agent),
            ]
        })
        .collect();
    let heads = ["NAME", "STATUS", "PROFILE", "AGE", "QUEUE", "ID", "WHAT"].map(str::to_owned);
    let columns: Vec<usize> = (0..heads.len())
        .map(|at| {
            std::iter::once(&heads).chain(&rows).map(|row| text_width(&row[at])).max().unwrap_or(0).min(32)
        })
        .collect();
    let mut text = String::new();
    let statuses = std::iter::once(None).chain(tree(agents).into_iter().map(|(_, agent)| Some(agent.status)));
    for (row, status) in std::iter::once(&heads).chain(&rows).zip(statuses) {
        let mut left = width.unwrap_or(usize::MAX);
        let mut line = String::new();
        for (at, cell) in row.iter().enumerate() {
            let last = at + 1 == row.len();
            let wanted = if last { left } else { columns[at].min(left) };
            let cell = cut(cell, wanted);
            let cell = if last { cell.into_owned() } else { pad(&cell, wanted) };
            left = left.saturating_sub(text_width(&cell) + 2);
            let styled = match (status, at) {
                (None, _) => paint.paint(Style::Dim, &cell),
                (Some(status), 1) => match status {
                    Status::NeedsInput | Status::Stalled => paint.paint(Style::Yellow, &cell),
                    Status::Failed => paint.paint(Style::Red, &cell),
                    Status::Working | Status::Starting => paint.paint(Style::Green, &cell),
                    Status::Idle | Status::Queued | Status::Closed => paint.paint(Style::Dim, &cell),
                },
                _ => cell.as_str().into(),
            };
            line.push_str(&styled);
            if !last && left > 0 {
                line.push_str("  ");
            }
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// The agents in the order they were made, each followed by those that belong to it.
fn tree(agents: &[AgentView]) -> Vec<(usize, &AgentView)> {
    let above = |agent: &AgentView| {
        agent.owner.or(agent.parent).filter(|above| agents.iter().any(|other| other.id == *above))
    };
    let mut sorted: Vec<&AgentView> = agents.iter().collect();
    sorted.sort_by_key(|agent| (agent.created_at, agent.id));
    let mut rows = Vec::with_capacity(agents.len());
    let mut stack: Vec<(usize, &AgentView)> =
        sorted.iter().rev().filter(|agent| above(agent).is_none()).map(|agent| (0, *agent)).collect();
    while let Some((depth, agent)) = stack.pop() {
        rows.push((depth, agent));
        let below = sorted.iter().rev().filter(|other| above(other) == Some(agent.id));
        stack.extend(below.map(|other| (depth + 1, *other)));
    }
    rows
}

/// What there is to say about an agent, most urgent first.
fn what(agent: &AgentView) -> String {
    if agent.profile_removed {
        return "profile removed: this chat can no longer send messages".to_owned();
    }
    if let Some(failure) = &agent.failure {
        let parked = if failure.parked { " (parked)" } else { "" };
        return format!("{}{parked}", one_line(&failure.message));
    }
    let mut parts = Vec::new();
    match agent.open_asks {
        0 => {}
        1 => parts.push("1 question for you".to_owned()),
        more => parts.push(format!("{more} questions for you")),
    }
    if agent.restart_to_apply {
        parts.push("restart to apply its profile".to_owned());
    }
    if agent.team_tools == TeamTools::Missing {
        parts.push("no team tools".to_owned());
    }
    if let Some(label) = agent.label.as_ref().filter(|label| **label != agent.name) {
        parts.push(one_line(label));
    }
    match &agent.result {
        Some(TaskResult::Yielded { .. }) => parts.push("done".to_owned()),
        Some(TaskResult::Stopped { reason }) => parts.push(format!("stopped: {}", one_line(reason))),
        Some(TaskResult::Failed { .. } | TaskResult::Closed) | None => {}
    }
    // What it says of itself is newer than what it was asked first.
    if let Some(words) = agent.note.as_ref().or(agent.title.as_ref()) {
        parts.push(one_line(words));
    }
    match &agent.last_outcome {
        Some(TurnOutcome::Failed { message }) if agent.status == Status::Idle => {
            parts.push(format!("failed: {}", one_line(message)));
        }
        Some(TurnOutcome::Stopped { reason }) if agent.status == Status::Idle => {
            parts.push(format!("stopped: {}", one_line(reason)));
        }
        Some(TurnOutcome::Interrupted) if agent.status == Status::Idle => {
            parts.push("interrupted".to_owned())
        }
        _ => {}
    }
    if parts.is_empty() {
        parts.push(one_line(&agent.cwd));
    }
    parts.join(", ")
}

/// `consort interrupt`.
pub fn interrupt(agent: &str) -> Result<(), Stop> {
    one_call(&Call::Interrupt { agent: agent.to_owned() })
}

/// `consort close`.
pub fn close(agents: &[String]) -> Result<(), Stop> {
    let mut link = Link::new()?;
    for agent in agents {
        let _: Done = link.call(&Call::Close { agent: agent.clone() })?;
    }
    Ok(())
}

/// `consort reopen`.
pub fn reopen(agent: &str) -> Result<(), Stop> {
    let agent: AgentView = Link::new()?.call(&Call::Reopen { agent: agent.to_owned() })?;
    print_status(&agent)
}

/// `consort restart`.
pub fn restart(agent: &str) -> Result<(), Stop> {
    // Not asked again when the connection breaks: once is enough.
    let agent: AgentView = Link::new()?.call_once(&Call::Restart { agent: agent.to_owned() })?;
    print_status(&agent)
}

/// `consort rebind`.
pub fn rebind(args: &args::Rebind) -> Result<(), Stop> {
    let call = Call::Rebind { agent: args.agent.clone(), profile: args.profile.clone() };
    let agent: AgentView = Link::new()?.call(&call)?;
    print_status(&agent)
}

fn print_status(agent: &AgentView) -> Result<(), Stop> {
    print_line(&format!("{}  {}  {}", agent.id, one_line(&agent.name), agent.status.words()))
}

/// `consort rename`.
pub fn rename(args: &args::Rename) -> Result<(), Stop> {
    one_call(&Call::Rename { agent: args.agent.clone(), name: args.name.clone() })
}

/// `consort mode`.
pub fn mode(args: &args::Mode) -> Result<(), Stop> {
    one_call(&Call::SetPermissions { agent: args.agent.clone(), permissions: args.mode })
}

/// `consort choose`.
pub fn choose(args: &args::Choose) -> Result<(), Stop> {
    if let (Some(option), Some(value)) = (&args.option, &args.value) {
        return one_call(&Call::Choose {
            agent: args.agent.clone(),
            option: option.clone(),
            value: value.clone(),
        });
    }
    let agent = Link::new()?.agent(&args.agent)?;
    let mut output = Output::human();
    if agent.options.is_empty() {
        output.line("nothing can be chosen for this agent's session")?;
    }
    let wanted = |id: &str| args.option.as_deref().is_none_or(|wanted| wanted == id);
    for option in agent.options.iter().filter(|option| wanted(&option.id)) {
        let name = output.paint.paint(Style::Bold, &one_line(&option.id)).into_owned();
        output.line(&format!("{name}  {}", one_line(&option.name)))?;
        for choice in &option.choices {
            let mark = if choice.id == option.current { "*" } else { " " };
            output.line(&format!("  {mark} {}  {}", one_line(&choice.id), one_line(&choice.name)))?;
        }
    }
    output.flush()
}

fn one_call(call: &Call) -> Result<(), Stop> {
    let _: Done = Link::new()?.call(call)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use consort_model::{DriverKind, PermissionMode, Timestamp, Usage};

    fn agent(id: u128, name: &str, owner: Option<u128>) -> AgentView {
        let id_of = |id| AgentId::new(Uuid::from_u128(id));
        AgentView {
            id: id_of(id),
            name: name.into(),
            profile: "local".into(),
            profile_removed: false,
            restart_to_apply: false,
            driver: DriverKind::Acp,
            status: Status::Idle,
            cwd: "/tmp".into(),
            worktree: None,
            created_by: owner.map(id_of),
            companion: owner.is_some(),
            owner: owner.map(id_of),
            parent: None,
            label: None,
            result: None,
            created_at: Timestamp(id as i64),
            working_since: None,
            last_outcome: None,
            queued: 0,
            open_asks: 0,
            permissions: PermissionMode::Default,
            session: None,
            options: vec![],
            usage: Usage::default(),
            title: None,
            note: None,
            team_tools: TeamTools::Connected,
            items: 0,
            failure: None,
        }
    }

    #[test]
    fn those_that_belong_to_another_stand_below_it() {
        let agents =
            [agent(1, "a", None), agent(2, "b", None), agent(3, "c", Some(1)), agent(4, "d", Some(9))];
        let text = table(&agents, Paint::plain(), None, 1000);
        let names: Vec<&str> = text.lines().skip(1).filter_map(|line| line.split("  ").next()).collect();
        assert_eq!(names, ["a", "└ c", "b", "d"], "{text}");
    }

    #[test]
    fn what_became_of_the_profile_is_said() {
        let mut agent = agent(1, "a", None);
        agent.restart_to_apply = true;
        assert_eq!(what(&agent), "restart to apply its profile");
        agent.profile_removed = true;
        assert_eq!(what(&agent), "profile removed: this chat can no longer send messages");
    }

    #[test]
    fn an_agent_without_team_tools_is_told_apart_and_what_it_says_comes_before_its_title() {
        let mut agent = agent(1, "a", None);
        agent.title = Some("the title".into());
        assert_eq!(what(&agent), "the title");
        agent.note = Some("reading".into());
        agent.team_tools = TeamTools::Missing;
        assert_eq!(what(&agent), "no team tools, reading");
        agent.team_tools = TeamTools::Unknown;
        assert_eq!(what(&agent), "reading");
    }

    #[test]
    fn the_table_is_aligned_and_fits_the_terminal() {
        let mut agents = [agent(1, "日本", None), agent(2, "long-name", None)];
        agents[0].title = Some("a title that is far too long for a narrow terminal".into());
        agents[1].queued = 2;
        let text = table(&agents, Paint::plain(), Some(60), 5000);
        assert!(text.lines().all(|line| text_width(line) <= 60), "{text}");
        let column = |line: &str| line.find("idle").map(|at| text_width(&line[..at]));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(column(lines[1]), column(lines[2]), "{text}");
        assert!(lines[1].ends_with('…'), "{text}");
    }
}
