//! Which command lines a pattern allows.

use proptest::prelude::*;
use serde_json::json;

use super::Outcome::{Allowed, Asked};
use super::*;
use crate::policy::command::Pattern;

fn covered(patterns: &[&str], command: &str) -> bool {
    let rules: Vec<Rule> = patterns.iter().map(|pattern| command_rule(Effect::Allow, pattern)).collect();
    outcome(&agent(1), &rules, run(command)) == Allowed
}

#[test]
fn a_pattern_covers_its_command_however_it_is_written() {
    // (pattern, command)
    let table = [
        ("git *", "git"),
        ("git *", "git status"),
        ("git *", "  git   status  "),
        ("git *", "\tgit\tstatus\n"),
        ("git *", "git log --oneline -n 5"),
        ("git *", "git commit -m 'a; b && c | d > e'"),
        ("git *", "git commit -m \"a; b (c)\""),
        ("git *", "git commit -m \"it costs 5$\""),
        ("git *", "git commit -m fix\\;it"),
        ("git *", "git commit -m \"say \\\"hi\\\"\""),
        ("git *", "\"git\" status"),
        ("git *", "g\\it status"),
        ("git *", "git sta\\\ntus"),
        ("git status -s", "git \\\n  status \\\n  -s"),
        ("git *", "\\\ngit status"),
        ("git *", "git status 2>&1"),
        ("git *", "git status >/dev/null 2>&1"),
        ("git *", "git status 2> /dev/null"),
        ("git *", "git status &>/dev/null"),
        ("git *", "git status < /dev/null"),
        ("git *", "git status; git log"),
        ("git *", "git status && git log || git diff"),
        ("git *", "git log | git shortlog"),
        ("git *", "git status\ngit log"),
        ("git *", "git add src/*.rs"),
        ("git *", "git show HEAD~2"),
        ("git *", "git rev-parse HEAD^"),
        ("git status", "git status"),
        ("git status", "git 'status'"),
        ("git status *", "git status"),
        ("git status *", "git status -s src"),
        ("cargo test *", "cargo test -p model -- --nocapture"),
        ("cargo test *", "cargo test a*"),
        ("npm run build", "npm run build"),
        ("npm run build:*", "npm run build:web"),
        ("git * --dry-run", "git push --dry-run"),
        ("ls src/*", "ls src/model"),
        ("cat *.md", "cat README.md"),
        ("echo 'a b' *", "echo 'a b' c"),
        ("echo \\*", "echo '*'"),
        ("/usr/bin/git *", "/usr/bin/git status"),
        ("./run.sh *", "./run.sh fast"),
        ("git *", "bash -lc 'git status'"),
        ("git *", "/bin/bash -lc \"git status && git log\""),
        ("git *", "/bin/zsh -c 'sh -c \"git log\"'"),
        ("sudo apt *", "sudo apt install jq"),
        ("timeout 5 git *", "timeout 5 git status"),
        ("env", "env"),
        ("bash build.sh *", "bash build.sh --fast"),
        ("find . -name * -delete", "find . -name x -delete"),
        ("git -c core.pager=cat *", "git -c core.pager=cat log"),
        ("find *", "find . ! -name x"),
        ("[ *", "[ -f x ]"),
        ("test *", "test a != b"),
        ("*", "anything at all"),
        ("grep *", "grep 'a\\.b' -- file"),
        ("grep *", "grep -rn 'größe' src"),
    ];
    for (pattern, command) in table {
        assert!(covered(&[pattern], command), "`{pattern}` covers {command:?}");
    }
}

