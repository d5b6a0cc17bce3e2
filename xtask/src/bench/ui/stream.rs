//! Processor time for text that streams, Markdown that is rendered: our screen and the agents' own UIs, in turns.
//!
//! Everybody gets the same text, in pieces of the same size at the same rate: ours from the scripted agent, the others from the
//! scripted model. An agent's own UI talks with the model itself, so what our daemon and runner take is told beside.

use std::time::Duration;

use anyhow::Context;
use consort_testkit::model::{self, Script};
use serde_json::json;

use super::peers::{AGENTS, Peer, Running, places};
use super::stage::{Stage, leave};
use super::{LIMIT, MARKDOWN, TOKEN, compared, hear_for, tokens_of_markdown};
use crate::bench::Bench;
use crate::bench::lab::Lab;
use crate::bench::processes::{Activity, Family};
use crate::bench::statistics::{Sample, figure};
use crate::bench::table::{Goal, Line};

const RATE: usize = 200;

/// How often the text is said in one answer: ten seconds of it.
const REPEATS: usize = 14;

/// After the last word, until what it caused is over.
const AFTER: Duration = Duration::from_secs(1);

const NAME: &str = "speaker";

pub fn run(bench: &Bench) -> anyhow::Result<Vec<Line>> {
    let repeats = if bench.quick { REPEATS / 3 } else { REPEATS };
    let tokens = tokens_of_markdown() * repeats;
    let thousands = tokens as f64 / 1000.0;
    let lasts = Duration::from_secs_f64(tokens as f64 / RATE as f64);
    let scenario = json!({"scenarios": {"stream": {"arg": "0", "steps": [{
        "text": format!("{MARKDOWN}Part {{n}} of round {{arg}} is over.\n\n"), "repeat": repeats, "chunk": TOKEN, "pace_ms": 1000 / RATE,
    }]}}});
    let script = Script::parse(&scenario.to_string())?;
    let model = model::Server::start_with(model::Options { script, ..Default::default() })?;
    let mut stage = Stage::new(bench)?;
    let agent = stage.talk(NAME, 20)?;
    let mut screen = stage.open(NAME)?;
    let family = Family::of(stage.lab.home.root())?;
    let (places, mut lines) = places("ui-stream", &AGENTS, &model)?;
    let mut peers: Vec<(Peer, Running<'_>, Vec<f64>)> = Vec::new();
    for place in &places {
        let running = place.start().with_context(|| place.peer.name())?;
        peers.push((place.peer, running, Vec::new()));
    }
    let (mut of_screen, mut of_all) = (Vec::new(), Vec::new());
    let mut written = Vec::new();
    let text = MARKDOWN.replace('\n', "\\n");
    for round in 0..bench.repetitions(3) {
        let end = format!("Round {round} is over.");
        let others: Vec<u32> = family.runners.iter().copied().chain([stage.daemon]).collect();
        let before = (Activity::of(&[screen.pid()]), Activity::of(&others), screen.count());
        Lab::send(
            &mut stage.client,
            agent,
            &format!("[[stream n={tokens} rate={RATE} size={TOKEN} {text}]] [[say {end}]]"),
        )?;
        screen.wait_for(&end, LIMIT)?;
        hear_for(&mut screen, AFTER)?;
        let took = Activity::of(&[screen.pid()]).since(&before.0).milliseconds;
        of_screen.push(took / thousands);
        of_all.push((took + Activity::of(&others).since(&before.1).milliseconds) / thousands);
        written.push((screen.count() - before.2) as f64 / 1024.0 / thousands);
        for (peer, running, times) in &mut peers {
            let last = format!("Part {repeats} of round {round} is over.");
            times.push(stream_of(running, round, &last, lasts).with_context(|| peer.name())? / thousands);
        }
    }
    leave(screen)?;
    let (of_screen, of_all) = (Sample::new(of_screen), Sample::new(of_all));
    for (peer, running, times) in peers {
        drop(running);
        let theirs = Sample::new(times);
        let name = peer.name();
        let line = |which: &str, ours: &Sample, goal| {
            compared(format!("ui-stream, {which} to {name}"), " ms", ours, (name, &theirs), goal)
                .noting(format!("processor time for 1,000 tokens at {RATE} a second"))
        };
        lines.push(line("screen", &of_screen, Goal::AtMost(0.1)));
        lines.push(line("screen, daemon and runner", &of_all, Goal::AtMost(0.1)));
    }
    if let Some(line) = lines.last_mut() {
        line.notes
            .push(format!("our screen wrote {} KB for 1,000 tokens", figure(Sample::new(written).median())));
    }
    Ok(lines)
}

/// Milliseconds of processor time that an answer took, which is streamed for as long as this.
fn stream_of(running: &mut Running<'_>, round: usize, last: &str, lasts: Duration) -> anyhow::Result<f64> {
    running.prompt(&format!("[[stream {round}]]"))?;
    let pids = running.processes()?;
    let before = Activity::of(&pids);
    running.wait_for_end_of_answer(last, lasts)?;
    // Some draw the whole answer anew when it is over.
    hear_for(&mut running.terminal, AFTER)?;
    Ok(Activity::of(&pids).since(&before).milliseconds)
}
