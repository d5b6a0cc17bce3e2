//! A small client of the four APIs, with its own reading of them: it shares no code with the server.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use consort_testkit::model::Server;
use serde_json::{Value, json};

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Api {
    Messages,
    Responses,
    Chat,
    Gemini,
}

impl Api {
    pub const ALL: [Self; 4] = [Self::Messages, Self::Responses, Self::Chat, Self::Gemini];

    pub fn path(self, stream: bool) -> &'static str {
        match self {
            Self::Messages => "/v1/messages?beta=true",
            Self::Responses => "/v1/responses",
            Self::Chat => "/v1/chat/completions",
            Self::Gemini if stream => "/v1beta/models/scripted:streamGenerateContent?alt=sse",
            Self::Gemini => "/v1beta/models/scripted:generateContent",
        }
    }

    /// The tools of the CLI that speaks this API, by names only.
    fn tools(self) -> Value {
        let named = |names: &[&str]| names.iter().map(|name| json!({"name": name})).collect::<Vec<_>>();
        match self {
            Self::Messages => json!(named(&[
                "Bash",
                "Read",
                "Edit",
                "Write",
                "AskUserQuestion",
                "ExitPlanMode",
                "TaskCreate",
                "TaskUpdate",
                "mcp__consort__echo"
            ])),
            Self::Responses => json!([
                {"type": "function", "name": "exec_command"},
                {"type": "custom", "name": "apply_patch"},
                {"type": "function", "name": "update_plan"},
                {"type": "function", "name": "request_user_input"},
                {"type": "namespace", "name": "mcp__consort", "tools": [{"type": "function", "name": "echo"}]},
            ]),
            Self::Chat => {
                let names = ["bash", "read", "edit", "write", "todowrite", "consort_echo"];
                json!(names.map(|name| json!({"type": "function", "function": {"name": name}})))
            }
            Self::Gemini => json!([{"functionDeclarations": named(&[
                "run_shell_command", "read_file", "replace", "write_file", "write_todos", "mcp_consort_echo"
            ])}]),
        }
    }

    /// A request with a prompt and the results of tools that came after it.
    pub fn request(self, prompt: &str, results: &[&str], stream: bool) -> Value {
        let mut said: Vec<Value> = Vec::new();
        match self {
            Self::Messages => {
                said.push(json!({"role": "user", "content": [{"type": "text", "text": prompt}]}));
                for result in results {
                    let block = json!({"type": "tool_result", "tool_use_id": "x", "content": result});
                    said.push(json!({"role": "assistant", "content": []}));
                    said.push(json!({"role": "user", "content": [block]}));
                }
                json!({"model": "scripted", "stream": stream, "messages": said, "tools": self.tools()})
            }
            Self::Responses => {
                let content = json!([{"type": "input_text", "text": prompt}]);
                said.push(json!({"type": "message", "role": "user", "content": content}));
                for result in results {
                    said.push(json!({"type": "function_call_output", "call_id": "x", "output": result}));
                }
                json!({"model": "scripted", "stream": stream, "input": said, "tools": self.tools()})
            }
            Self::Chat => {
                said.push(json!({"role": "user", "content": prompt}));
                for result in results {
                    said.push(json!({"role": "tool", "tool_call_id": "x", "content": result}));
                }
                json!({"model": "scripted", "stream": stream, "messages": said, "tools": self.tools()})
            }
            Self::Gemini => {
                said.push(json!({"role": "user", "parts": [{"text": prompt}]}));
                for result in results {
                    let response = json!({"name": "x", "response": {"output": result}});
                    said.push(json!({"role": "user", "parts": [{"functionResponse": response}]}));
                }
                json!({"contents": said, "tools": self.tools()})
            }
        }
    }
}

/// An HTTP answer as it came.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: String,
    /// Whether the body came to its proper end.
    pub whole: bool,
}

