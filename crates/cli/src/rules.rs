//! `consort rules`: what people allowed and denied for good.

use consort_daemon::protocol::{Call, Done, NewRule, NewRuleScope, RuleView};
use consort_model::policy::Subject;
use consort_model::{Refusal, RuleId, RuleScope, ToolKind};
use uuid::Uuid;

use crate::args::{AddRule, Rules};
use crate::exit::{Exit, Stop};
use crate::link::Link;
use crate::output::{Output, Style, age, exact, now, print_json, short};
use crate::prompt::working_directory;

/// `consort rules`.
pub fn rules(command: &Rules) -> Result<(), Stop> {
    match command {
        Rules::List(args) => list(args.json),
        Rules::Add(args) => add(args),
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
        output.line("no rules; `consort rules add` and `consort approve ID --always` make them")?;
    }
    for rule in &rules {
        write(&mut output, rule)?;
    }
    output.flush()
}

fn write(output: &mut Output, rule: &RuleView) -> Result<(), Stop> {
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
        rule.tool.map_or("any", ToolKind::verb),
        what.replace('\n', " ")
    ))
}

fn add(args: &AddRule) -> Result<(), Stop> {
    let subject = match (&args.command, &args.title) {
        (Some(pattern), _) => Subject::Command { pattern: pattern.clone() },
        (None, Some(pattern)) => Subject::Title { pattern: pattern.clone() },
        (None, None) => Subject::Files { patterns: args.paths.clone() },
    };
    let scope = match (&args.agent, &args.profile, &args.project) {
        (Some(agent), ..) => NewRuleScope::Agent { agent: agent.clone() },
        (_, Some(profile), _) => NewRuleScope::Profile { profile: profile.clone() },
        (_, _, Some(folder)) => NewRuleScope::Project { folder: working_directory(Some(folder))? },
        (None, None, None) => NewRuleScope::All,
    };
    let id = RuleId::new(Uuid::now_v7());
    let new = NewRule { id, effect: args.effect, scope, tool: args.tool, subject };
    let rule: RuleView = Link::new()?.call(&Call::AddRule(new))?;
    if args.json {
        return print_json(&rule);
    }
    let mut output = Output::human();
    write(&mut output, &rule)?;
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
