//! Old settings and CC-Insights' documents, as people have them: whole, half-migrated, odd and broken.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use consort_model::Limits;

use super::super::{ConfigError, ConfigFile};
use super::*;

/// The document as CC-Insights writes it, with a key in one agent's environment.
const WHOLE: &str = r#"{
  "theme": "dark",
  "agents.available": [
    {"id": "a1b2c3", "name": "Claude", "driver": "claude", "cliPath": "", "cliArgs": "", "environment": "",
     "defaultModel": "opus", "defaultPermissions": "default"},
    {"id": "d4e5f6", "name": "Codex", "driver": "codex", "cliPath": "", "cliArgs": "", "environment": "",
     "defaultModel": "", "defaultPermissions": "",
     "codexSandboxMode": "workspaceWrite", "codexApprovalPolicy": "onRequest"},
    {"id": "g7h8i9", "name": "Gemini", "driver": "acp", "cliPath": "/usr/local/bin/gemini",
     "cliArgs": "--stdio --label 'two words'", "environment": "GOOGLE_API_KEY=hunter2\n# why\n\nEMPTY=\n-HTTP_PROXY\n",
     "defaultModel": "", "defaultPermissions": ""},
    {"id": "j0k1l2", "name": "Claude", "driver": "claude", "cliPath": "/opt/claude", "defaultPermissions": "acceptEdits"}
  ],
  "agents.defaultAgent": "g7h8i9"
}"#;

/// The document of a version before agents could be configured.
const FLAT: &str = r#"{"session.claudeCliPath": "/opt/claude", "session.codexCliPath": "", "session.acpCliPath":
    "/opt/opencode", "session.acpCliArgs": "acp --quiet", "session.defaultPermissionMode": "plan", "other": [1]}"#;

fn summary(profile: &Profile) -> (String, DriverKind, Option<String>, Vec<String>, PermissionMode) {
    let Profile { name, driver, command, args, default_permissions, .. } = profile.clone();
    (name, driver, command, args, default_permissions)
}

fn home(text: &str) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("config.toml");
    fs::write(&path, text).unwrap();
    (dir, path)
}

#[test]
fn a_whole_document_is_read() {
    let found = cc_insights(WHOLE).unwrap();
    let [claude, codex, gemini, second] = &found.profiles[..] else { panic!("{found:?}") };
    assert_eq!((claude.command.clone(), claude.default_model.as_deref()), (None, Some("opus")));
    assert_eq!(codex.sandbox_mode, Some(SandboxMode::WorkspaceWrite));
    assert_eq!(codex.approval_policy, Some(ApprovalPolicy::OnRequest));
    assert_eq!(gemini.args, ["--stdio", "--label", "two words"]);
    let environment: Vec<String> = gemini.environment.iter().cloned().map(String::from).collect();
    assert_eq!(environment, ["GOOGLE_API_KEY=hunter2", "EMPTY=", "-HTTP_PROXY"]);
    assert_eq!(second.default_permissions, PermissionMode::AcceptEdits);
    assert_eq!(found.default, Some(2));
    assert_eq!(found.notes, [""; 0]);
    assert!(!format!("{found:?}").contains("hunter2"));
}

#[test]
fn flat_keys_become_the_usual_profiles() {
    let profiles = cc_insights(FLAT).unwrap().profiles;
    let text = |text: &str| Some(text.to_owned());
    let default = PermissionMode::Default;
    let expected = [
        ("Claude".to_owned(), DriverKind::Claude, text("/opt/claude"), vec![], PermissionMode::Plan),
        ("Codex".to_owned(), DriverKind::Codex, None, vec![], default),
        (
            "opencode".to_owned(),
            DriverKind::Acp,
            text("/opt/opencode"),
            vec!["acp".into(), "--quiet".into()],
            default,
        ),
        ("Consort".to_owned(), DriverKind::Native, None, vec![], default),
    ];
    assert_eq!(profiles.iter().map(summary).collect::<Vec<_>>(), expected);
}

