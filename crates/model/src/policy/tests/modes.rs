//! Modes and relations.

use super::Outcome::{Allowed, Asked, Denied};
use super::*;
use crate::decide::testing::sub_agent_of;

#[test]
fn modes_decide_by_kind_and_place() {
    use PermissionMode::{AcceptEdits, Bypass, Default, Plan};
    let mut hidden = edit("/work/a");
    hidden.tool = ToolKind::Other;
    let mut two = edit("/work/a");
    two.input = serde_json::json!({"file_path": "/etc/passwd"});
    let table = [
        (Default, tool(ToolKind::Execute, "ls"), Asked),
        (Default, edit("/work/a"), Asked),
        (Default, tool(ToolKind::Read, "a"), Asked),
        (AcceptEdits, edit("/work/a"), Allowed),
        (AcceptEdits, edit("sub/a"), Allowed),
        (AcceptEdits, edit("./sub//a/"), Allowed),
        (AcceptEdits, edit("near/a"), Allowed),
        (AcceptEdits, edit("/etc/passwd"), Asked),
        (AcceptEdits, edit("../etc/passwd"), Asked),
        (AcceptEdits, edit("/work/../etc/passwd"), Asked),
        (AcceptEdits, edit("/workshop/a"), Asked),
        (AcceptEdits, edit("/WORK/a"), Asked),
        (AcceptEdits, edit("out/passwd"), Asked),
        (AcceptEdits, edit("out/../a"), Asked),
        (AcceptEdits, edit("near/../../etc/passwd"), Asked),
        (AcceptEdits, edit("lost/a"), Asked),
        (AcceptEdits, edit("~/a"), Asked),
        (AcceptEdits, edit("file:///etc/passwd"), Asked),
        (AcceptEdits, edit("sftp://host/work/a"), Asked),
        (AcceptEdits, edit("a\u{202e}b"), Asked),
        (AcceptEdits, edit(".git/hooks/pre-commit"), Asked),
        (AcceptEdits, edit("sub/.GIT/config"), Asked),
        (AcceptEdits, edit(".consort/project.toml"), Asked),
        (AcceptEdits, edit(".github/workflows/ci.yml"), Allowed),
        (AcceptEdits, two, Asked),
        (AcceptEdits, tool(ToolKind::Edit, "no paths given"), Asked),
        (AcceptEdits, tool(ToolKind::Execute, "rm a"), Asked),
        (AcceptEdits, tool(ToolKind::Delete, "a"), Asked),
        (Plan, edit("/work/a"), Denied),
        (Plan, hidden, Denied),
        (Plan, tool(ToolKind::Delete, "a"), Denied),
        (Plan, tool(ToolKind::Move, "a"), Denied),
        (Plan, tool(ToolKind::Execute, "ls"), Asked),
        (Plan, tool(ToolKind::Read, "a"), Asked),
        (Bypass, tool(ToolKind::Execute, "rm -rf x"), Allowed),
        (Bypass, edit("/etc/passwd"), Allowed),
    ];
    for (mode, call, expected) in table {
        assert_eq!(outcome(&in_mode(mode), &[], call.clone()), expected, "{mode:?} {call:?}");
    }
}

#[test]
fn in_a_worktree_below_the_home_edits_are_accepted_as_anywhere() {
    let agent = Agent { cwd: "/h/.consort/worktrees/r/fix".into(), ..in_mode(PermissionMode::AcceptEdits) };
    for (path, expected) in [
        ("src/a", Outcome::Allowed),
        ("/h/.consort/worktrees/r/fix/src/a", Outcome::Allowed),
        (".git", Outcome::Asked),
        ("/h/.consort/worktrees/r/fix/.consort/project.toml", Outcome::Asked),
        ("/h/.consort/config.toml", Outcome::Asked),
    ] {
        assert_eq!(outcome(&agent, &[], edit(path)), expected, "{path}");
    }
}

#[test]
fn what_a_project_allows_and_denies_holds_in_its_worktrees() {
    let worktree = crate::worktree::Worktree {
        name: "fix".into(),
        path: "/h/fix".into(),
        branch: "consort/fix".into(),
        base: "main".into(),
        base_commit: "0".into(),
        repository: "/r/app".into(),
    };
    let agent = Agent { cwd: "/h/fix/sub".into(), worktrees: vec![worktree], ..agent(1) };
    let of_project =
        |rule: Rule, folder: &str| Rule { scope: RuleScope::Project { folder: folder.into() }, ..rule };
    let git = command_rule(Effect::Allow, "git *");
    let status = || tool(ToolKind::Execute, "git status");
    for (folder, expected) in [
        ("/r/app", Allowed),
        ("/r/app/sub", Allowed),
        ("/r", Allowed),
        ("/r/app/other", Asked),
        ("/r/ap", Asked),
    ] {
        assert_eq!(outcome(&agent, &[of_project(git.clone(), folder)], status()), expected, "{folder}");
    }
    let docs = of_project(files_rule(Effect::Allow, None, &["docs/**"]), "/r/app");
    let secret = of_project(files_rule(Effect::Deny, None, &["secret"]), "/r/app");
    let rules = [docs, secret];
    for (path, expected) in
        [("/h/fix/docs/a", Allowed), ("/h/fix/sub/docs/a", Asked), ("/h/fix/secret", Denied)]
    {
        assert_eq!(outcome(&agent, &rules, edit(path)), expected, "{path}");
    }
}

