//! The feed: committed events on their way to subscribers.
//!
//! Each subscriber has a bounded queue of its own. One that reads too slowly loses its queue and is told to take a new
//! snapshot, so a slow client costs bounded memory and delays nobody. An event is serialised once, however many read it.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use consort_model::event::AgentEvent;
use consort_model::{AgentId, AskBody, Attachment, Event, ItemBody, ItemIndex, Stamped, ToolCall};
use tokio::sync::Notify;

/// Events that may wait for one subscriber.
const MAX_QUEUED: usize = 8192;

/// What the events that wait for one subscriber may weigh, in bytes.
const MAX_WEIGHT: usize = 16 << 20;

/// A backlog longer than this has its text deltas joined before it is handed out.
const JOIN_FROM: usize = 32;

/// An event as subscribers share it.
#[derive(Debug)]
pub struct Published {
    /// The event.
    pub stamped: Arc<Stamped>,
    json: OnceLock<String>,
}

impl Published {
    fn new(stamped: Arc<Stamped>) -> Self {
        Self { stamped, json: OnceLock::new() }
    }

    /// About how much memory it holds: exact for text, which is what comes in bulk.
    fn weight(&self) -> usize {
        const SMALL: usize = 512;
        let Event::Agent { change, .. } = &self.stamped.event else { return SMALL };
        SMALL
            + match change {
                AgentEvent::TextAppended { text, .. } => text.len(),
                AgentEvent::ItemAdded { item } => body_weight(&item.body),
                AgentEvent::ItemChanged { body, .. } => body_weight(body),
                AgentEvent::Asked { ask } => match &ask.body {
                    AskBody::Approval { tool, .. } => tool_weight(tool),
                    AskBody::Question(question) => question.text.len(),
                },
                AgentEvent::PromptQueued { prompt } => {
                    prompt.text.len() + attachments_weight(&prompt.attachments)
                }
                _ => 0,
            }
    }

    /// The event as JSON, made once.
    pub fn json(&self) -> &str {
        self.json.get_or_init(|| serde_json::to_string(&*self.stamped).unwrap_or_default())
    }
}

/// Hands committed events to all subscribers.
#[derive(Default)]
pub struct Feed {
    subscribers: Mutex<Vec<Weak<Queue>>>,
}

#[derive(Default)]
struct Queue {
    waiting: Mutex<Waiting>,
    arrived: Notify,
}

#[derive(Default)]
struct Waiting {
    events: VecDeque<Arc<Published>>,
    weight: usize,
    lagged: bool,
}

/// One subscriber's place in the feed; dropping it unsubscribes.
pub struct Subscription {
    queue: Arc<Queue>,
}

/// What a subscriber is given.
pub enum Delivery {
    /// Events in order.
    Events(Vec<Arc<Published>>),
    /// It fell behind: take a new snapshot; events after it follow.
    Lagged,
}

impl Feed {
    /// Subscribes from now on.
    pub fn subscribe(&self) -> Subscription {
        let queue = Arc::new(Queue::default());
        lock(&self.subscribers).push(Arc::downgrade(&queue));
        Subscription { queue }
    }

    /// Hands out a batch. Called in commit order.
    pub fn publish(&self, events: &[Arc<Stamped>]) {
        let mut subscribers = lock(&self.subscribers);
        if subscribers.is_empty() {
            return;
        }
        let published: Vec<Arc<Published>> =
            events.iter().map(|event| Arc::new(Published::new(Arc::clone(event)))).collect();
        let weight = published.iter().map(|published| published.weight()).sum();
        subscribers.retain(|subscriber| {
            let Some(queue) = subscriber.upgrade() else { return false };
            queue.push(&published, weight);
            true
        });
    }
}

impl Queue {
    fn push(&self, published: &[Arc<Published>], weight: usize) {
        let mut waiting = lock(&self.waiting);
        // Whatever its weight, one batch may wait: a client that keeps up is never told that it lags.
        let full =
            waiting.events.len() + published.len() > MAX_QUEUED || waiting.weight + weight > MAX_WEIGHT;
        if full && !waiting.events.is_empty() {
            *waiting = Waiting { lagged: true, ..Waiting::default() };
        }
        if !waiting.lagged {
            waiting.weight += weight;
            waiting.events.extend(published.iter().cloned());
        }
        drop(waiting);
        self.arrived.notify_one();
    }
}

impl Subscription {
    /// Waits for something and takes all there is. Cancel-safe.
    pub async fn next(&mut self) -> Delivery {
        loop {
            {
                let mut waiting = lock(&self.queue.waiting);
                if std::mem::take(&mut waiting.lagged) {
                    return Delivery::Lagged;
                }
                if !waiting.events.is_empty() {
                    let Waiting { events, .. } = std::mem::take(&mut *waiting);
                    return Delivery::Events(join_deltas(events));
                }
            }
            self.queue.arrived.notified().await;
        }
    }
}

fn body_weight(body: &ItemBody) -> usize {
    match body {
        ItemBody::User { text, attachments, .. } => text.len() + attachments_weight(attachments),
        ItemBody::Text { text } | ItemBody::Thinking { text } => text.len(),
        ItemBody::Image(image) => image.data.len(),
        ItemBody::Tool(call) => tool_weight(call),
        _ => 0,
    }
}

