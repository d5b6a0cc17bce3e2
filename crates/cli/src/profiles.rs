//! `consort profiles`: the configured ways to run an agent.

use consort_daemon::protocol::{Call, Done, NewProfile};
use consort_model::{Availability, EnvironmentChange, ProfileSummary};

use crate::args::{AddProfile, Profiles};
use crate::exit::{Exit, Stop};
use crate::link::Link;
use crate::output::{Output, Paint, Style, one_line, pad, print_json, print_line, text_width};

/// `consort profiles`.
pub fn profiles(command: &Profiles) -> Result<(), Stop> {
    match command {
        Profiles::List(args) => list(&Call::ListProfiles {}, args.json),
        Profiles::Check(args) => list(&Call::CheckProfiles {}, args.json),
        Profiles::Add(args) => add(args),
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

fn list(call: &Call, json: bool) -> Result<(), Stop> {
    let profiles: Vec<ProfileSummary> = Link::new()?.call(call)?;
    if json {
        return print_json(&profiles);
    }
    let mut output = Output::human();
    if profiles.is_empty() {
        output.line("no profiles; `consort profiles add NAME --driver acp --command PROGRAM` adds one")?;
    }
    let name = |profile: &ProfileSummary| text_width(&one_line(&profile.name));
    let column = profiles.iter().map(name).max().unwrap_or(0);
    for profile in &profiles {
        let text = row(profile, column, output.paint);
        output.line(&text)?;
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
    for entry in &args.environment {
        // Checked here so that the sentence can name the option; the value itself is never repeated.
        EnvironmentChange::try_from(entry.clone())
            .map_err(|why| Stop::new(Exit::Usage, format!("--env: {why}")))?;
    }
    let new = NewProfile {
        name: args.name.clone(),
        driver: args.driver,
        command: args.command.clone(),
        args: args.args.clone(),
        environment: args.environment.clone(),
        default_model: args.model.clone(),
        default_permissions: args.permissions.unwrap_or_default(),
        sandbox_mode: None,
        approval_policy: None,
    };
    let profile: ProfileSummary = Link::new()?.call_once(&Call::AddProfile(new))?;
    print_line(&row(&profile, text_width(&one_line(&profile.name)), Paint::for_stdout()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use consort_model::{DriverKind, PermissionMode, ProfileId, ProfileRevision};

    #[test]
    fn a_profile_says_why_it_cannot_be_used() {
        let profile = ProfileSummary {
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
        };
        let text = row(&profile, 5, Paint::plain());
        let expected = "* local  acp       agent --acp  (permissions plan, env KEY=…)\n    not available: `agent` is not on PATH";
        assert_eq!(text, expected);
    }
}
