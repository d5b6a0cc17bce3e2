//! The configuration through its public face, with real files.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use consort_model::{
    ApprovalPolicy, DriverKind, EnvironmentChange, Limits, PermissionMode, Profile, ProfileId, SandboxMode,
};

use super::*;

fn home() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("config.toml");
    (dir, path)
}

fn profile(id: &str) -> Profile {
    Profile {
        id: ProfileId::new(id),
        name: "My Agent".into(),
        driver: DriverKind::Acp,
        command: Some("agent".into()),
        args: vec!["--acp".into(), "with \"quotes\"".into()],
        environment: ["KEY=value=x", "EMPTY=", "-GONE"]
            .map(|text| EnvironmentChange::try_from(text.to_owned()).unwrap())
            .to_vec(),
        default_model: Some("m".into()),
        default_permissions: PermissionMode::AcceptEdits,
        sandbox_mode: None,
        approval_policy: None,
    }
}

/// A file as a person keeps it.
const KEPT: &str = r#"# My header.

default_profile = "b" # the quick one
unknown_key = { x = 1 }

# About a.
[profiles.a]
driver = "acp"   # odd   spacing
command = 'agent'
args = [
    "--acp", # why
]
future = true

# About b.
[profiles.b]
name = "B"
driver = "claude"

[limits]
companions_per_owner = 5 # more

[other]
x = 1
# the end
"#;

fn kept() -> (tempfile::TempDir, ConfigFile) {
    let (dir, path) = home();
    fs::write(&path, KEPT).unwrap();
    let file = ConfigFile::load(&path).unwrap();
    (dir, file)
}

fn text(file: &ConfigFile) -> String {
    fs::read_to_string(file.path()).unwrap()
}

#[test]
fn the_first_start_writes_the_defaults_for_this_user_only() {
    let (_dir, path) = home();
    let file = ConfigFile::load(&path).unwrap();
    let config = file.config();
    let ids: Vec<&str> = config.profiles.iter().map(|profile| profile.id.as_str()).collect();
    assert_eq!(ids, ["claude", "codex", "gemini", "consort"]);
    assert_eq!(config.default_profile, None, "the first one that can be used is the default");
    assert_eq!(config.limits, Limits::default());
    assert_eq!(config.profiles[0].default_model.as_deref(), Some("opus"));
    assert_eq!(config.profiles[2].command.as_deref(), Some("gemini"));
    assert_eq!(config.profiles[2].args, ["--acp"]);
    assert_eq!(config.profiles[3].driver, DriverKind::Native);
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert!(text(&file).starts_with("# "), "a header says what the file is");
    assert_eq!(ConfigFile::load(&path).unwrap().config(), config);
}

#[test]
fn a_kept_file_is_understood() {
    let (_dir, file) = kept();
    let a = file.config().find("a").unwrap();
    assert_eq!((a.name.as_str(), a.command.as_deref(), a.args.len()), ("a", Some("agent"), 1));
    assert_eq!(file.config().find("B").unwrap().id, ProfileId::new("b"));
    let summaries = file.config().summaries(&RevisionKey::default(), |_| Availability::Unknown);
    assert_eq!(summaries.iter().map(|summary| summary.is_default).collect::<Vec<_>>(), [false, true]);
    assert_eq!(file.config().limits, Limits { companions_per_owner: 5, ..Limits::default() });
}

#[test]
fn an_added_profile_reads_back_and_nothing_else_changes() {
    let (_dir, mut file) = kept();
    file.add_profile(&profile("mine")).unwrap();
    assert_eq!(file.config().find("mine"), Some(&profile("mine")));
    let reread = ConfigFile::load(file.path()).unwrap();
    assert_eq!(reread.config(), file.config());
    // Cutting the new table out gives the old text.
    let text = text(&file);
    let start = text.find("\n[profiles.mine]").unwrap();
    let length = text[start + 2..].find("\n[").map_or(text.len() - start, |end| end + 2);
    let without = format!("{}{}", &text[..start], &text[start + length..]);
    assert_eq!(without.trim_end(), KEPT.trim_end(), "{text}");
    assert!(matches!(file.add_profile(&profile("mine")), Err(ConfigError::ProfileExists { .. })));
}