#[test]
fn a_pattern_covers_nothing_else() {
    let table = [
        // Other commands and other words.
        ("git *", "gitk"),
        ("git *", "git-shell -c x"),
        ("git *", "rm -rf x"),
        ("git *", "/usr/bin/git status"),
        ("git *", "/tmp/git status"),
        ("git *", "./git status"),
        ("git *", "GIT status"),
        ("git *", ""),
        ("git *", "   "),
        ("git *", "\\"),
        ("git *", "''"),
        ("git status", "git"),
        ("git status", "git status -s"),
        ("git status *", "git stash"),
        ("git status *", "git statusx"),
        ("git status *", "git \"status -s\""),
        ("npm run build", "npm run build:evil"),
        ("npm run build:*", "npm run build evil"),
        ("git * --dry-run", "git push origin --dry-run"),
        ("git * --dry-run", "git --dry-run"),
        ("ls src/*", "ls src/../../etc"),
        ("ls src/*", "ls srcx"),
        ("ls src/*", "ls src/a b"),
        ("cat *.md", "cat ../secret.md"),
        ("echo \\*", "echo x"),
        // More than one command.
        ("git *", "git status; rm -rf x"),
        ("git *", "git status;rm -rf x"),
        ("git *", "git status ;; rm x"),
        ("git *", "git status && rm -rf x"),
        ("git *", "git status || rm -rf x"),
        ("git *", "git log | sh"),
        ("git *", "git log |& sh"),
        ("git *", "git status & rm -rf x"),
        ("git *", "git status &"),
        ("git *", "git status&rm -rf x"),
        ("git *", "git status\nrm -rf x"),
        ("git *", "git status\n\n  rm -rf x"),
        ("git *", "git status\r\nrm -rf x"),
        ("git *", "git status\rrm -rf x"),
        ("git *", "rm -rf x; git status"),
        ("git *", "(git status; rm -rf x)"),
        ("git *", "(git status)"),
        ("git *", "{ git status; rm -rf x; }"),
        ("git *", "! git status"),
        ("git *", "if git status; then rm -rf x; fi"),
        ("git *", "while git status; do git log; done"),
        ("git *", "for x in a; do git add a; done"),
        ("git *", "case x in x) git log;; esac"),
        ("git *", "git() { rm -rf x; }; git status"),
        ("git *", "function git { rm -rf x; }\ngit status"),
        ("git *", "alias git=rm; git status"),
        ("git *", "git status # it's fine\nrm -rf x"),
        ("git *", "git status # ; rm -rf x"),
        ("git *", "# git\nrm x"),
        ("git *", "git status \\\n; rm -rf x"),
        // Substitutions and expansions.
        ("git *", "git log $(rm -rf x)"),
        ("git *", "git log \"$(rm -rf x)\""),
        ("git *", "git log `rm -rf x`"),
        ("git *", "git log \"`rm -rf x`\""),
        ("git *", "git diff <(rm -rf x)"),
        ("git *", "git diff >(rm -rf x)"),
        ("git *", "git log \"$\\\n(rm x)\""),
        ("git *", "git log $\\\n{X}"),
        ("git *", "git log \\\n# '\nrm x\n#'"),
        ("git *", "git log $X"),
        ("git *", "git log \"${X}\""),
        ("git *", "git log ${X:-$(rm x)}"),
        ("git *", "git log $((1+1))"),
        ("git *", "git log $'\\n'rm"),
        ("git *", "git log $\"x\""),
        ("git *", "git {log,push}"),
        ("git *", "git log a{1..3}"),
        ("git *", "{git,log}"),
        ("git *", "$GIT status"),
        ("git *", "g*t status"),
        ("git *", "~/git status"),
        ("git *", "git log !!"),
        ("git *", "git log !rm"),
        ("git status *", "git s* x"),
        ("git add ?", "git add *"),
        // Redirections.
        ("git *", "git log > /etc/passwd"),
        ("git *", "git log >> x"),
        ("git *", "git log >x"),
        ("git *", "git log >| x"),
        ("git *", "git log &> x"),
        ("git *", "git log &>/dev/null rm x"),
        ("git *", "git log &>/dev/null 2>&1 rm x"),
        ("git *", "git log >& x"),
        ("git *", "git log 2>x"),
        ("git *", "git log < x"),
        ("git *", "git log <> x"),
        ("git *", "git log > /dev/null/../../etc/x"),
        ("git *", "git log > $X"),
        ("git *", "> x git log"),
        ("git *", "git apply <<END\nx\nEND"),
        ("git *", "git apply <<< x"),
        ("git *", "git log >"),
        // Assignments.
        ("git *", "GIT_PAGER=evil git log"),
        ("git *", "PATH=/tmp git log"),
        ("git *", "X=1; git log"),
        ("git *", "a[0]=1 git log"),
        // What is not well formed, or not what it looks like.
        ("git *", "git log 'open"),
        ("git *", "git log \"open"),
        ("git *", "git log `open"),
        ("git *", "git log $(open"),
        ("git *", "git log ${open"),
        ("git *", "git log )"),
        ("git *", "git log \\"),
        ("git *", "git\u{a0}status"),
        ("git *", "git status\u{a0}; rm x"),
        ("git *", "git status \u{2028} rm x"),
        ("git *", "git log \u{202e}x"),
        ("git *", "git log \u{200b}x"),
        ("git *", "git log \u{0}x"),
        ("git *", "git log \u{1b}[2K"),
        ("git *", "git log \u{7f}"),
        ("git *", "git log 'a\\'' ; rm x #'"),
        // Programs that run others.
        ("git *", "env git status"),
        ("git *", "sudo git status"),
        ("git *", "time git status"),
        ("git *", "nohup git status"),
        ("git *", "exec git status"),
        ("git *", "command git status"),
        ("git *", "eval 'git status'"),
        ("git *", "xargs git add"),
        ("git *", "bash -c 'git status; rm -rf x'"),
        ("git *", "bash -c 'git status' x"),
        ("git *", "bash -ic 'git status'"),
        ("git *", "/tmp/bash -c 'git status'"),
        ("git *", "bash -c \"git log $X\""),
        ("git *", "bash -c 'git log $X'"),
        ("git *", "fish -c 'git status'"),
        ("sudo *", "sudo rm -rf /"),
        ("env *", "env X=1 rm x"),
        ("env *", "env rm x"),
        ("time *", "time rm x"),
        ("nohup *", "nohup rm x"),
        ("xargs *", "xargs rm"),
        ("xargs -n1 *", "xargs -n1 rm"),
        ("exec *", "exec rm"),
        ("eval *", "eval rm"),
        ("timeout *", "timeout 5 rm x"),
        ("timeout 5 *", "timeout 5 rm x"),
        ("bash *", "bash -c 'rm x'"),
        ("bash *", "bash evil.sh"),
        ("sh -c *", "sh -c 'rm x'"),
        ("sudo bash *", "sudo bash -c 'rm x'"),
        ("sudo -u root *", "sudo -u root rm x"),
        ("* status", "sudo status"),
        ("*", "sudo rm x"),
        ("*", "sh"),
        ("*", "FOO=1 ls"),
        ("source *", "source evil"),
        (". *", ". ./evil"),
        ("trap *", "trap 'rm x' EXIT"),
        ("find *", "find . -exec rm {} ;"),
        ("find *", "find . -exec rm {} \\;"),
        ("find *", "find . -execdir rm {} +"),
        ("find *", "find . -delete"),
        ("git *", "git -c alias.x='!rm -rf x' x"),
        ("git *", "git -c core.pager='rm x' log"),
        ("git *", "git --exec-path=/tmp status"),
        ("git *", "git --exec-pa=/tmp status"),
        ("git *", "git -C /other status"),
        ("git *", "git rebase -x 'rm x' main"),
        ("git *", "git rebase --exe 'rm x' main"),
        ("git *", "git clone --upload-pack='rm x' y"),
        ("git *", "git submodule foreach 'rm x'"),
        ("git *", "git bisect run rm x"),
        ("git *", "git config alias.x '!rm'"),
        ("git *", "git grep -O'rm x' y"),
        ("git *", "git fetch *"),
        ("git log *", "git log --output=/etc/x"),
        ("tar *", "tar xf a --to-command='rm x'"),
        ("tar *", "tar cf a *"),
        ("rg *", "rg --pre evil x"),
        ("sort *", "sort -o /etc/x y"),
        ("sed *", "sed -i s/a/b/ x"),
        ("fd *", "fd -x rm"),
        ("ssh *", "ssh -o ProxyCommand=evil host"),
    ];
    for (pattern, command) in table {
        assert!(!covered(&[pattern], command), "`{pattern}` does not cover {command:?}");
    }
}

