//! A list that is narrowed down by typing.

use consort_model::AgentId;

use super::Command;
use crate::editor::Editor;
use crate::text::fuzzy::{self, Match};

/// One row.
#[derive(Clone, PartialEq, Debug)]
pub struct Choice {
    /// What is searched, and shown first.
    pub label: String,
    /// More about it.
    pub detail: String,
    /// At the right: a key, a state.
    pub note: String,
    /// What follows; [`Command::Nothing`] where it cannot be chosen.
    pub command: Command,
    /// What dropping the row does, where it can be dropped.
    pub dropped: Option<Command>,
    /// What saving the row does, where that is another thing than choosing it.
    pub submitted: Option<Command>,
}

impl Choice {
    /// A row.
    pub fn new(label: impl Into<String>, command: Command) -> Self {
        Self {
            label: label.into(),
            detail: String::new(),
            note: String::new(),
            command,
            dropped: None,
            submitted: None,
        }
    }

    /// With more about it.
    pub fn detail(self, detail: impl Into<String>) -> Self {
        Self { detail: detail.into(), ..self }
    }

    /// With something at the right.
    pub fn note(self, note: impl Into<String>) -> Self {
        Self { note: note.into(), ..self }
    }
}

/// Rows that the daemon is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Awaited {
    /// Worktrees.
    Worktrees,
    /// Sessions of programs, which come beside what is there already.
    Sessions,
}

/// A list that is narrowed down by typing.
pub struct Picker {
    /// What it is about.
    pub title: String,
    /// What to read where nothing fits.
    pub empty: String,
    /// What its rows are, where they come only when the daemon has told them.
    pub awaited: Option<Awaited>,
    /// The agent whose prompts that wait are its rows; they change as those do.
    pub queue_of: Option<AgentId>,
    /// What was typed.
    pub query: Editor,
    /// Whether what was typed is looked for in the details too.
    details: bool,
    choices: Vec<Choice>,
    found: Vec<(usize, Option<Match>)>,
    at: usize,
    /// The first row on the screen.
    pub top: usize,
}

impl Picker {
    /// A list.
    pub fn new(title: impl Into<String>, choices: Vec<Choice>) -> Self {
        let mut picker = Self {
            title: title.into(),
            empty: "nothing fits".to_owned(),
            awaited: None,
            queue_of: None,
            query: Editor::default(),
            details: false,
            choices,
            found: Vec::new(),
            at: 0,
            top: 0,
        };
        picker.narrow();
        picker
    }

    /// With the row for which this holds chosen.
    pub fn starting_at(mut self, wanted: impl Fn(&Choice) -> bool) -> Self {
        self.at = self.found.iter().position(|(index, _)| wanted(&self.choices[*index])).unwrap_or(0);
        self
    }

    /// With what is typed looked for in the details too.
    pub fn searching_details(self) -> Self {
        Self { details: true, ..self }
    }

    /// Whether there is a row for which this holds.
    pub fn has(&self, wanted: impl Fn(&Choice) -> bool) -> bool {
        self.choices.iter().any(wanted)
    }

    /// Gives it more rows, before those that only explain something; the one that is chosen stays it.
    pub fn add(&mut self, choices: Vec<Choice>) {
        let explains = |choice: &Choice| matches!(choice.command, Command::Explain(_));
        let to = match choices.iter().all(explains) {
            true => self.choices.len(),
            false => self.choices.iter().rposition(|choice| !explains(choice)).map_or(0, |last| last + 1),
        };
        let chosen = self.found.get(self.at).map(|(index, _)| *index).filter(|_| self.at > 0);
        let chosen = chosen.map(|index| if index < to { index } else { index + choices.len() });
        let top = self.top;
        self.choices.splice(to..to, choices);
        self.narrow();
        self.at = self.found.iter().position(|(index, _)| Some(*index) == chosen).unwrap_or(0);
        self.top = top.min(self.at);
    }