fn tool_weight(call: &ToolCall) -> usize {
    let diffs =
        call.diffs.iter().map(|diff| diff.new_text.len() + diff.old_text.as_ref().map_or(0, String::len));
    let images = call.images.iter().map(|image| image.data.len());
    call.output.len() + diffs.sum::<usize>() + images.sum::<usize>()
}

fn attachments_weight(attachments: &[Attachment]) -> usize {
    let weight = |attachment: &Attachment| match attachment {
        Attachment::Image(image) => image.data.len(),
        Attachment::File { text, .. } => text.len(),
    };
    attachments.iter().map(weight).sum()
}

/// Joins the text deltas of a backlog, so that a client that was busy catches up with few messages. A joined delta takes
/// the place and number of its last part.
fn join_deltas(events: VecDeque<Arc<Published>>) -> Vec<Arc<Published>> {
    if events.len() < JOIN_FROM {
        return events.into();
    }
    let mut joined: Vec<Option<Arc<Published>>> = Vec::with_capacity(events.len());
    let mut last_delta: HashMap<AgentId, (ItemIndex, usize)> = HashMap::new();
    for published in events {
        let place = joined.len();
        let (agent, change) = match &published.stamped.event {
            Event::Agent { agent, change } => (*agent, change),
            _ => {
                joined.push(Some(published));
                continue;
            }
        };
        let AgentEvent::TextAppended { index, text, .. } = change else {
            last_delta.remove(&agent);
            joined.push(Some(published));
            continue;
        };
        let earlier = last_delta
            .insert(agent, (*index, place))
            .filter(|(earlier, _)| earlier == index)
            .and_then(|(_, place)| joined.get_mut(place).and_then(Option::take));
        let whole = earlier.and_then(|earlier| continued(&earlier.stamped, text, &published.stamped));
        joined.push(Some(whole.unwrap_or(published)));
    }
    joined.into_iter().flatten().collect()
}

fn continued(earlier: &Stamped, more: &str, later: &Stamped) -> Option<Arc<Published>> {
    let Event::Agent { agent, change: AgentEvent::TextAppended { index, offset, text } } = &earlier.event
    else {
        return None;
    };
    let text = format!("{text}{more}");
    let change = AgentEvent::TextAppended { index: *index, offset: *offset, text };
    let stamped = Stamped { seq: later.seq, at: later.at, event: Event::of(*agent, change) };
    Some(Arc::new(Published::new(Arc::new(stamped))))
}

/// Locks even after a panic elsewhere: every critical section here leaves its data whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use consort_model::Timestamp;
    use uuid::Uuid;

    fn delta(seq: u64, agent: u128, offset: u64, text: &str) -> Arc<Stamped> {
        let change = AgentEvent::TextAppended { index: ItemIndex(0), offset, text: text.into() };
        let event = Event::of(AgentId::new(Uuid::from_u128(agent)), change);
        Arc::new(Stamped { seq, at: Timestamp(0), event })
    }

    fn texts(delivery: Delivery) -> Vec<(u64, u64, String)> {
        let Delivery::Events(events) = delivery else { panic!("lagged") };
        let part = |published: &Arc<Published>| match &published.stamped.event {
            Event::Agent { change: AgentEvent::TextAppended { offset, text, .. }, .. } => {
                (published.stamped.seq, *offset, text.clone())
            }
            other => panic!("{other:?}"),
        };
        events.iter().map(part).collect()
    }

    #[tokio::test]
    async fn a_backlog_of_deltas_is_joined_per_agent_and_loses_nothing() {
        let feed = Feed::default();
        let mut subscription = feed.subscribe();
        let events: Vec<_> = (0..100).map(|n| delta(n, u128::from(n % 2), n / 2, "x")).collect();
        feed.publish(&events);
        let got = texts(subscription.next().await);
        assert_eq!(got, [(98, 0, "x".repeat(50)), (99, 0, "x".repeat(50))]);
    }

    #[tokio::test]
    async fn a_slow_subscriber_is_told_to_take_a_snapshot_and_then_goes_on() {
        let feed = Feed::default();
        let mut slow = feed.subscribe();
        for n in 0..=MAX_QUEUED as u64 {
            feed.publish(&[delta(n, 1, n, "x")]);
        }
        assert!(matches!(slow.next().await, Delivery::Lagged));
        feed.publish(&[delta(1_000_000, 1, 0, "y")]);
        assert_eq!(texts(slow.next().await), [(1_000_000, 0, "y".to_owned())]);
    }

    #[tokio::test]
    async fn a_backlog_is_bounded_by_its_weight_too() {
        let feed = Feed::default();
        let mut slow = feed.subscribe();
        let huge = "x".repeat(MAX_WEIGHT);
        feed.publish(&[delta(1, 1, 0, &huge)]);
        assert_eq!(texts(slow.next().await).len(), 1, "one batch is handed out whatever it weighs");
        feed.publish(&[delta(2, 1, 0, &huge)]);
        feed.publish(&[delta(3, 1, 0, "y")]);
        assert!(matches!(slow.next().await, Delivery::Lagged));
    }

    #[tokio::test]
    async fn a_dropped_subscription_is_forgotten() {
        let feed = Feed::default();
        drop(feed.subscribe());
        feed.publish(&[delta(1, 1, 0, "x")]);
        assert!(lock(&feed.subscribers).is_empty());
    }
}
