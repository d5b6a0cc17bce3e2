//! Tool calls: what each of the agent's tools is, and the calls that have not ended.
//!
//! A call is announced, perhaps asked for, and ends with a result; each names it by id, in any order, because a
//! sub-agent's approval can come before the message that makes the call. Owned here are the open calls by their raw
//! input; everyone else sees whole calls only.

use std::sync::Arc;

use consort_model::{Diff, Signal, ToolCall, ToolCallId, ToolKind, ToolStatus};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::Output;
use crate::images::image_of;

/// How many calls may be open at once. More is a fault of the agent; the oldest are forgotten.
const OPEN_CALLS: usize = 512;

/// The calls that have not ended, in order of their beginning.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Tools(Vec<Arc<Open>>);

/// A call that has not ended.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Open {
    id: ToolCallId,
    /// What the agent calls the tool.
    pub name: String,
    /// The arguments as they came.
    pub input: Value,
    status: ToolStatus,
    pub within: Option<ToolCallId>,
    /// Why it was asked for, where the agent says.
    reason: Option<String>,
}

/// What is known of a call now.
pub struct Piece<'a> {
    pub id: &'a str,
    pub name: &'a str,
    pub input: Option<Value>,
    pub status: ToolStatus,
    pub within: Option<ToolCallId>,
    pub reason: Option<String>,
}

impl Tools {
    /// Adds what is known to its call, making the call if it is new, and tells the whole.
    pub fn add(&mut self, piece: Piece<'_>, out: &mut Output) -> ToolCall {
        let index = match self.position(piece.id) {
            Some(index) => index,
            None => {
                if self.0.len() >= OPEN_CALLS {
                    self.0.remove(0);
                }
                self.0.push(Arc::new(Open {
                    id: ToolCallId::new(piece.id),
                    name: piece.name.to_owned(),
                    input: Value::Null,
                    status: ToolStatus::Pending,
                    within: None,
                    reason: None,
                }));
                self.0.len() - 1
            }
        };
        let open = Arc::make_mut(&mut self.0[index]);
        if let Some(input) = piece.input {
            open.input = input;
        }
        open.status = piece.status;
        // A call within itself would be shown nowhere.
        let within = piece.within.filter(|within| *within != open.id);
        open.within = within.or(open.within.take());
        open.reason = piece.reason.or(open.reason.take());
        open.tell(out)
    }

    /// The call runs.
    pub fn runs(&mut self, id: &str, input: Option<&Value>, out: &mut Output) {
        let Some(index) = self.position(id) else { return };
        let open = Arc::make_mut(&mut self.0[index]);
        open.status = ToolStatus::Running;
        if let Some(input) = input {
            open.input = input.clone();
        }
        open.tell(out);
    }

    /// The call ended; what it was.
    pub fn end(&mut self, id: &str, result: &Ended<'_>, out: &mut Output) -> Option<Arc<Open>> {
        let open = self.position(id).map(|index| self.0.remove(index));
        let unknown;
        let ended = match &open {
            Some(open) => open,
            None => {
                unknown = Arc::new(Open {
                    id: ToolCallId::new(id),
                    name: "tool call".to_owned(),
                    input: Value::Null,
                    status: ToolStatus::Pending,
                    within: None,
                    reason: None,
                });
                &unknown
            }
        };
        let mut call = ended.call();
        call.status = if result.failed { ToolStatus::Failed } else { ToolStatus::Completed };
        let rest = set_content(&mut call, result.content);
        if !rest.is_empty() {
            add_meta(&mut call.meta, "content", Value::Array(rest));
        }
        if ended.name == "Write"
            && let Some(before) = result.raw.get("originalFile").and_then(Value::as_str)
            && let Some(diff) = call.diffs.first_mut()
        {
            diff.old_text = Some(before.to_owned());
        }
        call.raw_output = shortened(result.raw);
        let within = ended.within.clone().or_else(|| result.within.clone());
        out.signals.push(Signal::Tool { call, within });
        open
    }

