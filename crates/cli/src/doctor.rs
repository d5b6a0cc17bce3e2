//! `consort doctor`: what Consort needs to work, and what to do about what is broken.

use consort_daemon::client::{Client, ClientError};
use consort_daemon::home::Home;
use consort_daemon::protocol::{Call, DaemonStatus, ProfileCheck, codes};
use consort_model::{Availability, Login, Support};
use serde::Serialize;

use crate::exit::{Exit, Stop};
use crate::link::connect;
use crate::output::{Output, Style, exact, one_line, print_json};

/// What a check found.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum Health {
    Ok,
    Warning,
    Broken,
}

/// One check.
#[derive(Clone, PartialEq, Debug, Serialize)]
struct Check {
    /// What was looked at: `home`, `config`, `daemon`, `database`, `profile`.
    check: &'static str,
    /// Which one, where there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    health: Health,
    /// What is known about a profile's program.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    program: Option<Found>,
    /// What was found, and what to do.
    message: String,
}

/// A profile's program; null: not known.
#[derive(Clone, PartialEq, Debug, Serialize)]
struct Found {
    /// Where it is.
    path: String,
    /// What it says to `--version`.
    version: Option<String>,
    /// The version that Consort was tested with.
    tested_version: Option<String>,
    /// How the two compare.
    support: Option<Support>,
    /// Whether it is logged in.
    login: Option<Login>,
}

/// The whole examination.
#[derive(Serialize)]
struct Report {
    ok: bool,
    version: &'static str,
    checks: Vec<Check>,
}

/// `consort doctor`.
pub fn doctor(json: bool) -> Result<(), Stop> {
    let checks = examine();
    let ok = checks.iter().all(|check| check.health != Health::Broken);
    if json {
        print_json(&Report { ok, version: env!("CARGO_PKG_VERSION"), checks })?;
    } else {
        let mut output = Output::human();
        for check in &checks {
            let (mark, style) = match check.health {
                Health::Ok => ("✓", Style::Green),
                Health::Warning => ("!", Style::Yellow),
                Health::Broken => ("✗", Style::Red),
            };
            let mark = output.paint.paint(style, mark).into_owned();
            let name = check.name.as_deref().map(|name| format!(" {}", one_line(name))).unwrap_or_default();
            output.line(&format!("{mark} {}{name}: {}", check.check, exact(&check.message)))?;
        }
        output.flush()?;
    }
    if ok { Ok(()) } else { Err(Stop::quiet(Exit::Failed)) }
}

fn examine() -> Vec<Check> {
    let mut checks = Vec::new();
    let mut add = |check, health, message: String| {
        checks.push(Check { check, name: None, health, program: None, message })
    };
    let home = match Home::from_environment() {
        Ok(home) => home,
        Err(error) => {
            add("home", Health::Broken, error.to_string());
            return checks;
        }
    };
    match home.make() {
        Ok(()) => add("home", Health::Ok, home.root().display().to_string()),
        Err(error) => add("home", Health::Broken, error.to_string()),
    }
    let ran = matches!(Client::connect(&home), Ok(_) | Err(ClientError::Version { .. }));
    let mut client = match connect(&home) {
        Ok(client) => client,
        Err(error) => {
            add("daemon", Health::Broken, error.to_string());
            return checks;
        }
    };
    let welcome = client.welcome();
    let since = if ran { "runs" } else { "was started for this" };
    add("daemon", Health::Ok, format!("{since}, pid {}, version {}", welcome.pid, welcome.version));
    if welcome.version != env!("CARGO_PKG_VERSION") {
        let advice = "`consort daemon stop --keep-agents` lets the next command start the new one";
        add("daemon", Health::Warning, format!("it is of another version than this program; {advice}"));
    }
    let profiles = client.call::<Vec<ProfileCheck>>(&Call::CheckProfiles { profile: None });
    let config_problem = match &profiles {
        Ok(_) => None,
        Err(ClientError::Answer(body)) if body.code == codes::CONFIG => Some(body.message.clone()),
        Err(error) => Some(error.to_string()),
    };
    match client.call::<DaemonStatus>(&Call::Status {}) {
        Ok(DaemonStatus { trouble: Some(trouble), .. }) if Some(&trouble) != config_problem.as_ref() => {
            add("database", Health::Broken, trouble);
        }
        Ok(_) => add("database", Health::Ok, "takes new work".to_owned()),
        Err(error) => add("database", Health::Broken, error.to_string()),
    }
    match config_problem {
        None => add("config", Health::Ok, home.config().display().to_string()),
        Some(problem) => {
            add(
                "config",
                Health::Broken,
                format!("{problem}; correct the file, nothing is written to it until then"),
            );
        }
    }
    checks.extend(profile_checks(&profiles.unwrap_or_default()));
    checks
}

/// A profile that cannot be used is worth a warning; that none can be used, or not the default one, is broken.
fn profile_checks(profiles: &[ProfileCheck]) -> Vec<Check> {
    let is_usable =
        |check: &ProfileCheck| matches!(check.profile.availability, Availability::Available { .. });
    let usable = profiles.iter().any(is_usable);
    let mut checks: Vec<Check> = profiles
        .iter()
        .map(|check| {
            let profile = &check.profile;
            let (health, program, message) = match &profile.availability {
                Availability::Available { path } => {
                    let (health, message) = program_health(path, check);
                    (health, Some(found(path, check)), message)
                }
                Availability::Unknown => (Health::Warning, None, "not checked yet".to_owned()),
                Availability::Unavailable { reason } if profile.is_default => {
                    (Health::Broken, None, reason.clone())
                }
                Availability::Unavailable { reason } => (Health::Warning, None, reason.clone()),
            };
            Check { check: "profile", name: Some(profile.name.clone()), health, program, message }
        })
        .collect();
    if !usable && !profiles.is_empty() {
        let message = "no profile can be used here; install one of the programs above, or add a profile with \
                       `consort profiles add NAME --driver acp --command PROGRAM`";
        checks.push(Check {
            check: "profile",
            name: None,
            health: Health::Broken,
            program: None,
            message: message.to_owned(),
        });
    }
    checks
}

