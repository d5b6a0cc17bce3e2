//! A home with agents, their tokens, and raw requests with them.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};

use consort_model::AgentId;
use consort_testkit::harness::{Client, Home};
use serde_json::{Value, json};

/// A home, a client and what is needed to speak for its agents.
pub struct Stage {
    pub home: Home,
    pub client: Client,
}

/// Where an agent's tools are, as it was told.
#[derive(Clone, Debug)]
pub struct Given {
    pub port: u16,
    pub token: String,
}

/// An answer of the endpoint.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub body: String,
}

impl Stage {
    pub fn new() -> Self {
        let home = Home::started();
        let client = home.client();
        Self { home, client }
    }

    /// A new agent with this name.
    pub fn agent(&self, name: &str) -> AgentId {
        self.client.create("scripted", |new| new.name = Some(name.to_owned())).id
    }

    /// What an agent was told about its tools.
    pub fn given(&self, agent: AgentId) -> Given {
        let before = self.client.said(agent).len();
        self.client.run(agent, "[[mcp]]");
        let said = self.client.said(agent);
        let servers = said[before..].trim().strip_prefix("mcp: ").expect("the servers").to_owned();
        let servers: Value = serde_json::from_str(&servers).expect("JSON");
        let server = &servers[0];
        assert_eq!((&server["name"], &server["type"]), (&json!("consort"), &json!("http")));
        let port = server["url"].as_str().and_then(|url| url.strip_prefix("http://127.0.0.1:"));
        let port =
            port.and_then(|rest| rest.strip_suffix("/mcp")).expect("an address").parse().expect("a port");
        let token = server["headers"][0]["value"].as_str().and_then(|value| value.strip_prefix("Bearer "));
        Given { port, token: token.expect("a token").to_owned() }
    }

    /// Lets an agent call a tool; what it said about it.
    pub fn call(&self, agent: AgentId, tool: &str, arguments: &Value) -> String {
        let before = self.client.said(agent).len();
        self.client.run(agent, &format!("[[mcp {tool} {arguments}]]"));
        self.client.said(agent)[before..].trim().to_owned()
    }
}

impl Given {
    /// A request with the agent's own token.
    pub fn post(&self, body: &str) -> Answer {
        self.request(&[("Authorization", &format!("Bearer {}", self.token))], body)
    }

    /// A request with these headers instead of the usual ones of the same name.
    pub fn request(&self, headers: &[(&str, &str)], body: &str) -> Answer {
        let length = body.len().to_string();
        let host = format!("127.0.0.1:{}", self.port);
        let usual = [
            ("Host", host.as_str()),
            ("Content-Type", "application/json"),
            ("Accept", "application/json, text/event-stream"),
            ("Content-Length", &length),
            ("Connection", "close"),
        ];
        let named = |name: &str| headers.iter().any(|(other, _)| *other == name);
        let all = usual.iter().filter(|(name, _)| !named(name)).chain(headers);
        let mut request = String::from("POST /mcp HTTP/1.1\r\n");
        for (name, value) in all {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        self.raw(&format!("{request}\r\n{body}"))
    }

    /// These very bytes.
    pub fn raw(&self, request: &str) -> Answer {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).expect("the endpoint listens");
        // It may answer and hang up before it has read everything.
        stream.write_all(request.as_bytes()).ok();
        if !request.contains("Connection: close") {
            // Nothing more comes, so the endpoint need not wait for it.
            stream.shutdown(Shutdown::Write).ok();
        }
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).ok();
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_default();
        let body = answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).unwrap_or_default();
        Answer { status, body }
    }

    /// The result of a request of the protocol.
    pub fn ask(&self, method: &str, params: &Value) -> Value {
        let answer =
            self.post(&json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string());
        assert_eq!(answer.status, 200, "{answer:?}");
        serde_json::from_str(&answer.body).expect("JSON")
    }
}

/// A request that anyone who may come in gets an answer to.
pub fn list() -> String {
    json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).to_string()
}
