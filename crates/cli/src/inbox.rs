//! The inbox: what agents ask of a person, and the answers.

use consort_daemon::client::ClientError;
use consort_daemon::form;
use consort_daemon::protocol::{ErrorBody, InboxEntry, scope_of};
use consort_model::{Answer, AskBody};

use crate::args;
use crate::exit::{Exit, Stop};
use crate::link::Link;
use crate::output::{Output, Paint, Style, age, exact, now, print_json, short};
use crate::render;

/// `consort inbox`.
pub fn inbox(json: bool) -> Result<(), Stop> {
    let entries = Link::new()?.inbox()?;
    if json {
        return print_json(&entries);
    }
    let mut output = Output::human();
    if entries.is_empty() {
        output.line("nothing waits for you")?;
    }
    for (at, entry) in entries.iter().enumerate() {
        if at > 0 {
            output.line("")?;
        }
        let text = shown(entry, output.paint, now());
        output.write(&text)?;
    }
    output.flush()
}

fn shown(entry: &InboxEntry, paint: Paint, now: i64) -> String {
    let mut who = exact(&entry.agent_name);
    for above in &entry.chain {
        who.push_str(" < ");
        who.push_str(&exact(above));
    }
    let id = short(entry.id);
    let head = format!(
        "{}  {}  {}  {}",
        paint.paint(Style::Bold, &id),
        paint.paint(Style::Yellow, &entry.kind),
        who,
        paint.paint(Style::Dim, &age(now - entry.at.0)),
    );
    let body = render::ask_body(&entry.body, &entry.title, paint);
    let answer = match &entry.body {
        AskBody::Approval { .. } => format!("consort approve {id} | consort deny {id}"),
        AskBody::Question(question) => {
            let fields: Vec<String> = form::fields(&question.schema)
                .iter()
                .map(|field| format!("\"{}\": …", exact(&field.key)))
                .collect();
            let value =
                if fields.is_empty() { "TEXT".to_owned() } else { format!("'{{{}}}'", fields.join(", ")) };
            format!("consort answer {id} {value} | consort deny {id}")
        }
    };
    format!(
        "{head}\n  {}\n{body}  {}\n",
        exact(&entry.title).replace('\n', "\n  "),
        paint.paint(Style::Dim, &answer)
    )
}

/// `consort approve`.
pub fn approve(args: &args::Approve) -> Result<(), Stop> {
    if let Some(input) = &args.input {
        let value: serde_json::Map<String, serde_json::Value> = serde_json::from_str(input)
            .map_err(|why| Stop::new(Exit::Usage, format!("--input takes a JSON object: {why}")))?;
        return answer_all(&args.which, &Answer::Reply { value: value.into() });
    }
    // A pattern is for later calls, of this agent if nothing else is said.
    let session = args.session || args.pattern.is_some();
    let scope = scope_of(args.always, args.project, session);
    answer_all(&args.which, &Answer::Allow { scope, pattern: args.pattern.clone() })
}

/// `consort deny`.
pub fn deny(args: &args::Deny) -> Result<(), Stop> {
    let answer = if args.stop { Answer::Stop } else { Answer::Deny { message: args.message.clone() } };
    answer_all(&args.which, &answer)
}

/// Gives one answer to several requests. Every one of them gets it that is still open; the others are told.
fn answer_all(which: &args::Which, answer: &Answer) -> Result<(), Stop> {
    let mut link = Link::new()?;
    let entries = match &which.agent {
        Some(agent) => all_of(&mut link, agent, answer)?,
        None => vec![],
    };
    if !which.json {
        let mut output = Output::human();
        for entry in &entries {
            let (id, title) = (short(entry.id), exact(&entry.title).replace('\n', " "));
            output.line(&format!("{id}  {}  {title}", exact(&entry.agent_name)))?;
        }
        output.flush()?;
    }
    let all = entries.iter().map(|entry| entry.id.to_string());
    let wanted: Vec<String> = which.ids.iter().cloned().chain(all).collect();
    let told = link.answer_many(&wanted, answer)?;
    if which.json {
        print_json(&told)?;
    }
    let failed: Vec<&ErrorBody> = told.iter().filter_map(|told| told.error.as_ref()).collect();
    let Some((last, others)) = failed.split_last() else { return Ok(()) };
    others.iter().for_each(|error| crate::output::note(&error.message));
    Err(Stop::from(ClientError::Answer((*last).clone())))
}

