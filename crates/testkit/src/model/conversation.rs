//! A request's conversation in one form, whichever API it came by.
//!
//! Owns the reading of the four request bodies, as far as scripts need them. Unknown parts are passed over: a CLI sends
//! far more than a script looks at, and another version of it sends other things. The invariant: reading never fails; a
//! body without a conversation is an empty one.

use serde_json::Value;

use super::image::Image;

/// The APIs that models are reached by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Api {
    /// Anthropic Messages.
    Messages,
    /// OpenAI Responses.
    Responses,
    /// OpenAI Chat Completions.
    Chat,
    /// Gemini.
    Gemini,
}

/// What was said, in order.
#[derive(Clone, Debug, PartialEq)]
pub enum Entry {
    /// One message of the user: what was typed, or what the CLI adds in the user's name.
    User {
        text: String,
        images: Vec<Image>,
    },
    ToolResult(String),
}

/// A tool that the model may call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offered {
    pub name: String,
    pub namespace: Option<String>,
    /// The call takes text instead of JSON.
    pub freeform: bool,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Conversation {
    pub model: String,
    pub stream: bool,
    pub system: String,
    pub entries: Vec<Entry>,
    pub tools: Vec<Offered>,
}

impl Conversation {
    pub fn read(api: Api, body: &Value) -> Self {
        let mut conversation = Self {
            model: text(&body["model"]).to_owned(),
            stream: body["stream"].as_bool().unwrap_or(false),
            tools: Vec::new(),
            ..Self::default()
        };
        match api {
            Api::Messages => conversation.read_messages(body),
            Api::Responses => conversation.read_responses(body),
            Api::Chat => conversation.read_chat(body),
            Api::Gemini => conversation.read_gemini(body),
        }
        conversation
    }

    fn read_messages(&mut self, body: &Value) {
        self.add_system(&body["system"]);
        for message in list(&body["messages"]) {
            match text(&message["role"]) {
                "user" => self.add_user(&message["content"]),
                "system" => self.add_system(&message["content"]),
                _ => {}
            }
        }
        for tool in list(&body["tools"]) {
            self.offer(text(&tool["name"]), None, false);
        }
    }

    fn read_responses(&mut self, body: &Value) {
        self.add_system(&body["instructions"]);
        if body["input"].is_string() {
            self.add_user(&body["input"]);
        }
        for item in list(&body["input"]) {
            let kind = text(&item["type"]);
            if kind.ends_with("_call_output") {
                self.entries.push(Entry::ToolResult(plain(&item["output"])));
            } else if kind == "message" || kind.is_empty() {
                match text(&item["role"]) {
                    "user" => self.add_user(&item["content"]),
                    "system" | "developer" => self.add_system(&item["content"]),
                    _ => {}
                }
            }
        }
        for tool in list(&body["tools"]) {
            let name = text(&tool["name"]);
            if text(&tool["type"]) == "namespace" {
                for inner in list(&tool["tools"]) {
                    self.offer(text(&inner["name"]), Some(name), false);
                }
            } else {
                self.offer(name, None, text(&tool["type"]) == "custom");
            }
        }
    }

    fn read_chat(&mut self, body: &Value) {
        for message in list(&body["messages"]) {
            match text(&message["role"]) {
                "user" => self.add_user(&message["content"]),
                "system" | "developer" => self.add_system(&message["content"]),
                "tool" => self.entries.push(Entry::ToolResult(plain(&message["content"]))),
                _ => {}
            }
        }
        for tool in list(&body["tools"]) {
            self.offer(text(&tool["function"]["name"]), None, false);
        }
    }

    fn read_gemini(&mut self, body: &Value) {
        let system = if body["systemInstruction"].is_null() {
            &body["system_instruction"]
        } else {
            &body["systemInstruction"]
        };
        self.add_system(&system["parts"]);
        for content in list(&body["contents"]) {
            if matches!(text(&content["role"]), "user" | "function" | "") {
                self.add_user(&content["parts"]);
            }
        }
        for tool in list(&body["tools"]) {
            for declared in list(&tool["functionDeclarations"]) {
                self.offer(text(&declared["name"]), None, false);
            }
        }
    }

    fn offer(&mut self, name: &str, namespace: Option<&str>, freeform: bool) {
        if !name.is_empty() {
            self.tools.push(Offered {
                name: name.to_owned(),
                namespace: namespace.map(str::to_owned),
                freeform,
            });
        }
    }

    fn add_system(&mut self, content: &Value) {
        let said = plain(content);
        if !said.is_empty() && !self.system.is_empty() {
            self.system.push('\n');
        }
        self.system.push_str(&said);
    }

    /// Adds one user message: a text, or blocks among which there may be tool results. The results come first: they
    /// answer what was called before, and what is said beside them is newer.
    fn add_user(&mut self, content: &Value) {
        let mut said = String::new();
        let mut images = Vec::new();
        if let Some(whole) = content.as_str() {
            said.push_str(whole);
        }
        for block in list(content) {
            if text(&block["type"]) == "tool_result" {
                self.entries.push(Entry::ToolResult(plain(&block["content"])));
            } else if !block["functionResponse"].is_null() {
                let response = &block["functionResponse"]["response"];
                let output = ["output", "result", "error"].map(|key| &response[key]);
                let output = output.into_iter().find(|value| !value.is_null()).unwrap_or(response);
                self.entries.push(Entry::ToolResult(plain(output)));
            } else if let Some(image) = Image::of_block(block) {
                images.push(image);
            } else if let Some(piece) = block["text"].as_str() {
                if !said.is_empty() {
                    said.push('\n');
                }
                said.push_str(piece);
            }
        }
        if !said.is_empty() || !images.is_empty() {
            self.entries.push(Entry::User { text: said, images });
        }
    }
}

/// The words of a value that is a text, a list of texts, or blocks with texts; other JSON as it is written.
fn plain(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(whole) => whole.clone(),
        Value::Array(blocks) => {
            let pieces = blocks.iter().map(|block| match block {
                Value::String(piece) => piece.clone(),
                _ => text(&block["text"]).to_owned(),
            });
            pieces.filter(|piece| !piece.is_empty()).collect::<Vec<_>>().join("\n")
        }
        other => match other["text"].as_str().or_else(|| other["content"].as_str()) {
            Some(inner) => inner.to_owned(),
            None => other.to_string(),
        },
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}
