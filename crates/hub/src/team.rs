//! How agents reach Consort's own tools: where the endpoint listens, and the token by which it knows each agent.
//!
//! Owns the tokens. One is made for every process of an agent, kept so that a new daemon knows it, and of no use once
//! the agent is closed or has another process. Leaves listening and serving to the layer above.
//!
//! Invariant: a token is in the database, in the frames to its own agent and in that agent's memory, nowhere else.

use std::collections::HashMap;
use std::fmt;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use consort_drivers::{Bridge, McpServer};
use consort_model::AgentId;
use uuid::Uuid;

/// What agents call the server.
pub const SERVER_NAME: &str = "consort";

/// The path of the endpoint.
pub const ENDPOINT_PATH: &str = "/mcp";

/// What the bridge finds its way by, in its environment.
pub const URL_VARIABLE: &str = "CONSORT_MCP_URL";
/// What the bridge shows at the endpoint, in its environment.
pub const TOKEN_VARIABLE: &str = "CONSORT_MCP_TOKEN";

/// Where the port of the last daemon is kept, and what the keys of tokens begin with.
pub const PORT_SETTING: &str = "mcp_port";
pub const TOKEN_SETTING: &str = "agent_token/";

/// What a token begins with, so that people and scanners know one when they see it.
const MARK: &str = "consort";

/// What an agent shows to be known. Never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

impl Token {
    /// A new one: whose it is, and 244 random bits.
    fn new(agent: AgentId) -> Self {
        let [first, second] = [Uuid::new_v4(), Uuid::new_v4()].map(Uuid::simple);
        Self(format!("{MARK}_{}_{first}{second}", agent.uuid().simple()))
    }

    /// The token itself.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Compares in a time that does not depend on where they differ.
    fn is(&self, shown: &str) -> bool {
        let (own, shown) = (self.0.as_bytes(), shown.as_bytes());
        let differences = own.iter().zip(shown).fold(0, |found, (a, b)| found | (a ^ b));
        own.len() == shown.len() && std::hint::black_box(differences) == 0
    }
}

/// The agent that a token says it is of.
fn claimed(shown: &str) -> Option<AgentId> {
    let rest = shown.strip_prefix(MARK)?.strip_prefix('_')?;
    rest.split_once('_')?.0.parse().ok()
}

/// The way to the tools, and everyone's tokens.
pub struct Team {
    port: Option<u16>,
    tokens: Mutex<HashMap<AgentId, Token>>,
}

impl Team {
    /// The tokens that were kept, and the port at which the endpoint listens, if it does.
    pub fn new(port: Option<u16>, kept: Vec<(String, String)>) -> Self {
        let tokens = kept.into_iter().filter_map(|(agent, token)| Some((agent.parse().ok()?, Token(token))));
        Self { port, tokens: Mutex::new(tokens.collect()) }
    }

    /// Makes a token for an agent's new process in place of the one before, and tells what the process is to be given.
    /// None where the endpoint does not listen.
    pub fn admit(&self, agent: AgentId, program: &Path) -> Option<(Token, McpServer)> {
        let token = Token::new(agent);
        let url = format!("http://127.0.0.1:{}{ENDPOINT_PATH}", self.port?);
        self.lock().insert(agent, token.clone());
        let environment = [(URL_VARIABLE, url.clone()), (TOKEN_VARIABLE, token.reveal().to_owned())];
        let server = McpServer {
            name: SERVER_NAME.to_owned(),
            url,
            headers: vec![("Authorization".to_owned(), format!("Bearer {}", token.reveal()))],
            bridge: Some(Bridge {
                command: program.to_string_lossy().into_owned(),
                args: vec!["mcp".to_owned()],
                environment: environment.map(|(key, value)| (key.to_owned(), value)).into(),
            }),
        };
        Some((token, server))
    }

    /// Whose token this is.
    pub fn holder(&self, shown: &str) -> Option<AgentId> {
        let agent = claimed(shown)?;
        self.lock().get(&agent).is_some_and(|token| token.is(shown)).then_some(agent)
    }

    /// Forgets the token of an agent; whether there was one.
    pub fn dismiss(&self, agent: AgentId) -> bool {
        self.lock().remove(&agent).is_some()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<AgentId, Token>> {
        self.tokens.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admitted(team: &Team, agent: AgentId) -> String {
        team.admit(agent, Path::new("consort")).unwrap().0.reveal().to_owned()
    }

    #[test]
    fn a_token_is_its_own_agents_alone_and_ends_with_the_next_one() {
        let team = Team::new(Some(1), vec![]);
        let [ann, bob] = [1, 2].map(|n| AgentId::new(Uuid::from_u128(n)));
        let (first, of_bob) = (admitted(&team, ann), admitted(&team, bob));
        assert_eq!((team.holder(&first), team.holder(&of_bob)), (Some(ann), Some(bob)));
        let second = admitted(&team, ann);
        assert_eq!((team.holder(&first), team.holder(&second)), (None, Some(ann)));
        assert!(team.dismiss(ann));
        assert_eq!((team.holder(&second), team.holder(&of_bob)), (None, Some(bob)));
        let kept = Team::new(None, vec![(bob.to_string(), of_bob.clone())]);
        assert_eq!(kept.holder(&of_bob), Some(bob), "over a restart");
    }

    #[test]
    fn what_is_no_token_is_nobodys() {
        let team = Team::new(Some(1), vec![]);
        let ann = AgentId::new(Uuid::from_u128(1));
        let token = admitted(&team, ann);
        let other_end = format!("{}x", &token[..token.len() - 1]);
        for shown in ["", "_", "consort__", "consort_x_y", &token[1..], &token[..token.len() - 1], &other_end]
        {
            assert_eq!(team.holder(shown), None, "{shown}");
        }
    }

    #[test]
    fn tokens_show_nowhere() {
        let team = Team::new(Some(1), vec![]);
        let (token, server) = team.admit(AgentId::new(Uuid::from_u128(1)), Path::new("consort")).unwrap();
        let shown = format!("{token:?} {server:?} {:?}", server.bridge);
        assert!(!shown.contains(token.reveal()), "{shown}");
    }
}
