//! A conversation as it is shown: a window of its items, laid out where it is looked at, scrolled by item.
//!
//! Owns the items that were loaded, their layout per width, what is unfolded, and the place that is looked at. Leaves the
//! look of an item to [`item`], and the loading of pages to the app, which asks [`Transcript::wants`].
//!
//! Invariants: what is laid out is what is on the screen and little more, however long the conversation is. The place is an
//! item and a line within it, so nothing moves when text arrives, a page is loaded before it, or the width changes.

pub mod item;

use std::collections::{HashSet, VecDeque};

use consort_model::event::AgentEvent;
use consort_model::{Item, ItemBody};
use ratatui::text::Line;

use crate::text::markdown::Stream;
use item::Look;

/// Items that are asked for at once.
pub const PAGE: u32 = 60;

/// Items that are held at most; those farthest from the place are let go.
const MAX_ITEMS: usize = 1200;

/// Images that are held at most, in bytes; items with those farthest from the place are let go.
const MAX_IMAGES: usize = 32 << 20;

/// Items before the first one on the screen below which earlier ones are asked for.
const MARGIN: usize = 20;

/// Where one looks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// At the end, and it follows what comes.
    End,
    /// This line of this item is the first one on the screen.
    At {
        /// The item's index.
        index: u64,
        /// The line within it.
        line: usize,
    },
}

/// A page to ask for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wanted {
    /// The last ones.
    Last,
    /// Those before this index.
    Before(u64),
    /// Those from this index on.
    From(u64),
}

struct Entry {
    item: Item,
    laid: Option<Laid>,
    /// The text of an item that grows: it lays out only its end again. Its lines stand after those in `laid`.
    stream: Option<Stream>,
}

struct Laid {
    width: u16,
    open: bool,
    gap: bool,
    theme: &'static str,
    lines: Vec<Line<'static>>,
}

impl Entry {
    fn new(item: Item) -> Self {
        Self { item, laid: None, stream: None }
    }

    fn forget_layout(&mut self) {
        self.laid = None;
        self.stream = None;
    }

    /// Lays it out if it is not; how many lines it has.
    fn lay_out(&mut self, open: bool, gap: bool, look: &Look<'_>) -> usize {
        let fits = self.laid.as_ref().is_some_and(|laid| {
            laid.width == look.width && laid.open == open && laid.gap == gap && laid.theme == look.theme.name
        });
        if !fits {
            let mut lines = Vec::new();
            if gap {
                lines.push(Line::default());
            }
            match &self.item {
                Item { body: ItemBody::Text { text }, done: false, within: None, .. } => {
                    let mut stream = Stream::default();
                    stream.append(text);
                    self.stream = Some(stream);
                }
                item => lines.extend(item::lines(item, open, look)),
            }
            self.laid = Some(Laid { width: look.width, open, gap, theme: look.theme.name, lines });
        }
        let streamed =
            self.stream.as_mut().map_or(0, |stream| stream.lines(look.width.into(), look.theme).len());
        self.laid.as_ref().map_or(0, |laid| laid.lines.len()) + streamed
    }

    /// Its lines, which were laid out.
    fn lines(&mut self, look: &Look<'_>) -> impl Iterator<Item = &Line<'static>> {
        let streamed =
            self.stream.as_mut().map_or(&[][..], |stream| stream.lines(look.width.into(), look.theme));
        self.laid.iter().flat_map(|laid| &laid.lines).chain(streamed)
    }
}

/// A line on the screen.
pub struct Shown<'a> {
    /// Of which item.
    pub index: u64,
    /// Which line of it.
    pub line: usize,
    /// The line.
    pub text: &'a Line<'static>,
}

/// A conversation as it is shown.
pub struct Transcript {
    entries: VecDeque<Entry>,
    /// How many items there are in all, as far as known.
    total: u64,
    /// Whether the first page came.
    loaded: bool,
    /// A page that was asked for and has not come.
    asked: Option<Wanted>,
    /// What came does not continue what is here: the end is to be loaded anew.
    broken: bool,
    place: Place,
    toggled: HashSet<u64>,
    all_open: bool,
    chosen: Option<u64>,
    /// The search in force, in lower case.
    search: String,
    height: usize,
    /// Whether something came below what is looked at.
    unseen: bool,
    /// Whether the line of the place is to be the one that fits the search, once it is laid out.
    seek: bool,
}

