//! The one place where the reading thread and the playing thread meet: prompts in, cancels, answers of the client.
//!
//! Everything a playing thread can wait for (a job, a moment, an answer, a cancel) is a wait on one condition variable,
//! so a cancel reaches every wait and an idle agent is asleep. A cancel counts for the prompts that came before it on the
//! wire, running or queued, and never for a later one.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::wire::{RpcError, lock};

/// Something for the playing thread to do.
pub enum Job {
    Prompt { ticket: Arc<Ticket>, id: Value, params: Value },
    AnswerLater { delay: Duration, id: Value, answer: Result<Value, RpcError> },
}

/// One prompt from its arrival to its answer.
pub struct Ticket {
    session: String,
    cancelled: AtomicBool,
}

impl Ticket {
    pub fn cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }
}

/// The wait ended because the prompt was cancelled.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cancelled;

/// Whether a wait for an answer ends when the prompt is cancelled.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum OnCancel {
    Leave,
    Stay,
}

pub type Answer = Result<Value, RpcError>;

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    tickets: Vec<Arc<Ticket>>,
    /// Requests to the client: `None` while open.
    answers: HashMap<u64, Option<Answer>>,
    /// Ids in the order in which their answers came.
    order: VecDeque<u64>,
}

#[derive(Default)]
pub struct Desk {
    state: Mutex<State>,
    changed: Condvar,
}

impl Desk {
    pub fn enqueue_prompt(&self, session: &str, id: Value, params: Value) {
        let ticket = Arc::new(Ticket { session: session.to_owned(), cancelled: AtomicBool::new(false) });
        let mut state = lock(&self.state);
        state.tickets.push(Arc::clone(&ticket));
        state.jobs.push_back(Job::Prompt { ticket, id, params });
        self.changed.notify_all();
    }

    pub fn enqueue(&self, job: Job) {
        lock(&self.state).jobs.push_back(job);
        self.changed.notify_all();
    }

    pub fn next_job(&self) -> Job {
        let mut state = lock(&self.state);
        loop {
            if let Some(job) = state.jobs.pop_front() {
                return job;
            }
            state = self.wait(state);
        }
    }

    pub fn finish(&self, ticket: &Arc<Ticket>) {
        lock(&self.state).tickets.retain(|other| !Arc::ptr_eq(other, ticket));
    }

    pub fn cancel(&self, session: &str) {
        let state = lock(&self.state);
        for ticket in state.tickets.iter().filter(|ticket| ticket.session == session) {
            ticket.cancelled.store(true, Ordering::Relaxed);
        }
        self.changed.notify_all();
    }

    pub fn expect(&self, id: u64) {
        lock(&self.state).answers.insert(id, None);
    }

    /// Takes the client's answer; one that nobody waits for is dropped, as after a cancel.
    pub fn deliver(&self, id: u64, answer: Answer) {
        let mut state = lock(&self.state);
        if let Some(slot @ None) = state.answers.get_mut(&id) {
            *slot = Some(answer);
            state.order.push_back(id);
            self.changed.notify_all();
        }
    }

    /// The next answer to one of `ids`, in the order of arrival.
    pub fn next_answer(
        &self,
        ids: &[u64],
        ticket: &Ticket,
        on_cancel: OnCancel,
    ) -> Result<(u64, Answer), Cancelled> {
        let mut state = lock(&self.state);
        loop {
            if let Some(at) = state.order.iter().position(|id| ids.contains(id))
                && let Some(id) = state.order.remove(at)
                && let Some(Some(answer)) = state.answers.remove(&id)
            {
                return Ok((id, answer));
            }
            if ticket.cancelled() && on_cancel == OnCancel::Leave {
                state.answers.retain(|id, _| !ids.contains(id));
                return Err(Cancelled);
            }
            state = self.wait(state);
        }
    }

    pub fn sleep_until(&self, deadline: Instant, ticket: &Ticket) -> Result<(), Cancelled> {
        let mut state = lock(&self.state);
        loop {
            if ticket.cancelled() {
                return Err(Cancelled);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    pub fn until_cancelled(&self, ticket: &Ticket) -> Cancelled {
        let mut state = lock(&self.state);
        while !ticket.cancelled() {
            state = self.wait(state);
        }
        Cancelled
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }
}