    /// Gives it the rows that it waited for.
    pub fn fill(&mut self, choices: Vec<Choice>, empty: &str) {
        self.choices = choices;
        self.empty = empty.to_owned();
        self.awaited = None;
        self.narrow();
    }

    /// Gives it other rows for those it has; the place in the list stays.
    pub fn replace(&mut self, choices: Vec<Choice>) {
        let (at, top) = (self.at, self.top);
        self.choices = choices;
        self.narrow();
        self.at = at.min(self.found.len().saturating_sub(1));
        self.top = top.min(self.at);
    }

    /// Finds what fits what was typed.
    pub fn narrow(&mut self) {
        let query = self.query.text().trim();
        self.found = if query.is_empty() {
            (0..self.choices.len()).map(|index| (index, None)).collect()
        } else {
            let text = |choice: &Choice| match self.details {
                true => format!("{} {}", choice.label, choice.detail),
                false => choice.label.clone(),
            };
            let texts = self.choices.iter().map(text).enumerate();
            let ranked = fuzzy::rank(query, texts.map(Labelled::from), self.choices.len());
            ranked.into_iter().map(|(labelled, found)| (labelled.index, Some(found))).collect()
        };
        self.at = 0;
        self.top = 0;
    }

    /// The rows that fit, with the letters that matched.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = (&Choice, Option<&Match>)> {
        self.found.iter().map(|(index, found)| (&self.choices[*index], found.as_ref()))
    }

    /// The row that is chosen.
    pub fn at(&self) -> usize {
        self.at
    }

    /// The choice that is chosen.
    pub fn chosen(&self) -> Option<&Choice> {
        self.found.get(self.at).map(|(index, _)| &self.choices[*index])
    }

    /// Moves by so many rows, around the ends where it is one.
    pub fn step(&mut self, by: isize) {
        let count = self.found.len() as isize;
        if count == 0 {
            return;
        }
        let to = self.at as isize + by;
        self.at = if by.abs() == 1 { to.rem_euclid(count) } else { to.clamp(0, count - 1) } as usize;
    }

    /// Goes to a row; false if there is none.
    pub fn go(&mut self, row: usize) -> bool {
        let there = row < self.found.len();
        if there {
            self.at = row;
        }
        there
    }
}

struct Labelled {
    index: usize,
    label: String,
}

impl From<(usize, String)> for Labelled {
    fn from((index, label): (usize, String)) -> Self {
        Self { index, label }
    }
}

impl AsRef<str> for Labelled {
    fn as_ref(&self) -> &str {
        &self.label
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typing_narrows_the_list_and_moving_goes_around() {
        let labels = ["new agent", "next agent", "settings"];
        let mut picker =
            Picker::new("t", labels.iter().map(|label| Choice::new(*label, Command::Nothing)).collect());
        picker.step(-1);
        assert_eq!(picker.chosen().unwrap().label, "settings");
        picker.query.insert("agent");
        picker.narrow();
        assert_eq!(picker.rows().len(), 2);
        picker.query.insert("zzz");
        picker.narrow();
        assert_eq!(picker.chosen(), None);
        picker.step(1);
    }

    #[test]
    fn more_rows_leave_the_chosen_one_where_it_is() {
        let rows = |labels: &[&str]| labels.iter().map(|it| Choice::new(*it, Command::Nothing)).collect();
        let mut picker = Picker::new("t", rows(&["one agent", "two agents"]));
        picker.query.insert("agent");
        picker.narrow();
        picker.step(1);
        let chosen = picker.chosen().unwrap().label.clone();
        picker.add(rows(&["agent"]));
        assert_eq!((picker.rows().len(), &picker.chosen().unwrap().label), (3, &chosen));
        picker.query.take();
        picker.add(vec![Choice::new("why", Command::Explain("so".into()))]);
        assert!(picker.go(3));
        picker.add(rows(&["last"]));
        assert_eq!(picker.chosen().unwrap().label, "why");
        let labels: Vec<&str> = picker.rows().map(|(choice, _)| choice.label.as_str()).collect();
        assert_eq!(labels, ["one agent", "two agents", "agent", "last", "why"]);
    }
}
