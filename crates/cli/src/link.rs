//! The connection to the daemon for commands: made when first needed, and made again when it breaks.
//!
//! A call that carries its own id, or that may be done twice, is sent again after the connection broke in the middle of
//! it: the daemon recognises what it has. Other calls report the break.

use std::path::PathBuf;
use std::time::Duration;

use consort_daemon::client::{Client, ClientError};
use consort_daemon::home::Home;
use consort_daemon::protocol::{AgentView, Answered, AskAnswer, Call, InboxEntry, TranscriptPage, codes};
use consort_model::{AgentId, Answer, AskId, Item, ItemBody, ItemIndex, Refusal, SettledBy};
use serde::de::DeserializeOwned;

use crate::exit::Stop;

/// How often a call is sent again after the connection broke.
const RETRIES: u32 = 5;

/// How many items one page holds.
pub const PAGE: u32 = 500;

/// A connection that can be made again.
pub struct Link {
    home: Home,
    client: Option<Client>,
}

impl Link {
    /// For the home that the environment names. Does not connect yet.
    pub fn new() -> Result<Self, Stop> {
        Ok(Self { home: home()?, client: None })
    }

    /// The home.
    pub fn home(&self) -> &Home {
        &self.home
    }

    /// The connection, made now if there is none.
    pub fn client(&mut self) -> Result<&mut Client, ClientError> {
        let client = match self.client.take() {
            Some(client) => client,
            None => connect(&self.home)?,
        };
        Ok(self.client.insert(client))
    }

    /// Asks once.
    pub fn call_once<R: DeserializeOwned>(&mut self, call: &Call) -> Result<R, ClientError> {
        let result = self.client()?.call(call);
        if let Err(ClientError::Connection { .. }) = &result {
            self.client = None;
        }
        result
    }

    /// Asks, and asks again if the connection breaks: for calls that may be done twice.
    pub fn call<R: DeserializeOwned>(&mut self, call: &Call) -> Result<R, ClientError> {
        self.call_counted(call).0
    }

    /// Asks like [`Self::call`], and tells whether it had to be asked again.
    fn call_counted<R: DeserializeOwned>(&mut self, call: &Call) -> (Result<R, ClientError>, bool) {
        let mut retries = 0;
        loop {
            match self.call_once(call) {
                Err(error) if retries < RETRIES && may_help_again(&error) => {
                    retries += 1;
                    std::thread::sleep(Duration::from_millis(20 << retries));
                }
                result => return (result, retries > 0),
            }
        }
    }

    /// One agent.
    pub fn agent(&mut self, agent: &str) -> Result<AgentView, ClientError> {
        self.call(&Call::GetAgent { agent: agent.to_owned() })
    }

    /// A page of a transcript, from an item on.
    pub fn page(&mut self, agent: AgentId, from: u64, limit: u32) -> Result<TranscriptPage, ClientError> {
        let from = Some(ItemIndex(from));
        self.call(&Call::Transcript { agent: agent.to_string(), before: None, from, limit })
    }

    /// The items from one on, to the end of the transcript, page by page. `each` tells whether to go on.
    pub fn items(
        &mut self,
        agent: AgentId,
        mut from: u64,
        mut each: impl FnMut(&Item) -> Result<bool, Stop>,
    ) -> Result<(), Stop> {
        loop {
            let page = self.page(agent, from, PAGE)?;
            for item in &page.items {
                if !each(item)? {
                    return Ok(());
                }
                from = item.index.0 + 1;
            }
            if page.items.is_empty() || from >= page.total {
                return Ok(());
            }
        }
    }

    /// Everything that is open.
    pub fn inbox(&mut self) -> Result<Vec<InboxEntry>, ClientError> {
        self.call(&Call::Inbox {})
    }

    /// The open approval or question that a person means; none if nothing open fits.
    pub fn open_ask(&mut self, wanted: &str) -> Result<Option<InboxEntry>, ClientError> {
        let wanted = wanted.to_ascii_lowercase();
        let mut fitting = self.inbox()?.into_iter().filter(|entry| {
            let id = entry.id.to_string();
            wanted.len() >= 4 && (id.starts_with(&wanted) || id.ends_with(&wanted))
        });
        let first = fitting.next();
        Ok(if fitting.next().is_some() { None } else { first })
    }