    /// Calls that will not end any more have failed. Those within a call that ended and yet `works` go on.
    pub fn fail(&mut self, works: impl Fn(&str) -> bool, out: &mut Output) {
        let keep: Vec<bool> = self
            .0
            .iter()
            .map(|open| self.ended_root(open).is_some_and(|root| works(root.as_str())))
            .collect();
        let open = std::mem::take(&mut self.0);
        for (open, keep) in open.into_iter().zip(keep) {
            if keep {
                self.0.push(open);
                continue;
            }
            let mut call = open.call();
            call.status = ToolStatus::Failed;
            out.signals.push(Signal::Tool { call, within: open.within.clone() });
        }
    }

    /// The outermost call that this one is nested in, if that has ended.
    fn ended_root<'a>(&'a self, open: &'a Open) -> Option<&'a ToolCallId> {
        let mut within = open.within.as_ref()?;
        // Bounded, because a broken agent could nest calls in a ring.
        for _ in 0..self.0.len() {
            match self.0.iter().find(|other| other.id == *within) {
                Some(outer) => within = outer.within.as_ref()?,
                None => return Some(within),
            }
        }
        None
    }

    pub fn holds(&self, id: &str) -> bool {
        self.position(id).is_some()
    }

    pub fn call(&self, id: &str) -> Option<ToolCall> {
        self.position(id).map(|index| self.0[index].call())
    }

    fn position(&self, id: &str) -> Option<usize> {
        self.0.iter().position(|open| open.id.as_str() == id)
    }
}

/// How a call ended.
pub struct Ended<'a> {
    pub failed: bool,
    /// What the model was told.
    pub content: &'a Value,
    /// The result in the agent's own form.
    pub raw: &'a Value,
    pub within: Option<ToolCallId>,
}

impl Open {
    fn tell(&self, out: &mut Output) -> ToolCall {
        let call = self.call();
        out.signals.push(Signal::Tool { call: call.clone(), within: self.within.clone() });
        call
    }

    fn call(&self) -> ToolCall {
        let mut input = self.input.clone();
        let mut meta = Value::Null;
        add_meta(&mut meta, "name", Value::String(self.name.clone()));
        // A command's description is words for people, different every time; the call is the same without it.
        if self.name == "Bash"
            && let Some(fields) = input.as_object_mut()
            && let Some(description) = fields.remove("description")
        {
            add_meta(&mut meta, "description", description);
        }
        if let Some(reason) = &self.reason {
            add_meta(&mut meta, "reason", Value::String(reason.clone()));
        }
        let plan = (self.name == "ExitPlanMode").then(|| text(&self.input, "plan")).flatten();
        ToolCall {
            status: self.status,
            output: plan.unwrap_or_default().to_owned(),
            diffs: diffs(&self.name, &self.input),
            locations: locations(&self.input),
            input,
            meta,
            ..ToolCall::new(self.id.clone(), kind(&self.name), title(&self.name, &self.input))
        }
    }
}

fn text<'a>(input: &'a Value, key: &str) -> Option<&'a str> {
    input.get(key).and_then(Value::as_str)
}

fn add_meta(meta: &mut Value, key: &str, value: Value) {
    match meta {
        Value::Object(fields) => drop(fields.insert(key.to_owned(), value)),
        other => *other = Value::Object(Map::from_iter([(key.to_owned(), value)])),
    }
}

/// What kind of tool goes by this name. A search of the web leaves the machine, so it counts as fetching.
pub fn kind(name: &str) -> ToolKind {
    match name {
        "Read" | "NotebookRead" | "BashOutput" | "TaskOutput" => ToolKind::Read,
        "Glob" | "Grep" | "LS" | "ToolSearch" => ToolKind::Search,
        "Edit" | "MultiEdit" | "Write" | "NotebookEdit" => ToolKind::Edit,
        "Bash" | "PowerShell" => ToolKind::Execute,
        "WebFetch" | "WebSearch" => ToolKind::Fetch,
        "Agent" | "Task" | "TodoWrite" | "TaskCreate" | "TaskUpdate" | "TaskGet" | "TaskList"
        | "EnterPlanMode" | "ExitPlanMode" | "AskUserQuestion" => ToolKind::Think,
        _ => ToolKind::Other,
    }
}

