//! Tool calls and the permissions asked for them.

use std::path::Path;

use consort_model::Attachment;
use serde_json::{Value, json};

use super::super::desk::{Answer, OnCancel};
use super::super::steps::{Ask, Diff, Tool};
use super::{End, Turn};

/// The options of a permission: id, name, kind. The ids differ from the kinds, so that a client that mixes them up fails.
const OPTIONS: [(&str, &str, &str); 4] = [
    ("allow-once", "Allow", "allow_once"),
    ("allow-always", "Always allow", "allow_always"),
    ("reject-once", "Reject", "reject_once"),
    ("reject-always", "Always reject", "reject_always"),
];
const GEMINI_OPTIONS: [(&str, &str, &str); 3] = [
    ("proceed_always", "Allow for this session", "allow_always"),
    ("proceed_once", "Allow", "allow_once"),
    ("cancel", "Reject", "reject_once"),
];

/// What the user decided.
enum Decision {
    Allowed { option: String, always: bool },
    Rejected { option: String },
}

/// A permission that was asked for and is not answered yet.
struct Question {
    request: u64,
    call: String,
    options: Vec<(&'static str, &'static str, &'static str)>,
}

impl Turn<'_> {
    pub(super) fn tool(&self, tool: &Tool) -> Result<(), End> {
        let mut fields = json!({"status": "pending"});
        if let Some(input) = &tool.input {
            fields["rawInput"] = input.clone();
        }
        if !tool.locations.is_empty() {
            fields["locations"] =
                tool.locations.iter().map(|(path, line)| self.location(path, *line)).collect();
        }
        let call = self.open_tool(&tool.kind, &tool.title, fields);
        self.update_tool(&call, json!({"status": "in_progress"}));
        if tool.delay > 0
            && let Err(cancelled) = self.wait(tool.delay)
        {
            self.close_tool(&call, "failed", "cancelled");
            return Err(cancelled.into());
        }
        let mut content = Vec::new();
        if let Some(diff) = &tool.diff {
            content.push(self.diff(diff));
        }
        if let Some(path) = &tool.image {
            content.push(json!({"type": "content", "content": self.image(path)}));
        }
        let output =
            tool.output.clone().unwrap_or_else(|| if tool.fail { "failed".into() } else { "done".into() });
        content.push(text_content(&output));
        let status = if tool.fail { "failed" } else { "completed" };
        self.update_tool(
            &call,
            json!({"status": status, "content": content, "rawOutput": {"output": output}}),
        );
        Ok(())
    }

    pub(super) fn ask(&self, ask: &Ask) -> Result<(), End> {
        let content = match (&ask.diff, ask.kind.as_str()) {
            (Some(diff), _) => vec![self.diff(diff)],
            (None, "edit") => {
                let (path, old, new) = (ask.title.clone(), "old\n".into(), "new\n".into());
                vec![self.diff(&Diff { path, old, new })]
            }
            (None, _) => Vec::new(),
        };
        if let Some(call) = self.permission(ask, content)? {
            self.close_tool(&call, "completed", "done");
        }
        Ok(())
    }

    /// Asks and says how it went: the id of the tool call if it may go on, `None` if it may not.
    fn permission(&self, ask: &Ask, content: Vec<Value>) -> Result<Option<String>, End> {
        let call = self.name_tool();
        if ask.remember && self.session.allows(&ask.kind) {
            self.announce(&call, ask, &content, "in_progress");
            return Ok(Some(call));
        }
        let question = self.question(call, ask, content);
        let on_cancel = if ask.patient { OnCancel::Stay } else { OnCancel::Leave };
        let answer = self.agent.desk.next_answer(&[question.request], self.ticket, on_cancel);
        let decision = match answer {
            Ok((_, answer)) => self.decide(&question, answer),
            Err(cancelled) => Err(cancelled.into()),
        };
        match decision {
            Ok(Decision::Allowed { option, always }) => {
                if always && ask.remember {
                    self.session.allow(&ask.kind);
                }
                self.update_tool(&question.call, json!({"status": "in_progress"}));
                self.say(&format!("allowed: {option}"));
                self.check()?;
                Ok(Some(question.call))
            }
            Ok(Decision::Rejected { option }) => {
                if !ask.gemini {
                    self.close_tool(&question.call, "failed", "rejected by the user");
                }
                self.say(&format!("rejected: {option}"));
                Ok(None)
            }
            Err(end) => {
                if !ask.gemini {
                    self.close_tool(&question.call, "failed", "cancelled");
                }
                Err(end)
            }
        }
    }

