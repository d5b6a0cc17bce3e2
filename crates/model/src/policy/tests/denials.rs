//! Rules that deny: over everything that allows, and where it cannot be told, a person is asked.

use serde_json::json;

use super::Outcome::{Allowed, Asked, Denied};
use super::*;

#[test]
fn a_denied_command_is_found_wherever_it_stands() {
    let table = [
        ("rm *", "rm -rf x", Denied),
        ("rm *", "RM -rf x", Denied),
        ("rm *", "/bin/rm -rf x", Denied),
        ("rm *", "ls; rm x", Denied),
        ("rm *", "ls && rm x || true", Denied),
        ("rm *", "ls | rm x", Denied),
        ("rm *", "ls & rm x", Denied),
        ("rm *", "ls\nrm x", Denied),
        ("rm *", "(cd /; rm x)", Denied),
        ("rm *", "{ rm x; }", Denied),
        ("rm *", "if true; then rm x; fi", Denied),
        ("rm *", "for f in *; do rm \"$f\"; done", Denied),
        ("rm *", "for f do rm x; done", Denied),
        ("rm *", "case a in a) rm x;; esac", Denied),
        ("rm *", "! rm x", Denied),
        ("rm *", "X=1 rm x", Denied),
        ("rm *", "\\\n rm x", Denied),
        ("rm *", "r\\m x", Denied),
        ("rm *", "'r'm x", Denied),
        ("rm *", "f() { rm x; }; f", Denied),
        ("rm *", "echo $(rm x)", Denied),
        ("rm *", "echo \"$(rm x)\"", Denied),
        ("rm *", "echo `rm x`", Denied),
        ("rm *", "echo \"`rm x`\"", Denied),
        ("rm *", "echo ${A:-$(rm x)}", Denied),
        ("rm *", "cat <(rm x)", Denied),
        ("rm *", "sudo rm x", Denied),
        ("rm *", "sudo -u root rm x", Denied),
        ("rm *", "env A=b rm x", Denied),
        ("rm *", "ls | xargs -n1 rm", Denied),
        ("rm *", "find . -exec rm {} ;", Denied),
        ("rm *", "bash -c 'rm x'", Denied),
        ("rm *", "bash -lc 'ls; rm x'", Denied),
        ("rm *", "eval 'rm x'", Denied),
        ("rm *", "sudo bash -c 'rm x'", Denied),
        ("rm *", "git -c alias.x='!rm -rf x' x", Denied),
        ("rm *", "time nohup rm x", Denied),
        ("git push *", "git push", Denied),
        ("git push *", "git push origin main", Denied),
        // It may be meant.
        ("git push *", "git -C . push", Asked),
        ("git push *", "git $X", Asked),
        ("rm *", "$X -rf x", Asked),
        ("rm *", "$(echo rm) x", Asked),
        ("rm *", "echo cm0gLXJmIC8K | base64 -d | sh", Asked),
        ("rm *", "sh <<< 'rm x'", Asked),
        ("rm *", "sh <<END\nrm x\nEND", Asked),
        ("rm *", "echo 'open", Asked),
        ("rm *", "ls &>/dev/null rm x", Asked),
        ("rm *", "r?m x", Asked),
        ("rm *", "eval $X", Asked),
        ("rm *", "bash -c \"$X\"", Asked),
        ("git push", "git push origin", Asked),
        // It is not.
        ("rm *", "ls", Allowed),
        ("rm *", "rmdir x", Allowed),
        ("rm *", "echo rm x", Allowed),
        ("rm *", "echo $HOME", Allowed),
        ("rm *", "git commit -m 'rm x'", Allowed),
        ("rm *", "bash build.sh", Allowed),
        ("git push *", "git pull", Allowed),
    ];
    for (pattern, command, expected) in table {
        let rules = [command_rule(Effect::Deny, pattern)];
        let got = outcome(&in_mode(PermissionMode::Bypass), &rules, run(command));
        assert_eq!(got, expected, "`{pattern}` denied, {command:?}");
    }
}

