//! Which files a rule allows.

use proptest::prelude::*;
use serde_json::json;

use super::Outcome::{Allowed, Asked};
use super::*;
use crate::policy::paths::Glob;

#[test]
fn a_path_pattern_covers_files_by_their_real_place() {
    // (pattern, path, covered)
    let table = [
        ("src/**", "src/a", true),
        ("src/**", "src/deep/er/a", true),
        ("src/**", "src", true),
        ("src/**", "./src//a", true),
        ("src/**", "/work/src/a", true),
        ("src/**", "src/x/../a", true),
        ("src/**", "near/a", false),
        ("src/**", "src-old/x", false),
        ("src/**", "srcx", false),
        ("src/**", "SRC/a", false),
        ("src/**", "src/../b", false),
        ("src/**", "src/../../etc/passwd", false),
        ("src/**", "/src/a", false),
        ("src/**", "out/a", false),
        ("src/**", "~/src/a", false),
        ("src/", "src/a/b", true),
        ("src/", "srca", false),
        ("src", "src", true),
        ("src", "src/a", false),
        ("./src/**", "src/a", true),
        ("*", "a", true),
        ("*", "a/b", false),
        ("**", "a/b/c", true),
        ("**", "/etc/passwd", false),
        ("**", "out/passwd", false),
        ("**", "lost/x", false),
        ("**", "near/x", true),
        ("*.rs", "main.rs", true),
        ("*.rs", "src/main.rs", false),
        ("**/*.rs", "main.rs", true),
        ("**/*.rs", "a/b/main.rs", true),
        ("**/*.rs", "a/b/main.rs.bak", false),
        ("src/*/mod.rs", "src/a/mod.rs", true),
        ("src/*/mod.rs", "src/a/b/mod.rs", false),
        ("src/**/mod.rs", "src/mod.rs", true),
        ("src/**/mod.rs", "src/a/b/mod.rs", true),
        ("a?c", "abc", true),
        ("a?c", "a/c", false),
        ("a?c", "ac", false),
        ("a*b*c", "aXbYc", true),
        ("a*b*c", "aXc", false),
        ("app/[id]/*", "app/[id]/page.tsx", true),
        ("app/[id]/*", "app/i/page.tsx", false),
        ("/work/**", "a", true),
        ("/**", "a", true),
        ("/etc/**", "out/passwd", false),
    ];
    for (pattern, path, covered) in table {
        let rules = [files_rule(Effect::Allow, Some(ToolKind::Edit), &[pattern])];
        let got = outcome(&agent(1), &rules, edit(path));
        assert_eq!(got == Allowed, covered, "`{pattern}` for {path:?}");
    }
}

#[test]
fn all_files_of_a_call_must_be_covered_however_it_names_them() {
    let rules = [files_rule(Effect::Allow, None, &["src/**", "docs/**"])];
    let with = |locations: &[&str], input| {
        let mut call = edit("src/a");
        call.locations = locations.iter().map(|&location| location.to_owned()).collect();
        call.input = input;
        call
    };
    let moved = |input| {
        let mut call = tool(ToolKind::Move, "Move");
        call.input = input;
        call
    };
    let table = [
        (with(&[], json!(null)), Allowed),
        (with(&["docs/b:3"], json!(null)), Allowed),
        (with(&["b:3"], json!(null)), Asked),
        (with(&[], json!({"file_path": "/work/src/a"})), Allowed),
        (with(&[], json!({"file_path": "/etc/passwd"})), Asked),
        (with(&[], json!({"files": ["src/a", "b"]})), Asked),
        (moved(json!({"source": "src/a", "destination": "docs/a"})), Allowed),
        (moved(json!({"source": "src/a", "destination": "/etc/a"})), Asked),
        (moved(json!({"from": "src/a", "to": "b"})), Asked),
        (moved(json!(null)), Asked),
    ];
    for (call, expected) in table {
        assert_eq!(outcome(&agent(1), &rules, call.clone()), expected, "{call:?}");
    }
    let mut execute = run("cat src/a");
    execute.locations.push("src/a".into());
    assert_eq!(outcome(&agent(1), &rules, execute), Asked);
}

