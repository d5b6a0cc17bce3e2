//! The tools of each CLI: how an act of a script becomes calls of what is offered.
//!
//! The CLI is known by the tools that it offers, so a script says `shell` and means `Bash`, `exec_command`,
//! `run_shell_command` or `bash`. The invariant: nothing is called that was not offered, but a tool that a script names
//! itself; an act without a tool becomes a text that says so, which ends the turn.

use serde_json::{Map, Value, json};

use super::choose::Words;
use super::conversation::Offered;
use super::script::{Arguments, Call, Todo, TodoState};

/// One call, in the words of the CLI.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolUse {
    pub name: String,
    pub namespace: Option<String>,
    pub input: Input,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    Json(Map<String, Value>),
    /// Of a tool that takes text.
    Text(String),
}

/// What became of an act.
#[derive(Clone, Debug, PartialEq)]
pub enum Act {
    Uses(Vec<ToolUse>),
    Says(String),
    /// Not needed with this CLI.
    Nothing,
}

#[derive(Clone, Copy, PartialEq)]
enum Cli {
    Claude,
    Codex,
    Gemini,
    OpenCode,
}

fn cli(offered: &[Offered]) -> Option<Cli> {
    const BY_TOOL: [(&str, Cli); 6] = [
        ("Bash", Cli::Claude),
        ("exec_command", Cli::Codex),
        ("run_shell_command", Cli::Gemini),
        ("bash", Cli::OpenCode),
        // A plan mode or a sub-agent may be without a shell.
        ("Read", Cli::Claude),
        ("read_file", Cli::Gemini),
    ];
    BY_TOOL.iter().find(|(name, _)| offers(offered, name)).map(|(_, cli)| *cli)
}

fn offers(offered: &[Offered], name: &str) -> bool {
    offered.iter().any(|tool| tool.name == name)
}

/// How many results the acts of one answer bring back; none where the answer is to be passed over, because this CLI
/// needs nothing of it.
pub fn results(calls: &[Call], offered: &[Offered]) -> Option<usize> {
    let acts: Vec<Act> = calls.iter().map(|call| act(call, offered, &Words::default())).collect();
    if !acts.is_empty() && acts.iter().all(|act| *act == Act::Nothing) {
        return None;
    }
    let uses = acts.iter().map(|act| if let Act::Uses(uses) = act { uses.len() } else { 0 });
    Some(uses.sum())
}

/// Turns an act into calls.
pub fn act(call: &Call, offered: &[Offered], words: &Words) -> Act {
    let Some(cli) = cli(offered) else {
        return match call {
            Call::Tool { .. } => {
                tool(call, words).map_or_else(|| missing(call), |use_| Act::Uses(vec![use_]))
            }
            _ => Act::Says("None of the tools that I know is offered.".into()),
        };
    };
    let uses = match call {
        Call::Tool { .. } => tool(call, words).into_iter().collect(),
        Call::Mcp { server, tool, arguments } => {
            mcp(cli, server, &words.fill(tool), arguments, words, offered).into_iter().collect()
        }
        Call::Todo { items } => todo(cli, items, offered),
        Call::Plan { plan } if cli == Cli::Codex => {
            // Codex reads a plan out of the answer, in its plan mode.
            return Act::Says(format!("<proposed_plan>\n{}</proposed_plan>\n", words.fill(plan)));
        }
        // Only Gemini CLI presents a file.
        Call::PlanFile { .. } if cli != Cli::Gemini => return Act::Nothing,
        // It reads by commands, which ask for approval, and patches without having read.
        Call::Read { before_edit: true, .. } if cli == Cli::Codex => return Act::Nothing,
        Call::Read { path, .. } if cli == Cli::Codex => {
            vec![json_use("exec_command", json!({"cmd": format!("cat {}", words.fill(path))}))]
        }
        other => simple(cli, other, words).into_iter().collect(),
    };
    let callable = |wanted: &ToolUse| {
        matches!(call, Call::Tool { .. })
            || offered.iter().any(|tool| tool.name == wanted.name && tool.namespace == wanted.namespace)
    };
    if uses.is_empty() || !uses.iter().all(callable) { missing(call) } else { Act::Uses(uses) }
}

fn missing(call: &Call) -> Act {
    let what = match call {
        Call::Shell { .. } => "running commands",
        Call::Read { .. } => "reading files",
        Call::Edit { .. } => "editing files",
        Call::Write { .. } => "writing files",
        Call::Question { .. } => "asking questions",
        Call::Plan { .. } | Call::PlanFile { .. } => "presenting a plan",
        Call::Todo { .. } => "listing tasks",
        Call::Task { .. } => "giving tasks to a sub-agent",
        Call::Mcp { server, .. } => {
            return Act::Says(format!("No such tool of the MCP server {server} is offered."));
        }
        Call::Tool { name, .. } => return Act::Says(format!("The tool {name} cannot be called.")),
    };
    Act::Says(format!("No tool for {what} is offered."))
}