#[test]
fn a_denial_wins_over_every_allowance() {
    let allow = command_rule(Effect::Allow, "git *");
    let deny = Rule { id: RuleId::new(uuid(71)), ..command_rule(Effect::Deny, "git push *") };
    for rules in [[allow.clone(), deny.clone()], [deny.clone(), allow.clone()]] {
        let got = verdict(&agent(1), &rules, run("git push"));
        let Verdict::Settle(Answer::Deny { message }, by) = got else { panic!("{got:?}") };
        assert_eq!(by, SettledBy::Rule { rule: deny.id });
        assert!(message.unwrap().contains("git push *"));
        assert_eq!(outcome(&agent(1), &rules, run("git status")), Allowed);
        assert_eq!(outcome(&agent(1), &rules, run("git status && git push")), Denied);
    }
    let edits = files_rule(Effect::Deny, Some(ToolKind::Edit), &["*.lock"]);
    assert_eq!(outcome(&in_mode(PermissionMode::AcceptEdits), &[edits], edit("Cargo.lock")), Denied);
}

#[test]
fn a_denied_command_may_hide_in_any_field_and_kind() {
    let rules = [command_rule(Effect::Deny, "rm *")];
    let call = |kind, title: &str, input| {
        let mut call = tool(kind, title);
        call.input = input;
        call
    };
    let table = [
        (call(ToolKind::Execute, "rm x", json!(null)), Denied),
        (call(ToolKind::Execute, "ls", json!({"command": "rm x"})), Denied),
        (call(ToolKind::Execute, "rm x", json!({"command": "ls"})), Denied),
        (call(ToolKind::Execute, "ls", json!({"cmd": ["rm", "x"]})), Denied),
        (call(ToolKind::Execute, "ls", json!({"cmd": ["bash", "-c", "rm x"]})), Denied),
        (call(ToolKind::Other, "ls", json!({"command": "rm x"})), Denied),
        (call(ToolKind::Read, "ls", json!("rm x")), Denied),
        (call(ToolKind::Execute, "ls", json!({"command": [1]})), Asked),
        (call(ToolKind::Execute, "don't worry", json!({"command": "ls"})), Allowed),
    ];
    for (call, expected) in table {
        assert_eq!(outcome(&in_mode(PermissionMode::Bypass), &rules, call.clone()), expected, "{call:?}");
    }
}

#[test]
fn a_denied_file_is_denied_by_each_of_its_names() {
    let rules = [files_rule(Effect::Deny, None, &["**/.env", "/etc/**", "src/secret/"])];
    let table = [
        (read(".env"), Denied),
        (read("sub/.ENV"), Denied),
        (read("/elsewhere/.env"), Denied),
        (edit("/etc/passwd"), Denied),
        (edit("../etc/passwd"), Denied),
        (read("out/passwd"), Denied),
        (read("out"), Denied),
        (read("src/secret"), Denied),
        (read("near/secret/x"), Denied),
        (run("cat .env"), Asked),
        (run("cat < .env"), Asked),
        (run("curl --data=@x --config=/etc/x y"), Asked),
        (tool(ToolKind::Edit, "no paths"), Asked),
        (read("lost/x"), Asked),
        (read("~/x"), Asked),
        (read(".envrc"), Allowed),
        (read("src/secrets"), Allowed),
        (run("cat README.md"), Allowed),
        (tool(ToolKind::Fetch, "a page"), Allowed),
    ];
    for (call, expected) in table {
        assert_eq!(outcome(&in_mode(PermissionMode::Bypass), &rules, call.clone()), expected, "{call:?}");
    }
}

#[test]
fn a_denied_title_is_denied_in_any_case_and_kind() {
    let deny = rule(Effect::Deny, None, Subject::Title { pattern: "github: *".into() });
    let bypass = in_mode(PermissionMode::Bypass);
    for (title, expected) in [
        ("github: delete_repo", Denied),
        ("GitHub: x", Denied),
        ("gitlab: x", Allowed),
        ("a github: x", Allowed),
    ] {
        assert_eq!(
            outcome(&bypass, std::slice::from_ref(&deny), tool(ToolKind::Other, title)),
            expected,
            "{title}"
        );
    }
    let all_fetching = rule(Effect::Deny, Some(ToolKind::Fetch), Subject::Title { pattern: "*".into() });
    assert_eq!(
        outcome(&bypass, std::slice::from_ref(&all_fetching), tool(ToolKind::Fetch, "a page")),
        Denied
    );
    assert_eq!(outcome(&bypass, &[all_fetching], tool(ToolKind::Other, "x")), Allowed);
}