#[test]
fn replacing_changes_only_the_lines_that_differ() {
    let (_dir, mut file) = kept();
    let mut a = file.config().find("a").unwrap().clone();
    a.command = Some("other".into());
    file.replace_profile(&a).unwrap();
    let expected = KEPT
        .replace("command = 'agent'", "command = \"other\"")
        .replace("future = true\n", "future = true\nname = \"a\"\n");
    assert_eq!(text(&file), expected);
    assert_eq!(file.config().find("a"), Some(&a));
    a.args.clear();
    a.command = None;
    file.replace_profile(&a).unwrap();
    assert_eq!(file.config().find("a"), Some(&a));
    assert!(text(&file).contains("future = true"));
    assert!(matches!(file.replace_profile(&profile("no")), Err(ConfigError::NoSuchProfile { .. })));
}

#[test]
fn the_first_default_comes_below_the_header() {
    let (_dir, path) = home();
    let mut file = ConfigFile::load(&path).unwrap();
    let header = text(&file).split("[profiles").next().unwrap().to_owned();
    file.set_default(Some(&ProfileId::new("gemini"))).unwrap();
    let expected = format!("{header}default_profile = \"gemini\"\n\n[profiles.claude]");
    assert!(text(&file).starts_with(&expected), "{}", text(&file));
    let (_dir, path) = home();
    fs::write(&path, "# About a.\n[profiles.a]\ndriver = \"acp\"\n").unwrap();
    let mut file = ConfigFile::load(&path).unwrap();
    file.set_default(Some(&ProfileId::new("a"))).unwrap();
    assert!(text(&file).ends_with("# About a.\n[profiles.a]\ndriver = \"acp\"\n"), "{}", text(&file));
}

#[test]
fn sandbox_and_approval_policy_are_kept_for_codex_and_refused_for_others() {
    let (_dir, path) = home();
    let mut file = ConfigFile::load(&path).unwrap();
    let mut codex = file.config().find("codex").unwrap().clone();
    assert_eq!(codex.sandbox_mode, Some(SandboxMode::WorkspaceWrite));
    assert_eq!(codex.approval_policy, Some(ApprovalPolicy::OnRequest));
    codex.sandbox_mode = Some(SandboxMode::FullAccess);
    codex.approval_policy = None;
    file.replace_profile(&codex).unwrap();
    assert_eq!(ConfigFile::load(&path).unwrap().config().find("codex"), Some(&codex));
    let claude = Profile { approval_policy: Some(ApprovalPolicy::Never), ..profile("mine") };
    assert!(matches!(file.add_profile(&claude), Err(ConfigError::Broken { .. })));
    assert_eq!(ConfigFile::load(&path).unwrap().config(), file.config());
}

#[test]
fn removing_takes_a_table_with_its_comment_and_the_default_with_it() {
    let (_dir, mut file) = kept();
    file.remove_profile(&ProfileId::new("a")).unwrap();
    let start = KEPT.find("# About a.").unwrap();
    let end = KEPT.find("# About b.").unwrap();
    let expected = format!("{}{}", &KEPT[..start], &KEPT[end..]);
    assert_eq!(text(&file), expected);
    file.remove_profile(&ProfileId::new("b")).unwrap();
    assert_eq!(file.config().default_profile, None);
    assert!(text(&file).starts_with("# My header.\n"), "{}", text(&file));
    assert!(text(&file).contains("unknown_key = { x = 1 }"));
    assert!(matches!(file.remove_profile(&ProfileId::new("b")), Err(ConfigError::NoSuchProfile { .. })));
}

#[test]
fn a_header_above_a_removed_table_stays() {
    let (_dir, path) = home();
    fs::write(&path, "# Header.\n\n# About a.\n[profiles.a]\ndriver = \"acp\"\n\n[limits]\n").unwrap();
    let mut file = ConfigFile::load(&path).unwrap();
    file.remove_profile(&ProfileId::new("a")).unwrap();
    assert!(text(&file).starts_with("# Header.\n"), "{}", text(&file));
    assert!(!text(&file).contains("About a"), "{}", text(&file));
}

