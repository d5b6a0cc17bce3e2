//! Every screen and state at three sizes.

use std::collections::BTreeMap;

use consort_model::policy::{Effect, Subject};
use consort_model::relation::TaskResult;
use consort_model::{
    Agent, AskBody, ChangeKind, Changes, Choice, DiffText, Failure, FileChange, Lifecycle, ProfileId, Prompt,
    PromptId, PromptOrigin, Question, Relation, Rule, RuleId, RuleOrigin, RuleScope, SessionOption,
    Timestamp, ToolKind, Usage,
};
use serde_json::json;
use uuid::Uuid;

use super::*;
use crate::testing::{agent, companion, sub_agent};

const SIZES: [(u16, u16); 3] = [(80, 24), (120, 40), (200, 60)];

fn picture(name: &str, state: impl Fn() -> State, play: impl Fn(&mut Scene)) {
    for (columns, rows) in SIZES {
        let mut scene = Scene::new(columns, rows, state(), talked());
        play(&mut scene);
        let screen = scene.screen();
        insta::assert_snapshot!(format!("{name}_{columns}x{rows}"), screen);
    }
}

fn fixer() -> Agent {
    let model = SessionOption {
        id: "model".into(),
        name: "Model".into(),
        current: "big".into(),
        choices: ["big", "small"]
            .map(|id| Choice {
                id: id.into(),
                name: format!("The {id} one"),
                description: Some(format!("{id} and good")),
            })
            .into(),
    };
    let usage = Usage {
        context_used: Some(34_000),
        context_size: Some(100_000),
        cost: Some(0.42),
        ..Usage::default()
    };
    Agent { options: vec![model], usage, ..named("fixer", agent(1)) }
}

#[test]
fn a_fresh_machine() {
    picture("fresh", || team(vec![]), |_| {});
    picture(
        "nothing_installed",
        || {
            let mut state = team(vec![]);
            state.profiles.pop();
            state
        },
        |_| {},
    );
}

#[test]
fn a_team_at_work() {
    let state = || {
        let mut finished = named("docs", sub_agent(4, 1));
        if let Relation::SubAgent { result, .. } = &mut finished.relation {
            *result = Some(TaskResult::Yielded { text: "done".into(), file: None });
        }
        let mut failed = named("broken", agent(6));
        failed.lifecycle = Lifecycle::Failed(failure());
        let mut waiting = named("tests", sub_agent(3, 1));
        waiting.asks = vec![approval(1, "git push origin main")];
        team(vec![
            working(fixer()),
            working(named("research the code", sub_agent(2, 1))),
            waiting,
            finished,
            named("dev server", companion(5, 1)),
            failed,
        ])
    };
    picture("team", state, |scene| {
        scene.app.show(agent_id(1), true);
        scene.settle();
    });
}

fn failure() -> Failure {
    Failure {
        message: "its process ended".into(),
        exit_code: Some(3),
        signal: None,
        stderr_tail: "loading\npanic: no such key\n".into(),
        at: Timestamp(0),
        parked: false,
    }
}

#[test]
fn an_approval_in_its_pane() {
    let state = || {
        let mut agent = working(fixer());
        agent.asks = vec![edit_approval(1), approval(2, "git push origin main")];
        team(vec![agent])
    };
    picture("approval_waiting", state, |scene| scene.write("I am typing"));
    picture("approval_answering", state, |scene| scene.press("tab"));
}

#[test]
fn the_inbox() {
    let state = || {
        let mut child = named("tests", sub_agent(2, 1));
        child.asks = vec![approval(1, "rm -rf target\u{202e}\nmake"), edit_approval(2)];
        let mut other = named("other", agent(3));
        other.asks = vec![approval(3, "git push origin main")];
        team(vec![working(fixer()), child, other])
    };
    picture("inbox", state, |scene| scene.press("ctrl-o"));
    picture("inbox_batch", state, |scene| scene.press("ctrl-o up *"));
}

#[test]
fn companions_beside_their_owner() {
    let state = || {
        team(vec![
            fixer(),
            working(named("dev server", companion(2, 1))),
            named("log", companion(3, 1)),
            named("tests", companion(4, 1)),
        ])
    };
    picture("companions", state, |_| {});
}

#[test]
fn lists() {
    let state = || team(vec![fixer(), working(named("other", agent(2)))]);
    picture("palette", state, |scene| {
        scene.app.show(agent_id(1), false);
        scene.press("ctrl-p");
        scene.write("agent");
    });
    picture("new_agent", state, |scene| scene.press("ctrl-t"));
    picture("new_agent_form", state, |scene| {
        scene.press("ctrl-t");
        scene.write("worktree");
        scene.press("enter tab tab tab tab");
    });
    picture("models", state, |scene| {
        scene.app.show(agent_id(1), false);
        scene.press("alt-m");
    });
    picture("sessions", state, |scene| {
        let title = "Mend the gate in the fence";
        scene.sessions = vec![kept_session("s1", title, "/w"), kept_session("s2", "", "/w/fence")];
        scene.press("ctrl-r");
    });
    picture("sessions_found", state, |scene| {
        scene.sessions = vec![kept_session("s1", "Mend the gate", "/w"), kept_session("s2", "", "/w/fence")];
        scene.press("ctrl-r");
        scene.write("fence");
    });
    picture("help", state, |scene| scene.press("f1"));
}