#[test]
fn several_rules_may_cover_one_line_together() {
    let both = ["git *", "cargo test *"];
    assert!(covered(&both, "git pull && cargo test"));
    assert!(covered(&both, "bash -lc 'git pull && cargo test'"));
    assert!(!covered(&both, "git pull && cargo run"));
    assert!(!covered(&["git *"], "git pull && cargo test"));
}

#[test]
fn every_command_that_a_call_names_must_be_covered() {
    let rules = [command_rule(Effect::Allow, "git *")];
    let call = |title: &str, input| {
        let mut call = tool(ToolKind::Execute, title);
        call.input = input;
        call
    };
    let table = [
        (call("git status", json!(null)), Allowed),
        (call("git status", json!({"command": "git status"})), Allowed),
        (call("`git status`", json!({"command": "git status"})), Allowed),
        (call("git log", json!({"command": "git log\ngit status"})), Allowed),
        (call("git status", json!({"command": "/bin/bash -lc 'git status'", "cwd": "/work"})), Allowed),
        (call("git status", json!("git status")), Allowed),
        (call("git status", json!({"cmd": ["git", "status"]})), Allowed),
        (call("git status", json!({"command": ["bash", "-lc", "git status"]})), Allowed),
        (call("git log; x", json!({"command": ["git", "log; x"]})), Allowed),
        (
            call("git", json!({"command": "git status", "cwd": "/work/sub", "run_in_background": false})),
            Allowed,
        ),
        (call("git status", json!({"command": "rm -rf x"})), Asked),
        (call("rm -rf x", json!({"command": "git status"})), Asked),
        (call("Look around", json!({"command": "git status"})), Asked),
        (call("git status", json!({"command": "git status", "cmd": "rm x"})), Asked),
        (call("git status", json!({"command": ["bash", "-lc", "rm x"]})), Asked),
        (call("git status", json!({"command": ["git", 1]})), Asked),
        (call("git status", json!({"command": []})), Asked),
        (call("git status", json!({"command": {"a": "git status"}})), Asked),
        (call("git status", json!({"script": "rm x"})), Asked),
        (call("git status", json!(["git", "status"])), Asked),
        (call("git status", json!({"command": "git status", "cwd": "/etc"})), Asked),
        (call("git status", json!({"command": "git status", "cwd": ".."})), Asked),
        (call("git status", json!({"command": "git status", "workdir": "out"})), Asked),
        (call("git status", json!({"command": "git status", "env": {"PATH": "/tmp"}})), Asked),
        (call("git status", json!({"command": "git status", "dangerouslyDisableSandbox": true})), Asked),
        (call("git status", json!({"command": "git status", "with_escalated_permissions": true})), Asked),
        (call("git status", json!({"command": "git status", "run_in_background": true})), Asked),
    ];
    for (call, expected) in table {
        assert_eq!(outcome(&agent(1), &rules, call.clone()), expected, "{call:?}");
    }
}

