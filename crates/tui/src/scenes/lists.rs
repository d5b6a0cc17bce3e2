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

#[test]
fn a_list_in_which_nothing_fits_stays_on_enter() {
    let mut scene = one();
    scene.press("ctrl-p");
    scene.write("zzzz");
    scene.press("enter");
    scene.sees("nothing fits");
    scene.press("ctrl-u");
    scene.does_not_see("nothing fits");
}

#[test]
fn editing_a_prompt_that_waits_comes_back_to_the_others() {
    let mut scene = Scene::new(120, 40, team(vec![working(named("one", agent(1)))]), talked());
    let prompt = |n: u128, text: &str| consort_model::Prompt {
        id: PromptId::new(Uuid::from_u128(n)),
        origin: consort_model::PromptOrigin::Person,
        text: text.into(),
        attachments: vec![],
        steers: false,
        at: Timestamp(0),
    };
    for (n, text) in [(5, "first"), (6, "second")] {
        scene.event(agent_id(1), AgentEvent::PromptQueued { prompt: prompt(n, text) });
    }
    scene.press("alt-q down enter");
    scene.write(" thing");
    scene.press("enter");
    assert!(
        matches!(scene.calls.last(), Some(Call::EditPrompt { text: Some(text), .. }) if text == "second thing")
    );
    scene.sees("Prompts that wait");
    let (prompt, text) = (prompt(6, "").id, "second thing".to_owned());
    scene.event(agent_id(1), AgentEvent::PromptEdited { prompt, text });
    assert_eq!(scene.screen().matches("second thing").count(), 2, "in the pane and in the list");
    scene.press("enter esc");
    scene.sees("Prompts that wait");
}

#[test]
fn another_profile_is_one_that_can_be_used() {
    let mut state = team(vec![named("one", agent(1))]);
    let profiles = [("Broken", false), ("Scripted", true), ("Fresh", true)];
    state.profiles = profiles.map(|(name, there)| profile(name, DriverKind::Acp, there)).into();
    state.agents.get_mut(&agent_id(1)).unwrap().profile = ProfileId::new("scripted");
    let mut scene = Scene::new(120, 40, state, talked());
    scene.press("esc B");
    let screen = scene.screen();
    let row = |name: &str| screen.lines().position(|line| line.contains(&format!("│ {name} "))).unwrap();
    assert!(row("Scripted") < row("Fresh") && row("Fresh") < row("Broken"), "{screen}");
    let line = |name: &str| screen.lines().nth(row(name)).unwrap();
    assert!(line("Scripted").contains(" now "));
    assert!(line("Broken").contains("`broken` is not on PATH; install it"));
    assert!(line("Broken").contains("not available"));
    scene.press("enter");
    assert!(
        matches!(&scene.calls[..], [Call::Rebind { profile, .. }] if profile == "fresh"),
        "{:?}",
        scene.calls
    );
}