#[test]
fn keys_may_also_stand_in_objects() {
    let nested = r#"{"session": {"claudeCliPath": "/c"}, "agents": {"defaultAgent": null}}"#;
    assert_eq!(cc_insights(nested).unwrap().profiles[0].command.as_deref(), Some("/c"));
    let nested = r#"{"agents": {"available": [{"id": "x", "driver": "direct"}], "defaultAgent": "x"}}"#;
    let found = cc_insights(nested).unwrap();
    assert_eq!((found.profiles[0].driver, found.default), (DriverKind::Claude, Some(0)));
}

#[test]
fn a_half_migrated_document_gives_what_its_list_leaves_out() {
    let half = r#"{"agents.available": [{"id": "x", "name": "Mine", "driver": "claude", "cliPath": "/new"}],
        "session.claudeCliPath": "/old", "session.codexCliPath": "/codex", "session.acpCliPath": ""}"#;
    let profiles = cc_insights(half).unwrap().profiles;
    let commands: Vec<_> = profiles.iter().map(|profile| profile.command.as_deref().unwrap()).collect();
    assert_eq!(commands, ["/new", "/codex"], "the list wins, nothing else is lost or made up");
}

#[test]
fn what_has_no_place_here_is_said() {
    let odd = r#"{"agents.available": [{"driver": "codex", "defaultPermissions": "yolo", "codexSandboxMode": "none"}],
        "agents.defaultAgent": "gone"}"#;
    let found = cc_insights(odd).unwrap();
    assert_eq!(summary(&found.profiles[0]).0, "codex");
    assert_eq!(found.profiles[0].sandbox_mode, None);
    assert_eq!(found.notes.len(), 3, "{:?}", found.notes);
}

#[test]
fn an_acp_agent_without_a_program_was_gemini() {
    let text = r#"{"agents.available": [{"name": "Gemini", "driver": "acp", "cliPath": "", "cliArgs": ""}]}"#;
    let profile = cc_insights(text).unwrap().profiles.remove(0);
    assert_eq!((profile.command.as_deref(), &profile.args[..]), (Some("gemini"), &["--acp".to_owned()][..]));
}

