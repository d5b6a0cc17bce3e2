//! The start with a conversation of 10,000 items: ours open on it, the UIs of agents resuming one as long.
//!
//! Until its last words are on the screen and a typed character is seen. tmux, which has no conversation, is beside them as in
//! the other rows.

use std::time::Duration;

use anyhow::Context;
use consort_testkit::model;

use super::compared;
use super::conversation::{self, SPEAKER};
use super::peers::{ALL, Peer, places};
use super::stage::last_words;
use super::start::{Opened, time_peer, time_until_typed};
use crate::bench::Bench;
use crate::bench::statistics::Sample;
use crate::bench::table::{Goal, Line};

const ITEMS: usize = 10_000;

/// How often ours and tmux are started for every time that the others are.
const EACH: usize = 5;

/// How long a program may take to show the end of a conversation.
const LIMIT: Duration = Duration::from_secs(180);

/// What took longer is not waited for again.
const ENOUGH: Duration = Duration::from_secs(20);

pub fn run(bench: &Bench) -> anyhow::Result<Vec<Line>> {
    let model = model::Server::start()?;
    let ours = Opened::new(bench, ITEMS)?;
    let (places, mut lines) = places("ui-history", &ALL, &model)?;
    let mut peers = Vec::new();
    for place in places {
        let name = place.peer.name();
        // A first start loads the program into memory, and some make their files.
        time_peer(&place).context(name)?;
        let session = if place.peer == Peer::Tmux {
            None
        } else {
            Some(conversation::write(&place, ITEMS).context(name)?)
        };
        peers.push((place, session, Vec::new()));
    }
    ours.time()?;
    let mut times = Vec::new();
    for _ in 0..bench.repetitions(3) {
        for _ in 0..EACH {
            times.push(ours.time()?);
        }
        for (place, session, times) in &mut peers {
            match session {
                None => {
                    for _ in 0..EACH {
                        times.push(time_peer(place)?);
                    }
                }
                Some(session) if times.iter().all(|time| *time < ENOUGH) => {
                    let resumed = place.resume(session, &last_words(SPEAKER), LIMIT);
                    times.push(resumed.and_then(time_until_typed).with_context(|| place.peer.name())?);
                }
                Some(_) => {}
            }
        }
    }
    let ours = Sample::of_durations(&times);
    for (place, _, times) in peers {
        let name = place.peer.name();
        let goal = if place.peer == Peer::Tmux { Goal::AtMost(1.5) } else { Goal::Below(1.0) };
        let theirs = (name, &Sample::of_durations(&times));
        lines.push(compared(format!("ui-history, 10,000 items to {name}"), " ms", &ours, theirs, goal));
    }
    Ok(lines)
}