/// What an agent asks now that an answer of this kind fits.
fn all_of(link: &mut Link, agent: &str, answer: &Answer) -> Result<Vec<InboxEntry>, Stop> {
    let agent = link.agent(agent)?;
    let fits = |entry: &InboxEntry| {
        let denies = matches!(answer, Answer::Deny { .. } | Answer::Stop);
        entry.agent == agent.id && (denies || matches!(entry.body, AskBody::Approval { .. }))
    };
    let entries: Vec<InboxEntry> = link.inbox()?.into_iter().filter(fits).collect();
    if entries.is_empty() {
        let message =
            format!("{} asks for nothing now; `consort inbox` lists what is open", exact(&agent.name));
        return Err(Stop::new(Exit::Refused, message));
    }
    Ok(entries)
}

/// `consort answer`.
pub fn answer(args: &args::AnswerAsk) -> Result<(), Stop> {
    let mut link = Link::new()?;
    let answer = match link.open_ask(&args.id)?.map(|entry| entry.body) {
        Some(AskBody::Approval { options, .. }) => {
            let wanted =
                |option: &&consort_model::AnswerOption| option.id == args.value || option.name == args.value;
            let Some(option) = options.iter().find(wanted) else {
                let offered: Vec<&str> = options.iter().map(|option| option.id.as_str()).collect();
                let message = format!(
                    "`{}` is not among the answers that the agent offers ({}); `consort approve` and `consort deny` \
                     work for every approval",
                    args.value,
                    offered.join(", ")
                );
                return Err(Stop::new(Exit::Refused, message));
            };
            Answer::Choose { option: option.id.clone() }
        }
        Some(AskBody::Question(question)) => {
            let value =
                form::reply(&question.schema, &args.value).map_err(|why| Stop::new(Exit::Refused, why))?;
            Answer::Reply { value }
        }
        // The daemon says why it does not fit.
        None => Answer::Reply { value: args.value.clone().into() },
    };
    link.answer(&args.id, answer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use consort_model::{AgentId, AskId, Diff, Timestamp, ToolCall, ToolCallId, ToolKind};
    use uuid::Uuid;

    #[test]
    fn an_entry_shows_who_asks_what_in_full_and_how_to_answer() {
        let tool = ToolCall {
            diffs: vec![Diff {
                path: "/w/a".into(),
                old_text: None,
                new_text: (0..40).map(|n| format!("{n}\n")).collect(),
            }],
            ..ToolCall::new(ToolCallId::new("c"), ToolKind::Edit, "edit a")
        };
        let entry = InboxEntry {
            id: AskId::new(Uuid::from_u128(0x1234_5678)),
            agent: AgentId::new(Uuid::nil()),
            agent_name: "child".into(),
            chain: vec!["lead".into()],
            kind: "approval".into(),
            title: "edit a".into(),
            at: Timestamp(0),
            body: AskBody::Approval { tool, options: vec![] },
        };
        let text = shown(&entry, Paint::plain(), 61_000);
        assert!(
            text.starts_with(
                "12345678  approval  child < lead  1m\n  edit a\n    /w/a (new file)\n    + 0\n"
            ),
            "{text}"
        );
        assert!(text.contains("    + 39\n"), "{text}");
        assert!(text.ends_with("  consort approve 12345678 | consort deny 12345678\n"), "{text}");
    }
}