/// Acts that are one call, named and shaped by the CLI.
fn simple(cli: Cli, call: &Call, words: &Words) -> Option<ToolUse> {
    let fill = |text: &String| words.fill(text);
    let use_ = match (call, cli) {
        (Call::Shell { command, .. }, Cli::Claude) => {
            json_use("Bash", json!({"command": fill(command), "description": "Run a command"}))
        }
        (Call::Shell { command, escalated }, Cli::Codex) => {
            let mut input = json!({"cmd": fill(command)});
            if *escalated {
                input["sandbox_permissions"] = "require_escalated".into();
                input["justification"] = "The command writes a file.".into();
            }
            json_use("exec_command", input)
        }
        (Call::Shell { command, .. }, Cli::Gemini) => {
            json_use("run_shell_command", json!({"command": fill(command), "description": "Run a command"}))
        }
        (Call::Shell { command, .. }, Cli::OpenCode) => {
            json_use("bash", json!({"command": fill(command), "description": "Run a command"}))
        }
        (Call::Read { path, .. }, Cli::Claude) => json_use("Read", json!({"file_path": fill(path)})),
        (Call::Read { path, .. }, Cli::Gemini) => json_use("read_file", json!({"file_path": fill(path)})),
        (Call::Read { path, .. }, Cli::OpenCode) => json_use("read", json!({"filePath": fill(path)})),
        (Call::Edit { path, old, new }, Cli::Claude) => json_use(
            "Edit",
            json!({"file_path": fill(path), "old_string": fill(old), "new_string": fill(new)}),
        ),
        (Call::Edit { path, old, new }, Cli::Gemini) => json_use(
            "replace",
            json!({"file_path": fill(path), "old_string": fill(old), "new_string": fill(new),
                   "instruction": "Replace one line."}),
        ),
        (Call::Edit { path, old, new }, Cli::OpenCode) => {
            json_use("edit", json!({"filePath": fill(path), "oldString": fill(old), "newString": fill(new)}))
        }
        (Call::Edit { path, old, new }, Cli::Codex) => patch(&format!(
            "*** Update File: {}\n@@\n{}{}",
            fill(path),
            prefixed('-', &fill(old)),
            prefixed('+', &fill(new))
        )),
        (Call::Write { path, content }, Cli::Codex) => {
            patch(&format!("*** Add File: {}\n{}", fill(path), prefixed('+', &fill(content))))
        }
        (Call::Write { path, content }, Cli::Claude) => {
            json_use("Write", json!({"file_path": fill(path), "content": fill(content)}))
        }
        (Call::Write { path, content }, Cli::Gemini) => {
            json_use("write_file", json!({"file_path": fill(path), "content": fill(content)}))
        }
        (Call::Write { path, content }, Cli::OpenCode) => {
            json_use("write", json!({"filePath": fill(path), "content": fill(content)}))
        }
        (Call::Question { question, header, options, several }, _) => {
            let options: Vec<Value> = options
                .iter()
                .map(|label| json!({"label": fill(label), "description": format!("Choose {}", fill(label))}))
                .collect();
            let mut asked = json!({"question": fill(question), "header": fill(header), "options": options});
            let name = match cli {
                Cli::Claude => {
                    asked["multiSelect"] = (*several).into();
                    "AskUserQuestion"
                }
                Cli::Codex => {
                    asked["id"] = "answer".into();
                    "request_user_input"
                }
                Cli::Gemini => {
                    asked["type"] = "choice".into();
                    asked["multiSelect"] = (*several).into();
                    "ask_user"
                }
                Cli::OpenCode => {
                    asked["multiple"] = (*several).into();
                    "question"
                }
            };
            json_use(name, json!({"questions": [asked]}))
        }
        // In plan mode it takes a bare name for one in its folder of plans.
        (Call::PlanFile { plan }, Cli::Gemini) => {
            json_use("write_file", json!({"file_path": "plan.md", "content": fill(plan)}))
        }
        (Call::Plan { plan }, Cli::Claude) => json_use("ExitPlanMode", json!({"plan": fill(plan)})),
        (Call::Plan { .. }, Cli::Gemini) => json_use("exit_plan_mode", json!({"plan_filename": "plan.md"})),
        (Call::Plan { .. }, Cli::OpenCode) => json_use("plan_exit", json!({})),
        (Call::Task { description, prompt }, Cli::Claude) => json_use(
            "Agent",
            json!({"description": fill(description), "prompt": fill(prompt), "subagent_type": "general-purpose"}),
        ),
        (Call::Task { description, prompt }, Cli::OpenCode) => json_use(
            "task",
            json!({"description": fill(description), "prompt": fill(prompt), "subagent_type": "general"}),
        ),
        (Call::Task { prompt, .. }, Cli::Gemini) => {
            json_use("invoke_agent", json!({"agent_name": "generalist", "prompt": fill(prompt)}))
        }
        (Call::Task { prompt, .. }, Cli::Codex) => ToolUse {
            namespace: Some("multi_agent_v1".into()),
            ..json_use("spawn_agent", json!({"message": fill(prompt)}))
        },
        _ => return None,
    };
    Some(use_)
}

