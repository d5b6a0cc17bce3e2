//! What a person does besides talking: searching, worktrees, limits, the first minute.

use consort_model::Integration;

use super::*;
use crate::app::Focus;
use crate::keys::TABLE;
use crate::testing::{agent, said};

fn one() -> Scene {
    Scene::new(120, 40, team(vec![named("one", agent(1))]), talked())
}

/// An agent with so long a conversation that little of it is loaded.
fn long() -> Scene {
    let items = (0..3000).map(|n| said(n, &format!("this is item {n} of them"))).collect();
    Scene::new(120, 40, team(vec![named("one", agent(1))]), BTreeMap::from([(agent_id(1), items)]))
}

#[test]
fn with_nothing_installed_enter_plays_the_demo() {
    let mut state = team(vec![]);
    state.profiles.pop();
    let mut scene = Scene::new(80, 24, state, BTreeMap::new());
    scene.press("enter");
    assert_eq!(scene.effects, [Effect::Demo]);
    scene.app.demo_over(Err("git is missing".into()));
    scene.settle();
    scene.sees("git is missing");
    scene.effects.clear();
    scene.click("play the demo");
    assert_eq!(scene.effects, [Effect::Demo]);
    let mut scene = Scene::new(80, 24, team(vec![]), BTreeMap::new());
    scene.effects.clear();
    scene.press("enter");
    assert_eq!(scene.effects, [], "an empty prompt is nothing where agents can be had");
    scene.press("f2");
    assert_eq!(scene.effects, [Effect::Demo]);
}

#[test]
fn a_search_goes_through_what_is_not_loaded() {
    let mut scene = long();
    scene.press("ctrl-f");
    scene.write("item 42 of");
    scene.press("enter");
    scene.sees("this is item 42 of them");
    scene.sees("found after");
    assert_eq!(scene.app.focus, Focus::Transcript);
    scene.press("/ ctrl-u");
    scene.write("item 2777 of");
    scene.press("enter");
    scene.sees("this is item 2777 of them");
}

#[test]
fn a_search_for_what_is_nowhere_says_how_far_it_looked() {
    let mut scene = long();
    scene.press("ctrl-f");
    scene.write("nonsense");
    scene.press("enter");
    scene.sees("`nonsense` is in none of the 3000 items");
    scene.press("n");
    scene.sees("no later place has `nonsense`");
}

#[test]
fn the_next_place_is_found_beyond_what_is_loaded() {
    let mut scene = long();
    scene.press("ctrl-f");
    scene.write("item 1000 of");
    scene.press("enter esc ctrl-home ctrl-f ctrl-u");
    scene.write("00 of");
    scene.press("enter");
    for found in ["item 100 of", "item 200 of", "item 300 of", "item 400 of"] {
        scene.sees(found);
        assert_eq!(scene.app.focus, Focus::Transcript);
        scene.press("n");
    }
    scene.press("N N");
    scene.sees("item 300 of");
}

#[test]
fn a_place_within_a_long_item_is_shown_even_if_it_is_folded() {
    let mut ran = tool(ToolKind::Execute, "make");
    ran.output = (0..500).map(|n| format!("line {n} of the log\n")).collect();
    let items = vec![item(0, ItemBody::Tool(ran)), said(1, "done")];
    let mut scene = Scene::new(80, 24, team(vec![agent(1)]), BTreeMap::from([(agent_id(1), items)]));
    scene.press("ctrl-f");
    scene.write("line 321 of");
    scene.press("enter");
    scene.sees("line 321 of the log");
}

#[test]
fn a_click_places_the_cursor_of_the_prompt() {
    let mut scene = one();
    scene.write("alpha beta");
    scene.press("ctrl-j");
    scene.write("gamma");
    scene.click("beta");
    scene.write("1 ");
    assert_eq!(scene.app.composer().text(), "alpha 1 beta\ngamma");
    scene.click("amma");
    scene.write("X");
    assert_eq!(scene.app.composer().text(), "alpha 1 beta\ngXamma");
}

#[test]
fn a_new_agent_gets_a_worktree_or_is_not_made() {
    let mut scene = one();
    scene.press("ctrl-t");
    scene.write("worktree");
    scene.press("enter");
    scene.write("fix it");
    scene.press("tab tab");
    scene.write("mender");
    scene.press("tab tab tab");
    scene.write("fix");
    scene.app.input(Input::Key(parse("ctrl-s").unwrap()));
    let Effect::Call(call, reply) = scene.app.take_effects().remove(0) else { panic!("a call") };
    let Call::CreateAgent(new) = *call else { panic!("a new agent") };
    let tree = new.worktree.unwrap();
    assert_eq!((new.name.as_deref(), tree.name.as_deref(), tree.base), (Some("mender"), Some("fix"), None));
    assert_eq!(new.prompt.unwrap().text, "fix it");
    assert_eq!(new.cwd, std::path::PathBuf::from("/w"));
    scene
        .app
        .answered(reply.clone(), Err(refusal("/w is in no git repository; start it without a worktree")));
    scene.settle();
    scene.sees("/w is in no git repository");
    scene.sees("mender");
    let record = Box::new(named("mender", Agent { id: new.id, ..agent(9) }));
    scene.event(new.id, AgentEvent::Created { record });
    scene.app.answered(reply, Ok("{}".into()));
    scene.settle();
    assert!(scene.app.overlays.is_empty());
    assert_eq!(scene.app.focused(), Some(new.id));
}

