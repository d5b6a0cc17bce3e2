//! Calls of tools of the MCP servers that the client gave. The outcome is said as text.

use consort_mcp::client::{Address, Exchange};
use serde_json::{Value, json};

use super::super::desk::OnCancel;
use super::super::wire::RpcError;
use super::{End, Turn};

impl Turn<'_> {
    /// Calls a tool and shows the call. A cancel of the prompt hangs up.
    pub(super) fn mcp_call(&self, server: &str, tool: &str, arguments: &Value) -> Result<(), End> {
        let call = self.open_tool(
            "other",
            &format!("{server}: {tool}"),
            json!({"status": "in_progress", "rawInput": arguments}),
        );
        let outcome = match self.address(server) {
            Ok(address) => self.exchange(address, &call, tool, arguments),
            Err(why) => Ok(Err(why)),
        };
        let outcome = outcome.inspect_err(|_| self.close_tool(&call, "failed", "cancelled"))?;
        match outcome {
            Ok(result) => {
                let text = result["content"][0]["text"].as_str().unwrap_or_default().to_owned();
                let refused = result["isError"] == true;
                self.close_tool(&call, if refused { "failed" } else { "completed" }, &text);
                self.say(&format!("{tool}{}: {text}", if refused { " refused" } else { "" }));
            }
            Err(why) => {
                self.close_tool(&call, "failed", &why);
                self.say(&format!("{tool} failed: {why}"));
            }
        }
        Ok(())
    }

    /// Where the server of this name is.
    fn address(&self, name: &str) -> Result<Address, String> {
        let servers = self.session.mcp_servers.as_array().into_iter().flatten();
        let server = servers.filter(|server| server["name"] == name).find(|server| server["type"] == "http");
        let server = server.ok_or_else(|| format!("there is no MCP server {name} over HTTP"))?;
        let mut headers = server["headers"].as_array().into_iter().flatten();
        let bearer = headers.find(|header| header["name"] == "Authorization");
        let bearer = bearer.and_then(|header| header["value"].as_str()).unwrap_or_default();
        let token = bearer.strip_prefix("Bearer ").unwrap_or_default();
        Address::new(server["url"].as_str().unwrap_or_default(), token).map_err(|error| error.to_string())
    }

    /// Sends the call from a thread of its own, so that a cancel reaches the wait for its answer.
    fn exchange(
        &self,
        address: Address,
        call: &str,
        tool: &str,
        arguments: &Value,
    ) -> Result<Result<Value, String>, End> {
        let id = self.agent.wire.fresh_id();
        let request = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {
            "name": tool, "arguments": arguments, "_meta": {"progressToken": id, "claudecode/toolUseId": call},
        }});
        let exchange = match address.post(&request.to_string()) {
            Ok(exchange) => exchange,
            Err(error) => return Ok(Err(error.to_string())),
        };
        let hang_up = match exchange.hang_up() {
            Ok(hang_up) => hang_up,
            Err(error) => return Ok(Err(error.to_string())),
        };
        let desk = &self.agent.desk;
        desk.expect(id);
        std::thread::scope(|scope| {
            scope.spawn(|| desk.deliver(id, answer(exchange, id).map_err(|why| RpcError::new(0, why))));
            match desk.next_answer(&[id], self.ticket, OnCancel::Leave) {
                Ok((_, answer)) => Ok(answer.map_err(|error| error.message)),
                Err(cancelled) => {
                    hang_up.now();
                    Err(cancelled.into())
                }
            }
        })
    }
}

/// The result of the call with this id.
fn answer(exchange: Exchange, id: u64) -> Result<Value, String> {
    let mut answer = None;
    let read = exchange.read(|message| {
        let message: Value = serde_json::from_str(message).unwrap_or_default();
        // Others are progress.
        if message["id"] == id {
            answer = Some(message);
        }
    });
    read.map_err(|error| error.to_string())?;
    let mut answer = answer.ok_or("no answer came")?;
    match answer["error"]["message"].take() {
        Value::String(message) => Err(message),
        _ => Ok(answer["result"].take()),
    }
}
