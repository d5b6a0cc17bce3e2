//! The profiles in force, with a real `config.toml`.

use std::fs;

use consort_model::DriverKind;

use super::*;

const TEXT: &str = r#"# mine
[profiles.work]
name = "Work"
driver = "codex"
args = ["-v"]
environment = ["KEY=hunter2", "-GONE"] # keep
default_model = "m"

[profiles.other]
driver = "acp"
command = "agent"
"#;

fn open() -> (tempfile::TempDir, Profiles) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("config.toml");
    fs::write(&path, TEXT).unwrap();
    (dir, Profiles::open(&path, vec![], RevisionKey::default()))
}

fn id(text: &str) -> ProfileId {
    ProfileId::new(text)
}

fn entry(text: &str) -> EnvironmentChange {
    EnvironmentChange::try_from(text.to_owned()).unwrap()
}

#[test]
fn an_edit_changes_what_it_mentions_and_nothing_else() {
    let (_dir, profiles) = open();
    let before = profiles.get(&id("work")).unwrap();
    profiles.change(&id("work"), ProfileChanges::default()).unwrap();
    assert_eq!(profiles.get(&id("work")).unwrap(), before);

    let changes = ProfileChanges {
        name: Some("Job".into()),
        environment: vec![entry("NEW=1"), entry("GONE=back")],
        default_model: Some(None),
        sandbox_mode: Some(Some(SandboxMode::ReadOnly)),
        ..ProfileChanges::default()
    };
    profiles.change(&id("work"), changes).unwrap();
    let after = profiles.get(&id("work")).unwrap();
    let expected = Profile {
        name: "Job".into(),
        environment: vec![entry("KEY=hunter2"), entry("GONE=back"), entry("NEW=1")],
        default_model: None,
        sandbox_mode: Some(SandboxMode::ReadOnly),
        ..before
    };
    assert_eq!(after, expected);
    let changes =
        ProfileChanges { unmentioned: vec!["KEY".into()], args: Some(vec![]), ..ProfileChanges::default() };
    profiles.change(&id("work"), changes).unwrap();
    let after = profiles.get(&id("work")).unwrap();
    assert_eq!((after.args.len(), after.environment), (0, vec![entry("GONE=back"), entry("NEW=1")]));
}

#[test]
fn only_an_edit_of_what_runs_makes_another_revision() {
    let (_dir, profiles) = open();
    let revision = || profiles.summaries()[0].revision.clone();
    let first = revision();
    let rename = ProfileChanges { name: Some("Job".into()), ..ProfileChanges::default() };
    profiles.change(&id("work"), rename).unwrap();
    assert_eq!(revision(), first);
    let environment = ProfileChanges { environment: vec![entry("KEY=other")], ..ProfileChanges::default() };
    profiles.change(&id("work"), environment).unwrap();
    assert_ne!(revision(), first);
}

#[test]
fn what_cannot_be_is_refused_and_the_file_stays() {
    let (dir, profiles) = open();
    let refused = [
        (
            id("other"),
            ProfileChanges { sandbox_mode: Some(Some(SandboxMode::ReadOnly)), ..Default::default() },
        ),
        (id("other"), ProfileChanges { name: Some("Work".into()), ..Default::default() }),
        (id("other"), ProfileChanges { name: Some(" ".into()), ..Default::default() }),
        (id("nobody"), ProfileChanges::default()),
    ];
    for (id, changes) in refused {
        let outcome = profiles.change(&id, changes.clone());
        assert!(matches!(outcome, Err(HubError::Refused(_))), "{changes:?}: {outcome:?}");
    }
    let policy = Profile {
        approval_policy: Some(ApprovalPolicy::Never),
        ..Profile::new(id(""), "New", DriverKind::Claude)
    };
    assert!(profiles.add(policy).is_err());
    assert_eq!(fs::read_to_string(dir.path().join("config.toml")).unwrap(), TEXT);
}

#[test]
fn a_duplicate_has_everything_but_the_name_and_lives_on_its_own() {
    let (_dir, profiles) = open();
    let copy = profiles.duplicate(&id("work"), "Work two".into()).unwrap();
    assert_eq!(copy, id("work-two"));
    assert!(profiles.get(&copy).unwrap().runs_like(&profiles.get(&id("work")).unwrap()));
    profiles.remove(&id("work")).unwrap();
    assert_eq!(profiles.get(&copy).unwrap().environment[0], entry("KEY=hunter2"));
    assert!(matches!(profiles.duplicate(&id("other"), "Work two".into()), Err(HubError::Refused(_))));
}