#[test]
fn broken_documents_are_refused_with_their_place() {
    let long = format!("{{\"x\": \"{}\"}}", "y".repeat(MAX_IMPORT));
    let many = format!("{{\"agents.available\": [{}]}}", vec![r#"{"driver":"acp"}"#; 201].join(","));
    let deep = "[".repeat(100_000);
    let facts = [
        ("", "it is empty"),
        (" \n", "it is empty"),
        (long.as_str(), "it has more than 4 MiB"),
        (many.as_str(), "it lists 201 agents"),
        (deep.as_str(), "line 1, column 128: it is not JSON (recursion limit exceeded)"),
        ("{\n  \"agents.available\": [\n    {\"id\": \"hunter2\"\n", "line 4, column 0: it is not JSON"),
        ("{}", "it holds no settings of agents"),
        ("[]", "it holds no settings of agents"),
        ("\"hunter2\"", "it holds no settings of agents"),
        (r#"{"agents.available": []}"#, "it holds no settings of agents"),
        (r#"{"agents.available": {}}"#, "`agents.available`: it must be a list"),
        (r#"{"agents": "hunter2"}"#, "`agents`: it must be an object"),
        (r#"{"agents.available": [7]}"#, "`agents.available`, agent 1: it must be an object"),
        (r#"{"agents.available": [{"name": "x"}]}"#, "`agents.available`, agent 1, `driver`: it is missing"),
        (
            r#"{"agents.available": [{"driver": "cobol"}]}"#,
            "`agents.available`, agent 1, `driver`: unknown driver",
        ),
        (
            r#"{"agents.available": [{"driver": "acp", "name": 7}]}"#,
            "`agents.available`, agent 1, `name`: it must be a text",
        ),
        (
            r#"{"agents.available": [{"driver": "acp", "name": "a\nb"}]}"#,
            "`agents.available`, agent 1, `name`: a profile's name",
        ),
        (
            r#"{"agents.available": [{"driver": "acp", "cliPath": "a\u0000b"}]}"#,
            "`agents.available`, agent 1, `command`: neither",
        ),
        (
            r#"{"agents.available": [{"driver": "acp", "cliArgs": "'hunter2"}]}"#,
            "`agents.available`, agent 1, `cliArgs`: a quote in it is not closed",
        ),
        (
            r#"{"agents.available": [{"driver": "acp", "environment": "A=1\nhunter2"}]}"#,
            "`agents.available`, agent 1, `environment`: line 2: an environment entry is KEY=VALUE",
        ),
        (
            r#"{"agents.available": [{"driver": "acp", "environment": {"A": "hunter2"}}]}"#,
            "`agents.available`, agent 1, `environment`",
        ),
        (r#"{"session.claudeCliPath": ["hunter2"]}"#, "`session.claudeCliPath`: it must be a text"),
    ];
    for (text, message) in facts {
        let error = cc_insights(text).unwrap_err().to_string();
        assert!(error.starts_with(message), "{}: {error}", &text[..text.len().min(80)]);
        assert!(!error.contains("hunter2"), "{error}");
    }
}

#[test]
fn importing_twice_changes_nothing() {
    let (_dir, path) =
        home("# mine\n[profiles.claude]\nname = \"Claude\"\ndriver = \"claude\"\ndefault_model = \"opus\"\n");
    let found = cc_insights(WHOLE).unwrap();
    let mut file = ConfigFile::load(&path).unwrap();
    let imported = file.import(&found).unwrap();
    let ids = |ids: &[&str]| ids.iter().map(|id| ProfileId::new(*id)).collect::<Vec<_>>();
    assert_eq!(imported.present, ids(&["claude"]), "it runs the same thing");
    assert_eq!(imported.added, ids(&["codex", "gemini", "claude-2"]));
    assert_eq!(imported.default, Some(ProfileId::new("gemini")));
    assert_eq!(file.config().find("Claude 2").unwrap().command.as_deref(), Some("/opt/claude"));
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains("# mine\n"), "{text}");

    let inode = || std::os::unix::fs::MetadataExt::ino(&fs::metadata(&path).unwrap());
    let before = inode();
    let again = ConfigFile::load(&path).unwrap().import(&found).unwrap();
    assert_eq!((again.added, again.default), (vec![], None));
    assert_eq!((fs::read_to_string(&path).unwrap(), inode()), (text, before), "not even written again");
}

#[test]
fn the_default_that_a_person_chose_stays() {
    let (_dir, path) = home("default_profile = \"a\"\n[profiles.a]\ndriver = \"claude\"\n");
    let mut file = ConfigFile::load(&path).unwrap();
    assert_eq!(file.import(&cc_insights(WHOLE).unwrap()).unwrap().default, None);
    assert_eq!(file.config().default_profile, Some(ProfileId::new("a")));
}

const OLD: &str = r#"# My settings.

# Where Claude is.
"session.claudeCliPath" = "/opt/claude" # here
"session.defaultPermissionMode" = "acceptEdits"
unknown = 1 # stays

[session]
codexCliPath = "/opt/codex"
acpCliPath = "/opt/gemini-cli"
acpCliArgs = "--acp 'a b'"
theme = "dark" # mine

[limits]
subagents_total = 4
"#;

#[test]
fn old_keys_become_profiles_once_and_a_backup_stays() {
    let (dir, path) = home(OLD);
    let file = ConfigFile::load(&path).unwrap();
    let profiles: Vec<_> = file.config().profiles.iter().map(summary).collect();
    let text = |text: &str| Some(text.to_owned());
    let default = PermissionMode::Default;
    let expected = [
        ("Claude".to_owned(), DriverKind::Claude, text("/opt/claude"), vec![], PermissionMode::AcceptEdits),
        ("Codex".to_owned(), DriverKind::Codex, text("/opt/codex"), vec![], default),
        (
            "Gemini".to_owned(),
            DriverKind::Acp,
            text("/opt/gemini-cli"),
            vec!["--acp".into(), "a b".into()],
            default,
        ),
        ("Consort".to_owned(), DriverKind::Native, None, vec![], default),
    ];
    assert_eq!(profiles, expected);
    assert_eq!(file.config().limits, Limits { subagents_total: 4, ..Limits::default() });
    let migrated = fs::read_to_string(&path).unwrap();
    for kept in
        ["# My settings.", "unknown = 1 # stays", "[session]\ntheme = \"dark\" # mine", "subagents_total = 4"]
    {
        assert!(migrated.contains(kept), "{kept} is missing in\n{migrated}");
    }
    assert!(OLD_KEYS.iter().all(|key| !migrated.contains(short(key))), "{migrated}");
    let backup = dir.path().join("config.toml.before-migration");
    assert_eq!(fs::read_to_string(&backup).unwrap(), OLD);
    assert_eq!(fs::metadata(&backup).unwrap().permissions().mode() & 0o777, 0o600);

    assert_eq!(ConfigFile::load(&path).unwrap().config(), file.config());
    assert_eq!(fs::read_to_string(&path).unwrap(), migrated);
    assert!(!dir.path().join("config.toml.before-migration-2").exists());
}

#[test]
fn a_half_migrated_file_keeps_its_profiles_and_every_backup() {
    let (dir, path) = home(
        "session.claudeCliPath = \"/old\"\nsession.codexCliPath = \"/codex\"\n[profiles.mine]\ndriver = \"claude\"\n",
    );
    fs::write(dir.path().join("config.toml.before-migration"), "an earlier one").unwrap();
    let file = ConfigFile::load(&path).unwrap();
    let ids: Vec<_> = file.config().profiles.iter().map(|profile| profile.id.as_str()).collect();
    assert_eq!(ids, ["mine", "codex"]);
    assert_eq!(file.config().find("mine").unwrap().command, None, "what is a profile already stays as it is");
    assert_eq!(
        fs::read_to_string(dir.path().join("config.toml.before-migration")).unwrap(),
        "an earlier one"
    );
    assert!(fs::read_to_string(dir.path().join("config.toml.before-migration-2")).unwrap().contains("/old"));
    assert!(!fs::read_to_string(&path).unwrap().contains("session"));
}

#[test]
fn empty_old_keys_are_removed_too() {
    let (_dir, path) = home("[session]\nclaudeCliPath = \"\"\nacpCliArgs = \"\"\n");
    let file = ConfigFile::load(&path).unwrap();
    assert_eq!(file.config().profiles.len(), 4);
    assert_eq!(file.config().find("gemini").unwrap().args, ["--acp"]);
    assert!(!fs::read_to_string(&path).unwrap().contains("session"));
}

#[test]
fn old_keys_that_cannot_be_understood_are_named_and_left_alone() {
    let facts = [
        ("[session]\nclaudeCliPath = 7\n", "config.toml:2:17: `session.claudeCliPath`: it must be a text"),
        ("\"session.acpCliArgs\" = \"'open\"\n", "config.toml:1:24: `session.acpCliArgs`: a quote"),
    ];
    for (text, message) in facts {
        let (dir, path) = home(text);
        let error = ConfigFile::load(&path).unwrap_err();
        assert!(matches!(error, ConfigError::Broken { .. }));
        let shown = error.to_string().replace(&format!("{}/", dir.path().display()), "");
        assert!(shown.starts_with(message), "{shown}");
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
    let unrelated = "session = \"mine\"\n[profiles.a]\ndriver = \"acp\"\n";
    assert!(Config::parse(unrelated, Path::new("config.toml")).is_ok_and(|config| !config.old.there));
}

#[test]
fn without_a_backup_nothing_is_migrated() {
    let (dir, path) = home(OLD);
    fs::create_dir(dir.path().join("config.toml.before-migration")).unwrap();
    assert!(matches!(ConfigFile::load(&path), Err(ConfigError::Io { .. })));
    assert_eq!(fs::read_to_string(&path).unwrap(), OLD);
}