    pub(super) fn ask_many(&self, count: usize, kind: &str, title: &str) -> Result<(), End> {
        let mut open: Vec<Question> = (1..=count)
            .map(|number| {
                let title = format!("{title} {number}");
                let ask = Ask { kind: kind.to_owned(), title, ..Ask::default() };
                self.question(self.name_tool(), &ask, Vec::new())
            })
            .collect();
        while !open.is_empty() {
            let ids: Vec<u64> = open.iter().map(|question| question.request).collect();
            let next = self.agent.desk.next_answer(&ids, self.ticket, OnCancel::Leave);
            let decision = match next {
                Ok((id, answer)) => {
                    let Some(at) = open.iter().position(|question| question.request == id) else { continue };
                    let question = open.remove(at);
                    match self.decide(&question, answer) {
                        Ok(decision) => Ok((question.call, decision)),
                        Err(end) => {
                            self.close_tool(&question.call, "failed", "cancelled");
                            Err(end)
                        }
                    }
                }
                Err(cancelled) => Err(cancelled.into()),
            };
            match decision {
                Ok((call, Decision::Allowed { option, .. })) => {
                    self.close_tool(&call, "completed", "done");
                    self.say(&format!("allowed: {option}\n"));
                }
                Ok((call, Decision::Rejected { option })) => {
                    self.close_tool(&call, "failed", "rejected by the user");
                    self.say(&format!("rejected: {option}\n"));
                }
                Err(end) => {
                    for question in &open {
                        self.close_tool(&question.call, "failed", "cancelled");
                    }
                    return Err(end);
                }
            }
        }
        Ok(())
    }

    pub(super) fn edit(&self, path: &str, old: &str, new: &str, ask: bool) -> Result<(), End> {
        let file = self.session.cwd.join(path);
        match std::fs::read_to_string(&file) {
            Ok(before) if before.contains(old) => {
                let after = before.replacen(old, new, 1);
                self.change(&file, path, Some(before), after, ask)
            }
            Ok(_) => self.refused_change(path, "the old text is not in the file"),
            Err(error) => self.refused_change(path, &error.to_string()),
        }
    }

    pub(super) fn write(&self, path: &str, text: &str, ask: bool) -> Result<(), End> {
        let file = self.session.cwd.join(path);
        let before = std::fs::read_to_string(&file).ok();
        self.change(&file, path, before, text.to_owned(), ask)
    }

    fn refused_change(&self, path: &str, reason: &str) -> Result<(), End> {
        let call = self.open_tool("edit", path, json!({"status": "in_progress"}));
        self.close_tool(&call, "failed", reason);
        self.say(&format!("not edited: {reason}"));
        Ok(())
    }

    fn change(
        &self,
        file: &Path,
        path: &str,
        before: Option<String>,
        after: String,
        ask: bool,
    ) -> Result<(), End> {
        let diff = json!({"type": "diff", "path": file, "oldText": before, "newText": after});
        let step = Ask { kind: "edit".into(), title: path.to_owned(), ..Ask::default() };
        let call = if ask {
            match self.permission(&step, vec![diff.clone()])? {
                Some(call) => call,
                None => return Ok(()),
            }
        } else {
            let call = self.name_tool();
            self.announce(&call, &step, std::slice::from_ref(&diff), "in_progress");
            call
        };
        match std::fs::write(file, after) {
            Ok(()) => self.update_tool(&call, json!({"status": "completed", "content": [diff]})),
            Err(error) => self.close_tool(&call, "failed", &error.to_string()),
        }
        Ok(())
    }

    /// Sends a permission request, after the tool call it is for.
    fn question(&self, call: String, ask: &Ask, content: Vec<Value>) -> Question {
        let options = if ask.gemini {
            GEMINI_OPTIONS.to_vec()
        } else {
            OPTIONS[..if ask.reject_always { 4 } else { 3 }].to_vec()
        };
        let mut tool_call = tool_fields(&call, ask, &content, "pending");
        if ask.gemini {
            tool_call["locations"] = json!([]);
        } else {
            self.announce(&call, ask, &content, "pending");
        }
        if let Some(members) = tool_call.as_object_mut() {
            members.remove("sessionUpdate");
        }
        let offered: Vec<Value> = options
            .iter()
            .map(|(id, name, kind)| json!({"optionId": id, "name": name, "kind": kind}))
            .collect();
        let request = self.agent.wire.fresh_id();
        self.agent.desk.expect(request);
        self.agent.wire.request(
            request,
            "session/request_permission",
            json!({"sessionId": self.session.id, "toolCall": tool_call, "options": offered}),
        );
        Question { request, call, options }
    }

