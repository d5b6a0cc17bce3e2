//! Who may come in: a request shows the token of an agent that is not closed.
//!
//! The token is taken off the request here, so that nothing behind this can log or repeat it. Host and Origin, which
//! keep pages in a browser out, are checked by the SDK's own service right after.

use consort_hub::Hub;
use consort_model::AgentId;
use hyper::header::AUTHORIZATION;
use hyper::http::request::Parts;

/// The agent that a request comes from. Travels with the request to the tools.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Caller(pub AgentId);

/// Finds out who asks, from the token alone.
pub fn identify(hub: &Hub, parts: &mut Parts) -> Option<Caller> {
    let header = parts.headers.remove(AUTHORIZATION)?;
    let (scheme, token) = header.to_str().ok()?.split_once(' ')?;
    let bearer = scheme.eq_ignore_ascii_case("bearer");
    bearer.then(|| hub.holder(token.trim()))?.map(Caller)
}