#[test]
fn a_command_pattern_is_about_commands_alone() {
    let rules = [command_rule(Effect::Allow, "*")];
    for kind in [ToolKind::Read, ToolKind::Edit, ToolKind::Other, ToolKind::Fetch] {
        let call = ToolCall { tool: kind, ..run("git status") };
        assert_eq!(outcome(&agent(1), &rules, call), Asked, "{kind:?}");
    }
    let other_kind = Rule { tool: Some(ToolKind::Other), ..command_rule(Effect::Allow, "git *") };
    assert_eq!(outcome(&agent(1), &[other_kind], run("git status")), Asked);
}

#[test]
fn what_is_no_pattern_is_told() {
    for text in [
        "",
        "  ",
        "git status; rm x",
        "a && b",
        "a | b",
        "a > b",
        "$(a)",
        "`a`",
        "a $X",
        "(a)",
        "a 'b",
        "a \"b",
        "a\\",
        "X=1 a",
        "a\nb",
        "a\u{a0}b",
        "a\u{202e}",
    ] {
        assert!(Pattern::parse(text).is_err(), "{text:?}");
    }
    assert!(Pattern::parse(&"a".repeat(1001)).is_err());
    for text in ["git *", "*", "a 'b; c'", "a \\;", "find . -name x", "./a ~/b [x] {y}"] {
        assert!(Pattern::parse(text).is_ok(), "{text:?}");
    }
}