#[test]
fn in_plan_mode_a_rule_lets_no_command_run_and_no_edit() {
    let rules = [command_rule(Effect::Allow, "git *"), files_rule(Effect::Allow, None, &["**"])];
    let agent = in_mode(PermissionMode::Plan);
    assert_eq!(outcome(&agent, &rules, run("git status")), Asked);
    assert_eq!(outcome(&agent, &rules, edit("a")), Denied);
    assert_eq!(outcome(&agent, &rules, read("a")), Allowed);
}

#[test]
fn a_sub_agent_may_read_and_search_in_its_folder_but_not_change() {
    let child = Agent { relation: sub_agent_of(agent(1).id), ..agent(2) };
    let search = |input| {
        let mut call = tool(ToolKind::Search, "Search");
        call.input = input;
        call
    };
    let table = [
        (tool(ToolKind::Read, "x"), Allowed),
        (tool(ToolKind::Search, "x"), Allowed),
        (read("src/a"), Allowed),
        (read("/work/src/a:12"), Allowed),
        (read("/etc/passwd"), Asked),
        (read("../secret"), Asked),
        (read("out/passwd"), Asked),
        (read("~/.ssh/id"), Asked),
        (read("lost/x"), Asked),
        (search(serde_json::json!({"pattern": "fn main", "path": "src"})), Allowed),
        (search(serde_json::json!({"pattern": "/api/v1"})), Allowed),
        (search(serde_json::json!({"pattern": "root", "path": "/etc"})), Asked),
        (search(serde_json::json!({"pattern": "/etc/**"})), Asked),
        (search(serde_json::json!({"paths": ["src", "/etc"]})), Asked),
        (tool(ToolKind::Edit, "x"), Asked),
        (edit("a"), Asked),
        (tool(ToolKind::Execute, "x"), Asked),
        (tool(ToolKind::Fetch, "x"), Asked),
        (tool(ToolKind::Other, "x"), Asked),
    ];
    for (call, expected) in table {
        assert_eq!(outcome(&child, &[], call.clone()), expected, "{call:?}");
    }
    let secret = files_rule(Effect::Deny, None, &["secret/**"]);
    assert_eq!(outcome(&child, &[secret], read("secret/key")), Denied);
}

#[test]
fn a_question_goes_to_a_person_whatever_the_mode() {
    let question = crate::ask::Question { text: "?".into(), schema: serde_json::Value::Null, url: None };
    let body = AskBody::Question(question);
    assert_eq!(judge(&in_mode(PermissionMode::Bypass), &[], &body, &resolve), Verdict::AskPerson);
}

#[test]
fn who_was_given_a_list_of_tools_has_no_others() {
    let mut subject = agent(1);
    subject.relation = sub_agent_of(crate::ids::AgentId::new(uuid(9)));
    subject.permissions = PermissionMode::Bypass;
    let table: [(Option<&[&str]>, ToolCall, bool); 8] = [
        (None, tool(ToolKind::Execute, "ls"), true),
        (Some(&[]), tool(ToolKind::Read, "a"), false),
        (Some(&["read", "search"]), tool(ToolKind::Read, "a"), true),
        (Some(&["read", "search"]), tool(ToolKind::Execute, "ls"), false),
        (Some(&["read"]), tool(ToolKind::Other, "consort: yield_to_parent"), true),
        (Some(&["github: get_issue"]), tool(ToolKind::Other, "github: get_issue"), true),
        (Some(&["github"]), tool(ToolKind::Other, "github: get_issue"), true),
        (Some(&["git"]), tool(ToolKind::Other, "github: get_issue"), false),
    ];
    for (tools, call, given) in table {
        subject.brief.tools = tools.map(|tools| tools.iter().map(|tool| (*tool).to_owned()).collect());
        let body = AskBody::Approval { tool: call.clone(), options: vec![] };
        let verdict = judge(&subject, [], &body, &|_| None);
        let denied = matches!(verdict, Verdict::Settle(Answer::Deny { .. }, _));
        assert_eq!(denied, !given, "{tools:?} {}", call.title);
    }
}
