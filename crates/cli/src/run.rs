//! `consort run` and `consort send`: a task for an agent, and the wait for its end.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use consort_daemon::protocol::{AgentView, Call, Done, NewAgent, Sent};
use consort_model::{AgentId, Failure, PromptId, TurnOutcome};
use serde_json::json;
use uuid::Uuid;

use crate::args;
use crate::exit::{Exit, Stop};
use crate::link::{Link, refusal};
use crate::output::{clean, note, one_line, print_json, print_line};
use crate::prompt::{prompt, working_directory};
use crate::render::Detail;
use crate::tail::{HumanTail, JsonTail, Show};
use crate::turn::{End, Goal, Person, View, Wait, Waited, text_of};

/// `consort run`.
pub fn run(args: &args::Run) -> Result<(), Stop> {
    let mut link = Link::new()?;
    let prompt = prompt(&args.task, &args.attach)?;
    let prompt_id = prompt.id;
    let new = NewAgent {
        id: AgentId::new(Uuid::now_v7()),
        profile: args.profile.clone(),
        name: args.name.clone(),
        cwd: working_directory(args.cwd.as_deref())?,
        companion_of: None,
        permissions: args.permissions,
        worktree: crate::worktrees::wish(&args.worktree),
        prompt: Some(prompt),
    };
    let agent: AgentView = link.call(&Call::CreateAgent(new))?;
    let goal = Goal { agent: agent.id, prompt: prompt_id, from: 0 };
    let show =
        Show { prompts: false, thinking: args.thinking, work: true, detail: Detail::Brief, only: None };
    let terminal = std::io::stdin().is_terminal() && std::io::stderr().is_terminal() && args.task != "-";
    let wait = Wait {
        link: &mut link,
        goal,
        name: agent.name.clone(),
        view: if args.json {
            View::Json(JsonTail::new(agent.id, 0))
        } else {
            View::Human(HumanTail::new(agent.id, 0, show))
        },
        person: if terminal { Person::Here } else { Person::Nobody },
        interrupts: true,
        deadline: args.timeout.and_then(|seconds| Instant::now().checked_add(Duration::from_secs(seconds))),
    };
    let waited = wait.wait();
    // Closing would start the daemon that a person has just stopped.
    let stopped = matches!(&waited, Err(stop) if stop.exit == Exit::NoDaemon);
    let closed = if args.keep || stopped { Ok(()) } else { close(&mut link, agent.id) };
    let Waited { end, agent: last, failure, view } = waited?;
    if let View::Json(mut tail) = view {
        // What the close left behind is still an item.
        tail.catch_up(&mut link, last.as_ref())?;
        let usage = last.as_ref().map(|agent| agent.usage);
        tail.line(&json!({
            "outcome": end.word(),
            "message": end.message(),
            "agent": agent.id,
            "name": agent.name,
            "prompt": prompt_id,
            "usage": usage,
            "exit": end.exit().code(),
        }))?;
    }
    closed?;
    if args.keep {
        note(&format!(
            "agent {} stays open; `consort send {} …` goes on, `consort close {}` ends it",
            agent.name, agent.name, agent.name
        ));
    }
    finish(&end, &agent.name, failure.as_ref(), &args.task)
}

/// Closes an agent; one that is closed already is fine.
fn close(link: &mut Link, agent: AgentId) -> Result<(), Stop> {
    match link.call::<Done>(&Call::Close { agent: agent.to_string() }) {
        Ok(_) => Ok(()),
        Err(error) if refusal(&error).is_some() => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Says how it ended, where that is not plain.
fn finish(end: &End, name: &str, failure: Option<&Failure>, task: &str) -> Result<(), Stop> {
    let name = one_line(name);
    let message = match end {
        End::Outcome(TurnOutcome::Completed) => return Ok(()),
        End::Outcome(TurnOutcome::Interrupted) => {
            format!("the turn of {name} was interrupted")
        }
        End::Outcome(TurnOutcome::Stopped { reason }) => {
            format!("{name} stopped before it was done: {}", one_line(reason))
        }
        End::Outcome(TurnOutcome::Failed { message }) => {
            format!("the turn of {name} failed: {}", one_line(message))
        }
        End::Failed(failure) => format!("{name} failed: {}", one_line(&failure.message)),
        End::Dropped => format!("{name} was closed, or its prompt taken back, before it was done"),
        End::NeedsPerson { title } => {
            let stdin = if task == "-" { " (standard input holds the task)" } else { "" };
            format!(
                "{name} needs a person for `{title}` and none can be asked here{stdin}; run it on a terminal, or say \
                 with --permissions accept-edits or --permissions bypass what is allowed"
            )
        }
        End::TimedOut => format!("{name} was interrupted because the time is over; give more with --timeout"),
        End::Abandoned => {
            format!("no longer waiting; {name} goes on, `consort log {name} --follow` shows it")
        }
        End::Terminated => return Err(Stop::quiet(Exit::Terminated)),
    };
    let tail = failure.map(|failure| clean(failure.stderr_tail.trim())).filter(|tail| !tail.is_empty());
    let message = match tail {
        Some(tail) => format!("{message}; its last words on standard error:\n{tail}"),
        None => message,
    };
    Err(Stop::new(end.exit(), message))
}

/// `consort send`.
pub fn send(args: &args::Send) -> Result<(), Stop> {
    let mut link = Link::new()?;
    let prompt = prompt(&args.text, &args.attach)?;
    let prompt_id = prompt.id;
    let before = if args.wait { Some(link.agent(&args.agent)?) } else { None };
    // Once the name was looked up it stands for this agent, whoever has it when the call is sent again.
    let wanted = before.as_ref().map_or_else(|| args.agent.clone(), |agent| agent.id.to_string());
    let call = match args.steer {
        true => Call::Steer { agent: wanted, prompt },
        false => Call::Send { agent: wanted, prompt },
    };
    let sent: Sent = link.call(&call)?;
    match before {
        Some(agent) => wait_for(&mut link, &agent, prompt_id, args.json),
        None if args.json => print_json(&sent),
        None => match sent.waiting_behind {
            _ if sent.joins => print_line("accepted; it joins the running turn"),
            Some(0) => print_line("accepted"),
            Some(before) => print_line(&format!("accepted; {before} before it")),
            None => print_line("delivered"),
        },
    }
}

fn wait_for(link: &mut Link, agent: &AgentView, prompt: PromptId, json: bool) -> Result<(), Stop> {
    let goal = Goal { agent: agent.id, prompt, from: agent.items };
    let show =
        Show { prompts: false, thinking: false, work: false, detail: Detail::Brief, only: Some(prompt) };
    let wait = Wait {
        link,
        goal,
        name: agent.name.clone(),
        view: if json { View::Silent } else { View::Human(HumanTail::new(agent.id, agent.items, show)) },
        person: Person::Inbox,
        interrupts: false,
        deadline: None,
    };
    let Waited { end, agent: last, failure, .. } = wait.wait()?;
    if json {
        print_json(&json!({
            "agent": agent.id,
            "name": agent.name,
            "prompt": prompt,
            "outcome": end.word(),
            "message": end.message(),
            "text": text_of(link, goal)?,
            "usage": last.as_ref().map(|agent| agent.usage),
            "exit": end.exit().code(),
        }))?;
    }
    finish(&end, &agent.name, failure.as_ref(), "")
}