fn found(path: &str, check: &ProfileCheck) -> Found {
    Found {
        path: path.to_owned(),
        version: check.version.clone(),
        tested_version: check.tested_version.clone(),
        support: check.support,
        login: check.login.clone(),
    }
}

/// What is to be said about a program that is there. A newer version than the tested one most likely works.
fn program_health(path: &str, check: &ProfileCheck) -> (Health, String) {
    let (mut health, mut message) = match (&check.version, &check.version_problem) {
        (Some(version), _) => (Health::Ok, format!("{path}: {version}")),
        (None, Some(problem)) => (Health::Warning, problem.clone()),
        (None, None) => (Health::Ok, path.to_owned()),
    };
    match (check.support, check.tested_version.as_deref()) {
        (Some(Support::Tested), _) => message.push_str(", tested"),
        (Some(Support::Newer), Some(tested)) => {
            message.push_str(&format!(
                ", newer than tested ({tested}); if something is amiss, update Consort or install {tested}"
            ));
        }
        (Some(Support::Older), Some(tested)) => {
            health = Health::Warning;
            message.push_str(&format!(", older than tested ({tested}); update it"));
        }
        _ => {}
    }
    match &check.login {
        Some(Login::LoggedIn { by }) => message.push_str(&format!("; logged in by {by}")),
        Some(Login::LoggedOut { advice }) => {
            health = Health::Warning;
            message.push_str(&format!("; not logged in: {advice}"));
        }
        None => {}
    }
    (health, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use consort_model::{DriverKind, PermissionMode, ProfileId, ProfileRevision, ProfileSummary};

    fn profile(name: &str, available: bool, is_default: bool) -> ProfileCheck {
        let availability = if available {
            Availability::Available { path: "/bin/agent".into() }
        } else {
            Availability::Unavailable { reason: "not on PATH".into() }
        };
        let profile = ProfileSummary {
            id: ProfileId::new(name),
            name: name.into(),
            driver: DriverKind::Acp,
            command: "agent".into(),
            args: vec![],
            environment: vec![],
            default_model: None,
            default_permissions: PermissionMode::Default,
            sandbox_mode: None,
            approval_policy: None,
            revision: ProfileRevision::default(),
            availability,
            is_default,
        };
        ProfileCheck {
            profile,
            version: None,
            version_problem: None,
            tested_version: None,
            support: None,
            login: None,
        }
    }

    fn healths(profiles: &[ProfileCheck]) -> Vec<Health> {
        profile_checks(profiles).iter().map(|check| check.health).collect()
    }

    #[test]
    fn an_unusable_profile_is_broken_only_where_it_is_needed() {
        use Health::{Broken, Ok, Warning};
        assert_eq!(healths(&[profile("a", true, true), profile("b", false, false)]), [Ok, Warning]);
        assert_eq!(healths(&[profile("a", true, false), profile("b", false, true)]), [Ok, Broken]);
        assert_eq!(healths(&[profile("a", false, false)]), [Warning, Broken]);
    }

    fn message(change: impl FnOnce(&mut ProfileCheck)) -> (Health, String) {
        let mut check = profile("a", true, true);
        check.version = Some("2.0.0".into());
        check.tested_version = Some("2.0.0".into());
        change(&mut check);
        let mut checks = profile_checks(&[check]);
        let check = checks.remove(0);
        (check.health, check.message)
    }

    #[test]
    fn a_profile_is_told_with_its_place_version_and_login() {
        let (health, text) = message(|check| {
            check.support = Some(Support::Tested);
            check.login = Some(Login::LoggedIn { by: "SOME_KEY".into() });
        });
        assert_eq!((health, text.as_str()), (Health::Ok, "/bin/agent: 2.0.0, tested; logged in by SOME_KEY"));
        let (health, text) = message(|check| check.support = Some(Support::Newer));
        assert_eq!(health, Health::Ok);
        assert!(text.contains("newer than tested (2.0.0)"), "{text}");
        let (health, text) = message(|check| check.support = Some(Support::Older));
        assert_eq!(health, Health::Warning);
        assert!(text.ends_with("older than tested (2.0.0); update it"), "{text}");
        let (health, text) =
            message(|check| check.login = Some(Login::LoggedOut { advice: "log in".into() }));
        assert_eq!((health, text.as_str()), (Health::Warning, "/bin/agent: 2.0.0; not logged in: log in"));
    }

    #[test]
    fn programs_are_told_the_same_facts() {
        let mut check = profile("a", true, true);
        check.support = Some(Support::Newer);
        check.login = Some(Login::LoggedIn { by: "SOME_KEY".into() });
        let value = serde_json::to_value(&profile_checks(&[check])[0]).unwrap();
        assert_eq!(value["path"], "/bin/agent");
        assert_eq!(value["support"], "newer");
        assert_eq!(value["login"], serde_json::json!({"state": "logged_in", "by": "SOME_KEY"}));
        let unusable = serde_json::to_value(&profile_checks(&[profile("b", false, true)])[0]).unwrap();
        assert_eq!(unusable.get("path"), None);
    }
}