#[test]
fn the_default_is_set_and_taken_away_in_place() {
    let (_dir, mut file) = kept();
    file.set_default(Some(&ProfileId::new("a"))).unwrap();
    assert_eq!(text(&file), KEPT.replace("default_profile = \"b\"", "default_profile = \"a\""));
    assert!(file.set_default(Some(&ProfileId::new("no"))).is_err());
    file.set_default(None).unwrap();
    assert_eq!(file.config().default_profile, None);
    assert!(text(&file).starts_with("# My header.\n"));
    file.set_default(Some(&ProfileId::new("b"))).unwrap();
    assert_eq!(ConfigFile::load(file.path()).unwrap().config().default_profile, Some(ProfileId::new("b")));
}

#[test]
fn limits_are_written_where_they_differ_and_nothing_else_changes() {
    let (_dir, mut file) = kept();
    let mut limits = file.config().limits;
    limits.companions_per_owner = 2;
    limits.tree_cents = 500;
    file.set_limits(&limits).unwrap();
    let written = "companions_per_owner = 2 # more\ntree_cents = 500\n";
    assert_eq!(text(&file), KEPT.replace("companions_per_owner = 5 # more\n", written));
    assert_eq!(ConfigFile::load(file.path()).unwrap().config().limits, limits);
    let (dir, path) = home();
    let mut fresh = ConfigFile::load(&path).unwrap();
    fresh.set_limits(&limits).unwrap();
    assert_eq!(ConfigFile::load(&path).unwrap().config().limits, limits);
    drop(dir);
}

#[test]
fn keys_are_set_and_taken_away_and_nothing_else_changes() {
    let (_dir, mut file) = kept();
    let with = |keys: &str| KEPT.replace("# the end\n", &format!("\n[keys]\n{keys}# the end\n"));
    file.set_keys("palette", Some(&["ctrl-k".to_owned()])).unwrap();
    file.set_keys("quit", Some(&["ctrl-q".to_owned(), "f10".to_owned()])).unwrap();
    assert_eq!(text(&file), with("palette = \"ctrl-k\"\nquit = [\"ctrl-q\", \"f10\"]\n"));
    file.set_keys("palette", None).unwrap();
    file.set_keys("help", None).unwrap();
    assert_eq!(text(&file), with("quit = [\"ctrl-q\", \"f10\"]\n"));
}

#[test]
fn edits_by_others_are_noticed_and_taken_up() {
    let (_dir, mut file) = kept();
    assert!(!file.changed());
    fs::write(file.path(), format!("{KEPT}# theirs\n")).unwrap();
    assert!(file.changed());
    file.add_profile(&profile("mine")).unwrap();
    assert!(text(&file).contains("# theirs"));
    assert!(!file.changed());
}

#[test]
fn a_broken_file_is_left_alone_and_the_last_good_one_is_at_hand() {
    let (_dir, mut file) = kept();
    let path = file.path().to_owned();
    let broken = "[profiles.a\ndriver = 1";
    fs::write(&path, broken).unwrap();
    assert!(matches!(ConfigFile::load(&path), Err(ConfigError::Broken { line: 1, .. })));
    assert!(matches!(file.add_profile(&profile("mine")), Err(ConfigError::Broken { .. })));
    let mut last_good = ConfigFile::last_good(&path).unwrap();
    assert_eq!(last_good.config(), file.config());
    assert!(last_good.set_default(None).is_err());
    assert_eq!(fs::read_to_string(&path).unwrap(), broken);
    fs::write(&path, KEPT).unwrap();
    last_good.add_profile(&profile("mine")).unwrap();
}

