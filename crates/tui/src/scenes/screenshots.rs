//! The pictures in the documentation, from the real views.
//!
//! `cargo xtask screenshots` writes them; without that, they are compared with what is drawn now.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use consort_model::relation::TaskResult;
use consort_model::{Agent, PlanEntry, PlanStatus, PromptId, PromptOrigin, Relation, Usage};
use uuid::Uuid;

use super::svg::{self, DARK, Ground, LIGHT};
use super::*;
use crate::testing::{agent, companion, sub_agent};

/// Set by `cargo xtask screenshots`.
const WRITE: &str = "CONSORT_WRITE_SCREENSHOTS";

const SIZE: (u16, u16) = (120, 34);

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/screenshots")
}

fn shot(name: &str, title: &str, state: State, play: impl Fn(&mut Scene)) {
    on(&DARK, Theme::dark(), name, title, state, play);
}

fn on(ground: &Ground, theme: Theme, name: &str, title: &str, state: State, play: impl Fn(&mut Scene)) {
    let items = BTreeMap::from([
        (agent_id(1), story()),
        (agent_id(3), approval_story()),
        (agent_id(5), server_story()),
    ]);
    let mut scene = Scene::new(SIZE.0, SIZE.1, state, items);
    scene.app.set_theme(theme);
    play(&mut scene);
    scene.screen();
    let picture = svg::picture(&scene.canvas.next, title, ground);
    let file = folder().join(format!("{name}.svg"));
    if std::env::var_os(WRITE).is_some() {
        std::fs::create_dir_all(folder()).unwrap();
        std::fs::write(&file, picture).unwrap();
        return;
    }
    let kept = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        kept == picture,
        "docs/screenshots/{name}.svg shows another screen than is drawn now; `cargo xtask screenshots` draws it anew"
    );
}

fn person(text: &str) -> ItemBody {
    ItemBody::User {
        prompt: PromptId::new(Uuid::nil()),
        origin: PromptOrigin::Person,
        text: text.into(),
        attachments: vec![],
    }
}

fn items(bodies: Vec<ItemBody>) -> Vec<Item> {
    bodies.into_iter().enumerate().map(|(index, body)| item(index as u64, body)).collect()
}

const BEFORE: &str = "pub fn login(user: &User, clock: &Clock) -> Session {\n    let expires = clock.now() + HOUR;\n    Session::new(user, expires)\n}\n";
const AFTER: &str = "pub fn login(user: &User, clock: &Clock) -> Session {\n    let expires = clock.monotonic() + HOUR;\n    Session::new(user, expires)\n}\n";

fn story() -> Vec<Item> {
    let mut ran = tool(ToolKind::Execute, "cargo test login --no-fail-fast");
    ran.output = "running 12 tests\ntest login::expires ... FAILED\ntest login::renews ... ok\n\ntest result: FAILED. 11 passed; 1 failed\n".into();
    ran.status = ToolStatus::Failed;
    let mut edited = tool(ToolKind::Edit, "src/login.rs");
    edited.diffs =
        vec![Diff { path: "src/login.rs".into(), old_text: Some(BEFORE.into()), new_text: AFTER.into() }];
    let plan = |text: &str, status| PlanEntry { text: text.into(), status };
    items(vec![
        person("find out why the login test is flaky, and mend it"),
        ItemBody::Thinking { text: "It fails about one time in ten, so it is about time.\nLet me look.".into() },
        ItemBody::Tool(ran),
        ItemBody::Plan {
            entries: vec![
                plan("find the cause", PlanStatus::Completed),
                plan("mend it", PlanStatus::InProgress),
                plan("run the test a thousand times", PlanStatus::Pending),
            ],
        },
        ItemBody::Tool(edited),
        ItemBody::Text {
            text: "The session **expires by the wall clock**, which the test moves. With `monotonic` it cannot go back:\n\n| clock | runs | failed |\n| --- | --- | --- |\n| wall | 1000 | 97 |\n| monotonic | 1000 | 0 |\n".into(),
        },
    ])
}

fn approval_story() -> Vec<Item> {
    items(vec![
        person("run the login test a thousand times"),
        ItemBody::Text {
            text: "I have a script for that; it needs the network for the test's server.".into(),
        },
    ])
}

fn server_story() -> Vec<Item> {
    let mut ran = tool(ToolKind::Execute, "npm run dev");
    ran.output = "ready on http://127.0.0.1:5173\nGET /login 200 in 12 ms\n".into();
    ran.status = ToolStatus::Running;
    items(vec![person("keep the dev server running"), ItemBody::Tool(ran)])
}

fn alice() -> Agent {
    let usage = Usage {
        context_used: Some(34_000),
        context_size: Some(100_000),
        cost: Some(0.42),
        ..Usage::default()
    };
    working(Agent { usage, ..named("alice", agent(1)) })
}

fn at_work() -> State {
    let mut finished = named("changelog", sub_agent(4, 1));
    if let Relation::SubAgent { result, .. } = &mut finished.relation {
        *result = Some(TaskResult::Yielded { text: "done".into(), file: None });
    }
    let mut waiting = named("thousand runs", sub_agent(3, 1));
    waiting.asks = vec![approval(1, "scripts/repeat.sh --times 1000 login::expires")];
    state(vec![
        alice(),
        working(named("read the code", sub_agent(2, 1))),
        waiting,
        finished,
        named("dev server", companion(5, 1)),
        named("bob", agent(6)),
        working(named("carol", agent(7))),
    ])
}

fn state(agents: Vec<Agent>) -> State {
    let of_claude = |agent| Agent { profile: ProfileId::new("claude"), ..agent };
    let mut state = team(agents.into_iter().map(of_claude).collect());
    state.profiles = vec![
        profile("Claude", DriverKind::Claude, true),
        profile("Codex", DriverKind::Codex, true),
        profile("Gemini", DriverKind::Acp, false),
    ];
    state
}

fn alone(scene: &mut Scene) {
    scene.app.show(agent_id(1), true);
    scene.settle();
}

#[test]
fn the_documentation_shows_what_is_drawn() {
    shot("team", "A team at work: its agents at the left, a conversation, the prompt", at_work(), alone);
    on(&LIGHT, Theme::light(), "light", "The same on a light ground", at_work(), alone);
    shot("panes", "An agent with its companion beside it", at_work(), |scene| {
        scene.app.show(agent_id(1), false);
        scene.settle();
    });
    shot("approval", "An approval, answered by one key", at_work(), |scene| scene.press("ctrl-g"));
    shot("inbox", "The inbox: everything that agents ask", at_work(), |scene| {
        alone(scene);
        scene.press("ctrl-o");
    });
    shot("palette", "The palette: every command and agent by name", at_work(), |scene| {
        alone(scene);
        scene.press("ctrl-p");
    });
    shot("welcome", "The first minute: what was found, and what to press", state(vec![]), |_| {});
}