    fn decide(&self, question: &Question, answer: Answer) -> Result<Decision, End> {
        let outcome = match answer {
            Ok(result) => result["outcome"].clone(),
            Err(error) => return Ok(Decision::Rejected { option: error.to_string() }),
        };
        if outcome["outcome"] == "cancelled" {
            return Err(End::Stop("cancelled".into()));
        }
        let option = outcome["optionId"].as_str().unwrap_or_default();
        match question.options.iter().find(|(id, ..)| *id == option) {
            Some((_, _, kind)) if kind.starts_with("allow") => {
                Ok(Decision::Allowed { option: option.to_owned(), always: *kind == "allow_always" })
            }
            Some(_) => Ok(Decision::Rejected { option: option.to_owned() }),
            None => Ok(Decision::Rejected { option: format!("unknown option in {outcome}") }),
        }
    }

    fn name_tool(&self) -> String {
        format!("call-{}", self.agent.count())
    }

    fn announce(&self, call: &str, ask: &Ask, content: &[Value], status: &str) {
        self.update(tool_fields(call, ask, content, status));
    }

    /// Sends a new tool call with more fields and gives its id.
    pub(super) fn open_tool(&self, kind: &str, title: &str, fields: Value) -> String {
        let call = self.name_tool();
        let update = json!({"sessionUpdate": "tool_call", "toolCallId": call, "title": title, "kind": tool_kind(kind)});
        self.update(merged(update, fields));
        call
    }

    fn update_tool(&self, call: &str, fields: Value) {
        self.update(merged(json!({"sessionUpdate": "tool_call_update", "toolCallId": call}), fields));
    }

    pub(super) fn close_tool(&self, call: &str, status: &str, text: &str) {
        self.update_tool(call, json!({"status": status, "content": [text_content(text)]}));
    }

    /// Ends a tool call whose content stays.
    pub(super) fn close_tool_as_is(&self, call: &str, status: &str) {
        self.update_tool(call, json!({"status": status}));
    }

    fn location(&self, path: &str, line: Option<u64>) -> Value {
        let mut location = json!({"path": self.session.cwd.join(path)});
        if let Some(line) = line {
            location["line"] = json!(line);
        }
        location
    }

    /// A file as the protocol has images. One that cannot be read is empty, which no client can show.
    fn image(&self, path: &str) -> Value {
        let bytes = std::fs::read(self.session.cwd.join(path)).unwrap_or_default();
        match Attachment::image(&bytes) {
            Some(Attachment::Image(image)) => {
                json!({"type": "image", "mimeType": image.mime_type, "data": image.data})
            }
            _ => json!({"type": "image", "mimeType": "image/png", "data": ""}),
        }
    }

    fn diff(&self, diff: &Diff) -> Value {
        let path = self.session.cwd.join(&diff.path);
        json!({"type": "diff", "path": path, "oldText": diff.old, "newText": diff.new})
    }
}

fn tool_fields(call: &str, ask: &Ask, content: &[Value], status: &str) -> Value {
    let mut fields = json!({"sessionUpdate": "tool_call", "toolCallId": call, "title": ask.title,
                            "kind": tool_kind(&ask.kind), "status": status, "content": content});
    if let Some(input) = &ask.input {
        fields["rawInput"] = input.clone();
    } else if ask.kind == "execute" && !ask.gemini {
        fields["rawInput"] = json!({"command": ask.title});
    }
    fields
}

fn tool_kind(kind: &str) -> String {
    kind.replace('-', "_")
}

fn text_content(text: &str) -> Value {
    json!({"type": "content", "content": {"type": "text", "text": text}})
}

fn merged(mut base: Value, more: Value) -> Value {
    if let (Some(base), Value::Object(more)) = (base.as_object_mut(), more) {
        base.extend(more);
    }
    base
}