impl Default for Transcript {
    fn default() -> Self {
        Self {
            entries: VecDeque::new(),
            total: 0,
            loaded: false,
            asked: None,
            broken: false,
            place: Place::End,
            toggled: HashSet::new(),
            all_open: false,
            chosen: None,
            search: String::new(),
            height: 0,
            unseen: false,
            seek: false,
        }
    }
}

impl Transcript {
    /// Whether its first page came.
    pub fn is_loaded(&self) -> bool {
        self.loaded
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Where one looks.
    pub fn place(&self) -> Place {
        self.place
    }

    /// Whether something came below what is looked at.
    pub fn has_unseen(&self) -> bool {
        self.unseen
    }

    /// The item that was chosen.
    pub fn chosen(&self) -> Option<u64> {
        self.chosen
    }

    /// The item of this index, if it is loaded.
    pub fn item(&self, index: u64) -> Option<&Item> {
        self.at(index).and_then(|at| self.entries.get(at)).map(|entry| &entry.item)
    }

    /// All items that are loaded.
    pub fn items(&self) -> impl DoubleEndedIterator<Item = &Item> {
        self.entries.iter().map(|entry| &entry.item)
    }

    fn first(&self) -> u64 {
        self.entries.front().map_or(self.total, |entry| entry.item.index.0)
    }

    fn next(&self) -> u64 {
        self.entries.back().map_or(0, |entry| entry.item.index.0 + 1)
    }

    fn at(&self, index: u64) -> Option<usize> {
        let at = index.checked_sub(self.first())? as usize;
        (at < self.entries.len()).then_some(at)
    }

    /// The page to ask for now, which counts as asked for from here on.
    pub fn wants(&mut self) -> Option<Wanted> {
        if self.asked.is_some() {
            return None;
        }
        let wanted = if !self.loaded || self.broken {
            Some(Wanted::Last)
        } else if let Place::At { index, .. } = self.place {
            let first = self.first();
            if first > 0 && index < first + MARGIN as u64 {
                Some(Wanted::Before(first))
            } else if self.next() < self.total && index + (self.height + MARGIN) as u64 >= self.next() {
                Some(Wanted::From(self.next()))
            } else {
                None
            }
        } else if self.first() > 0 && self.entries.len() < self.height.min(MARGIN) {
            Some(Wanted::Before(self.first()))
        } else {
            None
        };
        self.asked = wanted;
        wanted
    }

    /// The connection is gone: what was asked for will not come, and what happens meanwhile is not told.
    pub fn disconnected(&mut self) {
        self.asked = None;
        self.broken = self.loaded;
    }

    /// A page did not come.
    pub fn page_failed(&mut self) {
        self.asked = None;
    }

    /// A page came.
    pub fn page(&mut self, wanted: Wanted, items: Vec<Item>, total: u64) {
        if self.asked == Some(wanted) {
            self.asked = None;
        }
        self.total = self.total.max(total);
        match wanted {
            Wanted::Last => {
                let first = items.first().map_or(total, |item| item.index.0);
                let continues = self.loaded && !self.entries.is_empty() && first <= self.next();
                if !continues {
                    self.entries.clear();
                    self.total = total;
                    if self.loaded && self.place != Place::End {
                        self.place = Place::End;
                    }
                }
                self.loaded = true;
                self.broken = false;
                for item in items {
                    self.put(item);
                }
            }
            Wanted::From(_) => items.into_iter().for_each(|item| self.put(item)),
            Wanted::Before(before) => {
                if before != self.first() {
                    return;
                }
                for item in items.into_iter().rev() {
                    if item.index.0 + 1 == self.first() {
                        self.entries.push_front(Entry::new(item));
                    }
                }
            }
        }
        self.trim();
        self.trim_images();
    }

    /// Puts an item where it belongs; one that leaves a gap is left out.
    fn put(&mut self, item: Item) {
        let index = item.index.0;
        self.total = self.total.max(index + 1);
        match self.at(index) {
            Some(at) => {
                if let Some(entry) = self.entries.get_mut(at).filter(|entry| entry.item != item) {
                    *entry = Entry::new(item);
                }
            }
            None if self.entries.is_empty() || index == self.next() => {
                self.entries.push_back(Entry::new(item));
            }
            None => {}
        }
    }

    /// Lets go of what is far from the place.
    fn trim(&mut self) {
        while self.entries.len() > MAX_ITEMS {
            self.let_go();
        }
    }

    /// Lets go of what is far from the place while there are too many images. What is near stays, however large it is: it
    /// would be asked for again at once.
    fn trim_images(&mut self) {
        let near = self.height + 4 * MARGIN;
        let mut held: usize = self.items().map(item::image_bytes).sum();
        while held > MAX_IMAGES && self.entries.len() > 2 * near {
            held -= self.let_go().map_or(0, |gone| item::image_bytes(&gone.item));
        }
    }

    /// Lets go of the item that is farthest from the place.
    fn let_go(&mut self) -> Option<Entry> {
        let place = match self.place {
            Place::End => self.entries.len(),
            Place::At { index, .. } => self.at(index).unwrap_or(0),
        };
        if place > self.entries.len() / 2 { self.entries.pop_front() } else { self.entries.pop_back() }
    }

    /// Follows an event of its agent; whether anything about it changed.
    pub fn apply(&mut self, change: &AgentEvent) -> bool {
        if !self.loaded || !change.is_transcript() {
            return false;
        }
        let changed = match change {
            AgentEvent::ItemAdded { item } => {
                let index = item.index.0;
                self.total = self.total.max(index + 1);
                if index > self.next() && self.next() + 1 >= self.total.min(index) && self.place == Place::End
                {
                    self.broken = true;
                }
                // While one looks far up, the end is not held: it comes as a page.
                self.put(item.clone());
                if item::image_bytes(item) > 0 {
                    self.trim_images();
                }
                true
            }
            AgentEvent::ItemChanged { index, done, body } => match self.at(index.0) {
                Some(at) => {
                    if let Some(entry) = self.entries.get_mut(at) {
                        entry.item.done = *done;
                        entry.item.body = body.clone();
                        entry.forget_layout();
                    }
                    true
                }
                None => false,
            },
            AgentEvent::TextAppended { index, offset, text } => match self.at(index.0) {
                Some(at) => self.append(at, *offset, text),
                None => false,
            },
            AgentEvent::TextDone { index } => match self.at(index.0) {
                Some(at) => {
                    if let Some(entry) = self.entries.get_mut(at) {
                        entry.item.done = true;
                        entry.forget_layout();
                    }
                    true
                }
                None => false,
            },
            _ => false,
        };
        if changed && self.place != Place::End {
            self.unseen = true;
        }
        self.trim();
        changed
    }

    fn append(&mut self, at: usize, offset: u64, more: &str) -> bool {
        let Some(entry) = self.entries.get_mut(at) else { return false };
        let (ItemBody::Text { text } | ItemBody::Thinking { text }) = &mut entry.item.body else {
            return false;
        };
        let there = text.len() as u64;
        if offset > there {
            self.broken = true;
            return false;
        }
        // What came with a page already is not added twice.
        let Some(new) = more.get((there - offset) as usize..).filter(|new| !new.is_empty()) else {
            return false;
        };
        text.push_str(new);
        match &mut entry.stream {
            Some(stream) => stream.append(new),
            None => entry.laid = None,
        }
        true
    }

    /// Whether an item is unfolded.
    fn is_open(&self, index: u64) -> bool {
        self.all_open != self.toggled.contains(&index)
    }

    /// Unfolds or folds an item.
    pub fn toggle(&mut self, index: u64) {
        if !self.toggled.remove(&index) {
            self.toggled.insert(index);
        }
    }

    /// Unfolds or folds everything.
    pub fn toggle_all(&mut self) {
        self.all_open = !self.all_open;
        self.toggled.clear();
    }

    /// Lays an entry out if it is not; how many lines it has.
    fn count(&mut self, at: usize, look: &Look<'_>) -> usize {
        let pair = at.checked_sub(1).and_then(|before| self.entries.get(before).zip(self.entries.get(at)));
        let gap = pair.is_some_and(|(before, this)| item::has_gap(&before.item, &this.item));
        let open = self.is_open(self.first() + at as u64);
        self.entries.get_mut(at).map_or(0, |entry| entry.lay_out(open, gap, look))
    }

    /// The lines on a screen of this height, topmost first. Corrects the place where there is nothing any more.
    pub fn view(&mut self, look: &Look<'_>, height: usize) -> Vec<Shown<'_>> {
        self.height = height;
        if self.seek {
            self.seek_line(look, height);
        }
        let (mut at, mut line) = match self.place {
            Place::End => self.end_start(look, height),
            Place::At { index, line } => {
                let at = self.at(index).unwrap_or(0);
                let count = self.count(at, look);
                (at, line.min(count.saturating_sub(1)))
            }
        };
        // At the end there is nothing to stay put for: follow it again.
        if self.place != Place::End && self.next() >= self.total {
            let (end_at, end_line) = self.end_start(look, height);
            if (at, line) >= (end_at, end_line) {
                self.place = Place::End;
                self.unseen = false;
                (at, line) = (end_at, end_line);
            }
        }
        let start = at;
        let mut wanted = height;
        let skip = line;
        while wanted > 0 && at < self.entries.len() {
            let count = self.count(at, look);
            wanted = wanted.saturating_sub(count - line.min(count));
            line = 0;
            at += 1;
        }
        let first = self.first();
        let mut shown = Vec::with_capacity(height);
        for (offset, entry) in self.entries.iter_mut().enumerate().take(at).skip(start) {
            let skip = if offset == start { skip } else { 0 };
            for (line, text) in entry.lines(look).enumerate().skip(skip) {
                if shown.len() == height {
                    break;
                }
                shown.push(Shown { index: first + offset as u64, line, text });
            }
        }
        shown
    }

    /// The entry and line with which a screen that shows the end begins.
    fn end_start(&mut self, look: &Look<'_>, height: usize) -> (usize, usize) {
        let mut left = height;
        let mut at = self.entries.len();
        while at > 0 {
            let count = self.count(at - 1, look);
            if count >= left {
                return (at - 1, count - left);
            }
            left -= count;
            at -= 1;
        }
        (0, 0)
    }

    /// Scrolls by so many lines; up is negative.
    pub fn scroll(&mut self, look: &Look<'_>, by: isize) {
        let (mut at, mut line) = match self.place {
            Place::End if by >= 0 => return,
            Place::End => self.end_start(look, self.height),
            Place::At { index, line } => (self.at(index).unwrap_or(0), line),
        };
        let mut left = by.unsigned_abs();
        if by < 0 {
            while left > line && at > 0 {
                left -= line;
                at -= 1;
                line = self.count(at, look);
            }
            line = line.saturating_sub(left);
        } else {
            loop {
                let count = self.count(at, look);
                if line + left < count || at + 1 >= self.entries.len() {
                    line = (line + left).min(count.saturating_sub(1));
                    break;
                }
                left -= count - line;
                line = 0;
                at += 1;
            }
        }
        self.place = Place::At { index: self.first() + at as u64, line };
        self.chosen = None;
    }

    /// To the end, to follow it.
    pub fn to_end(&mut self) {
        self.place = Place::End;
        self.chosen = None;
        self.unseen = false;
        if self.next() < self.total {
            self.broken = true;
        }
    }

    /// To the first item; asks for it where it is not loaded.
    pub fn to_start(&mut self) -> Option<Wanted> {
        self.chosen = None;
        if self.first() == 0 {
            self.place = Place::At { index: 0, line: 0 };
            return None;
        }
        self.entries.clear();
        self.place = Place::At { index: 0, line: 0 };
        self.asked = Some(Wanted::From(0));
        self.asked
    }

    /// To an item, which is loaded if need be.
    pub fn to_item(&mut self, index: u64) -> Option<Wanted> {
        self.chosen = Some(index);
        self.place = Place::At { index, line: 0 };
        if self.at(index).is_some() {
            return None;
        }
        self.entries.clear();
        let from = index.saturating_sub(MARGIN as u64);
        self.asked = Some(Wanted::From(from));
        self.asked
    }

    /// Chooses the item before or after the chosen one, and brings it onto the screen.
    pub fn choose(&mut self, look: &Look<'_>, down: bool) {
        let shown: Vec<u64> = self.view(look, self.height).iter().map(|shown| shown.index).collect();
        let next = match (self.chosen, down) {
            (None, false) => shown.last().copied(),
            (None, true) => shown.first().copied(),
            (Some(chosen), false) => Some(chosen.saturating_sub(1)),
            (Some(chosen), true) => Some(chosen + 1),
        };
        let Some(next) = next.filter(|next| self.at(*next).is_some()) else {
            return;
        };
        if !shown.contains(&next) || shown.first() == Some(&next) {
            let before = self.height / 3;
            self.place = Place::At { index: next, line: 0 };
            if !down {
                self.scroll(look, -(before as isize));
            } else if let Some(count) = self.at(next).map(|at| self.count(at, look)) {
                let room = self.height.saturating_sub(count.min(self.height));
                self.scroll(look, -(room as isize));
            }
        }
        self.chosen = Some(next);
    }

    /// Chooses the item under the mouse.
    pub fn choose_at(&mut self, index: u64) {
        self.chosen = self.at(index).map(|_| index);
    }

    /// Chooses nothing.
    pub fn choose_none(&mut self) {
        self.chosen = None;
    }

    /// Searches from the chosen item, or the place, on; the item that fits is chosen. False: none of the loaded ones fits.
    pub fn find(&mut self, words: &str, back: bool) -> bool {
        self.search = words.to_lowercase();
        if self.search.is_empty() {
            return true;
        }
        let from = self.chosen.or(match self.place {
            Place::End => None,
            Place::At { index, .. } => Some(index),
        });
        let fits = |entry: &&Entry| item::plain_text(&entry.item).to_lowercase().contains(&self.search);
        let found = if back {
            let upto = from.and_then(|index| self.at(index)).unwrap_or(self.entries.len());
            self.entries.iter().take(upto).rev().find(fits)
        } else {
            let after = from.and_then(|index| self.at(index)).map_or(0, |at| at + 1);
            self.entries.iter().skip(after).find(fits)
        };
        let Some(index) = found.map(|entry| entry.item.index.0) else { return false };
        self.show_found(index);
        true
    }

    /// Shows an item that fits the search, unfolded and at the line that fits; the page to load first, if need be.
    pub fn show_found(&mut self, index: u64) -> Option<Wanted> {
        if !self.is_open(index) {
            self.toggle(index);
        }
        self.seek = true;
        self.to_item(index)
    }

    /// The items that are loaded, from the first to before the last; and how many there are in all.
    pub fn extent(&self) -> (std::ops::Range<u64>, u64) {
        (self.first()..self.next().max(self.first()), self.total)
    }

    /// Puts the line that fits the search a bit below the top.
    fn seek_line(&mut self, look: &Look<'_>, height: usize) {
        let Place::At { index, .. } = self.place else { return };
        let Some(at) = self.at(index) else { return };
        self.seek = false;
        self.count(at, look);
        let fits = |line: &Line<'_>| {
            let text: String = line.spans.iter().map(|span| span.content.as_ref()).collect();
            text.to_lowercase().contains(&self.search)
        };
        let found = self.entries.get_mut(at).and_then(|entry| entry.lines(look).position(fits));
        let chosen = self.chosen;
        self.place = Place::At { index, line: found.unwrap_or(0) };
        self.scroll(look, -((height / 3) as isize));
        self.chosen = chosen;
    }

    /// What is searched for, in lower case.
    pub fn searched(&self) -> &str {
        &self.search
    }

    /// Forgets every layout, as after a change of the theme.
    pub fn forget_layout(&mut self) {
        self.entries.iter_mut().for_each(Entry::forget_layout);
    }

    /// Forgets the layout of everything that holds an image.
    pub fn forget_pictures(&mut self) {
        self.entries
            .iter_mut()
            .filter(|entry| item::image_bytes(&entry.item) > 0)
            .for_each(Entry::forget_layout);
    }
}

#[cfg(test)]
mod tests;
