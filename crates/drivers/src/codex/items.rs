//! Items: what the app server tells about one thing that happens in a turn, and the tool call that it makes of it.
//!
//! Owns the reading of items, leniently: a field of another form counts as not said, a kind that is not known is kept
//! as it came. Which items are open is known elsewhere.

use consort_model::{Diff, Image, ToolCall, ToolCallId, ToolKind, ToolStatus};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::diffs::{Change, What};
use super::shell;
use super::wire::{lenient, one_line, title_of};
use crate::images::image_of;

/// How much of an output that still grows is shown; the whole of it comes with the end.
pub const GROWING_OUTPUT: usize = 8 * 1024;

/// What kind of item.
#[derive(Deserialize, Default, Debug, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub enum ItemKind {
    UserMessage,
    HookPrompt,
    AgentMessage,
    Plan,
    Reasoning,
    CommandExecution,
    FileChange,
    McpToolCall,
    DynamicToolCall,
    CollabAgentToolCall,
    SubAgentActivity,
    WebSearch,
    ImageView,
    ImageGeneration,
    Sleep,
    EnteredReviewMode,
    ExitedReviewMode,
    ContextCompaction,
    #[default]
    #[serde(other)]
    Unknown,
}

/// How far an item is.
#[derive(Deserialize, Default, Debug, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub enum ItemStatus {
    InProgress,
    Completed,
    Failed,
    Declined,
    Interrupted,
    #[default]
    #[serde(other)]
    Unknown,
}

/// An item with the fields of all kinds.
#[derive(Deserialize, Default, Debug)]
#[serde(rename_all = "camelCase", default)]
pub struct Item {
    #[serde(rename = "type", deserialize_with = "lenient")]
    pub kind: ItemKind,
    #[serde(deserialize_with = "lenient")]
    pub id: String,
    /// What a message is called by who sent it.
    #[serde(deserialize_with = "lenient")]
    pub client_id: String,
    #[serde(deserialize_with = "lenient")]
    pub status: ItemStatus,
    #[serde(deserialize_with = "lenient")]
    pub text: String,
    #[serde(deserialize_with = "lenient")]
    pub review: String,
    #[serde(deserialize_with = "lenient")]
    pub summary: Vec<String>,
    #[serde(deserialize_with = "lenient")]
    pub content: Vec<String>,
    #[serde(deserialize_with = "lenient")]
    pub command: String,
    #[serde(deserialize_with = "lenient")]
    pub cwd: String,
    #[serde(deserialize_with = "lenient")]
    pub process_id: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub aggregated_output: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub exit_code: Option<i64>,
    #[serde(deserialize_with = "lenient")]
    pub duration_ms: Option<u64>,
    #[serde(deserialize_with = "lenient")]
    pub changes: Vec<Change>,
    #[serde(deserialize_with = "lenient")]
    pub server: String,
    #[serde(deserialize_with = "lenient")]
    pub namespace: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub tool: String,
    pub arguments: Value,
    pub result: Value,
    pub error: Value,
    #[serde(deserialize_with = "lenient")]
    pub content_items: Vec<Value>,
    #[serde(deserialize_with = "lenient")]
    pub receiver_thread_ids: Vec<String>,
    #[serde(deserialize_with = "lenient")]
    pub prompt: Option<String>,
    pub agents_states: Value,
    #[serde(deserialize_with = "lenient")]
    pub agent_thread_id: String,
    #[serde(deserialize_with = "lenient")]
    pub agent_path: String,
    #[serde(rename = "kind", deserialize_with = "lenient")]
    pub activity: String,
    #[serde(deserialize_with = "lenient")]
    pub query: String,
    pub action: Value,
    #[serde(deserialize_with = "lenient")]
    pub path: String,
    #[serde(deserialize_with = "lenient")]
    pub saved_path: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub revised_prompt: Option<String>,
}

