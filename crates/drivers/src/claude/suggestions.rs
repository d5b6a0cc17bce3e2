//! What the agent suggests to allow beyond one call, as answers a person can choose.
//!
//! The agent sends changes to its permissions with a destination. A rule for the project's settings is written there
//! and then ignored where the folder is not trusted, so every change that is chosen is also made for the session;
//! choosing what lasts makes both.

use consort_model::{AnswerOption, OptionKind};
use serde_json::{Value, json};

use super::wire::one_line;

/// The id of the answer that allows all edits.
const EDITS: &str = "edits";

/// The answers that these suggestions amount to.
pub fn options(suggestions: &[Value]) -> Vec<AnswerOption> {
    let mut options = Vec::new();
    let mut offer = |id: String, name: String| {
        options.push(AnswerOption { id, name, kind: OptionKind::AllowAlways });
    };
    for (index, suggestion) in suggestions.iter().enumerate() {
        let Some(rules) = rules(suggestion) else { continue };
        offer(format!("session-{index}"), format!("Allow {rules} in this session"));
        if lasts(suggestion) {
            offer(format!("always-{index}"), format!("Always allow {rules} in this project"));
        }
    }
    let folders: Vec<&str> = suggestions.iter().flat_map(folders).collect();
    let folders = one_line(&folders.join(", "));
    match (suggestions.iter().any(sets_mode), folders.is_empty()) {
        (true, true) => offer(EDITS.to_owned(), "Allow all edits in this session".to_owned()),
        (true, false) => {
            offer(EDITS.to_owned(), format!("Allow all edits in this session, in {folders} too"))
        }
        (false, false) => offer(EDITS.to_owned(), format!("Allow {folders} in this session")),
        (false, true) => {}
    }
    options
}

/// The changes that an answer makes; none if it is not one of [`options`].
pub fn updates(suggestions: &[Value], option: &str) -> Option<Vec<Value>> {
    if option == EDITS {
        let chosen = suggestions
            .iter()
            .filter(|suggestion| sets_mode(suggestion) || folders(suggestion).next().is_some());
        let updates: Vec<Value> = chosen.map(for_session).collect();
        return (!updates.is_empty()).then_some(updates);
    }
    let (reach, index) = option.split_once('-')?;
    let suggestion = suggestions.get(index.parse::<usize>().ok()?)?;
    rules(suggestion)?;
    match reach {
        "session" => Some(vec![for_session(suggestion)]),
        "always" if lasts(suggestion) => Some(vec![for_session(suggestion), suggestion.clone()]),
        _ => None,
    }
}

fn for_session(suggestion: &Value) -> Value {
    let mut update = suggestion.clone();
    if let Some(fields) = update.as_object_mut() {
        fields.insert("destination".to_owned(), json!("session"));
    }
    update
}

fn is(suggestion: &Value, key: &str, value: &str) -> bool {
    suggestion.get(key).and_then(Value::as_str) == Some(value)
}

fn lasts(suggestion: &Value) -> bool {
    ["localSettings", "projectSettings", "userSettings"]
        .iter()
        .any(|place| is(suggestion, "destination", place))
}

fn sets_mode(suggestion: &Value) -> bool {
    is(suggestion, "type", "setMode") && is(suggestion, "mode", "acceptEdits")
}

fn folders(suggestion: &Value) -> impl Iterator<Item = &str> {
    let folders = suggestion.get("directories").filter(|_| is(suggestion, "type", "addDirectories"));
    folders.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

/// The rules that a suggestion adds, in words; none if it adds none that allow.
fn rules(suggestion: &Value) -> Option<String> {
    if !is(suggestion, "type", "addRules") || !is(suggestion, "behavior", "allow") {
        return None;
    }
    let rule = |rule: &Value| {
        let tool = rule.get("toolName")?.as_str()?;
        Some(match rule.get("ruleContent").and_then(Value::as_str) {
            Some(content) => format!("{tool}({content})"),
            None => tool.to_owned(),
        })
    };
    let rules: Vec<String> = suggestion.get("rules")?.as_array()?.iter().filter_map(rule).collect();
    (!rules.is_empty()).then(|| one_line(&rules.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn suggested() -> Vec<Value> {
        vec![
            json!({"type": "addRules", "rules": [{"toolName": "Bash", "ruleContent": "npm run *"}],
                "behavior": "allow", "destination": "localSettings"}),
            json!({"type": "addDirectories", "directories": ["/out"], "destination": "session"}),
            json!({"type": "setMode", "mode": "acceptEdits", "destination": "session"}),
            json!({"type": "addRules", "rules": [{"toolName": "Read", "ruleContent": "//d/**"}],
                "behavior": "allow", "destination": "session"}),
            json!({"type": "addRules", "rules": [{"toolName": "Bash"}], "behavior": "deny"}),
            json!({"type": "unheard"}),
            json!(3),
        ]
    }

    #[test]
    fn suggestions_become_answers() {
        let names: Vec<String> = options(&suggested())
            .into_iter()
            .map(|option| format!("{}: {}", option.id, option.name))
            .collect();
        let expected = [
            "session-0: Allow Bash(npm run *) in this session",
            "always-0: Always allow Bash(npm run *) in this project",
            "session-3: Allow Read(//d/**) in this session",
            "edits: Allow all edits in this session, in /out too",
        ];
        assert_eq!(names, expected);
        assert_eq!(options(&[]), []);
    }

    #[test]
    fn what_is_chosen_holds_for_the_session_wherever_else_it_is_written() {
        let all = suggested();
        let places = |option: &str| -> Option<Vec<String>> {
            let updates = updates(&all, option)?;
            Some(
                updates
                    .iter()
                    .map(|update| format!("{} {}", update["type"], update["destination"]).replace('"', ""))
                    .collect(),
            )
        };
        let table = [
            ("session-0", Some(vec!["addRules session"])),
            ("always-0", Some(vec!["addRules session", "addRules localSettings"])),
            ("edits", Some(vec!["addDirectories session", "setMode session"])),
            ("always-3", None),
            ("session-4", None),
            ("session-99", None),
            ("allow", None),
        ];
        for (option, expected) in table {
            let expected = expected.map(|places| places.into_iter().map(str::to_owned).collect());
            assert_eq!(places(option), expected, "{option}");
        }
    }
}
