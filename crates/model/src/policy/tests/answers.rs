//! Rules from answers: what they cover, and for whom.

use serde_json::json;

use super::Outcome::{Allowed, Asked};
use super::*;
use crate::ids::{AskId, ProfileId};
use crate::worktree::Worktree;

fn granted(
    agent: &Agent,
    tool: &ToolCall,
    scope: GrantScope,
    pattern: Option<&str>,
) -> Result<Option<Rule>, String> {
    let origin = RuleOrigin::Answer { agent: agent.id, ask: AskId::new(uuid(60)) };
    rule_for(agent, tool, Grant { scope, pattern }, RuleId::new(uuid(9)), origin, Timestamp(0), &resolve)
}

fn grant(tool: &ToolCall, scope: GrantScope, pattern: Option<&str>) -> Rule {
    granted(&agent(1), tool, scope, pattern).unwrap().unwrap()
}

#[test]
fn a_grant_covers_the_same_call_only() {
    let asker = agent(1);
    let call = tool(ToolKind::Execute, "git status");
    assert_eq!(granted(&asker, &call, GrantScope::Once, None), Ok(None));
    let session = grant(&call, GrantScope::Session, None);
    let always = grant(&call, GrantScope::Always, None);
    let mut disguised = call.clone();
    disguised.input = json!({"command": "rm -rf x"});
    let twin = agent(2);
    let stranger = Agent { profile: ProfileId::new("other"), ..agent(3) };
    let table = [
        (&asker, call.clone(), &session, true),
        (&twin, call.clone(), &session, false),
        (&twin, call.clone(), &always, true),
        (&stranger, call.clone(), &always, false),
        (&asker, tool(ToolKind::Execute, "git status; rm -rf x"), &session, false),
        (&asker, tool(ToolKind::Execute, "git"), &session, false),
        (&asker, tool(ToolKind::Other, "git status"), &session, false),
        (&asker, disguised, &session, false),
    ];
    for (agent, call, rule, expected) in table {
        let got = verdict(agent, std::slice::from_ref(rule), call.clone());
        assert_eq!(allowed(&got), expected, "{call:?} under {rule:?}");
    }
    let odd = tool(ToolKind::Execute, "X=1 git log > \"$(date)\"");
    let same = [grant(&odd, GrantScope::Session, None)];
    assert_eq!(outcome(&asker, &same, odd), Allowed, "what was allowed whole is allowed whole");
}

