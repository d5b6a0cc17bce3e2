//! The pictures of conversations: which are drawn, which are wanted, and how the terminal shows them.
//!
//! An image takes milliseconds to draw, so nothing here draws one: a view that meets an image for the first time shows
//! words, and what it wants is drawn on a thread and comes back. Bounded: the oldest pictures are let go.

use std::cell::RefCell;
use std::collections::hash_map::DefaultHasher;
use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::{Hash, Hasher};

use consort_model::Image;
use ratatui::text::Line;

use crate::text::picture::{self, Means, Picture};

/// Pictures that are held; more than fit on a screen.
const MAX_HELD: usize = 256;

/// Numbers by which the terminal knows them; one is used again when its picture has been let go long ago.
const NUMBERS: u32 = 2 * MAX_HELD as u32;

/// Pictures that are drawn at once.
const AT_ONCE: usize = 4;

/// Rows of a picture in an item that is folded, and in one that is open.
const ROWS: (u16, u16) = (12, 36);

/// Columns of a picture at most.
const COLUMNS: u16 = 72;

/// An image in a size.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Key {
    image: u64,
    room: (u16, u16),
}

impl Key {
    fn of(image: &Image, columns: usize, open: bool) -> Self {
        let mut hasher = DefaultHasher::new();
        image.data.hash(&mut hasher);
        let columns = u16::try_from(columns).unwrap_or(u16::MAX).min(COLUMNS);
        Self { image: hasher.finish(), room: (columns, if open { ROWS.1 } else { ROWS.0 }) }
    }
}

/// What there is of an image.
#[derive(Clone, PartialEq, Debug)]
pub enum Drawing {
    /// Nothing, or nothing yet.
    None,
    /// It was tried, and nothing could be made of it.
    Failed,
    /// Its lines.
    Lines(Vec<Line<'static>>),
}

/// A picture to be drawn.
#[derive(Clone, PartialEq, Debug)]
pub struct Wanted {
    /// Of what.
    pub key: Key,
    image: Image,
    means: Means,
    number: u32,
}

impl Wanted {
    /// Draws it, which takes a while; none if the image cannot be read.
    pub fn draw(&self) -> Option<Picture> {
        // Whatever an agent's image does to the decoder, the screen goes on without it.
        let draw = || picture::draw(&self.image, self.key.room, self.means, self.number);
        std::panic::catch_unwind(draw).ok().flatten()
    }
}

/// The pictures of conversations.
#[derive(Default)]
pub struct Pictures {
    means: Means,
    /// Those that are drawn, and those of which nothing could be made.
    drawn: HashMap<Key, Option<Vec<Line<'static>>>>,
    /// The same, oldest first.
    order: VecDeque<Key>,
    /// Those that are being drawn.
    asked: HashSet<Key>,
    /// Those that a view met and did not find.
    missed: RefCell<Vec<(Key, Image)>>,
    /// How many were asked for, from which their numbers come.
    count: u32,
}

impl Pictures {
    /// How the terminal shows them.
    pub fn means(&self) -> Means {
        self.means
    }

    /// From now on they are shown like this; what was drawn is of no use then.
    pub fn set_means(&mut self, means: Means) {
        *self = Self { means, count: self.count, ..Self::default() };
    }

    /// What there is of an image within so many columns; what there is not yet is wanted.
    pub fn find(&self, image: &Image, columns: usize, open: bool) -> Drawing {
        if self.means == Means::Words {
            return Drawing::None;
        }
        let key = Key::of(image, columns, open);
        match self.drawn.get(&key) {
            Some(Some(lines)) => Drawing::Lines(lines.clone()),
            Some(None) => Drawing::Failed,
            None => {
                let mut missed = self.missed.borrow_mut();
                if !self.asked.contains(&key) && missed.iter().all(|(other, _)| *other != key) {
                    missed.push((key, image.clone()));
                }
                Drawing::None
            }
        }
    }

    /// What is to be drawn next, which counts as asked for from here on. A few at a time: they come as they are done.
    pub fn wanted(&mut self) -> Vec<Wanted> {
        let missed = self.missed.get_mut();
        let next: Vec<_> = missed.drain(..missed.len().min(AT_ONCE)).collect();
        self.asked.extend(next.iter().map(|(key, _)| *key));
        let means = self.means;
        let numbers = (self.count..).map(number);
        self.count += next.len() as u32;
        next.into_iter()
            .zip(numbers)
            .map(|((key, image), number)| Wanted { key, image, means, number })
            .collect()
    }