#[test]
fn the_settings() {
    let rule = || Rule {
        id: RuleId::new(Uuid::nil()),
        effect: Effect::Allow,
        scope: RuleScope::Profile { profile: ProfileId::new("scripted") },
        tool: Some(ToolKind::Execute),
        subject: Subject::Command { pattern: "git *".into() },
        at: Timestamp(0),
        origin: RuleOrigin::Added,
    };
    let state = || {
        let mut state = team(vec![fixer()]);
        state.rules.insert(rule().id, rule());
        state
    };
    picture("profiles", state, |scene| scene.press("alt-s down"));
    picture("profile_form", state, |scene| scene.press("alt-s down enter down"));
    picture("profile_removal", state, |scene| scene.press("alt-s down down x"));
    picture("rules", state, |scene| scene.press("alt-s tab"));
    picture("rule_form", state, |scene| scene.press("alt-s tab a down"));
    picture("limits", state, |scene| scene.press("alt-s tab tab"));
    picture("limit_refused", state, |scene| {
        scene.press("alt-s tab tab down enter ctrl-u");
        scene.write("-1");
        scene.press("enter");
    });
}

#[test]
fn a_question_as_a_form() {
    let state = || {
        let schema = json!({
            "required": ["colour"],
            "properties": { "colour": { "enum": ["red", "blue"] }, "why": { "type": "string" } }
        });
        let body = AskBody::Question(Question { text: "Which colour?".into(), schema, url: None });
        let mut agent = working(fixer());
        agent.asks = vec![Ask { body, title: "Which colour?".into(), ..approval(1, "") }];
        team(vec![agent])
    };
    picture("question", state, |scene| scene.press("ctrl-g"));
    picture("question_form", state, |scene| scene.press("ctrl-g enter right"));
}

#[test]
fn agents_in_trouble() {
    picture(
        "failed",
        || {
            let mut agent = fixer();
            agent.lifecycle = Lifecycle::Failed(failure());
            team(vec![agent])
        },
        |_| {},
    );
    picture(
        "profile_removed",
        || {
            let mut agent = fixer();
            agent.profile = ProfileId::new("gone");
            team(vec![agent])
        },
        |_| {},
    );
    picture(
        "stalled_with_a_queue",
        || {
            let mut agent = working(fixer());
            agent.turn = Some(Turn { stalled: true, ..turn() });
            let prompt = |n: u128, text: &str| Prompt {
                id: PromptId::new(Uuid::from_u128(n)),
                origin: PromptOrigin::Person,
                text: text.into(),
                attachments: vec![],
                steers: false,
                at: Timestamp(0),
            };
            agent.queue = [prompt(1, "then the docs"), prompt(2, "and the changelog")].into();
            team(vec![agent])
        },
        |_| {},
    );
    picture(
        "daemon_gone",
        || team(vec![fixer()]),
        |scene| {
            scene.app.disconnected("it ended");
            scene.settle();
        },
    );
}

#[test]
fn worktrees_and_messages() {
    let state = || {
        let worktrees = vec![worktree("fix")];
        let fixer = Agent { worktrees, cwd: "/worktrees/fix".into(), letters: letters(), ..fixer() };
        team(vec![fixer, named("helper", sub_agent(2, 1))])
    };
    let open = |scene: &mut Scene| {
        scene.app.show(agent_id(1), false);
        scene.worktrees = vec![seen_worktree("fix", Some(agent_id(1))), seen_worktree("old", None)];
        scene.press("alt-t");
    };
    picture("worktrees", state, open);
    picture("worktree", state, |scene| {
        open(scene);
        scene.press("enter");
    });
    picture("worktree_discard", state, |scene| {
        open(scene);
        scene.press("enter up enter");
    });
    picture("messages", state, |scene| scene.press("alt-i"));
    picture("about", state, |scene| {
        scene.app.show(agent_id(1), false);
        scene.press("alt-a");
    });
    picture("refusal", state, |scene| {
        let why = "`consort/fix` and `main` changed the same files (src/lib.rs, src/main.rs, README.md); nothing was changed: bring them together in /worktrees/fix, commit, and finish again";
        scene.app.answered(Reply::WorktreeFinished, Err(refusal(why)));
        scene.settle();
    });
}

#[test]
fn what_changed() {
    picture(
        "changes",
        || team(vec![fixer()]),
        |scene| {
            scene.press("alt-d");
            let diff = "diff --git a/a.rs b/a.rs\n--- a/a.rs\n+++ b/a.rs\n@@ -1,2 +1,2 @@\n fn a() {\n-    1\n+    2\n";
            let file = |path: &str, change, added, removed| FileChange {
                path: path.into(),
                old_path: None,
                change,
                added,
                removed,
            };
            let changes = Changes {
                base: "main".into(),
                base_commit: Some("0123456789abcdef".into()),
                commits: 2,
                files: vec![
                    file("a.rs", ChangeKind::Modified, Some(1), Some(1)),
                    file("漢字.png", ChangeKind::Added, None, None),
                ],
                added: 1,
                removed: 1,
                ..Changes::default()
            };
            let diff = DiffText { changes, text: diff.into(), truncated: false };
            scene.app.changes(agent_id(1), Ok(diff));
            scene.settle();
        },
    );
}

#[test]
fn completions() {
    picture("completing_a_command", || team(vec![fixer()]), |scene| scene.write("/se"));
    picture(
        "completing_a_file",
        || team(vec![fixer()]),
        |scene| {
            scene.app.files_listed(
                "/w".into(),
                vec!["src/lib.rs".into(), "src/main.rs".into(), "README.md".into()],
            );
            scene.write("look at @src");
        },
    );
}

#[test]
fn a_theme_without_colour_has_none() {
    let mut scene = Scene::new(120, 40, team(vec![working(fixer())]), BTreeMap::new());
    scene.app.set_theme(Theme::no_colour());
    scene.settle();
    for cell in &scene.canvas.next.content {
        assert_eq!((cell.fg, cell.bg), (ratatui::style::Color::Reset, ratatui::style::Color::Reset));
    }
}
