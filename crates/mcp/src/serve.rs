//! The connections: plain HTTP/1 on the loopback, a bounded number of them.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use consort_hub::Hub;
use consort_hub::team::ENDPOINT_PATH;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{HeaderValue, WWW_AUTHENTICATE};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, Semaphore};

use crate::guard::{self, Caller};
use crate::handler::Handler;

/// The most connections at once; the next ones wait to be accepted.
const MAX_CONNECTIONS: usize = 1024;

/// The largest request.
const MAX_BODY: usize = 8 << 20;

/// How long a connection may take until its first request with a valid token. Anybody on this machine can connect, and
/// would otherwise keep the agents out by holding every place.
const INTRODUCTION: Duration = Duration::from_secs(10);

/// After a failed accept (too many open files), the next try waits this long.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How the SDK compares the Host and Origin of a request: pages that a browser loaded from elsewhere are turned away,
/// whatever name they made this address have.
const HOSTS: [&str; 2] = ["127.0.0.1", "localhost"];
const ORIGINS: [&str; 2] = ["http://127.0.0.1:*", "http://localhost:*"];

type Answer = Response<BoxBody<Bytes, Infallible>>;

/// What all connections share.
struct Server {
    hub: Arc<Hub>,
    service: StreamableHttpService<Handler, NeverSessionManager>,
}

/// Accepts connections for as long as the runtime is there.
pub async fn run(listener: TcpListener, hub: Arc<Hub>) {
    let handler = Handler::new(Arc::clone(&hub));
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_allowed_hosts(HOSTS)
        .with_allowed_origins(ORIGINS)
        .with_max_request_body_bytes(MAX_BODY);
    let service = StreamableHttpService::new(move || Ok(handler.clone()), Arc::default(), config);
    let server = Arc::new(Server { hub, service });
    let room = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        let Ok(place) = Arc::clone(&room).acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                let server = Arc::clone(&server);
                tokio::spawn(async move {
                    connection(server, stream).await;
                    drop(place);
                });
            }
            Err(error) => {
                tracing::error!(%error, "an agent could not be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn connection(server: Arc<Server>, stream: TcpStream) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "a connection of an agent is slower than it could be");
    }
    let introduced = Arc::new(Notify::new());
    let service = service_fn(|request| {
        let (server, introduced) = (Arc::clone(&server), Arc::clone(&introduced));
        async move { Ok::<_, Infallible>(server.answer(request, &introduced).await) }
    });
    let connection =
        hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service);
    let mut connection = pin!(connection);
    let outcome = tokio::select! {
        outcome = &mut connection => outcome,
        () = introduced.notified() => connection.await,
        () = tokio::time::sleep(INTRODUCTION) => {
            tracing::debug!("a connection without a valid token was closed");
            return;
        }
    };
    if let Err(error) = outcome {
        // A program that ends in the middle of a call is ordinary.
        tracing::debug!(%error, "a connection of an agent broke");
    }
}

impl Server {
    /// Answers one request, and tells `introduced` if it came from an agent.
    async fn answer(&self, request: Request<Incoming>, introduced: &Notify) -> Answer {
        if request.uri().path() != ENDPOINT_PATH {
            return plain(StatusCode::NOT_FOUND, "There is nothing here; the endpoint is /mcp.");
        }
        let (mut parts, body) = request.into_parts();
        let Some(Caller(agent)) = guard::identify(&self.hub, &mut parts) else {
            let words = "The token is missing, or its agent is closed or has another one by now.";
            let mut answer = plain(StatusCode::UNAUTHORIZED, words);
            answer.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            return answer;
        };
        introduced.notify_one();
        if let Err(error) = self.hub.connect_tools(agent).await {
            tracing::warn!(%error, %agent, "that an agent came for its tools was not noted");
        }
        parts.extensions.insert(Caller(agent));
        self.service.handle(Request::from_parts(parts, body)).await
    }
}

fn plain(status: StatusCode, words: &'static str) -> Answer {
    let mut answer = Response::new(Full::from(words).boxed());
    *answer.status_mut() = status;
    answer
}