#[test]
fn the_order_of_keys_in_an_input_does_not_matter() {
    let call = |text: &str| {
        let mut call = tool(ToolKind::Execute, "run");
        call.input = serde_json::from_str(text).unwrap();
        Subject::of(&call, "/work", &resolve)
    };
    assert_eq!(call(r#"{"a":1,"b":[{"c":2,"d":3}]}"#), call(r#"{"b":[{"d":3,"c":2}],"a":1}"#));
    assert_ne!(call(r#"{"a":1}"#), call(r#"{"a":2}"#));
}

#[test]
fn a_grant_for_paths_covers_those_files_however_they_are_written() {
    let rules = [grant(&edit("/work/a"), GrantScope::Session, None)];
    let mut both = edit("/work/a");
    both.locations.push("/work/b:3".into());
    for (call, expected) in [
        (edit("a"), true),
        (edit("./a"), true),
        (edit("x/../a"), true),
        (edit("b"), false),
        (both, false),
        (edit("../work/a"), true),
        (edit("a/b"), false),
        (edit("A"), false),
        (edit("out/../a"), false),
    ] {
        assert_eq!(allowed(&verdict(&agent(1), &rules, call.clone())), expected, "{call:?}");
    }
    let linked = [grant(&edit("out/passwd"), GrantScope::Session, None)];
    assert_eq!(
        outcome(&agent(1), &linked, edit("out/passwd")),
        Allowed,
        "a link is granted with what it leads to"
    );
    let starred = [grant(&edit("a*"), GrantScope::Session, None)];
    assert_eq!(outcome(&agent(1), &starred, edit("ab")), Asked, "a file's name is no pattern");
}

#[test]
fn a_grant_for_a_file_does_not_follow_a_link_that_was_put_in_its_place() {
    let before = |path: &str| Some(path.to_owned());
    let origin = RuleOrigin::Added;
    let grant = Grant { scope: GrantScope::Session, pattern: Some("out/**") };
    let rule =
        rule_for(&agent(1), &edit("out/a"), grant, RuleId::new(uuid(9)), origin, Timestamp(0), &before);
    let rules = [rule.unwrap().unwrap()];
    let body = AskBody::Approval { tool: edit("out/a"), options: vec![] };
    assert!(allowed(&judge(&agent(1), &rules, &body, &before)));
    assert_eq!(judge(&agent(1), &rules, &body, &resolve), Verdict::AskPerson);
}

#[test]
fn a_pattern_in_an_answer_must_cover_the_call_at_hand() {
    // (call, pattern, subject or none)
    let command = |pattern: &str| Some(Subject::Command { pattern: pattern.into() });
    let files = |patterns: &[&str]| {
        Some(Subject::Files { patterns: patterns.iter().map(|&pattern| pattern.to_owned()).collect() })
    };
    let title = |pattern: &str| Some(Subject::Title { pattern: pattern.into() });
    let table = [
        (run("git status"), "git *", command("git *")),
        (run("git status"), "git status", command("git status")),
        (run("git status && git log"), "git *", command("git *")),
        (run("git status"), "cargo *", None),
        (run("git status; rm x"), "git *", None),
        (run("git log > x"), "git *", None),
        (run("git status"), "git *; rm *", None),
        (run("sudo rm x"), "sudo *", None),
        (edit("src/a"), "src/**", files(&["/work/src/**"])),
        (edit("near/a"), "near/**", files(&["/work/near/**", "/work/src/**"])),
        (edit("src/a"), "docs/**", None),
        (edit("src/a"), "../**", None),
        (read("src/a"), "**/*", files(&["/work/**/*"])),
        (tool(ToolKind::Other, "github: x"), "github: *", title("github: *")),
        (tool(ToolKind::Other, "github: x"), "gitlab: *", None),
        (tool(ToolKind::Fetch, "https://a.org/x"), "https://a.org/*", title("https://a.org/*")),
    ];
    for (call, pattern, expected) in table {
        let got = granted(&agent(1), &call, GrantScope::Session, Some(pattern));
        assert_eq!(got.ok().flatten().map(|rule| rule.subject), expected, "`{pattern}` for {call:?}");
    }
    assert!(granted(&agent(1), &run("git status"), GrantScope::Once, Some("git *")).is_err());
}

#[test]
fn a_rule_reaches_as_far_as_its_scope() {
    let at = |n, cwd: &str| Agent { cwd: cwd.into(), ..agent(n) };
    let scoped = |scope| Rule { scope, ..command_rule(Effect::Allow, "git *") };
    let project = |folder: &str| scoped(RuleScope::Project { folder: folder.into() });
    let stranger = Agent { profile: ProfileId::new("other"), ..at(3, "/elsewhere") };
    let table = [
        (scoped(RuleScope::All), stranger.clone(), Allowed),
        (scoped(RuleScope::Agent { agent: agent(1).id }), at(1, "/work"), Allowed),
        (scoped(RuleScope::Agent { agent: agent(1).id }), at(2, "/work"), Asked),
        (scoped(RuleScope::Profile { profile: ProfileId::new("p") }), at(2, "/elsewhere"), Allowed),
        (scoped(RuleScope::Profile { profile: ProfileId::new("p") }), stranger, Asked),
        (project("/work"), at(2, "/work"), Allowed),
        (project("/work/"), at(2, "/work"), Allowed),
        (project("/work"), at(2, "/work/sub"), Allowed),
        (project("/work"), at(2, "/workshop"), Asked),
        (project("/work"), at(2, "/"), Asked),
        (project("/work"), at(2, "/work/../etc"), Asked),
        (project("/work"), at(2, "/work/out"), Asked),
        (project("/work"), at(2, "/work/lost"), Asked),
        (project("/home/ann"), at(2, "/home/ann/x"), Allowed),
    ];
    for (rule, agent, expected) in table {
        let got = outcome(&agent, std::slice::from_ref(&rule), run("git status"));
        assert_eq!(got, expected, "{:?} in {}", rule.scope, agent.cwd);
    }
    let denied = Rule { effect: Effect::Deny, ..project("/etc") };
    assert_eq!(outcome(&at(2, "/work/out"), &[denied], run("git status")), Outcome::Denied);
    let call = run("git status");
    let scope = grant(&call, GrantScope::Project, Some("git *")).scope;
    assert_eq!(scope, RuleScope::Project { folder: "/work".into() });
}

#[test]
fn a_rule_of_a_project_takes_its_paths_from_the_projects_folder() {
    let rule = Rule {
        scope: RuleScope::Project { folder: "/work".into() },
        ..files_rule(Effect::Allow, Some(ToolKind::Edit), &["docs/**"])
    };
    let deeper = Agent { cwd: "/work/sub".into(), ..agent(2) };
    assert_eq!(outcome(&deeper, std::slice::from_ref(&rule), edit("../docs/a")), Allowed);
    assert_eq!(outcome(&deeper, &[rule], edit("docs/a")), Asked);
}

#[test]
fn rules_of_the_first_version_still_read_and_cover() {
    let text = r#"{"id":"00000000-0000-0000-0000-000000000009",
        "scope":{"scope":"agent","agent":"00000000-0000-0000-0000-000000000001"},
        "tool":"edit","subject":{"subject":"paths","paths":["/work/a"]},"at":5}"#;
    let rule: Rule = serde_json::from_str(text).unwrap();
    assert_eq!(
        (rule.effect, rule.tool, rule.origin),
        (Effect::Allow, Some(ToolKind::Edit), RuleOrigin::Unrecorded)
    );
    assert_eq!(
        serde_json::to_value(&rule).unwrap(),
        serde_json::from_str::<serde_json::Value>(text).unwrap()
    );
    assert_eq!(outcome(&agent(1), &[rule], edit("a")), Allowed);
    let answer: Answer = serde_json::from_str(r#"{"answer":"allow","scope":"session"}"#).unwrap();
    assert_eq!(answer, Answer::allow(GrantScope::Session));
}

#[test]
fn every_form_of_rule_survives_json() {
    let origin = RuleOrigin::Answer { agent: agent(1).id, ask: AskId::new(uuid(60)) };
    for scope in [RuleScope::All, RuleScope::Project { folder: "/work".into() }] {
        for subject in [
            Subject::Files { patterns: vec!["src/**".into()] },
            Subject::Command { pattern: "git *".into() },
            Subject::Title { pattern: "a*".into() },
        ] {
            let rule = Rule { scope: scope.clone(), origin, ..rule(Effect::Deny, None, subject) };
            let text = serde_json::to_string(&rule).unwrap();
            assert_eq!(serde_json::from_str::<Rule>(&text).unwrap(), rule, "{text}");
        }
    }
}

#[test]
fn what_is_allowed_for_the_project_in_a_worktree_holds_in_its_repository() {
    let worktree = |name: &str| Worktree {
        name: name.to_owned(),
        path: format!("/trees/{name}"),
        branch: name.to_owned(),
        base: "main".to_owned(),
        base_commit: "c0ffee".to_owned(),
        repository: "/repository".to_owned(),
    };
    let inside = |number, name| Agent {
        cwd: format!("/trees/{name}/app"),
        worktrees: vec![worktree(name)],
        ..agent(number)
    };
    let (asker, twin) = (inside(1, "one"), inside(2, "two"));
    let in_repository = Agent { cwd: "/repository/app".to_owned(), ..agent(3) };
    let elsewhere = Agent { cwd: "/elsewhere/app".to_owned(), ..agent(4) };
    let tests = tool(ToolKind::Execute, "cargo test");
    let commands = granted(&asker, &tests, GrantScope::Project, Some("cargo *")).unwrap().unwrap();
    assert_eq!(commands.scope, RuleScope::Project { folder: "/repository/app".to_owned() });
    for (agent, expected) in [(&asker, true), (&twin, true), (&in_repository, true), (&elsewhere, false)] {
        let got = verdict(agent, std::slice::from_ref(&commands), tests.clone());
        assert_eq!(allowed(&got), expected, "{}", agent.cwd);
    }
    let files = granted(&asker, &edit("src/a.rs"), GrantScope::Project, Some("src/*")).unwrap().unwrap();
    for (agent, expected) in [(&asker, true), (&twin, true), (&in_repository, true), (&elsewhere, false)] {
        let got = verdict(agent, std::slice::from_ref(&files), edit("src/b.rs"));
        assert_eq!(allowed(&got), expected, "{} {files:?}", agent.cwd);
    }
}