/// What the model said.
#[derive(Debug, Default, PartialEq)]
pub struct Said {
    pub thinking: String,
    pub text: String,
    /// Name, with its namespace where it has one, and input.
    pub calls: Vec<(String, Value)>,
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// The pieces that the text came in.
    pub pieces: usize,
    pub ended: bool,
}

pub struct Client {
    reader: BufReader<TcpStream>,
}

impl Client {
    pub fn of(server: &Server) -> Self {
        Self { reader: BufReader::new(TcpStream::connect(server.address()).unwrap()) }
    }

    pub fn send(&mut self, bytes: &[u8]) {
        self.reader.get_mut().write_all(bytes).unwrap();
    }

    pub fn stream(&self) -> &TcpStream {
        self.reader.get_ref()
    }

    pub fn post(&mut self, path: &str, headers: &str, body: &Value) -> Answer {
        let body = body.to_string();
        let length = body.len();
        self.send(
            format!("POST {path} HTTP/1.1\r\nhost: x\r\n{headers}content-length: {length}\r\n\r\n{body}")
                .as_bytes(),
        );
        self.answer().expect("an answer")
    }

    pub fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        let read = self.reader.read_line(&mut line).ok()?;
        (read > 0).then(|| line.trim_end().to_owned())
    }

    /// Reads one answer; none where the connection ends first.
    pub fn answer(&mut self) -> Option<Answer> {
        let status = self.line()?.split(' ').nth(1)?.parse().ok()?;
        let mut headers = Vec::new();
        loop {
            let line = self.line()?;
            let Some((name, value)) = line.split_once(": ") else { break };
            headers.push((name.to_owned(), value.to_owned()));
        }
        let find = |name: &str| headers.iter().find(|header| header.0 == name).map(|header| header.1.clone());
        let mut body = Vec::new();
        let mut whole = true;
        if let Some(length) = find("content-length") {
            body.resize(length.parse().ok()?, 0);
            self.reader.read_exact(&mut body).ok()?;
        } else {
            while let Some(piece) = self.chunk() {
                body.extend_from_slice(&piece);
            }
            whole = self.line().is_some_and(|line| line.is_empty());
        }
        Some(Answer { status, headers, body: String::from_utf8(body).unwrap(), whole })
    }

    /// The next chunk of a body; none at its end.
    pub fn chunk(&mut self) -> Option<Vec<u8>> {
        let size = usize::from_str_radix(&self.line()?, 16).unwrap();
        if size == 0 {
            return None;
        }
        let mut chunk = vec![0; size + 2];
        self.reader.read_exact(&mut chunk).ok()?;
        chunk.truncate(size);
        Some(chunk)
    }
}

/// Asks once, streamed.
pub fn ask(server: &Server, api: Api, prompt: &str, results: &[&str]) -> Said {
    let request = api.request(prompt, results, true);
    let answer = Client::of(server).post(api.path(true), "", &request);
    assert_eq!(answer.status, 200, "{answer:?}");
    said(api, &answer.body)
}

