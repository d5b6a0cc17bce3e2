//! Decisions about standing rules: only a person sets one, by an answer or by itself.

use crate::agent::Agent;
use crate::ask::{Answer, Ask, AskBody};
use crate::command::{Actor, Refusal};
use crate::event::Event;
use crate::ids::{RuleId, Timestamp};
use crate::policy::{self, Rule, RuleOrigin, RuleScope};
use crate::state::State;

/// The most rules: every one is looked at for every approval.
const MAX_RULES: u32 = 1000;

/// The rule that an answer to an open ask sets.
pub fn granted(
    agent: &Agent,
    open: &Ask,
    answer: &Answer,
    id: RuleId,
    at: Timestamp,
    resolve: policy::Resolve<'_>,
) -> Result<Option<Rule>, Refusal> {
    let (AskBody::Approval { tool, .. }, Answer::Allow { scope, pattern }) = (&open.body, answer) else {
        return Ok(None);
    };
    let grant = policy::Grant { scope: *scope, pattern: pattern.as_deref() };
    let origin = RuleOrigin::Answer { agent: agent.id, ask: open.id };
    policy::rule_for(agent, tool, grant, id, origin, at, resolve)
        .map_err(|reason| Refusal::WrongAnswer { reason })
}

/// Adds a rule. Adding it again is harmless.
pub fn add_rule(state: &State, actor: Actor, rule: &Rule, at: Timestamp) -> Result<Vec<Event>, Refusal> {
    if actor != Actor::Person {
        return Err(Refusal::NotAllowed { reason: "only a person sets rules".into() });
    }
    rule.subject.check().map_err(|reason| Refusal::Invalid { reason })?;
    if let RuleScope::Agent { agent } = rule.scope {
        state.agent(agent)?;
    }
    let rule = Rule { at, ..rule.clone() };
    match state.rules.get(&rule.id) {
        Some(known) if Rule { at, ..known.clone() } == rule => Ok(vec![]),
        Some(_) => {
            Err(Refusal::Invalid { reason: format!("the id {} is already used by another rule", rule.id) })
        }
        None if state.rules.len() >= MAX_RULES as usize => {
            let reason =
                format!("there are {MAX_RULES} rules already; `consort rules remove` takes one away");
            Err(Refusal::Invalid { reason })
        }
        None => Ok(vec![Event::RuleAdded { rule }]),
    }
}

/// Removes a rule.
pub fn remove_rule(state: &State, rule: RuleId) -> Result<Vec<Event>, Refusal> {
    if !state.rules.contains_key(&rule) {
        let reason = format!("there is no rule {rule}; `consort rules list` shows them");
        return Err(Refusal::Invalid { reason });
    }
    Ok(vec![Event::RuleRemoved { rule }])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::testing::{Team, id, uuid};
    use crate::policy::{Effect, Subject};

    fn rule(n: u128, pattern: &str) -> Rule {
        Rule {
            id: RuleId::new(uuid(n)),
            effect: Effect::Deny,
            scope: RuleScope::All,
            tool: None,
            subject: Subject::Command { pattern: pattern.into() },
            at: Timestamp(0),
            origin: RuleOrigin::Added,
        }
    }

    #[test]
    fn a_person_adds_and_removes_rules_and_an_agent_does_not() {
        let mut team = Team::new();
        let agent = team.primary(1);
        let new = rule(5, "rm *");
        let refused = add_rule(&team.state, Actor::Agent(agent), &new, Timestamp(3));
        assert!(matches!(refused, Err(Refusal::NotAllowed { .. })));
        let events = add_rule(&team.state, Actor::Person, &new, Timestamp(3)).unwrap();
        team.apply(events);
        assert_eq!(team.state.rules[&new.id].at, Timestamp(3));
        assert_eq!(add_rule(&team.state, Actor::Person, &new, Timestamp(4)), Ok(vec![]), "again is harmless");
        let other = add_rule(&team.state, Actor::Person, &rule(5, "ls"), Timestamp(4));
        assert!(matches!(other, Err(Refusal::Invalid { .. })));
        let events = remove_rule(&team.state, new.id).unwrap();
        team.apply(events);
        assert!(team.state.rules.is_empty());
        assert!(remove_rule(&team.state, new.id).is_err());
    }

    #[test]
    fn a_rule_that_cannot_be_is_refused() {
        let mut team = Team::new();
        assert!(add_rule(&team.state, Actor::Person, &rule(5, "a; b"), Timestamp(3)).is_err());
        let for_nobody = Rule { scope: RuleScope::Agent { agent: id(9) }, ..rule(5, "a") };
        assert!(add_rule(&team.state, Actor::Person, &for_nobody, Timestamp(3)).is_err());
        for n in 0..u128::from(MAX_RULES) {
            let events = add_rule(&team.state, Actor::Person, &rule(n, "a"), Timestamp(3)).unwrap();
            team.apply(events);
        }
        assert!(add_rule(&team.state, Actor::Person, &rule(5000, "a"), Timestamp(3)).is_err());
    }
}