#[test]
fn deep_and_long_lines_are_not_read_for_ever() {
    for text in ["$(", "`", "(", "${", "\"$(", "bash -c '", "<(", "$(("] {
        assert!(!covered(&["git *"], &format!("git log {}", text.repeat(5000))), "{text}");
    }
    assert!(!covered(&["git *"], &format!("git log {}", "x ".repeat(50_000))));
}

#[test]
fn a_line_made_to_be_slow_is_not() {
    let rules = [command_rule(Effect::Deny, "git push *"), files_rule(Effect::Deny, None, &["**/.env"])];
    let bypass = in_mode(PermissionMode::Bypass);
    let began = std::time::Instant::now();
    for text in [
        format!("sudo {}", "git ".repeat(12_000)),
        format!("sudo {}", "a=!b= ".repeat(9_000)),
        (0..12).fold("ls".to_owned(), |inner, _| format!("sudo '{}' a=b", inner.replace('\'', "'\\''"))),
    ] {
        assert_eq!(outcome(&bypass, &rules, run(&text)), Asked, "{}", &text[..20]);
    }
    assert!(began.elapsed() < std::time::Duration::from_secs(5), "{:?}", began.elapsed());
}

fn shellish() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("git"),
        Just("rm"),
        Just(" "),
        Just(" "),
        Just("'"),
        Just("\""),
        Just("\\"),
        Just("`"),
        Just("$("),
        Just("${"),
        Just("$"),
        Just(")"),
        Just("("),
        Just("}"),
        Just("{"),
        Just(";"),
        Just("&"),
        Just("|"),
        Just("<"),
        Just(">"),
        Just("<<"),
        Just("\n"),
        Just("#"),
        Just("*"),
        Just("!"),
        Just("="),
        Just("x"),
        Just("1"),
        Just("~"),
        Just("ü"),
        Just("\u{a0}"),
        Just("-c"),
        Just("bash"),
        Just("if"),
        Just("do"),
        Just("[["),
        Just("/dev/null"),
    ];
    proptest::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn no_text_brings_the_reader_down(text in prop_oneof![shellish(), any::<String>()]) {
        let rules = [command_rule(Effect::Allow, "git *"), command_rule(Effect::Deny, "rm -rf *")];
        verdict(&agent(1), &rules, run(&text));
        drop(Pattern::parse(&text));
    }

    #[test]
    fn another_command_behind_a_covered_one_uncovers_it(
        words in proptest::collection::vec("[a-z0-9./:=@%+-]{1,8}|'[^'\\\\\\x00-\\x1f\\x7f-\\xff]{0,8}'", 0..5),
        operator in prop_oneof![
            Just(";"), Just(" ; "), Just("&&"), Just(" || "), Just("|"), Just("&"), Just("\n"), Just(" |& "), Just(" & "),
        ],
        other in prop_oneof![Just("rm -rf x"), Just("sh"), Just("(rm x)"), Just("X=1 rm"), Just("$(rm x)"), Just("`rm x`")],
    ) {
        let command = format!("echo {}", words.join(" "));
        prop_assume!(covered(&["echo *"], &command));
        let longer = format!("{command}{operator}{other}");
        prop_assert!(!covered(&["echo *"], &longer), "{longer:?}");
        let before = format!("{other}{operator}{command}");
        prop_assert!(!covered(&["echo *"], &before), "{before:?}");
    }

    #[test]
    fn what_is_covered_is_no_line_that_names_another_program(text in shellish()) {
        // Whatever quoting does: a covered line of unquoted text has no operators but between covered commands.
        if !text.contains(['\'', '"', '\\']) && covered(&["git *"], &text) {
            for part in text.split([';', '&', '|', '\n']) {
                let part = part.trim();
                let redirects = part.starts_with(['>', '<', '1']);
                prop_assert!(part.is_empty() || redirects || part.starts_with("git"), "{text:?}: {part:?}");
            }
        }
    }
}
