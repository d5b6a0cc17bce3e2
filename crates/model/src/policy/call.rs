//! What a tool call would do, read from all that the agent says about it.
//!
//! An agent writes title, input and locations itself. Where they differ, all of them count: a harmless title in front of
//! another command makes nothing harmless.

use serde_json::Value;

use super::command::Line;
use super::paths::{self, Names, Resolve};
use crate::item::{ToolCall, ToolKind};

/// The fields of an input that hold a command.
const COMMAND_FIELDS: [&str; 2] = ["command", "cmd"];

/// The fields of an input that say where a command runs.
const FOLDER_FIELDS: [&str; 6] =
    ["cwd", "workdir", "working_directory", "workingDirectory", "directory", "dir_path"];

/// The fields of a command's input that change nothing about what it does.
const IDLE_FIELDS: [&str; 10] = [
    "description",
    "explanation",
    "justification",
    "max_output_tokens",
    "reason",
    "timeout",
    "timeout_ms",
    "timeoutMs",
    "title",
    "yield_time_ms",
];

/// The fields of an input that hold a path, or a list of them.
const PATH_FIELDS: [&str; 23] = [
    "absolute_path",
    "destination",
    "dir",
    "dir_path",
    "directory",
    "file",
    "file_path",
    "file_paths",
    "filePath",
    "filename",
    "files",
    "folder",
    "from",
    "new_path",
    "notebook_path",
    "old_path",
    "path",
    "paths",
    "source",
    "target",
    "target_file",
    "to",
    "uri",
];

/// What a call would do.
pub struct Act<'a> {
    /// The call.
    pub tool: &'a ToolCall,
    /// The files it touches, for the kinds of calls that are about files.
    pub names: Names,
    /// The commands in its input.
    pub commands: Vec<Line>,
    /// Its title, where that may be a command too.
    pub title: Option<Line>,
    /// Whether a command runs in the agent's folder, and there is nothing in the input that is not understood.
    pub ordinary: bool,
}

impl<'a> Act<'a> {
    /// Reads a call of an agent in `cwd`.
    pub fn of(tool: &'a ToolCall, cwd: &str, resolve: Resolve<'_>) -> Self {
        let commands = commands(&tool.input);
        let mut names = paths::names(cwd, written_paths(tool), resolve);
        names.certain &= !names.all.is_empty();
        let title = (tool.tool == ToolKind::Execute && !tells(&commands, &tool.title))
            .then(|| Line::Text(tool.title.clone()));
        let ordinary = tool.tool == ToolKind::Execute && is_ordinary(&tool.input, cwd, resolve);
        Self { tool, names, commands, title, ordinary }
    }

    /// Whether the call is about files.
    pub fn is_about_files(&self) -> bool {
        is_file_kind(self.tool.tool) || !self.tool.diffs.is_empty()
    }

    /// Every command that may be meant.
    pub fn lines(&self) -> impl Iterator<Item = &Line> {
        self.commands.iter().chain(&self.title)
    }
}

/// Whether calls of this kind name the files that they touch.
pub fn is_file_kind(kind: ToolKind) -> bool {
    matches!(kind, ToolKind::Read | ToolKind::Edit | ToolKind::Delete | ToolKind::Move)
}

/// The paths that a call names, as it names them.
fn written_paths(tool: &ToolCall) -> impl Iterator<Item = &str> {
    let about_files = is_file_kind(tool.tool) || tool.tool == ToolKind::Search || !tool.diffs.is_empty();
    let input = PATH_FIELDS.iter().filter_map(|field| tool.input.get(field)).flat_map(texts);
    // A pattern of file names may start elsewhere.
    let pattern = tool.input.get("pattern").and_then(Value::as_str).filter(|pattern| {
        tool.tool == ToolKind::Search
            && pattern.contains('*')
            && (pattern.starts_with(['/', '~']) || pattern.contains(".."))
    });
    tool.diffs
        .iter()
        .map(|diff| diff.path.as_str())
        .chain(tool.locations.iter().map(|location| without_line(location)))
        .chain(input)
        .chain(pattern)
        .filter(move |_| about_files)
}

fn texts(value: &Value) -> impl Iterator<Item = &str> {
    let list = value.as_array().map(Vec::as_slice).unwrap_or_default();
    value.as_str().into_iter().chain(list.iter().filter_map(Value::as_str))
}

/// `src/main.rs:12` without the line.
fn without_line(location: &str) -> &str {
    match location.rsplit_once(':') {
        Some((path, line)) if !line.is_empty() && line.bytes().all(|byte| byte.is_ascii_digit()) => path,
        _ => location,
    }
}

fn commands(input: &Value) -> Vec<Line> {
    match input {
        Value::String(text) => vec![Line::Text(text.clone())],
        Value::Object(fields) => COMMAND_FIELDS
            .iter()
            .filter_map(|field| fields.get(*field))
            .map(|value| match value {
                Value::String(text) => Line::Text(text.clone()),
                Value::Array(words) if words.iter().all(Value::is_string) => {
                    Line::Words(words.iter().filter_map(Value::as_str).map(str::to_owned).collect())
                }
                // No command that could be read; none of it is covered.
                _ => Line::Words(vec![]),
            })
            .collect(),
        _ => vec![],
    }
}

/// Whether a title says nothing that does not stand in the commands.
fn tells(commands: &[Line], title: &str) -> bool {
    let title = title.trim().trim_matches('`').trim_end_matches(['…', ' ']);
    commands.iter().any(|command| match command {
        Line::Text(text) => text.contains(title),
        Line::Words(words) => words.join(" ").contains(title),
    })
}

fn is_ordinary(input: &Value, cwd: &str, resolve: Resolve<'_>) -> bool {
    let fields = match input {
        Value::Null | Value::String(_) => return true,
        Value::Object(fields) => fields,
        _ => return false,
    };
    let nothing = |value: &Value| match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(values) => values.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    };
    fields.iter().all(|(field, value)| {
        let field = field.as_str();
        if nothing(value) || COMMAND_FIELDS.contains(&field) || IDLE_FIELDS.contains(&field) {
            return true;
        }
        FOLDER_FIELDS.contains(&field)
            && value.as_str().is_some_and(|folder| runs_inside(folder, cwd, resolve))
    })
}

/// Whether a command that runs in `folder` runs inside of `cwd`.
fn runs_inside(folder: &str, cwd: &str, resolve: Resolve<'_>) -> bool {
    let names = paths::names(cwd, std::iter::once(folder), resolve);
    names.certain && are_inside(&names.all, cwd, resolve)
}

/// Whether all of these names are inside of an agent's folder, by its written or its real name.
pub fn are_inside(names: &[String], cwd: &str, resolve: Resolve<'_>) -> bool {
    let written = paths::normal("/", cwd);
    let real = resolve(&written);
    names.iter().all(|name| {
        paths::is_inside(name, &written) || real.as_ref().is_some_and(|real| paths::is_inside(name, real))
    })
}
