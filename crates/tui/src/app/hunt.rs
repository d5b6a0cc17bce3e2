//! Searching a conversation: what is loaded at once, the rest page by page through the daemon.
//!
//! Invariant: there is one search at a time. It ends when it found something, when everything was seen, or when the person
//! turns to something else; either way the bar at the bottom says how far it came.

use consort_daemon::protocol::{Call, TranscriptPage};
use consort_model::{AgentId, Item, ItemIndex};

use super::{App, Reply, Topic};
use crate::keys::Action;
use crate::transcript::item::{Look, hides, plain_text};

/// Items that are searched at once.
const PAGE: u32 = 250;

/// Which way to search from where one looks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// Towards the first item.
    Back,
    /// Towards the end.
    On,
    /// Towards the first item, and if nothing fits, towards the end.
    Around,
}

/// A stretch of items that is not loaded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Leg {
    /// Those before this one, backwards.
    Before(u64),
    /// Those from this one on.
    From(u64),
}

/// A search through what is not loaded.
pub struct Hunt {
    number: u64,
    agent: AgentId,
    words: String,
    /// What is left to search, the next one last.
    legs: Vec<Leg>,
    /// Items that were searched.
    seen: u64,
    way: Way,
}

impl App {
    /// Searches a conversation from where one looks.
    pub(super) fn search(&mut self, agent: AgentId, words: String, way: Way) {
        self.hunt = None;
        let Some(transcript) = self.transcripts.get_mut(&agent) else { return };
        let found = match way {
            Way::Back => transcript.find(&words, true),
            Way::On => transcript.find(&words, false),
            Way::Around => transcript.find(&words, true) || transcript.find(&words, false),
        };
        let (loaded, total) = transcript.extent();
        self.load_page(agent);
        self.redraw();
        if found {
            self.is_over(Topic::Search);
            let transcript = self.transcripts.get(&agent);
            let item = transcript.and_then(|it| it.chosen().and_then(|chosen| it.item(chosen)));
            let hidden = item.is_some_and(|item| self.is_hidden(agent, item, &words.to_lowercase()));
            if hidden {
                self.tell_hidden(&words);
            }
            return;
        }
        let mut legs = Vec::new();
        if way != Way::Back && loaded.end < total {
            legs.push(Leg::From(loaded.end));
        }
        if way != Way::On && loaded.start > 0 {
            legs.push(Leg::Before(loaded.start));
        }
        self.hunts += 1;
        let seen = loaded.end - loaded.start;
        let words = words.to_lowercase();
        self.hunt = Some(Hunt { number: self.hunts, agent, words, legs, seen, way });
        self.hunt_on();
    }

    /// Whether what was found is in the part of an item that is not shown.
    fn is_hidden(&self, agent: AgentId, item: &Item, words: &str) -> bool {
        let names = |id: AgentId| self.name_of(id);
        let look = Look {
            theme: &self.theme,
            width: self.hits.pane_width(agent),
            name_of: &names,
            pictures: &self.pictures,
            opens: "",
        };
        !words.is_empty() && hides(item, words, &look)
    }

    fn tell_hidden(&mut self, words: &str) {
        let key = self.keys.label(Action::OpenItem);
        self.say(format!("`{words}` is in the part that is not shown; {key} opens the item whole"));
        self.until_over(Topic::Search);
    }

    /// Asks for the next page, or says that nothing fits.
    fn hunt_on(&mut self) {
        let Some(hunt) = &self.hunt else { return };
        let total = self.transcripts.get(&hunt.agent).map_or(0, |it| it.extent().1);
        let (before, from) = match hunt.legs.last() {
            Some(Leg::Before(index)) => (Some(ItemIndex(*index)), None),
            Some(Leg::From(index)) => (None, Some(ItemIndex(*index))),
            None => {
                let words = &hunt.words;
                let text = match hunt.way {
                    Way::Back => {
                        format!(
                            "no earlier place has `{words}`; {} goes down",
                            self.keys.label(Action::NextFound)
                        )
                    }
                    Way::On => {
                        format!(
                            "no later place has `{words}`; {} goes up",
                            self.keys.label(Action::PreviousFound)
                        )
                    }
                    Way::Around => format!("`{words}` is in none of the {total} items of this conversation"),
                };
                self.hunt = None;
                self.say(text);
                return self.until_over(Topic::Search);
            }
        };
        let call = Call::Transcript { agent: hunt.agent.to_string(), before, from, limit: PAGE };
        let (reply, text) =
            (Reply::Hunted(hunt.number), format!("searching… {} of {total} items", hunt.seen));
        self.call(call, reply);
        self.say(text);
        self.until_over(Topic::Search);
    }

    /// A page came that is to be searched.
    pub(super) fn hunted(&mut self, number: u64, page: Result<TranscriptPage, String>) {
        let focused = self.focused();
        let Some(hunt) = self.hunt.as_mut().filter(|hunt| hunt.number == number) else { return };
        // Whoever went to another agent does not want this one to move.
        if focused != Some(hunt.agent) {
            self.hunt = None;
            return;
        }
        let page = match page {
            Ok(page) => page,
            Err(why) => {
                self.hunt = None;
                return self.complain(format!("the search broke off: {why}"));
            }
        };
        hunt.seen += page.items.len() as u64;
        let fits = |item: &&consort_model::Item| plain_text(item).to_lowercase().contains(&hunt.words);
        let leg = hunt.legs.pop();
        let (found, rest) = match leg {
            Some(Leg::Before(_)) => {
                let first = page.items.first().map_or(0, |item| item.index.0);
                (page.items.iter().rev().find(fits), (first > 0).then_some(Leg::Before(first)))
            }
            Some(Leg::From(_)) => {
                let next = page.items.last().map_or(page.total, |item| item.index.0 + 1);
                (page.items.iter().find(fits), (next < page.total).then_some(Leg::From(next)))
            }
            None => (None, None),
        };
        hunt.legs.extend(rest);
        let Some(item) = found else { return self.hunt_on() };
        let Some(Hunt { agent, seen, words, .. }) = self.hunt.take() else { return };
        let index = item.index.0;
        if self.is_hidden(agent, item, &words) {
            self.tell_hidden(&words);
        } else {
            self.say(format!("found after {seen} items"));
            self.until_over(Topic::Search);
        }
        let wanted = self.transcripts.get_mut(&agent).and_then(|transcript| transcript.show_found(index));
        if let Some(wanted) = wanted {
            self.ask_page(agent, wanted);
        }
        self.redraw();
    }
}
