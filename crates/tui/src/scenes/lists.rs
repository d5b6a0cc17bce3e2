//! Lists and forms over everything else: what can be chosen, what is asked first, and where one comes back to.

use super::*;
use crate::testing::agent;

fn one() -> Scene {
    Scene::new(120, 40, team(vec![named("one", agent(1))]), talked())
}

#[test]
fn the_form_of_a_profile_says_that_acp_has_no_program_of_its_own() {
    let mut scene = one();
    scene.press("alt-s a tab tab");
    scene.sees("acp has none");
}

#[test]
fn a_rule_is_removed_only_after_a_question() {
    use consort_model::policy::{Effect, Subject};
    use consort_model::{Rule, RuleId, RuleOrigin, RuleScope};
    let id = RuleId::new(Uuid::from_u128(4));
    let rule = Rule {
        id,
        effect: Effect::Allow,
        scope: RuleScope::All,
        tool: Some(ToolKind::Execute),
        subject: Subject::Command { pattern: "git *".into() },
        origin: RuleOrigin::Added,
        at: Timestamp(0),
    };
    let mut state = team(vec![named("one", agent(1))]);
    state.rules.insert(id, rule);
    let mut scene = Scene::new(120, 40, state, talked());
    scene.press("alt-s tab x");
    scene.sees("Remove the rule that allows git *?");
    scene.press("enter");
    assert_eq!(scene.calls, [], "the first choice keeps it");
    scene.press("x down enter");
    assert_eq!(scene.calls, [Call::RemoveRule { rule: id }]);
}