/// The agent's own names for these tools, in the form of its option: kinds become the tools of that kind.
pub fn names_of(tools: &[String]) -> String {
    let mut names = vec!["ToolSearch"];
    for tool in tools {
        match tool.as_str() {
            "read" => names.extend(["Read", "NotebookRead"]),
            "search" => names.extend(["Glob", "Grep", "LS"]),
            "edit" => names.extend(["Edit", "MultiEdit", "Write", "NotebookEdit"]),
            "execute" => names.extend(["Bash", "BashOutput", "KillShell"]),
            "fetch" => names.extend(["WebFetch", "WebSearch"]),
            "think" => names.extend(["TodoWrite", "TaskCreate", "TaskUpdate", "TaskGet", "TaskList"]),
            // Whatever cannot be a name is no tool of it.
            name if name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_') => {
                names.push(name)
            }
            _ => {}
        }
    }
    names.join(",")
}

fn title(name: &str, input: &Value) -> String {
    let of = |key: &str| text(input, key).map(str::trim).filter(|text| !text.is_empty());
    let with = |key: &str| of(key).map(|text| format!("{name} {text}"));
    let title = match name {
        "Bash" | "PowerShell" => of("command").map(str::to_owned),
        "Read" | "Edit" | "MultiEdit" | "Write" => with("file_path"),
        "NotebookEdit" | "NotebookRead" => with("notebook_path"),
        "Glob" | "Grep" => with("pattern").map(|title| match of("path") {
            Some(path) => format!("{title} in {path}"),
            None => title,
        }),
        "LS" => with("path"),
        "WebFetch" => with("url"),
        "WebSearch" | "ToolSearch" => with("query"),
        "Agent" | "Task" => with("description"),
        "TaskCreate" => with("subject"),
        "TaskUpdate" | "TaskGet" => with("taskId"),
        "Skill" => with("skill"),
        "ExitPlanMode" => Some("Plan".to_owned()),
        _ => name
            .strip_prefix("mcp__")
            .and_then(|name| name.split_once("__"))
            .map(|(server, tool)| format!("{server}: {tool}")),
    };
    title.unwrap_or_else(|| name.to_owned())
}

fn diffs(name: &str, input: &Value) -> Vec<Diff> {
    let Some(path) = text(input, "file_path") else { return Vec::new() };
    let edit = |edit: &Value| {
        Some(Diff {
            path: path.to_owned(),
            old_text: text(edit, "old_string").filter(|old| !old.is_empty()).map(str::to_owned),
            new_text: text(edit, "new_string")?.to_owned(),
        })
    };
    match name {
        "Edit" => edit(input).into_iter().collect(),
        "MultiEdit" => {
            input.get("edits").and_then(Value::as_array).into_iter().flatten().filter_map(edit).collect()
        }
        "Write" => text(input, "content")
            .map(|content| Diff { path: path.to_owned(), old_text: None, new_text: content.to_owned() })
            .into_iter()
            .collect(),
        _ => Vec::new(),
    }
}

fn locations(input: &Value) -> Vec<String> {
    let path = ["file_path", "notebook_path", "path"].iter().find_map(|key| text(input, key));
    let line = input.get("offset").and_then(Value::as_u64);
    path.map(|path| match line {
        Some(line) => format!("{path}:{line}"),
        None => path.to_owned(),
    })
    .into_iter()
    .collect()
}

/// Gives a call its result: text and images. What is left is neither.
fn set_content(call: &mut ToolCall, content: &Value) -> Vec<Value> {
    let parts = match content {
        Value::Null => &[],
        Value::Array(parts) => parts.as_slice(),
        other => std::slice::from_ref(other),
    };
    let mut texts = Vec::new();
    let mut rest = Vec::new();
    for part in parts {
        let said =
            part.as_str().or_else(|| text(part, "text").filter(|_| text(part, "type") == Some("text")));
        match (said, image_of(part)) {
            (Some(said), _) => texts.push(said),
            (None, Some(image)) => call.images.push(image),
            (None, None) => rest.push(part.clone()),
        }
    }
    call.output = texts.join("\n");
    rest
}

