//! The prompts that wait for an agent.

use consort_daemon::protocol::{Call, Done, NewPrompt, QueuedPrompt, Sent};
use consort_model::PromptOrigin;

use crate::args;
use crate::exit::{Exit, Stop};
use crate::link::Link;
use crate::output::{Output, Paint, Style, age, now, one_line, print_json, short};

/// `consort queue`.
pub fn queue(args: &args::Queue) -> Result<(), Stop> {
    let mut link = Link::new()?;
    let waiting: Vec<QueuedPrompt> = link.call(&Call::Queue { agent: args.agent.clone() })?;
    let edit = match (&args.drop, args.edit.as_deref()) {
        (Some(wanted), _) => Some((wanted, None)),
        (None, Some([wanted, text])) => Some((wanted, Some(text.clone()))),
        _ => None,
    };
    if let Some((wanted, text)) = edit {
        let prompt = find(&waiting, wanted)?.id;
        let call = Call::EditPrompt { agent: args.agent.clone(), prompt, text };
        // Not asked twice: a prompt that was dropped is not there any more.
        return Ok(link.call_once::<Done>(&call).map(drop)?);
    }
    if let Some(wanted) = &args.steer {
        let found = find(&waiting, wanted)?;
        // It is known by its id: sent again, it only changes how it is delivered.
        let prompt = NewPrompt { id: found.id, text: found.text.clone(), attachments: vec![] };
        let sent: Sent = link.call(&Call::Steer { agent: args.agent.clone(), prompt })?;
        let words = match sent {
            Sent { joins: true, .. } => "it joins the running turn",
            Sent { waiting_behind: None, .. } => "it was delivered",
            _ => "this agent cannot be steered; the prompt waits for its turn",
        };
        return Output::human().line(words);
    }
    if args.json {
        return print_json(&waiting);
    }
    let mut output = Output::human();
    if waiting.is_empty() {
        output.line("nothing waits")?;
    }
    for prompt in &waiting {
        let text = shown(prompt, output.paint, now());
        output.write(&text)?;
    }
    output.flush()
}

/// The waiting prompt that a person means.
fn find<'a>(waiting: &'a [QueuedPrompt], wanted: &str) -> Result<&'a QueuedPrompt, Stop> {
    let wanted = wanted.to_ascii_lowercase();
    let fits = |prompt: &&QueuedPrompt| {
        let id = prompt.id.to_string();
        wanted.len() >= 4 && (id.starts_with(&wanted) || id.ends_with(&wanted))
    };
    let mut found = waiting.iter().filter(fits);
    match (found.next(), found.next()) {
        (Some(prompt), None) => Ok(prompt),
        (None, _) => {
            Err(Stop::new(Exit::Refused, format!("no prompt `{wanted}` waits; it was delivered or dropped")))
        }
        (Some(_), Some(_)) => Err(Stop::new(
            Exit::Refused,
            format!("`{wanted}` fits more than one prompt; give more of the id"),
        )),
    }
}

fn shown(prompt: &QueuedPrompt, paint: Paint, now: i64) -> String {
    let from = match prompt.origin {
        PromptOrigin::Person => "",
        PromptOrigin::Agent { .. } => "  from an agent",
        PromptOrigin::Consort => "  from Consort",
    };
    let joins = if prompt.joins { "  joins the running turn" } else { "" };
    format!(
        "{}  {}{from}{joins}\n  {}\n",
        paint.paint(Style::Bold, &short(prompt.id)),
        paint.paint(Style::Dim, &age(now - prompt.at.0)),
        one_line(&prompt.text),
    )
}

#[cfg(test)]
mod tests {
    use consort_model::{PromptId, Timestamp};
    use uuid::Uuid;

    use super::*;

    fn prompt(n: u128) -> QueuedPrompt {
        QueuedPrompt {
            id: PromptId::new(Uuid::from_u128(n)),
            origin: PromptOrigin::Person,
            text: "mend\nit".into(),
            attachments: 0,
            at: Timestamp(0),
            joins: false,
        }
    }

    #[test]
    fn a_prompt_is_found_by_a_part_of_its_id_that_fits_it_alone() {
        let waiting = [prompt(0xaaaa_1111), prompt(0xbbbb_1111)];
        assert_eq!(find(&waiting, "AAAA1111").unwrap().id, waiting[0].id);
        for wanted in ["1111", "11", "cccc1111", ""] {
            assert_eq!(find(&waiting, wanted).unwrap_err().exit, Exit::Refused, "{wanted}");
        }
    }

    #[test]
    fn what_waits_is_two_lines() {
        let joining = QueuedPrompt { joins: true, origin: PromptOrigin::Consort, ..prompt(7) };
        let text = shown(&joining, Paint::plain(), 0);
        let expected =
            format!("{}  {}  from Consort  joins the running turn\n  mend it\n", short(joining.id), age(0));
        assert_eq!(text, expected);
    }
}