impl Item {
    /// The tool call that this item is, if it is one. `over` says whether the item ended.
    pub fn tool_call(&self, over: bool) -> Option<ToolCall> {
        let mut call = empty(ToolCallId::new(&self.id));
        call.status = self.tool_status(over);
        match self.kind {
            ItemKind::CommandExecution => self.command_call(&mut call),
            ItemKind::FileChange => set_changes(&mut call, &self.changes),
            ItemKind::McpToolCall => self.mcp_call(&mut call),
            ItemKind::DynamicToolCall => {
                let namespace = self.namespace.as_deref().map(|name| format!("{name}."));
                call.title = format!("{}{}", namespace.unwrap_or_default(), self.tool);
                call.input = self.arguments.clone();
                call.output = texts(&self.content_items);
            }
            ItemKind::CollabAgentToolCall => self.agent_call(&mut call),
            ItemKind::SubAgentActivity => {
                call.tool = ToolKind::Think;
                let what = match self.activity.as_str() {
                    "started" => "Start the sub-agent",
                    "interacted" => "Write to the sub-agent",
                    "interrupted" => "Interrupt the sub-agent",
                    // The end of its turn tells it.
                    "completed" => return None,
                    other => other,
                };
                call.title = format!("{what} {}", self.agent_path);
            }
            ItemKind::WebSearch => {
                call.tool = ToolKind::Search;
                let page = self.action.get("url").and_then(Value::as_str);
                call.title = match (self.query.as_str(), page) {
                    ("", Some(page)) => format!("Open {page}"),
                    ("", None) => "Search the web".to_owned(),
                    (query, _) => format!("Search the web for {query}"),
                };
                call.input = self.action.clone();
            }
            ItemKind::ImageView => {
                call.tool = ToolKind::Read;
                call.title = format!("View {}", self.path);
                call.locations = vec![self.path.clone()];
            }
            ItemKind::ImageGeneration => {
                call.title = match &self.revised_prompt {
                    Some(prompt) => format!("Make an image: {prompt}"),
                    None => "Make an image".to_owned(),
                };
                call.locations = self.saved_path.iter().cloned().collect();
                call.images = self.result.as_str().and_then(Image::encoded).into_iter().collect();
            }
            ItemKind::Sleep => {
                call.tool = ToolKind::Think;
                call.title = format!("Wait {} ms", self.duration_ms.unwrap_or_default());
            }
            _ => return None,
        }
        call.title = title_of(&call.title);
        if call.title.is_empty() {
            call.title = "tool call".to_owned();
        }
        Some(call)
    }

    fn tool_status(&self, over: bool) -> ToolStatus {
        match self.status {
            ItemStatus::Failed | ItemStatus::Declined | ItemStatus::Interrupted => ToolStatus::Failed,
            _ if over => ToolStatus::Completed,
            _ => ToolStatus::Running,
        }
    }

    fn command_call(&self, call: &mut ToolCall) {
        call.tool = ToolKind::Execute;
        call.title = shell::script(&self.command);
        call.input = command_input(&self.command, &self.cwd);
        call.output = self.aggregated_output.clone().unwrap_or_default();
        let mut meta = Map::new();
        if let Some(code) = self.exit_code {
            meta.insert("exit_code".to_owned(), json!(code));
        }
        if self.status == ItemStatus::Declined {
            meta.insert("declined".to_owned(), json!(true));
        }
        if !meta.is_empty() {
            call.meta = Value::Object(meta);
        }
    }

    fn mcp_call(&self, call: &mut ToolCall) {
        call.title = format!("{}: {}", self.server, self.tool);
        call.input = self.arguments.clone();
        let content = self.result.get("content").and_then(Value::as_array).map(Vec::as_slice);
        call.output = texts(content.unwrap_or_default());
        call.images = content.unwrap_or_default().iter().filter_map(image_of).collect();
        if let Some(message) = self.error.get("message").and_then(Value::as_str) {
            message.clone_into(&mut call.output);
        }
        let structured = self.result.get("structuredContent").unwrap_or(&Value::Null);
        if !structured.is_null() {
            call.raw_output = structured.clone();
        }
    }

