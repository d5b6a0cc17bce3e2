//! Messages between agents.

use consort_daemon::protocol::{Call, MessageView};
use consort_model::LetterState;

use crate::args;
use crate::exit::Stop;
use crate::link::Link;
use crate::output::{Output, Paint, Style, age, now, one_line, print_json};

/// `consort messages`.
pub fn messages(args: &args::Messages) -> Result<(), Stop> {
    let messages: Vec<MessageView> = Link::new()?.call(&Call::ListMessages { agent: args.agent.clone() })?;
    if args.json {
        return print_json(&messages);
    }
    let mut output = Output::human();
    if messages.is_empty() {
        output.line("no agent has written to another")?;
    }
    for message in &messages {
        let text = shown(message, output.paint, now());
        output.write(&text)?;
    }
    output.flush()
}

fn shown(message: &MessageView, paint: Paint, now: i64) -> String {
    let style = match message.state {
        LetterState::Queued => Style::Yellow,
        LetterState::Delivered => Style::Green,
        LetterState::Read | LetterState::Dropped => Style::Dim,
    };
    format!(
        "{} -> {}  {}  {}\n  {}\n",
        paint.paint(Style::Bold, &one_line(&message.from_name)),
        paint.paint(Style::Bold, &one_line(&message.to_name)),
        paint.paint(style, message.state.word()),
        paint.paint(Style::Dim, &age(now - message.at.0)),
        one_line(&message.preview),
    )
}