    /// The sequence by which the terminal forgets all that it was given.
    pub fn forgetting(&self) -> String {
        match self.means {
            Means::Placeholders { .. } => {
                (0..self.count.min(NUMBERS)).map(number).map(picture::forgetting).collect()
            }
            Means::Words | Means::Blocks { .. } => String::new(),
        }
    }

    /// One was drawn, or could not be.
    pub fn drew(&mut self, key: Key, lines: Option<Vec<Line<'static>>>) {
        // One that was asked for before the terminal forgot everything comes to nobody.
        if !self.asked.remove(&key) {
            return;
        }
        self.drawn.insert(key, lines);
        self.order.push_back(key);
        while self.order.len() > MAX_HELD {
            let oldest = self.order.pop_front();
            oldest.and_then(|oldest| self.drawn.remove(&oldest));
        }
    }

    /// The terminal may have forgotten what it was given: everything is drawn again when it is met.
    pub fn forget(&mut self) {
        self.set_means(self.means);
    }
}

/// The terminal's number for the picture that was asked for after so many others. Other programs that give images to the
/// same terminal begin at 1 or choose at random.
fn number(count: u32) -> u32 {
    (std::process::id() & 0x3fff) << 10 | (count % NUMBERS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(text: &str) -> Image {
        Image { mime_type: "image/png".into(), data: text.into() }
    }

    fn pictures() -> Pictures {
        let mut pictures = Pictures::default();
        pictures.set_means(Means::Blocks { true_colour: true });
        pictures
    }

    #[test]
    fn an_image_is_asked_for_once_and_shown_once_it_is_drawn() {
        let mut pictures = pictures();
        assert_eq!(pictures.find(&image("a"), 40, false), Drawing::None);
        assert_eq!(pictures.find(&image("a"), 40, false), Drawing::None);
        let wanted = pictures.wanted();
        assert_eq!(wanted.len(), 1);
        assert_eq!(pictures.find(&image("a"), 40, false), Drawing::None);
        assert_eq!(pictures.wanted(), []);
        pictures.drew(wanted[0].key, Some(vec![Line::raw("x")]));
        assert_eq!(pictures.find(&image("a"), 40, false), Drawing::Lines(vec![Line::raw("x")]));
        assert_eq!(pictures.find(&image("a"), 30, false), Drawing::None, "another width is another picture");
        assert_eq!(pictures.wanted().len(), 1);
    }

    #[test]
    fn one_that_cannot_be_drawn_is_not_tried_again() {
        let mut pictures = pictures();
        pictures.find(&image("a"), 40, false);
        let key = pictures.wanted()[0].key;
        pictures.drew(key, None);
        assert_eq!(pictures.find(&image("a"), 40, false), Drawing::Failed);
        assert_eq!(pictures.wanted(), []);
        assert_eq!(pictures.find(&image("b"), 40, false), Drawing::None, "it was not tried");
    }

    #[test]
    fn what_comes_after_the_terminal_forgot_is_not_shown() {
        let mut pictures = pictures();
        pictures.find(&image("a"), 40, false);
        let key = pictures.wanted()[0].key;
        pictures.forget();
        pictures.drew(key, Some(vec![Line::raw("x")]));
        assert_eq!(pictures.find(&image("a"), 40, false), Drawing::None);
        assert_eq!(pictures.wanted().len(), 1);
    }

    #[test]
    fn without_colours_nothing_is_asked_for() {
        let mut pictures = Pictures::default();
        pictures.find(&image("a"), 40, false);
        assert_eq!(pictures.wanted(), []);
    }

    #[test]
    fn the_oldest_are_let_go() {
        let mut pictures = pictures();
        for n in 0..MAX_HELD + 10 {
            pictures.find(&image(&n.to_string()), 40, false);
            let key = pictures.wanted()[0].key;
            pictures.drew(key, Some(vec![]));
        }
        assert_eq!(pictures.drawn.len(), MAX_HELD);
        assert_eq!(pictures.find(&image("0"), 40, false), Drawing::None);
    }
}
