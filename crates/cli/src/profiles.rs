//! `consort profiles`: the configured ways to run an agent.

use consort_daemon::protocol::{AgentView, Call, DaemonStatus, Done, NewProfile, ProfileCheck, ProfileEdit};
use consort_model::{Availability, EnvironmentChange, ProfileSummary};

use crate::args::{AddProfile, EditProfile, Profiles};
use crate::exit::{Exit, Stop};
use crate::link::Link;
use crate::output::{Output, Paint, Style, note, one_line, pad, print_json, print_line, text_width};

/// `consort profiles`.
pub fn profiles(command: &Profiles) -> Result<(), Stop> {
    match command {
        Profiles::List(args) => list(args.json),
        Profiles::Check { profile, json } => check(profile.clone(), *json),
        Profiles::Add(args) => add(args),
        Profiles::Edit(args) => edit(args),
        Profiles::Duplicate { profile, name } => {
            let call = Call::DuplicateProfile { profile: profile.clone(), name: name.clone() };
            let profile: ProfileSummary = Link::new()?.call_once(&call)?;
            print_profile(&profile)
        }
        Profiles::Remove { profile, force } => {
            let _: Done =
                Link::new()?.call_once(&Call::RemoveProfile { profile: profile.clone(), force: *force })?;
            Ok(())
        }
        Profiles::Default { profile } => {
            let _: Done = Link::new()?.call(&Call::SetDefaultProfile { profile: profile.clone() })?;
            Ok(())
        }
    }
}

fn list(json: bool) -> Result<(), Stop> {
    let mut link = Link::new()?;
    let profiles: Vec<ProfileSummary> = link.call(&Call::ListProfiles {})?;
    if json {
        return print_json(&profiles);
    }
    print_rows(&profiles, |_, _| String::new())?;
    if let DaemonStatus { trouble: Some(trouble), .. } = link.call(&Call::Status {})? {
        note(&format!("these are the last good ones: {trouble}"));
    }
    Ok(())
}

fn check(profile: Option<String>, json: bool) -> Result<(), Stop> {
    let checks: Vec<ProfileCheck> = Link::new()?.call(&Call::CheckProfiles { profile })?;
    if json {
        return print_json(&checks);
    }
    let profiles: Vec<ProfileSummary> = checks.iter().map(|check| check.profile.clone()).collect();
    print_rows(&profiles, |n, paint| found(&checks[n], paint))
}

/// What a closer look at a profile's program found.
fn found(check: &ProfileCheck, paint: Paint) -> String {
    let Availability::Available { path } = &check.profile.availability else { return String::new() };
    let text = match (&check.version, &check.version_problem) {
        (Some(version), _) => {
            paint.paint(Style::Green, &format!("{}: {}", one_line(path), one_line(version))).into_owned()
        }
        (None, Some(problem)) => paint.paint(Style::Yellow, &one_line(problem)).into_owned(),
        (None, None) => paint.paint(Style::Green, &one_line(path)).into_owned(),
    };
    format!("\n    {text}")
}

fn print_rows(profiles: &[ProfileSummary], more: impl Fn(usize, Paint) -> String) -> Result<(), Stop> {
    let mut output = Output::human();
    if profiles.is_empty() {
        output.line("no profiles; `consort profiles add NAME --driver acp --command PROGRAM` adds one")?;
    }
    let name = |profile: &ProfileSummary| text_width(&one_line(&profile.name));
    let column = profiles.iter().map(name).max().unwrap_or(0);
    for (n, profile) in profiles.iter().enumerate() {
        let text = row(profile, column, output.paint);
        output.line(&format!("{text}{}", more(n, output.paint)))?;
    }
    output.flush()
}

/// A profile in one line, and a second one where it cannot be used.
fn row(profile: &ProfileSummary, column: usize, paint: Paint) -> String {
    let mark = if profile.is_default { "*" } else { " " };
    let mut words = vec![profile.command.clone()];
    words.extend(profile.args.iter().cloned());
    let mut extra = Vec::new();
    if let Some(model) = &profile.default_model {
        extra.push(format!("model {model}"));
    }
    if profile.default_permissions != consort_model::PermissionMode::Default {
        extra.push(format!("permissions {}", profile.default_permissions.word()));
    }
    if let Some(mode) = profile.sandbox_mode {
        extra.push(format!("sandbox {}", mode.word()));
    }
    if let Some(policy) = profile.approval_policy {
        extra.push(format!("approvals {}", policy.word()));
    }
    if !profile.environment.is_empty() {
        extra.push(format!("env {}", profile.environment.join(" ")));
    }
    let extra = if extra.is_empty() { String::new() } else { format!("  ({})", one_line(&extra.join(", "))) };
    let name = pad(&one_line(&profile.name), column);
    let line = format!(
        "{mark} {}  {:<8}  {}{}",
        paint.paint(Style::Bold, &name),
        profile.driver.word(),
        one_line(&words.join(" ")),
        paint.paint(Style::Dim, &extra),
    );
    match &profile.availability {
        Availability::Available { .. } => line,
        Availability::Unknown => format!("{line}  {}", paint.paint(Style::Dim, "(not checked yet)")),
        Availability::Unavailable { reason } => {
            format!(
                "{line}\n    {}",
                paint.paint(Style::Red, &format!("not available: {}", one_line(reason)))
            )
        }
    }
}

