//! `consort log`: a transcript, from any item on, and what happens to it from now on.

use consort_model::event::AgentEvent;
use consort_model::{Event, ItemIndex};

use crate::args;
use crate::exit::Stop;
use crate::follow::{Update, Watch};
use crate::link::Link;
use crate::output::Output;
use crate::render::Detail;
use crate::tail::{HumanTail, JsonTail, Show};

/// `consort log`.
pub fn log(args: &args::Log) -> Result<(), Stop> {
    let mut link = Link::new()?;
    let agent = link.agent(&args.agent)?;
    let from = match (args.from, args.tail) {
        (Some(from), _) => from,
        (None, Some(tail)) => agent.items.saturating_sub(tail),
        (None, None) => 0,
    };
    let detail = if args.full { Detail::Full } else { Detail::Brief };
    let show = Show { prompts: true, thinking: true, work: true, detail, only: None };
    if args.follow {
        return follow(args.json, link, agent.id, from, show);
    }
    let end = ItemIndex(args.limit.map_or(u64::MAX, |limit| from.saturating_add(limit)));
    let mut output = Output::json();
    let mut tail = HumanTail::new(agent.id, from, show);
    link.items(agent.id, from, |item| {
        if item.index >= end {
            return Ok(false);
        }
        if args.json {
            output.json_line(item)?;
        } else {
            tail.whole_item(item)?;
        }
        Ok(true)
    })?;
    tail.pause()?;
    output.flush()
}

enum Tail {
    Human(HumanTail),
    Json(JsonTail),
}

fn follow(json: bool, mut link: Link, id: consort_model::AgentId, from: u64, show: Show) -> Result<(), Stop> {
    let mut watch = Watch::new(link.home());
    let mut tail =
        if json { Tail::Json(JsonTail::new(id, from)) } else { Tail::Human(HumanTail::new(id, from, show)) };
    loop {
        match watch.next(None)? {
            Update::Resync => match &mut tail {
                Tail::Human(tail) => tail.catch_up(&mut link, watch.agent(id))?,
                Tail::Json(tail) => tail.catch_up(&mut link, watch.agent(id))?,
            },
            Update::Event(stamped) => {
                if let Event::Agent { agent, change } = &stamped.event
                    && *agent == id
                {
                    apply(&mut tail, change, &watch, id, &mut link)?;
                }
            }
            Update::Interrupt | Update::Terminate | Update::Line(_) | Update::Timeout => {}
        }
    }
}

fn apply(
    tail: &mut Tail,
    change: &AgentEvent,
    watch: &Watch,
    id: consort_model::AgentId,
    link: &mut Link,
) -> Result<(), Stop> {
    match tail {
        Tail::Human(tail) => tail.apply(change, watch.agent(id), link),
        Tail::Json(tail) => tail.apply(change, watch.agent(id), link),
    }
}