#[test]
fn what_cannot_be_understood_is_named_with_its_place() {
    let facts = [
        ("[profiles.a]\nname = \"A\"\n", 1, 1, "`profiles.a` names no `driver`"),
        (
            "[profiles.a]\ndriver = \"cobol\"\n",
            2,
            10,
            "`profiles.a.driver`: unknown driver `cobol`: use one of",
        ),
        ("[profiles.a]\ndriver = 7\n", 2, 10, "`profiles.a.driver`: it must be a text"),
        (
            "[profiles.a]\ndriver = \"acp\"\nenvironment = [\"A=1\", \"hunter2\"]\n",
            3,
            23,
            "`profiles.a.environment`: an environment entry is KEY=VALUE",
        ),
        ("[profiles.a]\ndriver = \"acp\"\nargs = [1]\n", 3, 9, "`profiles.a.args`: it must be a list"),
        (
            "[profiles.a]\ndriver = \"acp\"\ndefault_permissions = \"all\"\n",
            3,
            23,
            "`profiles.a.default_permissions`: unknown permission mode `all`",
        ),
        (
            "[profiles.a]\ndriver = \"acp\"\nsandbox_mode = \"readOnly\"\n",
            3,
            16,
            "`profiles.a.sandbox_mode`: only the driver `codex` has it, and this profile's is `acp`",
        ),
        (
            "[profiles.a]\ndriver = \"codex\"\napproval_policy = \"maybe\"\n",
            3,
            19,
            "`profiles.a.approval_policy`: unknown approval policy `maybe`: use one of untrusted, onRequest",
        ),
        ("default_profile = \"x\"\n", 1, 19, "`default_profile` names `x`"),
        ("[limits]\nsubagents_total = -1\n", 2, 19, "`limits.subagents_total`: it must be a whole number"),
        ("profiles = 1\n", 1, 12, "`profiles` must be a table"),
        ("[profiles]\na = 1\n", 2, 5, "`profiles.a` must be a table"),
        ("x = \n", 1, 5, ""),
    ];
    for (text, line, column, message) in facts {
        let error = Config::parse(text, Path::new("config.toml")).unwrap_err();
        let shown = error.to_string();
        assert!(shown.starts_with(&format!("config.toml:{line}:{column}: {message}")), "{text:?}: {shown}");
        assert!(!shown.contains("hunter2"), "{shown}");
    }
}

#[test]
fn profiles_in_one_line_can_be_changed_too() {
    let (_dir, path) = home();
    fs::write(&path, "profiles = { a = { driver = \"acp\" } }\n").unwrap();
    let mut file = ConfigFile::load(&path).unwrap();
    file.add_profile(&profile("mine")).unwrap();
    file.remove_profile(&ProfileId::new("a")).unwrap();
    assert_eq!(ConfigFile::load(&path).unwrap().config().profiles, [profile("mine")]);
}

#[test]
fn a_link_to_the_file_stays_a_link() {
    let (dir, path) = home();
    let real = dir.path().join("elsewhere.toml");
    fs::write(&real, KEPT).unwrap();
    std::os::unix::fs::symlink(&real, &path).unwrap();
    ConfigFile::load(&path).unwrap().set_default(None).unwrap();
    assert!(path.symlink_metadata().unwrap().is_symlink());
    assert!(!fs::read_to_string(&real).unwrap().contains("default_profile"));
}

#[test]
fn ids_come_from_names() {
    let facts = [("Claude", "claude"), ("My  Agent 2!", "my-agent-2"), ("---", "profile"), ("Größe", "gr-e")];
    for (name, id) in facts {
        assert_eq!(slug(name), ProfileId::new(id));
    }
    let (_dir, mut file) = kept();
    assert_eq!(unique_slug("A", file.config()), ProfileId::new("a-2"));
    file.add_profile(&profile("a-2")).unwrap();
    assert_eq!(unique_slug("A", file.config()), ProfileId::new("a-3"));
}

#[test]
fn no_debug_output_shows_a_value_of_the_environment() {
    let (_dir, mut file) = kept();
    let mut profile = profile("mine");
    profile.environment = vec![EnvironmentChange::try_from("KEY=hunter2".to_owned()).unwrap()];
    file.add_profile(&profile).unwrap();
    assert!(!format!("{file:?}").contains("hunter2"));
}
