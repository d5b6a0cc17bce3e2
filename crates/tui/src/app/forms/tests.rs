use consort_model::{Availability, ProfileId, RevisionKey};

use super::*;
use consort_model::Profile;

fn summary(driver: DriverKind, environment: &[&str]) -> ProfileSummary {
    let mut profile = Profile::new(ProfileId::new("work"), "Work", driver);
    profile.command = Some("agent".into());
    profile.args = vec!["--fast".into(), "two words".into()];
    profile.environment = environment
        .iter()
        .map(|line| consort_model::EnvironmentChange::try_from((*line).to_owned()).unwrap())
        .collect();
    profile.summary(&RevisionKey::new([0; 16]), Availability::Unknown, false)
}

fn set(form: &mut Form, key: &str, text: &str) {
    let entry = form.entries.iter_mut().find(|entry| entry.key == key).unwrap();
    match &mut entry.kind {
        crate::overlay::form::Kind::Text(editor) | crate::overlay::form::Kind::Lines(editor) => {
            editor.replace(text)
        }
        crate::overlay::form::Kind::One { names, at } => {
            *at = names.iter().position(|name| name == text).unwrap()
        }
        crate::overlay::form::Kind::Some { .. } => panic!("profiles have none"),
    }
}

#[test]
fn a_form_that_was_not_touched_changes_nothing() {
    let before = summary(DriverKind::Acp, &["KEY=secret", "-OTHER"]);
    let form = profile_form(Some(&before));
    assert_eq!(profile_edit(&form, &before), Ok(ProfileEdit::default()));
}

#[test]
fn hidden_values_stay_as_they_are_and_lines_that_go_are_dropped() {
    let before = summary(DriverKind::Acp, &["KEY=secret", "-OTHER"]);
    let mut form = profile_form(Some(&before));
    set(&mut form, "environment", "KEY=…\nNEW=1");
    let edit = profile_edit(&form, &before).unwrap();
    assert_eq!(edit.environment, ["NEW=1"]);
    assert_eq!(edit.environment_dropped, ["OTHER"]);
    set(&mut form, "environment", "ANOTHER=…");
    assert!(profile_edit(&form, &before).unwrap_err().contains("hidden"));
}

#[test]
fn only_codex_has_a_sandbox() {
    let mut form = profile_form(None);
    let fields =
        |form: &Form| form.visible().iter().map(|at| form.entries[*at].key.clone()).collect::<Vec<_>>();
    assert!(!fields(&form).contains(&"sandbox_mode".to_owned()));
    set(&mut form, "driver", "codex");
    assert!(fields(&form).contains(&"sandbox_mode".to_owned()));
    set(&mut form, "name", "Box");
    set(&mut form, "sandbox_mode", "readOnly");
    set(&mut form, "args", "-c 'a b'");
    let new = new_profile(&form).unwrap();
    assert_eq!(new.sandbox_mode, Some(SandboxMode::ReadOnly));
    assert_eq!(new.args, ["-c", "a b"]);
    set(&mut form, "driver", "acp");
    assert!(new_profile(&form).unwrap_err().contains("needs a command"));
}
