//! Messages into a running turn.
//!
//! The agent takes one in with its next call of the model, and says so by repeating the message. One that comes too late
//! for the turn begins the next one, without being asked; so the agent has it for certain once it was sent, unless it is
//! taken back, which the agent answers by whether it was in time.

use consort_model::{Attachment, Signal};
use serde_json::{Value, json};

use super::turns::user_message;
use super::{Claude, Phase, Request, wire};
use crate::Output;

impl Claude {
    pub(crate) fn offer(&mut self, key: &str, text: &str, attachments: &[Attachment], out: &mut Output) {
        let running = self.turn.as_ref().is_some_and(|turn| !turn.interrupted);
        if self.phase != Phase::Open || !running {
            return out.signals.push(Signal::NotJoined { key: key.to_owned() });
        }
        let mut message = user_message(text, attachments, out);
        message["uuid"] = json!(key);
        out.frames.push(wire::line(&message));
        self.offered.push(key.to_owned());
    }

    /// The agent repeats a message: it has taken it in.
    pub(super) fn joined(&mut self, key: &str, out: &mut Output) {
        // Between two turns: the next one, which is about to begin, begins with it.
        if self.turn.is_none() {
            return;
        }
        if let Some(index) = self.offered.iter().position(|offered| offered == key) {
            self.offered.remove(index);
            out.signals.push(Signal::Joined { key: key.to_owned() });
        }
    }

    /// The agent begins a turn by itself: with what came too late for the last one.
    pub(super) fn joined_by_turn(&mut self, out: &mut Output) {
        out.signals.extend(self.offered.drain(..).map(|key| Signal::Joined { key }));
    }

    /// Takes back what was not taken in.
    pub(super) fn take_back(&mut self, out: &mut Output) {
        for key in self.offered.clone() {
            let body = json!({"subtype": "cancel_async_message", "message_uuid": key});
            self.send(Request::TakeBack { key }, body, out);
        }
    }

    /// Whether it was taken back in time; if not, the agent has taken it in.
    pub(super) fn taken_back(&mut self, key: &str, outcome: Result<Value, String>, out: &mut Output) {
        let Some(index) = self.offered.iter().position(|offered| offered == key) else { return };
        self.offered.remove(index);
        let in_time = outcome.is_ok_and(|said| said.get("cancelled") == Some(&Value::Bool(true)));
        let key = key.to_owned();
        out.signals.push(if in_time { Signal::NotJoined { key } } else { Signal::Joined { key } });
    }
}
