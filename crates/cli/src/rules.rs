//! `consort rules`: the standing allowances that people gave.

use consort_daemon::protocol::{Call, Done, RuleView};
use consort_model::{Refusal, RuleScope};

use crate::args::Rules;
use crate::exit::{Exit, Stop};
use crate::link::Link;
use crate::output::{Output, Style, age, exact, now, print_json, short};
use crate::render::kind_word;

/// `consort rules`.
pub fn rules(command: &Rules) -> Result<(), Stop> {
    match command {
        Rules::List(args) => list(args.json),
        Rules::Remove { rule } => remove(rule),
    }
}

fn list(json: bool) -> Result<(), Stop> {
    let rules: Vec<RuleView> = Link::new()?.call(&Call::ListRules {})?;
    if json {
        return print_json(&rules);
    }
    let mut output = Output::human();
    if rules.is_empty() {
        output.line("no rules; `consort approve ID --always` makes one")?;
    }
    for rule in &rules {
        let whom = match &rule.scope {
            RuleScope::Agent { agent } => format!("agent {}", short(agent)),
            RuleScope::Profile { profile } => format!("profile {}", exact(profile.as_str())),
            RuleScope::Project { folder } => format!("project {}", exact(folder)),
            RuleScope::All => "all agents".to_owned(),
        };
        let what = exact(&rule.subject.to_string());
        let effect = if rule.effect.is_allow() { "allow" } else { "deny" };
        let id = output.paint.paint(Style::Bold, &short(rule.id)).into_owned();
        let age = age(now() - rule.at.0);
        output.line(&format!(
            "{id}  {effect}  {whom}  {}: {}  {age}",
            rule.tool.map_or("any", kind_word),
            what.replace('\n', " ")
        ))?;
    }
    output.flush()
}

fn remove(wanted: &str) -> Result<(), Stop> {
    let mut link = Link::new()?;
    let rules: Vec<RuleView> = link.call(&Call::ListRules {})?;
    let short = wanted.to_ascii_lowercase();
    let fitting: Vec<&RuleView> = rules
        .iter()
        .filter(|rule| {
            let id = rule.id.to_string();
            short.len() >= 4 && (id.starts_with(&short) || id.ends_with(&short))
        })
        .collect();
    match &fitting[..] {
        [rule] => {
            let _: Done = link.call(&Call::RemoveRule { rule: rule.id })?;
            Ok(())
        }
        [] => {
            let reason = format!("there is no rule `{wanted}`; `consort rules list` shows them");
            Err(Stop::new(Exit::Refused, Refusal::Invalid { reason }.to_string()))
        }
        _ => {
            Err(Stop::new(Exit::Refused, format!("`{wanted}` fits more than one rule; give more of the id")))
        }
    }
}