fn add(args: &AddProfile) -> Result<(), Stop> {
    check_environment(&args.environment)?;
    let new = NewProfile {
        name: args.name.clone(),
        driver: args.driver,
        command: args.command.clone(),
        args: args.args.clone(),
        environment: args.environment.clone(),
        default_model: args.model.clone(),
        default_permissions: args.permissions.unwrap_or_default(),
        sandbox_mode: args.sandbox.as_deref().and_then(|word| word.parse().ok()),
        approval_policy: args.approval_policy.as_deref().and_then(|word| word.parse().ok()),
    };
    let profile: ProfileSummary = Link::new()?.call_once(&Call::AddProfile(new))?;
    print_profile(&profile)
}

fn edit(args: &EditProfile) -> Result<(), Stop> {
    check_environment(&args.environment)?;
    let changes = changes(args);
    if changes == ProfileEdit::default() {
        return Err(Stop::new(
            Exit::Usage,
            "nothing to change; `consort profiles edit --help` lists what can be",
        ));
    }
    let mut link = Link::new()?;
    let call = Call::EditProfile { profile: args.profile.clone(), changes };
    // The same edit again changes nothing.
    let profile: ProfileSummary = link.call(&call)?;
    print_profile(&profile)?;
    let agents: Vec<AgentView> = link.call(&Call::ListAgents { closed: false })?;
    let behind: Vec<String> = agents
        .iter()
        .filter(|agent| agent.restart_to_apply && agent.profile == profile.id.as_str())
        .map(|agent| one_line(&agent.name))
        .collect();
    if let Some(first) = behind.first() {
        note(&format!("restart to apply: {} (`consort restart {first}`)", behind.join(", ")));
    }
    Ok(())
}

/// What the options ask for.
fn changes(args: &EditProfile) -> ProfileEdit {
    let open = |word: &Option<String>| {
        word.as_ref().map(|word| word.strip_prefix("none").unwrap_or(word).to_owned())
    };
    ProfileEdit {
        name: args.name.clone(),
        command: args.command.clone(),
        args: (args.no_args || !args.args.is_empty()).then(|| args.args.clone()),
        environment: args.environment.clone(),
        environment_dropped: args.environment_dropped.clone(),
        default_model: args.model.clone(),
        default_permissions: args.permissions,
        sandbox_mode: open(&args.sandbox),
        approval_policy: open(&args.approval_policy),
    }
}

/// Checked here so that the sentence can name the option; the value itself is never repeated.
fn check_environment(entries: &[String]) -> Result<(), Stop> {
    for entry in entries {
        EnvironmentChange::try_from(entry.clone())
            .map_err(|why| Stop::new(Exit::Usage, format!("--env: {why}")))?;
    }
    Ok(())
}

fn print_profile(profile: &ProfileSummary) -> Result<(), Stop> {
    print_line(&row(profile, text_width(&one_line(&profile.name)), Paint::for_stdout()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use consort_model::{DriverKind, PermissionMode, ProfileId, ProfileRevision};

    fn profile() -> ProfileSummary {
        ProfileSummary {
            id: ProfileId::new("p"),
            name: "local".into(),
            driver: DriverKind::Acp,
            command: "agent".into(),
            args: vec!["--acp".into()],
            environment: vec!["KEY=…".into()],
            default_model: None,
            default_permissions: PermissionMode::Plan,
            sandbox_mode: None,
            approval_policy: None,
            revision: ProfileRevision::default(),
            availability: Availability::Unavailable { reason: "`agent` is not on PATH".into() },
            is_default: true,
        }
    }

    #[test]
    fn a_profile_says_why_it_cannot_be_used() {
        let profile = profile();
        let text = row(&profile, 5, Paint::plain());
        let expected = "* local  acp       agent --acp  (permissions plan, env KEY=…)\n    not available: `agent` is not on PATH";
        assert_eq!(text, expected);
    }

    #[test]
    fn a_closer_look_shows_the_version_or_why_there_is_none() {
        let mut check = ProfileCheck {
            profile: profile(),
            version: None,
            version_problem: None,
            tested_version: None,
            support: None,
            login: None,
        };
        assert_eq!(found(&check, Paint::plain()), "", "the row says why it cannot be used");
        check.profile.availability = Availability::Available { path: "/bin/agent".into() };
        assert_eq!(found(&check, Paint::plain()), "\n    /bin/agent");
        check.version_problem = Some("`/bin/agent` exited with code 1".into());
        assert_eq!(found(&check, Paint::plain()), "\n    `/bin/agent` exited with code 1");
        check.version = Some("agent 1.2".into());
        assert_eq!(found(&check, Paint::plain()), "\n    /bin/agent: agent 1.2");
    }

    #[test]
    fn options_of_edit_say_what_changes_and_nothing_else() {
        use clap::Parser;
        let parse = |line: &str| {
            let words = std::iter::once("consort").chain(line.split(' '));
            match crate::args::Arguments::parse_from(words).command {
                Some(crate::args::Command::Profiles(Profiles::Edit(args))) => changes(&args),
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(parse("profiles edit p"), ProfileEdit::default());
        let edit =
            parse("profiles edit p --no-args --sandbox none --approval-policy never --drop-env K --model=");
        let expected = ProfileEdit {
            args: Some(vec![]),
            sandbox_mode: Some(String::new()),
            approval_policy: Some("never".into()),
            environment_dropped: vec!["K".into()],
            default_model: Some(String::new()),
            ..ProfileEdit::default()
        };
        assert_eq!(edit, expected);
    }
}