#[test]
fn a_folder_behind_a_link_is_the_same_folder() {
    // `/home` leads to `/usr/home`.
    let at_home = Agent { cwd: "/home/ann/project".into(), ..agent(1) };
    let rules = [files_rule(Effect::Allow, None, &["src/**"])];
    assert_eq!(outcome(&at_home, &rules, edit("src/a")), Allowed);
    assert_eq!(outcome(&at_home, &rules, edit("/usr/home/ann/project/src/a")), Allowed);
    assert_eq!(outcome(&at_home, &rules, edit("/usr/home/ann/b")), Asked);
    assert_eq!(kept_globs("/home/ann", "src/**", &resolve), ["/home/ann/src/**", "/usr/home/ann/src/**"]);
    assert_eq!(kept_globs("/work", "/**/x", &resolve), ["/**/x"]);
    assert_eq!(kept_globs("/work", "src/", &resolve), ["/work/src/**"]);
    assert_eq!(kept_globs("/work", "near/*", &resolve), ["/work/near/*", "/work/src/*"]);
    let accept = Agent { permissions: PermissionMode::AcceptEdits, ..at_home };
    assert_eq!(outcome(&accept, &[], edit("a")), Allowed);
}

#[test]
fn what_is_no_path_pattern_is_told() {
    for pattern in ["", "../x", "src/../x", "~/x", "a\nb", "a\u{202e}b"] {
        assert!(Glob::check(pattern).is_err(), "{pattern:?}");
    }
    assert!(Subject::Files { patterns: vec![] }.check().is_err());
}

#[test]
fn a_title_pattern_covers_other_tools_but_neither_commands_nor_files() {
    let rules = [rule(Effect::Allow, None, Subject::Title { pattern: "github: get_*".into() })];
    let table = [
        (tool(ToolKind::Other, "github: get_issue"), Allowed),
        (tool(ToolKind::Fetch, "github: get_page"), Allowed),
        (tool(ToolKind::Other, "github: delete"), Asked),
        (tool(ToolKind::Other, "x github: get_issue"), Asked),
        (tool(ToolKind::Other, "GitHub: get_issue"), Asked),
        (tool(ToolKind::Execute, "github: get_issue"), Asked),
        (tool(ToolKind::Edit, "github: get_issue"), Asked),
        (tool(ToolKind::Delete, "github: get_issue"), Asked),
        (ToolCall { tool: ToolKind::Other, title: "github: get_x".into(), ..edit("a") }, Asked),
    ];
    for (call, expected) in table {
        assert_eq!(outcome(&agent(1), &rules, call.clone()), expected, "{call:?}");
    }
}

proptest! {
    #[test]
    fn no_path_brings_the_policy_down(pattern in any::<String>(), path in any::<String>()) {
        let glob = Glob::new("/work", &pattern);
        glob.fits(&path, false);
        glob.fits(&path, true);
        let rules = [files_rule(Effect::Deny, None, &["**/x"]), files_rule(Effect::Allow, None, &["src/**"])];
        verdict(&agent(1), &rules, edit(&path));
    }

    #[test]
    fn a_path_that_a_folders_pattern_covers_is_in_that_folder(
        parts in proptest::collection::vec(prop_oneof![
            Just(".."), Just("."), Just("src"), Just("out"), Just("near"), Just("a"), Just(""),
        ], 1..8),
    ) {
        let path = parts.join("/");
        let rules = [files_rule(Effect::Allow, None, &["src/**"])];
        if outcome(&agent(1), &rules, edit(&path)) == Allowed {
            let real = resolve(&format!("/work/{path}")).unwrap();
            let absolute = resolve(&path).unwrap();
            let place = if path.starts_with('/') { absolute } else { real };
            prop_assert!(place == "/work/src" || place.starts_with("/work/src/"), "{path} is {place}");
        }
    }
}
