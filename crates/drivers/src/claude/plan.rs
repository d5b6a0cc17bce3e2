//! The agent's list of tasks, put together from the tools that keep it.
//!
//! `TodoWrite` writes the whole list; the newer `TaskCreate`, `TaskUpdate` and `TaskList` change one task at a time and
//! tell its number only in their result. Lists of sub-agents are their own business and are left out.

use consort_model::{PlanEntry, PlanStatus};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How many tasks are followed.
const TASKS: usize = 256;

/// The tasks as they stand.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Plan(Vec<Task>);

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Task {
    id: String,
    entry: PlanEntry,
}

impl Plan {
    /// Takes in a call that ended well; the whole list if that changed it.
    pub fn observe(&mut self, tool: &str, input: &Value, result: &Value) -> Option<Vec<PlanEntry>> {
        let before = self.0.clone();
        match tool {
            "TodoWrite" => self.replace(input.get("todos"), "content"),
            "TaskList" => self.replace(result.get("tasks"), "subject"),
            "TaskCreate" => {
                let task = result.get("task").unwrap_or(result);
                if let (Some(id), Some(text)) = (name(task, "id"), text(input, "subject")) {
                    self.0.retain(|task| task.id != id);
                    let entry = PlanEntry { text: text.to_owned(), status: PlanStatus::Pending };
                    self.0.push(Task { id, entry });
                }
            }
            "TaskUpdate" => self.update(input),
            _ => return None,
        }
        self.0.truncate(TASKS);
        (self.0 != before).then(|| self.entries())
    }

    /// Forgets the list; whether there was one.
    pub fn clear(&mut self) -> bool {
        !std::mem::take(&mut self.0).is_empty()
    }

    fn entries(&self) -> Vec<PlanEntry> {
        self.0.iter().map(|task| task.entry.clone()).collect()
    }

    fn replace(&mut self, list: Option<&Value>, words: &str) {
        let Some(list) = list.and_then(Value::as_array) else { return };
        let task = |(index, task): (usize, &Value)| {
            let entry = PlanEntry { text: text(task, words)?.to_owned(), status: status(task) };
            Some(Task { id: name(task, "id").unwrap_or_else(|| index.to_string()), entry })
        };
        self.0 = list.iter().enumerate().take(TASKS).filter_map(task).collect();
    }

    fn update(&mut self, input: &Value) {
        let Some(id) = name(input, "taskId") else { return };
        if text(input, "status") == Some("deleted") {
            return self.0.retain(|task| task.id != id);
        }
        let Some(task) = self.0.iter_mut().find(|task| task.id == id) else { return };
        if input.get("status").is_some() {
            task.entry.status = status(input);
        }
        if let Some(text) = text(input, "subject") {
            text.clone_into(&mut task.entry.text);
        }
    }
}

fn text<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key).and_then(Value::as_str)
}

/// A name that may be written as a number.
fn name(value: &Value, key: &str) -> Option<String> {
    match value.get(key)? {
        Value::String(name) => Some(name.clone()),
        Value::Number(name) => Some(name.to_string()),
        _ => None,
    }
}

fn status(task: &Value) -> PlanStatus {
    match text(task, "status") {
        Some("in_progress") => PlanStatus::InProgress,
        Some("completed") => PlanStatus::Completed,
        _ => PlanStatus::Pending,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn words(entries: Option<Vec<PlanEntry>>) -> Option<Vec<String>> {
        Some(entries?.iter().map(|entry| format!("{} {:?}", entry.text, entry.status)).collect())
    }

    #[test]
    fn tasks_are_made_changed_and_removed_one_at_a_time() {
        let mut plan = Plan::default();
        let none = Value::Null;
        // (tool, input, result, the list if it changed)
        let table = [
            ("TaskCreate", json!({"subject": "a"}), json!({"task": {"id": "1"}}), Some(vec!["a Pending"])),
            (
                "TaskCreate",
                json!({"subject": "b"}),
                json!({"task": {"id": 2}}),
                Some(vec!["a Pending", "b Pending"]),
            ),
            (
                "TaskUpdate",
                json!({"taskId": "1", "status": "in_progress"}),
                none.clone(),
                Some(vec!["a InProgress", "b Pending"]),
            ),
            ("TaskUpdate", json!({"taskId": "9", "status": "completed"}), none.clone(), None),
            (
                "TaskUpdate",
                json!({"taskId": "2", "status": "deleted"}),
                none.clone(),
                Some(vec!["a InProgress"]),
            ),
            (
                "TaskList",
                none.clone(),
                json!({"tasks": [{"id": "1", "subject": "a", "status": "completed"}]}),
                Some(vec!["a Completed"]),
            ),
            (
                "TodoWrite",
                json!({"todos": [{"content": "c", "status": "in_progress"}]}),
                none.clone(),
                Some(vec!["c InProgress"]),
            ),
            ("TodoWrite", json!({"todos": "nonsense"}), none.clone(), None),
            ("Bash", json!({"command": "ls"}), none, None),
        ];
        for (tool, input, result, expected) in table {
            let expected = expected.map(|list| list.into_iter().map(str::to_owned).collect());
            assert_eq!(words(plan.observe(tool, &input, &result)), expected, "{tool} {input}");
        }
    }
}