    fn agent_call(&self, call: &mut ToolCall) {
        call.tool = ToolKind::Think;
        let prompt = self.prompt.as_deref().map(one_line).unwrap_or_default();
        let what = match self.tool.as_str() {
            "spawnAgent" => "Start a sub-agent",
            "sendInput" | "sendMessage" | "followupTask" => "Write to a sub-agent",
            "resumeAgent" => "Resume a sub-agent",
            "wait" => "Wait for sub-agents",
            "closeAgent" => "Close a sub-agent",
            "interruptAgent" => "Interrupt a sub-agent",
            "listAgents" => "List sub-agents",
            other => other,
        };
        call.title = if prompt.is_empty() { what.to_owned() } else { format!("{what}: {prompt}") };
        if let Some(prompt) = &self.prompt {
            call.input = json!({"prompt": prompt});
        }
        let states = self.agents_states.as_object().into_iter().flatten();
        let said = states.filter_map(|(_, state)| state.get("message")?.as_str());
        call.output = said.collect::<Vec<_>>().join("\n");
    }

    /// What was thought, whole.
    pub fn thought(&self) -> String {
        let parts = if self.summary.is_empty() { &self.content } else { &self.summary };
        parts.join("\n\n")
    }
}

/// A call of which nothing is known but its name.
pub fn empty(id: ToolCallId) -> ToolCall {
    ToolCall::new(id, ToolKind::Other, "tool call")
}

/// A command as arguments: what is compared when a person allowed it once and for all.
pub fn command_input(command: &str, cwd: &str) -> Value {
    json!({"command": command, "cwd": cwd})
}

/// Puts changes to files into a call. A diff that cannot be read is shown as it came.
pub fn set_changes(call: &mut ToolCall, changes: &[Change]) {
    let all = |what: What| changes.iter().all(|change| change.kind.what == what);
    let moves = changes.iter().any(|change| change.kind.move_path.is_some());
    let (tool, verb) = match changes {
        [] => (ToolKind::Edit, "Change files"),
        _ if moves => (ToolKind::Move, "Move"),
        _ if all(What::Delete) => (ToolKind::Delete, "Delete"),
        _ if all(What::Add) => (ToolKind::Edit, "Write"),
        // A deletion among edits is not an edit, for which less may be asked.
        _ if changes.iter().any(|change| change.kind.what == What::Delete) => (ToolKind::Delete, "Change"),
        _ => (ToolKind::Edit, "Edit"),
    };
    call.tool = tool;
    let paths: Vec<&str> = changes.iter().map(|change| change.path.as_str()).collect();
    call.title = format!("{verb} {}", paths.join(", ")).trim().to_owned();
    let mut unread = Vec::new();
    let mut diffs: Vec<Diff> = Vec::new();
    call.locations.clear();
    for change in changes {
        match change.read() {
            Some((texts, locations)) => {
                diffs.extend(texts);
                call.locations.extend(locations);
            }
            None => unread.push(change.diff.as_str()),
        }
        // Whatever became of the diff, who decides about the call sees every path.
        let told = |known: &String| without_line(known) == change.path;
        if !call.locations.iter().any(told) {
            call.locations.push(change.path.clone());
        }
        call.locations.extend(change.kind.move_path.clone());
    }
    call.diffs = diffs;
    call.output = unread.join("\n");
}

/// `src/main.rs:12` without the line.
fn without_line(location: &str) -> &str {
    match location.rsplit_once(':') {
        Some((path, line)) if line.bytes().all(|byte| byte.is_ascii_digit()) => path,
        _ => location,
    }
}