/// Reads a stream back.
pub fn said(api: Api, body: &str) -> Said {
    let mut said = Said::default();
    let mut inputs: Vec<String> = Vec::new();
    for event in body.split_terminator("\n\n") {
        let data = event.lines().find_map(|line| line.strip_prefix("data: ")).expect("every event has data");
        if data == "[DONE]" {
            said.ended = true;
            continue;
        }
        let data: Value = serde_json::from_str(data).unwrap();
        if let Some(name) = event.strip_prefix("event: ").and_then(|rest| rest.lines().next()) {
            assert_eq!(data["type"], name);
        }
        match api {
            Api::Messages => messages_event(&mut said, &mut inputs, &data),
            Api::Responses => responses_event(&mut said, &data),
            Api::Chat => chat_event(&mut said, &data),
            Api::Gemini => gemini_event(&mut said, &data),
        }
    }
    for (call, input) in said.calls.iter_mut().zip(inputs) {
        call.1 = serde_json::from_str(&input).unwrap();
    }
    said
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn hear(said: &mut Said, piece: &Value) {
    if !text(piece).is_empty() {
        said.text.push_str(text(piece));
        said.pieces += 1;
    }
}

fn messages_event(said: &mut Said, inputs: &mut Vec<String>, data: &Value) {
    match text(&data["type"]) {
        "content_block_start" if data["content_block"]["type"] == "tool_use" => {
            said.calls.push((text(&data["content_block"]["name"]).to_owned(), Value::Null));
            inputs.push(String::new());
        }
        "content_block_delta" => {
            hear(said, &data["delta"]["text"]);
            said.thinking.push_str(text(&data["delta"]["thinking"]));
            if let Some(piece) = data["delta"]["partial_json"].as_str() {
                inputs.last_mut().unwrap().push_str(piece);
            }
        }
        "message_delta" => {
            let usage = &data["usage"];
            said.output_tokens = usage["output_tokens"].as_u64().unwrap();
            let input = ["input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"];
            said.input_tokens = input.iter().map(|name| usage[name].as_u64().unwrap()).sum();
            let expected = if said.calls.is_empty() { "end_turn" } else { "tool_use" };
            assert_eq!(data["delta"]["stop_reason"], expected);
        }
        "message_stop" => said.ended = true,
        _ => {}
    }
}

fn responses_event(said: &mut Said, data: &Value) {
    match text(&data["type"]) {
        "response.output_text.delta" => hear(said, &data["delta"]),
        "response.reasoning_summary_text.delta" => said.thinking.push_str(text(&data["delta"])),
        "response.output_item.done" => {
            let item = &data["item"];
            let name = match item["namespace"].as_str() {
                Some(space) => format!("{space}/{}", text(&item["name"])),
                None => text(&item["name"]).to_owned(),
            };
            match text(&item["type"]) {
                "function_call" => {
                    said.calls.push((name, serde_json::from_str(text(&item["arguments"])).unwrap()));
                }
                "custom_tool_call" => said.calls.push((name, item["input"].clone())),
                _ => {}
            }
        }
        "response.completed" => {
            let usage = &data["response"]["usage"];
            said.input_tokens = usage["input_tokens"].as_u64().unwrap();
            said.output_tokens = usage["output_tokens"].as_u64().unwrap();
            said.ended = true;
        }
        _ => {}
    }
}

fn chat_event(said: &mut Said, data: &Value) {
    let delta = &data["choices"][0]["delta"];
    hear(said, &delta["content"]);
    said.thinking.push_str(text(&delta["reasoning_content"]));
    for call in delta["tool_calls"].as_array().into_iter().flatten() {
        let input = serde_json::from_str(text(&call["function"]["arguments"])).unwrap();
        said.calls.push((text(&call["function"]["name"]).to_owned(), input));
    }
    if !data["usage"].is_null() {
        said.input_tokens = data["usage"]["prompt_tokens"].as_u64().unwrap();
        said.output_tokens = data["usage"]["completion_tokens"].as_u64().unwrap();
    }
}

fn gemini_event(said: &mut Said, data: &Value) {
    let candidate = &data["candidates"][0];
    for part in candidate["content"]["parts"].as_array().into_iter().flatten() {
        if part["thought"] == true {
            assert_eq!(said.thinking, "", "a thought comes whole");
            said.thinking.push_str(text(&part["text"]).strip_prefix("**Thought**\n").unwrap());
        } else if !part["functionCall"].is_null() {
            let call = &part["functionCall"];
            said.calls.push((text(&call["name"]).to_owned(), call["args"].clone()));
        } else {
            hear(said, &part["text"]);
        }
    }
    if let Some(usage) = data["usageMetadata"].as_object() {
        said.input_tokens = usage["promptTokenCount"].as_u64().unwrap();
        let answered = usage["candidatesTokenCount"].as_u64().unwrap();
        said.output_tokens = answered + usage["thoughtsTokenCount"].as_u64().unwrap();
    }
    said.ended |= candidate["finishReason"] == "STOP";
}
