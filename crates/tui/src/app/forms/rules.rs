//! The form for a new rule.

use consort_daemon::protocol::{NewRule, NewRuleScope};
use consort_model::policy::Subject;
use consort_model::{Effect, RuleId, ToolKind};
use uuid::Uuid;

use crate::app::App;
use crate::overlay::form::{self, Entry, Form};

const EVERYONE: &str = "everyone";
const IN_FOLDER: &str = "agents in ";
const PROFILE: &str = "profile ";
const AGENT: &str = "agent ";

const COMMANDS: &str = "commands";
const FILES: &str = "files";
const TOOLS: &str = "tools";

/// An empty form.
pub(super) fn form(app: &App) -> Form {
    let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let mut whom = vec![EVERYONE.to_owned(), format!("{IN_FOLDER}{}", app.cwd.display())];
    whom.extend(app.state.profiles.iter().map(|profile| format!("{PROFILE}{}", profile.id)));
    whom.extend(app.focused_agent().map(|agent| format!("{AGENT}{}", agent.name)));
    let entries = vec![
        Entry::one("effect", "effect", "a denial wins over every allowance", owned(&["allow", "deny"]), 0),
        Entry::one("whom", "for", "whose calls it covers", whom, 0),
        Entry::one(
            "what",
            "what",
            "commands as a shell reads them, files by their paths, or tools by their titles",
            owned(&[COMMANDS, FILES, TOOLS]),
            0,
        ),
        Entry::text("pattern", "pattern", "such as `cargo test *`, `docs/**` or `github: get_*`", ""),
    ];
    Form::new("New rule", entries, form::Subject::NewRule)
}

/// The rule that a form says.
pub(super) fn read(form: &Form) -> Result<NewRule, String> {
    let pattern = form.value("pattern");
    if pattern.is_empty() {
        return Err("a rule needs a pattern".to_owned());
    }
    let (tool, subject) = match form.value("what").as_str() {
        COMMANDS => (Some(ToolKind::Execute), Subject::Command { pattern }),
        FILES => (None, Subject::Files { patterns: vec![pattern] }),
        _ => (None, Subject::Title { pattern }),
    };
    let whom = form.value("whom");
    let scope = if let Some(folder) = whom.strip_prefix(IN_FOLDER) {
        NewRuleScope::Project { folder: folder.into() }
    } else if let Some(profile) = whom.strip_prefix(PROFILE) {
        NewRuleScope::Profile { profile: profile.to_owned() }
    } else if let Some(agent) = whom.strip_prefix(AGENT) {
        NewRuleScope::Agent { agent: agent.to_owned() }
    } else {
        NewRuleScope::All
    };
    let effect = if form.value("effect") == "deny" { Effect::Deny } else { Effect::Allow };
    Ok(NewRule { id: RuleId::new(Uuid::now_v7()), effect, scope, tool, subject })
}
