//! Words into a running turn.
//!
//! The app server takes them with `turn/steer`, gives them to the model with its next call, and tells that by an item that
//! carries our name for them. A turn that ends before that has not taken them; it refuses what comes after its end.

use consort_model::{Attachment, Signal};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::turns::input;
use super::{Codex, Phase, Place, Request};
use crate::Output;

/// A prompt for the running turn.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Offer {
    /// The hub's name for it.
    key: String,
    /// What to send once the turn has begun; none: it was sent.
    input: Option<Vec<Value>>,
}

impl Codex {
    /// Adds words to a running turn, if there is one.
    pub(super) fn add_words(&mut self, place: &Place, text: &str, out: &mut Output) -> bool {
        let Some((thread, turn)) = self.running(place) else { return false };
        let params = json!({"threadId": thread, "expectedTurnId": turn, "input": input(text, &[])});
        self.send(Request::Steer { key: None }, "turn/steer", params, out);
        true
    }

    pub(crate) fn offer(&mut self, key: &str, text: &str, attachments: &[Attachment], out: &mut Output) {
        let key = key.to_owned();
        let Some(turn) = self.turn.as_ref().filter(|turn| self.phase == Phase::Open && !turn.interrupted)
        else {
            return out.signals.push(Signal::NotJoined { key });
        };
        let begun = turn.begun;
        self.offered.push(Offer { key, input: Some(input(text, attachments)) });
        if begun {
            self.send_offered(out);
        }
    }

    /// Sends what the turn was to be given before it had begun.
    pub(super) fn send_offered(&mut self, out: &mut Output) {
        let Some((thread, turn)) = self.running(&Place::Main) else { return };
        let waiting: Vec<(String, Vec<Value>)> = self
            .offered
            .iter_mut()
            .filter_map(|offer| offer.input.take().map(|input| (offer.key.clone(), input)))
            .collect();
        for (key, input) in waiting {
            let params = json!({
                "threadId": thread,
                "expectedTurnId": turn,
                "clientUserMessageId": key,
                "input": input,
            });
            self.send(Request::Steer { key: Some(key) }, "turn/steer", params, out);
        }
    }

    /// The turn has taken in a message.
    pub(super) fn joined(&mut self, key: &str, out: &mut Output) {
        if self.forget_offer(key) {
            out.signals.push(Signal::Joined { key: key.to_owned() });
        }
    }

    /// The turn refused a message.
    pub(super) fn not_joined(&mut self, key: &str, out: &mut Output) {
        if self.forget_offer(key) {
            out.signals.push(Signal::NotJoined { key: key.to_owned() });
        }
    }

    /// The turn is over: it takes nothing more.
    pub(super) fn none_joined(&mut self, out: &mut Output) {
        out.signals.extend(self.offered.drain(..).map(|offer| Signal::NotJoined { key: offer.key }));
    }

    fn forget_offer(&mut self, key: &str) -> bool {
        let before = self.offered.len();
        self.offered.retain(|offer| offer.key != key);
        self.offered.len() < before
    }
}