fn todo(cli: Cli, items: &[Todo], offered: &[Offered]) -> Vec<ToolUse> {
    let state = |item: &Todo| match item.state {
        TodoState::Pending => "pending",
        TodoState::InProgress => "in_progress",
        TodoState::Completed => "completed",
    };
    let list = |shape: &dyn Fn(&Todo) -> Value| items.iter().map(shape).collect::<Vec<_>>();
    match cli {
        Cli::Claude if offers(offered, "TodoWrite") => {
            let todos =
                list(&|item| json!({"content": item.text, "status": state(item), "activeForm": item.text}));
            vec![json_use("TodoWrite", json!({"todos": todos}))]
        }
        // One call for each task: first they are made, later they change. A new session counts them from one.
        Cli::Claude => items
            .iter()
            .zip(1..)
            .map(|(item, number)| {
                if items.iter().all(|item| item.state != TodoState::Completed) {
                    json_use("TaskCreate", json!({"subject": item.text, "description": item.text}))
                } else {
                    json_use("TaskUpdate", json!({"taskId": format!("{number}"), "status": state(item)}))
                }
            })
            .collect(),
        Cli::Codex => {
            let plan = list(&|item| json!({"step": item.text, "status": state(item)}));
            vec![json_use("update_plan", json!({"plan": plan}))]
        }
        Cli::Gemini => {
            let todos = list(&|item| json!({"description": item.text, "status": state(item)}));
            vec![json_use("write_todos", json!({"todos": todos}))]
        }
        Cli::OpenCode => {
            let todos =
                list(&|item| json!({"content": item.text, "status": state(item), "priority": "medium"}));
            vec![json_use("todowrite", json!({"todos": todos}))]
        }
    }
}

fn mcp(
    cli: Cli,
    server: &str,
    tool: &str,
    arguments: &Arguments,
    words: &Words,
    offered: &[Offered],
) -> Option<ToolUse> {
    let input = match arguments {
        Arguments::Json(map) => fill_map(map, words),
        Arguments::Text(text) => serde_json::from_str(&words.fill(text)).unwrap_or_default(),
    };
    let prefix = match cli {
        Cli::Claude | Cli::Codex => format!("mcp__{server}__"),
        Cli::Gemini => format!("mcp_{server}_"),
        Cli::OpenCode => format!("{server}_"),
    };
    let space = format!("mcp__{server}");
    // The tool's name is not known while results are counted: any tool of the server stands for it.
    let wanted = |found: &&Offered| {
        let (of_server, name) = match &found.namespace {
            Some(namespace) => (namespace.trim_end_matches('_') == space, found.name.as_str()),
            None => match found.name.strip_prefix(&prefix) {
                Some(name) => (true, name),
                None => (false, ""),
            },
        };
        of_server && (tool.is_empty() || name == tool)
    };
    let found = offered.iter().find(wanted)?;
    Some(ToolUse { name: found.name.clone(), namespace: found.namespace.clone(), input: Input::Json(input) })
}

fn tool(call: &Call, words: &Words) -> Option<ToolUse> {
    let Call::Tool { name, namespace, arguments } = call else { return None };
    let input = Input::Json(fill_map(arguments, words));
    Some(ToolUse { name: words.fill(name), namespace: namespace.clone(), input })
}

fn fill_map(map: &Map<String, Value>, words: &Words) -> Map<String, Value> {
    map.iter().map(|(key, value)| (key.clone(), fill_value(value, words))).collect()
}

fn fill_value(value: &Value, words: &Words) -> Value {
    match value {
        Value::String(text) => words.fill(text).into(),
        Value::Array(values) => values.iter().map(|value| fill_value(value, words)).collect(),
        Value::Object(map) => Value::Object(fill_map(map, words)),
        other => other.clone(),
    }
}

fn json_use(name: &str, input: Value) -> ToolUse {
    let input = match input {
        Value::Object(map) => map,
        _ => Map::new(),
    };
    ToolUse { name: name.to_owned(), namespace: None, input: Input::Json(input) }
}

fn patch(hunks: &str) -> ToolUse {
    let input = Input::Text(format!("*** Begin Patch\n{hunks}*** End Patch"));
    ToolUse { name: "apply_patch".into(), namespace: None, input }
}

fn prefixed(sign: char, text: &str) -> String {
    text.lines().map(|line| format!("{sign}{line}\n")).collect()
}