/// The result in the agent's own form without what stands in the call's input, output or diffs already.
fn shortened(raw: &Value) -> Value {
    const TOLD: [&str; 16] = [
        "stdout",
        "content",
        "file",
        "originalFile",
        "oldString",
        "newString",
        "edits",
        "prompt",
        "questions",
        "answers",
        "plan",
        "oldTodos",
        "newTodos",
        "filePath",
        "message",
        "type",
    ];
    let Some(fields) = raw.as_object() else { return Value::Null };
    let empty = |value: &Value| match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    };
    let kept: Map<String, Value> = fields
        .iter()
        .filter(|(key, value)| !TOLD.contains(&key.as_str()) && !empty(value))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    if kept.is_empty() { Value::Null } else { Value::Object(kept) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_call_has_a_kind_a_title_and_its_files() {
        // (tool, input, kind, title, locations)
        let table = [
            ("Bash", json!({"command": "ls -l"}), ToolKind::Execute, "ls -l", vec![]),
            ("Read", json!({"file_path": "/a", "offset": 7}), ToolKind::Read, "Read /a", vec!["/a:7"]),
            ("Grep", json!({"pattern": "x", "path": "/d"}), ToolKind::Search, "Grep x in /d", vec!["/d"]),
            ("Write", json!({"file_path": "/a", "content": ""}), ToolKind::Edit, "Write /a", vec!["/a"]),
            ("WebFetch", json!({"url": "http://h"}), ToolKind::Fetch, "WebFetch http://h", vec![]),
            ("WebSearch", json!({"query": "q"}), ToolKind::Fetch, "WebSearch q", vec![]),
            ("Agent", json!({"description": "look"}), ToolKind::Think, "Agent look", vec![]),
            ("mcp__notes__add", json!({}), ToolKind::Other, "notes: add", vec![]),
            ("Bash", json!(7), ToolKind::Execute, "Bash", vec![]),
            ("Unheard", json!({"path": 1}), ToolKind::Other, "Unheard", vec![]),
        ];
        for (name, input, expected, expected_title, expected_locations) in table {
            assert_eq!(kind(name), expected, "{name}");
            assert_eq!(title(name, &input), expected_title, "{name}");
            assert_eq!(locations(&input), expected_locations, "{name}");
        }
    }

    #[test]
    fn edits_become_diffs() {
        let diff = |old: Option<&str>, new: &str| Diff {
            path: "/a".into(),
            old_text: old.map(str::to_owned),
            new_text: new.into(),
        };
        let edit = json!({"file_path": "/a", "old_string": "x", "new_string": "y"});
        assert_eq!(diffs("Edit", &edit), [diff(Some("x"), "y")]);
        let many = json!({"file_path": "/a", "edits": [{"old_string": "x", "new_string": "y"},
            {"old_string": "", "new_string": "z"}, 3]});
        assert_eq!(diffs("MultiEdit", &many), [diff(Some("x"), "y"), diff(None, "z")]);
        assert_eq!(diffs("Write", &json!({"file_path": "/a", "content": "t"})), [diff(None, "t")]);
        assert_eq!(diffs("Read", &edit), []);
    }

    #[test]
    fn a_result_is_kept_once() {
        let raw = json!({"stdout": "a", "stderr": "", "interrupted": false, "backgroundTaskId": "b"});
        assert_eq!(shortened(&raw), json!({"backgroundTaskId": "b"}));
        assert_eq!(shortened(&json!("Error: no")), Value::Null);
        assert_eq!(shortened(&json!({"stdout": "a"})), Value::Null);
    }

    #[test]
    fn listed_tools_are_told_by_their_own_names() {
        let listed =
            |tools: &[&str]| names_of(&tools.iter().map(|tool| (*tool).to_owned()).collect::<Vec<_>>());
        assert_eq!(listed(&[]), "ToolSearch");
        assert_eq!(listed(&["search", "Edit"]), "ToolSearch,Glob,Grep,LS,Edit");
        assert_eq!(
            listed(&["read", "x --dangerous", "a,b", "delete"]),
            "ToolSearch,Read,NotebookRead,delete"
        );
    }
}
