//! A team tool call: `list_agents` among 100 agents, against a bare handler of the same HTTP and MCP stack that has the
//! same answer ready.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use consort_daemon::client::Client;
use consort_store::Database;
use http_body_util::BodyExt;
use hyper_util::rt::TokioIo;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ServerCapabilities, ServerConfig,
};
use rmcp::service::{RequestContext, RoleServer};
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ErrorData, ServerHandler};
use serde_json::json;

use super::Bench;
use super::lab::Lab;
use super::statistics::{Sample, figure};
use super::table::{Goal, Line};

const AGENTS: usize = 100;

/// Calls that are made and not counted.
const WARM_UP: usize = 50;

pub fn run(bench: &Bench) -> anyhow::Result<Vec<Line>> {
    let mut lab = Lab::new(bench)?;
    lab.start()?;
    let mut client = Client::connect(&lab.home)?;
    lab.add_profile(&mut client)?;
    lab.add_agents(&mut client, AGENTS)?;
    let (port, token) = given(&lab)?;
    let mut tool = Calls::new(port, &token)?;
    let answer = tool.call()?;
    let result: serde_json::Value = serde_json::from_slice(&answer)?;
    let listed = result["result"]["structuredContent"]["agents"].as_array().map_or(0, Vec::len);
    if listed + 1 != AGENTS {
        bail!("list_agents lists {listed} agents");
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let bare = runtime.block_on(serve(serde_json::from_value(result["result"].clone())?))?;
    let mut bare = Calls::new(bare, &token)?;
    let (mut of_tool, mut of_bare) = (Vec::new(), Vec::new());
    for n in 0..WARM_UP + bench.repetitions(2000) {
        let (one, other) = (time(&mut tool)?, time(&mut bare)?);
        if n >= WARM_UP {
            of_tool.push(one);
            of_bare.push(other);
        }
    }
    lab.stop()?;
    let (of_tool, of_bare) = (Sample::of_durations(&of_tool), Sample::of_durations(&of_bare));
    Ok(vec![Line {
        name: "team-tool".to_owned(),
        measured: format!("{} ms for {AGENTS} agents", figure(of_tool.median())),
        reference: format!("{} ms for the same answer", figure(of_bare.median())),
        figure: of_tool.median() / of_bare.median(),
        unit: "x",
        goal: Goal::AtMost(2.0),
        notes: vec![
            format!("middle half: {}, reference {}", of_tool.spread(), of_bare.spread()),
            format!("the answer has {} bytes", answer.len()),
        ],
    }])
}

fn time(calls: &mut Calls) -> anyhow::Result<Duration> {
    let started = Instant::now();
    calls.call()?;
    Ok(started.elapsed())
}

/// The port of a running daemon's tools, and the token of one of its agents.
fn given(lab: &Lab) -> anyhow::Result<(u16, String)> {
    let database = Database::open(lab.home.root())?;
    let first =
        |prefix: &str| anyhow::Ok(database.settings(prefix)?.into_iter().next().map(|(_, value)| value));
    let port = first("mcp_port")?.context("the tools have no port")?;
    Ok((port.parse()?, first("agent_token/")?.context("no agent has a token")?))
}

/// A connection over which the same call is made again and again.
struct Calls {
    stream: BufReader<TcpStream>,
    request: Vec<u8>,
}

impl Calls {
    fn new(port: u16, token: &str) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        let body =
            json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "list_agents"}});
        let body = body.to_string();
        let request = format!(
            "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\nContent-Type: \
             application/json\r\nAccept: application/json, text/event-stream\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        Ok(Self { stream: BufReader::with_capacity(1 << 16, stream), request: request.into_bytes() })
    }

    fn call(&mut self) -> anyhow::Result<Vec<u8>> {
        self.stream.get_mut().write_all(&self.request)?;
        let mut length = 0;
        let mut status = String::new();
        self.stream.read_line(&mut status)?;
        loop {
            let mut line = String::new();
            self.stream.read_line(&mut line)?;
            match line.trim_end().split_once(": ") {
                Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                    length = value.parse()?
                }
                Some(_) => {}
                None => break,
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body)?;
        if !status.contains(" 200 ") {
            bail!("{status}: {}", String::from_utf8_lossy(&body));
        }
        Ok(body)
    }
}

/// Has one answer, whatever is called.
#[derive(Clone)]
struct Bare(Arc<CallToolResult>);

impl ServerHandler for Bare {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn call_tool(
        &self,
        _: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        Ok((*self.0).clone().into())
    }
}

/// Serves the bare handler; its port.
async fn serve(result: CallToolResult) -> anyhow::Result<u16> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let port = listener.local_addr()?.port();
    let config =
        StreamableHttpServerConfig::default().with_legacy_session_mode(false).with_json_response(true);
    let bare = Bare(Arc::new(result));
    let service =
        StreamableHttpService::new(move || Ok(bare.clone()), Arc::<NeverSessionManager>::default(), config);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let service = service.clone();
            let answer = hyper::service::service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
                let service = service.clone();
                async move { Ok::<_, std::convert::Infallible>(service.handle(request).await.map(BodyExt::boxed)) }
            });
            stream.set_nodelay(true).ok();
            let connection =
                hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), answer);
            tokio::spawn(connection);
        }
    });
    Ok(port)
}