#[test]
fn a_worktree_is_finished_and_its_work_is_thrown_away_by_a_typed_word_only() {
    let mut scene = one();
    scene.worktrees = vec![seen_worktree("fix", Some(agent_id(1)))];
    scene.press("alt-t enter");
    scene.write("finish it");
    scene.press("enter");
    let finish =
        Call::FinishWorktree { worktree: "/worktrees/fix".into(), by: Integration::Rebase, keep: false };
    assert_eq!(scene.calls.pop(), Some(finish));
    scene.press("alt-t enter");
    scene.write("remove it");
    scene.press("enter");
    let remove = |force| Call::RemoveWorktree { worktree: "/worktrees/fix".into(), force };
    assert_eq!(scene.calls.pop(), Some(remove(false)));
    scene.app.answered(Reply::WorktreeRemoved, Err(refusal("there is work in it")));
    scene.settle();
    scene.sees("there is work in it");
    for (typed, call) in [("yes", None), ("discard", Some(remove(true)))] {
        scene.press("alt-t enter");
        scene.write("with the work");
        scene.press("enter");
        scene.sees("this is lost: 3 files that are not committed, 2 commits");
        scene.write(typed);
        scene.press("enter");
        assert_eq!(scene.calls.pop(), call, "{typed}");
    }
}

#[test]
fn choosing_a_profile_that_cannot_be_used_says_why() {
    let mut scene = one();
    scene.press("ctrl-t");
    scene.write("claude");
    scene.press("enter");
    assert_eq!(scene.calls, []);
    scene.sees("`claude` is not on PATH; install it");
}

#[test]
fn worktrees_that_come_too_late_open_nothing() {
    let mut scene = one();
    scene.app.input(Input::Key(parse("alt-t").unwrap()));
    scene.app.input(Input::Key(parse("esc").unwrap()));
    scene.settle();
    assert!(scene.app.overlays.is_empty());
}

#[test]
fn limits_are_changed_on_the_screen_and_refusals_stand_beside_them() {
    let mut scene = one();
    scene.press("alt-s tab tab enter ctrl-u");
    scene.write("many");
    scene.press("enter");
    scene.sees("that is no whole number");
    assert_eq!(scene.calls, []);
    scene.press("ctrl-u");
    scene.write("5");
    scene.press("enter");
    let set = Call::SetLimits { limits: [("companions_per_owner".to_owned(), 5)].into() };
    assert_eq!(scene.calls, [set]);
    scene.app.answered(
        Reply::Limit("companions_per_owner", "5".into()),
        Err(refusal("config.toml cannot be written: disk full")),
    );
    scene.settle();
    scene.sees("config.toml cannot be written: disk full");
    scene.press("esc");
    let limits = consort_model::Limits { companions_per_owner: 5, ..Default::default() };
    let stamped =
        Stamped { seq: scene.state.seq + 1, at: Timestamp(NOW), event: Event::LimitsChanged { limits } };
    scene.app.notification(Notification::Event(stamped));
    scene.settle();
    scene.sees("companions_per_owner    5");
}

#[test]
fn keys_are_changed_by_pressing_them() {
    let mut scene = one();
    let set = |action: &str, keys: Option<&[&str]>| Call::SetKeys {
        action: action.to_owned(),
        keys: keys.map(|keys| keys.iter().map(|key| (*key).to_owned()).collect()),
    };
    let down = |name: &str| TABLE.iter().position(|binding| binding.name == name).unwrap();
    scene.press("alt-s shift-tab");
    scene.press(&"down ".repeat(down("palette")));
    scene.press("enter");
    scene.sees("Now: ctrl-p");
    scene.press("k");
    scene.sees("k is for writing");
    scene.press("alt-s");
    scene.sees("alt-s is for something else there: settings");
    assert_eq!(scene.calls, []);
    scene.press("f11");
    scene.press("a f9 x enter esc");
    let wanted =
        [set("palette", Some(&["f11"])), set("palette", Some(&["ctrl-p", "f9"])), set("palette", None)];
    assert_eq!(scene.calls, wanted);
    assert_eq!(scene.effects.iter().filter(|effect| **effect == Effect::ReadKeys).count(), 3);
    scene.app.answered(Reply::Keys, Err(refusal("config.toml cannot be read: line 3")));
    scene.settle();
    scene.sees("config.toml cannot be read: line 3");
}

