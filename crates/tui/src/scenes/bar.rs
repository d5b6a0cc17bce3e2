//! What stands around the conversations: the bar at the bottom, the borders, and hints.

use super::*;
use crate::testing::agent;

#[test]
fn the_hint_of_an_empty_pane_is_shown_whole() {
    let mut scene = Scene::new(80, 24, team(vec![named("one", agent(1))]), talked());
    scene.press("alt-l");
    scene.sees("empty: alt-right goes");
    scene.sees("an agent");
}

#[test]
fn agents_are_counted_in_the_list_and_the_bar_and_requests_in_the_inbox() {
    let asking = |n: u128, asks: &[u128]| {
        let asks = asks.iter().map(|ask| approval(*ask, "make")).collect();
        named(&format!("agent {n}"), Agent { asks, ..agent(n) })
    };
    let mut scene = Scene::new(120, 40, team(vec![asking(1, &[1, 2, 3]), asking(2, &[4])]), talked());
    scene.sees("2 need you ctrl-g");
    scene.sees("2 primary, 2 need you");
    scene.press("ctrl-o");
    scene.sees("Inbox: 4 requests");
    let mut scene = Scene::new(120, 40, team(vec![asking(1, &[1])]), talked());
    scene.sees("1 primary, 1 needs you");
    scene.press("ctrl-o");
    scene.sees("Inbox: 1 request ");
}

#[test]
fn who_decided_stands_before_what_they_said() {
    use consort_model::{Answer, SettledBy, Settlement};
    let Ask { title, body, .. } = approval(1, "less notes");
    let answer = Some(Answer::Deny { message: Some("use cat".into()) });
    let settlement = Some(Settlement { answer, by: SettledBy::Person, at: Timestamp(NOW) });
    let body = ItemBody::Ask { ask: ask_id(1), title, body, settlement };
    let items = BTreeMap::from([(agent_id(1), vec![item(0, body)])]);
    let mut scene = Scene::new(120, 40, team(vec![agent(1)]), items);
    scene.sees("denied by you: use cat");
}

/// An agent of whom much can be said, on a branch.
fn talkative(columns: u16, failed: u128) -> Scene {
    let usage = consort_model::Usage {
        context_used: Some(34_000),
        context_size: Some(100_000),
        cost: Some(0.42),
        ..Default::default()
    };
    let model = consort_model::SessionOption {
        id: "model".into(),
        name: "Model".into(),
        current: "big".into(),
        choices: vec![consort_model::Choice {
            id: "big".into(),
            name: "The big one".into(),
            description: None,
        }],
    };
    let mut agents = vec![named("one", Agent { usage, options: vec![model], ..agent(1) })];
    agents.extend((0..failed).map(|n| working(agent(n + 2))));
    let mut scene = Scene::new(columns, 24, team(agents), talked());
    scene.app.show(agent_id(1), false);
    scene.app.branch_read("/w".into(), Some("a-branch-of-some-length".into()));
    scene.settle();
    scene
}

#[test]
fn the_bar_leaves_out_whole_parts_and_what_matters_least_first() {
    let cases = [
        (120, "The big one · default · context 34% · ~$0.42 · a-branch-of-some-length"),
        (90, "The big one · default · context 34% · ~$0.42"),
        (70, "The big one · default · context 34%"),
        (55, "The big one · default"),
        (45, "default"),
    ];
    for (columns, wanted) in cases {
        let screen = talkative(columns, 2).screen();
        let bar = screen.lines().last().unwrap().to_owned();
        let session = bar.split("running").last().unwrap().trim();
        assert_eq!(session, wanted, "at {columns} columns: {bar}");
    }
}

#[test]
fn the_model_the_mode_and_the_commands_can_be_clicked() {
    let mut scene = talkative(120, 0);
    scene.click("default ·");
    assert!(matches!(scene.calls.last(), Some(Call::SetPermissions { .. })), "{:?}", scene.calls);
    scene.click("ctrl-p commands");
    scene.sees(" Commands ");
    scene.press("esc");
    scene.click("The big one ·");
    scene.sees(" Model ");
}

#[test]
fn how_much_more_is_asked_covers_nothing_of_it() {
    let command: String = (0..200).map(|n| format!("echo {n} {}\n", "x".repeat(90))).collect();
    let one = named("one", Agent { asks: vec![approval(1, &command)], ..agent(1) });
    let mut scene = Scene::new(100, 30, team(vec![one]), talked());
    scene.press("ctrl-o");
    let screen = scene.screen();
    let row = screen.lines().find(|line| line.contains("more lines ↓")).unwrap();
    assert!(!row.contains("xx"), "{screen}");
    scene.press(&"pagedown ".repeat(60));
    scene.sees("echo 199");
    scene.does_not_see("more line");
}

#[test]
fn a_parked_agent_names_the_key_that_starts_it_until_it_is_there() {
    use consort_model::{Refusal, SessionInfo};
    let mut scene = Scene::new(120, 30, team(vec![named("one", agent(1))]), talked());
    let refused = ErrorBody::from(Refusal::Parked { name: "one".into() });
    let draft = crate::app::Draft { text: "go".into(), images: vec![] };
    scene.app.answered(Reply::Sent(agent_id(1), draft), Err(refused));
    scene.settle();
    scene.sees("one crashed repeatedly and is parked; alt-r starts it again");
    scene.event(agent_id(1), AgentEvent::Ready { session: SessionInfo::default() });
    scene.does_not_see("is parked");
}
