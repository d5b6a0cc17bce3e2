//! The tools, a file for each group. A group is a function that returns its tools.

mod life;
mod mail;
mod team;
mod who;
mod worktree;

use std::sync::LazyLock;

use crate::tool::TeamTool;

/// Made when the first agent asks for them: a daemon starts without.
static TOOLS: LazyLock<Vec<TeamTool>> = LazyLock::new(|| {
    [
        who::tools().to_vec(),
        team::tools().to_vec(),
        mail::tools().to_vec(),
        life::tools().to_vec(),
        worktree::tools().to_vec(),
    ]
    .concat()
});

/// All tools, in the order in which models are told of them.
pub fn all() -> &'static [TeamTool] {
    &TOOLS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemas_are_plain_objects_and_descriptions_say_something() {
        for TeamTool { tool, .. } in all() {
            let schema = serde_json::to_string(&tool.input_schema).unwrap();
            assert_eq!(tool.input_schema["type"], "object", "{}", tool.name);
            for word in ["$ref", "$defs", "$schema", "null", "title\":\""] {
                assert!(!schema.contains(word), "{}: {word} in {schema}", tool.name);
            }
            let description = tool.description.as_deref().unwrap_or_default();
            assert!(description.len() > 80, "{}", tool.name);
            for (name, property) in tool.input_schema["properties"].as_object().into_iter().flatten() {
                assert!(property["description"].is_string(), "{}.{name}", tool.name);
            }
        }
    }

    #[test]
    fn names_are_unique() {
        let mut names: Vec<_> = all().iter().map(|tool| tool.tool.name.clone()).collect();
        let count = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