/// The texts among content blocks.
fn texts(content: &[Value]) -> String {
    let texts = content.iter().filter(|block| image_of(block).is_none()).map(|block| {
        match block.get("text").and_then(Value::as_str) {
            Some(text) => text.to_owned(),
            None => match block.get("type").and_then(Value::as_str) {
                Some(kind) => format!("[{}]", one_line(kind)),
                None => "[something]".to_owned(),
            },
        }
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// Adds to an output that grows, keeping its end.
pub fn grow(output: &mut String, piece: &str) {
    const CUT: &str = "[…]\n";
    output.push_str(piece);
    if output.len() <= GROWING_OUTPUT {
        return;
    }
    let mut from = output.len() - GROWING_OUTPUT / 2;
    while !output.is_char_boundary(from) {
        from += 1;
    }
    let kept = output.split_off(from);
    *output = format!("{CUT}{kept}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_that_was_made_comes_with_the_call() {
        let data = "iVBORw0KGgoAAAANSUhEUg==";
        let made = call(json!({"type": "imageGeneration", "result": data}));
        assert_eq!(made.images, [Image { mime_type: "image/png".into(), data: data.into() }]);
        assert_eq!(call(json!({"type": "imageGeneration", "result": "no image"})).images, []);
    }

    fn call(item: Value) -> ToolCall {
        serde_json::from_value::<Item>(item).unwrap().tool_call(true).unwrap()
    }

    #[test]
    fn every_kind_of_tool_has_a_title_and_a_kind() {
        let table = [
            (
                json!({"type": "commandExecution", "command": "/bin/bash -lc 'ls -a'"}),
                ToolKind::Execute,
                "ls -a",
            ),
            (json!({"type": "mcpToolCall", "server": "s", "tool": "t"}), ToolKind::Other, "s: t"),
            (json!({"type": "dynamicToolCall", "tool": "t", "namespace": "n"}), ToolKind::Other, "n.t"),
            (json!({"type": "webSearch", "query": "rust"}), ToolKind::Search, "Search the web for rust"),
            (
                json!({"type": "webSearch", "query": "", "action": {"type": "openPage", "url": "http://x"}}),
                ToolKind::Search,
                "Open http://x",
            ),
            (json!({"type": "imageView", "path": "/a.png"}), ToolKind::Read, "View /a.png"),
            (
                json!({"type": "imageGeneration", "revisedPrompt": "a cat"}),
                ToolKind::Other,
                "Make an image: a cat",
            ),
            (json!({"type": "sleep", "durationMs": 5}), ToolKind::Think, "Wait 5 ms"),
            (
                json!({"type": "collabAgentToolCall", "tool": "spawnAgent", "prompt": "do\nit"}),
                ToolKind::Think,
                "Start a sub-agent: do it",
            ),
            (
                json!({"type": "subAgentActivity", "kind": "started", "agentPath": "/root/kid"}),
                ToolKind::Think,
                "Start the sub-agent /root/kid",
            ),
            (json!({"type": "fileChange", "changes": []}), ToolKind::Edit, "Change files"),
            (
                json!({"type": "fileChange", "changes": [{"path": "/a", "kind": {"type": "delete"}, "diff": "x"}]}),
                ToolKind::Delete,
                "Delete /a",
            ),
        ];
        for (item, kind, title) in table {
            let call = call(item.clone());
            assert_eq!((call.tool, call.title.as_str()), (kind, title), "{item}");
        }
    }

    #[test]
    fn a_change_shows_every_path_and_what_is_not_a_diff_as_it_came() {
        let call = call(json!({"type": "fileChange", "changes": [
            {"path": "/w/new", "kind": {"type": "add"}, "diff": "text\n"},
            {"path": "/w/a", "kind": {"type": "update", "move_path": "/w/b"}, "diff": "@@ -4,1 +5,1 @@\n-x\n+y\n"},
            {"path": "/w/odd", "kind": {"type": "update"}, "diff": "odd"},
        ]}));
        assert_eq!(call.tool, ToolKind::Move);
        assert_eq!(call.locations, ["/w/new", "/w/a:5", "/w/b", "/w/odd"]);
        assert_eq!(call.output, "odd");
        assert_eq!(call.diffs.len(), 2);
        assert_eq!(call.diffs[0].old_text, None);
        assert_eq!(call.diffs[1].old_text.as_deref(), Some("x\n"));
    }

    #[test]
    fn a_growing_output_keeps_its_end_and_stays_small() {
        let mut output = String::new();
        for round in 0..5000 {
            grow(&mut output, &format!("é{round}\n"));
            assert!(output.len() <= GROWING_OUTPUT + 16);
        }
        assert!(output.ends_with("é4999\n"));
        assert!(output.starts_with('['));
    }
}