#[test]
fn a_long_refusal_is_shown_whole_and_goes_away() {
    let mut scene = Scene::new(60, 20, team(vec![named("one", agent(1))]), talked());
    let why = "a sentence that is much longer than the bar at the bottom of a small screen, to its very end";
    scene.app.complain(why);
    scene.settle();
    scene.sees("to its very end");
    scene.pass(std::time::Duration::from_secs(60));
    scene.does_not_see("a sentence");
    scene.sees("Agents: 1 primary");
}

#[test]
fn the_mouse_fills_forms() {
    let mut scene = one();
    scene.press("alt-s tab a");
    scene.click("deny");
    scene.click("pattern");
    scene.write("rm *");
    scene.click("saves");
    let Some(Call::AddRule(rule)) = scene.calls.last() else { panic!("{:?}", scene.calls) };
    assert!(!rule.effect.is_allow());
    assert_eq!(rule.subject, consort_model::policy::Subject::Command { pattern: "rm *".into() });
}

#[test]
fn one_key_starts_a_failed_agent_again_and_the_reason_is_on_the_screen() {
    let mut scene = one();
    let failure = consort_model::Failure {
        message: "its process exited with code 3".into(),
        exit_code: Some(3),
        signal: None,
        stderr_tail: "no such key\n".into(),
        at: Timestamp(0),
        parked: false,
    };
    scene.event(agent_id(1), AgentEvent::Failed { failure });
    scene.sees("its process exited with code 3 — alt-r restarts it");
    scene.sees("no such key");
    scene.press("alt-r");
    assert!(matches!(scene.calls.last(), Some(Call::Reopen { .. })), "{:?}", scene.calls);
}

#[test]
fn a_turn_that_failed_says_why_until_the_next_one() {
    let mut scene = one();
    let outcome = consort_model::TurnOutcome::Failed { message: "the model is overloaded".into() };
    scene.event(agent_id(1), AgentEvent::TurnStarted { turn: turn().id, prompts: vec![] });
    scene.event(agent_id(1), AgentEvent::TurnEnded { outcome });
    scene.sees("the turn failed: the model is overloaded");
    scene.event(agent_id(1), AgentEvent::TurnStarted { turn: turn().id, prompts: vec![] });
    scene.does_not_see("overloaded");
}

#[test]
fn messages_lead_to_who_got_them() {
    let mut one = named("one", agent(1));
    one.letters = letters();
    let mut scene = Scene::new(120, 40, team(vec![one, named("two", agent(2))]), talked());
    scene.app.show(agent_id(2), false);
    scene.press("alt-i");
    scene.sees("two → one");
    scene.sees("queued");
    scene.press("enter");
    assert_eq!(scene.app.focused(), Some(agent_id(1)));
}

#[test]
fn a_programs_session_goes_on_as_a_new_agent() {
    let mut scene = Scene::new(120, 40, team(vec![named("one", agent(1))]), talked());
    let had = SessionView { agent: Some("one".into()), ..kept_session("s0", "One's own", "/w") };
    scene.sessions = vec![had, kept_session("s1", "Mend the gate", "/w/fence")];
    scene.press("ctrl-r");
    scene.does_not_see("One's own");
    scene.write("gate fence");
    scene.sees("Scripted · /w/fence");
    scene.press("enter");
    let Some(Call::ResumeSession { session, agent }) = scene.calls.last() else {
        panic!("{:?}", scene.calls)
    };
    assert_eq!((session.as_str(), agent.profile.as_deref()), ("s1", Some("scripted")));
    assert_eq!(agent.cwd, std::path::Path::new("/w/fence"));
}

#[test]
fn a_program_that_tells_no_sessions_says_why_and_the_others_are_listed() {
    let mut state = team(vec![named("one", agent(1))]);
    state.profiles.push(profile("Other", DriverKind::Acp, true));
    let mut scene = Scene::new(120, 40, state, talked());
    scene.app.act(crate::keys::Action::Sessions);
    let asked: Vec<Reply> = scene
        .app
        .take_effects()
        .into_iter()
        .filter_map(|effect| match effect {
            Effect::Call(_, reply) => Some(reply),
            _ => None,
        })
        .collect();
    assert_eq!(asked, ["scripted", "other"].map(|id| Reply::Sessions(ProfileId::new(id))));
    scene.settle();
    scene.sees("asking Scripted, Other…");
    scene.press("esc ctrl-r");
    let told = kept_session("s1", "Mend the gate", "/w");
    scene.app.answered(asked[0].clone(), Ok(json(&[&told])));
    scene.settle();
    scene.sees("asking Other…");
    scene.sees("Mend the gate");
    scene.app.answered(asked[1].clone(), Err(refusal("`other` keeps no sessions")));
    scene.settle();
    scene.sees("Other: no sessions  `other` keeps no sessions");
    scene.does_not_see("asking");
}