    /// Answers an open ask. An answer whose acknowledgement was lost counts if the record shows it.
    pub fn answer(&mut self, wanted: &str, answer: Answer) -> Result<(), Stop> {
        let entry = self.open_ask(wanted)?;
        let ask = entry.as_ref().map_or_else(|| wanted.to_owned(), |entry| entry.id.to_string());
        let call = Call::Answer { ask, answer: answer.clone() };
        let (result, again) = self.call_counted::<consort_daemon::protocol::Done>(&call);
        match (result, entry) {
            (Ok(_), _) => Ok(()),
            (Err(error), Some(entry)) if again && is_not_open(&error) => {
                if self.was_answered(entry.agent, entry.id, &answer)? { Ok(()) } else { Err(error.into()) }
            }
            (Err(error), _) => Err(error.into()),
        }
    }

    /// Answers several requests in one call, each that is open; what became of each. One that nothing open fits is
    /// asked for by itself, so that the daemon says why.
    pub fn answer_many(&mut self, wanted: &[String], answer: &Answer) -> Result<Vec<Answered>, Stop> {
        let mut open = Vec::new();
        let mut told = Vec::new();
        for wanted in wanted {
            match self.open_ask(wanted)? {
                Some(entry) => open.push(entry),
                None => told.push(self.not_open(wanted, answer)?),
            }
        }
        if open.is_empty() {
            return Ok(told);
        }
        let answers = open.iter().map(|entry| AskAnswer { ask: entry.id, answer: answer.clone() }).collect();
        let (result, again) = self.call_counted::<Vec<Answered>>(&Call::AnswerMany { answers });
        for (entry, mut outcome) in open.iter().zip(result?) {
            let lost =
                again && outcome.error.as_ref().is_some_and(|error| error.data["refusal"] == "not_open");
            // The acknowledgement of the first try may be what was lost.
            if lost && self.was_answered(entry.agent, entry.id, answer)? {
                (outcome.answered, outcome.error) = (true, None);
            }
            told.push(outcome);
        }
        Ok(told)
    }

    /// Why a request cannot be answered, as the daemon has it.
    fn not_open(&mut self, wanted: &str, answer: &Answer) -> Result<Answered, Stop> {
        let call = Call::Answer { ask: wanted.to_owned(), answer: answer.clone() };
        let ask = wanted.parse().unwrap_or_else(|_| AskId::new(uuid::Uuid::nil()));
        match self.call_once::<consort_daemon::protocol::Done>(&call) {
            // It was asked just now.
            Ok(_) => Ok(Answered { ask, answered: true, error: None }),
            Err(ClientError::Answer(error)) => Ok(Answered { ask, answered: false, error: Some(error) }),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether a person gave this very answer, as the transcript has it. Looks at the last items first.
    fn was_answered(&mut self, agent: AgentId, wanted: AskId, expected: &Answer) -> Result<bool, Stop> {
        let mut before = None;
        loop {
            let call = Call::Transcript { agent: agent.to_string(), before, from: None, limit: PAGE };
            let page: TranscriptPage = self.call(&call)?;
            for item in page.items.iter().rev() {
                if let ItemBody::Ask { ask, settlement, .. } = &item.body
                    && *ask == wanted
                {
                    return Ok(settlement.as_ref().is_some_and(|it| {
                        it.by == SettledBy::Person && it.answer.as_ref() == Some(expected)
                    }));
                }
            }
            match page.items.first() {
                Some(first) if first.index.0 > 0 => before = Some(first.index),
                _ => return Ok(false),
            }
        }
    }
}

/// The home that the environment names.
pub fn home() -> Result<Home, Stop> {
    Home::from_environment().map_err(|error| Stop::failed(error.to_string()))
}

/// This program, which is also the daemon.
pub fn program() -> Result<PathBuf, ClientError> {
    std::env::current_exe().map_err(|error| ClientError::Start {
        reason: format!("the path of this program cannot be found: {error}"),
    })
}

/// Connects, and starts the daemon first where none runs.
pub fn connect(home: &Home) -> Result<Client, ClientError> {
    match Client::connect(home) {
        Err(ClientError::NoDaemon { .. }) => Client::connect_or_start(home, &program()?),
        other => other,
    }
}

/// Whether trying again may help. A daemon that cannot start says why; one that is killed while it starts does not.
pub fn may_help_again(error: &ClientError) -> bool {
    matches!(
        error,
        ClientError::Connection { .. } | ClientError::NoDaemon { .. } | ClientError::EndedAtStart { .. }
    )
}

/// The refusal in an error.
pub fn refusal(error: &ClientError) -> Option<Refusal> {
    match error {
        ClientError::Answer(body) if body.code == codes::REFUSED => {
            serde_json::from_value(body.data.clone()).ok()
        }
        _ => None,
    }
}

/// Whether the ask was settled by somebody else, or by a call whose acknowledgement was lost.
pub fn is_not_open(error: &ClientError) -> bool {
    matches!(refusal(error), Some(Refusal::NotOpen { .. }))
}
