//! Several fields over everything else: a question with a schema, a profile.
//!
//! Owns what is typed and chosen. What the whole of it means is [`crate::app`]'s, which reads it when it is submitted.

use consort_daemon::form::{self as schema, Field};
use consort_model::{AskId, Question};
use serde_json::{Map, Value};

use crate::editor::Editor;
use crate::keys::Action;

/// What a choice between yes and no is called where it is yes.
pub const YES: &str = "yes";

/// What a form is for.
#[derive(Clone, PartialEq, Debug)]
pub enum Subject {
    /// A question, with the fields of its schema.
    Question(AskId, Vec<Field>),
    /// A new profile.
    NewProfile,
    /// A profile that is there, by its id.
    EditProfile(String),
    /// A new agent.
    NewAgent,
    /// A new rule.
    NewRule,
}

/// What one entry holds.
#[derive(Clone, Debug)]
pub enum Kind {
    /// A text.
    Text(Editor),
    /// A text of several lines.
    Lines(Editor),
    /// One of several: what each is called.
    One {
        /// The names.
        names: Vec<String>,
        /// Which one.
        at: usize,
    },
    /// Some of several.
    Some {
        /// The names, and whether each is taken.
        names: Vec<(String, bool)>,
        /// Which one has the keyboard.
        at: usize,
    },
}

/// One entry.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Its name in what is sent.
    pub key: String,
    /// What people call it.
    pub label: String,
    /// More about it.
    pub help: String,
    /// What it holds.
    pub kind: Kind,
}

impl Entry {
    /// An entry for a text.
    pub fn text(key: &str, label: &str, help: &str, text: impl Into<String>) -> Self {
        Self { key: key.into(), label: label.into(), help: help.into(), kind: Kind::Text(Editor::with(text)) }
    }

    /// An entry for several lines.
    pub fn lines(key: &str, label: &str, help: &str, text: impl Into<String>) -> Self {
        Self { kind: Kind::Lines(Editor::with(text)), ..Self::text(key, label, help, "") }
    }

    /// An entry for one of several.
    pub fn one(key: &str, label: &str, help: &str, names: Vec<String>, at: usize) -> Self {
        Self { kind: Kind::One { names, at }, ..Self::text(key, label, help, "") }
    }

    /// What it holds, as text.
    pub fn value(&self) -> String {
        match &self.kind {
            Kind::Text(editor) | Kind::Lines(editor) => editor.text().trim().to_owned(),
            Kind::One { names, at } => names.get(*at).cloned().unwrap_or_default(),
            Kind::Some { names, .. } => {
                let taken: Vec<&str> =
                    names.iter().filter(|(_, on)| *on).map(|(name, _)| name.as_str()).collect();
                taken.join(",")
            }
        }
    }
}

/// Several fields.
pub struct Form {
    /// What it is about.
    pub title: String,
    /// What stands above the fields.
    pub about: String,
    /// The fields.
    pub entries: Vec<Entry>,
    /// The one that has the keyboard.
    pub at: usize,
    /// What it is for.
    pub subject: Subject,
    /// What is wrong with it.
    pub problem: Option<String>,
    /// The columns for what entries hold, when it was last drawn.
    pub columns: usize,
}

impl Form {
    /// An empty form.
    pub fn new(title: impl Into<String>, entries: Vec<Entry>, subject: Subject) -> Self {
        Self {
            title: title.into(),
            about: String::new(),
            entries,
            at: 0,
            subject,
            problem: None,
            columns: 80,
        }
    }

    /// The form for a question that has one.
    pub fn for_question(ask: AskId, question: &Question) -> Option<Self> {
        let fields = schema::fields(&question.schema);
        if fields.is_empty() {
            return None;
        }
        let entries = fields.iter().map(entry).collect();
        let mut form = Self::new("Answer", entries, Subject::Question(ask, fields));
        form.about = question.text.clone();
        Some(form)
    }

    /// The value of an entry.
    pub fn value(&self, key: &str) -> String {
        self.entries.iter().find(|entry| entry.key == key).map(Entry::value).unwrap_or_default()
    }

    /// The entries that matter now, with their places: which fields a profile has depends on its driver, and so on.
    pub fn visible(&self) -> Vec<usize> {
        let (driver, worktree) = (self.value("driver"), self.value("worktree"));
        let is_visible = |entry: &Entry| match (&self.subject, entry.key.as_str()) {
            (Subject::NewProfile | Subject::EditProfile(_), "sandbox_mode" | "approval_policy") => {
                driver == "codex"
            }
            (Subject::NewProfile | Subject::EditProfile(_), "default_model") => driver != "terminal",
            (Subject::NewAgent, "worktree_name" | "base") => worktree == YES,
            _ => true,
        };
        (0..self.entries.len()).filter(|at| is_visible(&self.entries[*at])).collect()
    }

    /// Moves to another entry; whether there was one that way.
    pub fn step(&mut self, back: bool) -> bool {
        let visible = self.visible();
        let here = visible.iter().position(|at| *at >= self.at).unwrap_or(0);
        let next =
            if back { here.checked_sub(1) } else { Some(here + 1).filter(|next| *next < visible.len()) };
        if let Some(at) = next.and_then(|next| visible.get(next)) {
            self.at = *at;
        }
        next.is_some()
    }

    /// Moves to another entry; in a question first through the choices, which stand there as a list. What a form holds
    /// already is not to change because one goes past it.
    pub fn move_by(&mut self, back: bool) {
        let is_question = matches!(self.subject, Subject::Question(..));
        let within = match self.entries.get_mut(self.at).map(|entry| &mut entry.kind).filter(|_| is_question)
        {
            Some(Kind::One { names, at }) => Some((at, names.len())),
            Some(Kind::Some { names, at }) => Some((at, names.len())),
            _ => None,
        };
        match within {
            Some((at, _)) if back && *at > 0 => *at -= 1,
            Some((at, count)) if !back && *at + 1 < count => *at += 1,
            _ => drop(self.step(back)),
        }
    }

    /// An entry was clicked, in this row and column of what it holds.
    pub fn click(&mut self, at: usize, row: usize, column: usize) {
        let was_live = self.at == at;
        self.at = at;
        let width = self.columns;
        match self.entries.get_mut(at).map(|entry| &mut entry.kind) {
            Some(Kind::Text(editor) | Kind::Lines(editor)) => editor.place(width, usize::MAX, row, column),
            // Until it has the keyboard, only what is chosen of it is shown.
            Some(Kind::One { names, at }) if was_live => *at = row.min(names.len().saturating_sub(1)),
            Some(Kind::Some { names, at }) if was_live => {
                if let Some((_, on)) = names.get_mut(row) {
                    *on = !*on;
                    *at = row;
                }
            }
            _ => {}
        }
    }

    /// An editing key.
    pub fn edit(&mut self, action: Action) {
        let Some(entry) = self.entries.get_mut(self.at) else { return };
        match &mut entry.kind {
            Kind::Lines(editor) if action == Action::NewLine => editor.insert("\n"),
            Kind::Text(editor) | Kind::Lines(editor) => crate::app::edit(editor, action),
            Kind::One { names, at } => match action {
                Action::CharLeft => *at = (*at + names.len().max(1) - 1) % names.len().max(1),
                Action::CharRight => *at = (*at + 1) % names.len().max(1),
                _ => {}
            },
            Kind::Some { names, at } => match action {
                Action::CharLeft => *at = (*at + names.len().max(1) - 1) % names.len().max(1),
                Action::CharRight => *at = (*at + 1) % names.len().max(1),
                _ => {}
            },
        }
    }

    /// A character was typed.
    pub fn write(&mut self, letter: char) {
        let Some(entry) = self.entries.get_mut(self.at) else { return };
        match &mut entry.kind {
            Kind::Text(editor) | Kind::Lines(editor) => editor.insert(letter.encode_utf8(&mut [0; 4])),
            Kind::One { names, at } => {
                if letter == ' ' {
                    *at = (*at + 1) % names.len().max(1);
                } else if let Some(number) = letter.to_digit(10).and_then(|number| number.checked_sub(1)) {
                    *at = (number as usize).min(names.len().saturating_sub(1));
                }
            }
            Kind::Some { names, at } => {
                let number =
                    letter.to_digit(10).and_then(|number| number.checked_sub(1)).map(|it| it as usize);
                let place = if letter == ' ' { Some(*at) } else { number };
                if let Some((_, on)) = place.and_then(|place| names.get_mut(place)) {
                    *on = !*on;
                }
            }
        }
    }

    /// Something was pasted.
    pub fn paste(&mut self, text: &str) {
        match self.entries.get_mut(self.at).map(|entry| &mut entry.kind) {
            Some(Kind::Text(editor)) => editor.insert(&crate::text::clean::one_line(text)),
            Some(Kind::Lines(editor)) => editor.insert(text),
            _ => {}
        }
    }

    /// The answer to a question, or what is wrong with it.
    pub fn answer(&self, fields: &[Field]) -> Result<Value, String> {
        let mut answer = Map::new();
        for (field, entry) in fields.iter().zip(&self.entries) {
            let typed = entry.value();
            if let Some(value) = field.read(&typed)? {
                answer.insert(field.key.clone(), value);
            }
        }
        Ok(Value::Object(answer))
    }
}

fn entry(field: &Field) -> Entry {
    let needed = if field.required { "needed" } else { "may be left out" };
    let help = format!("{needed}: {}", field.describe());
    let default = match &field.default {
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => String::new(),
    };
    let at = |choices: &[(Value, String)]| {
        choices.iter().position(|(value, _)| Some(value) == field.default.as_ref()).unwrap_or(0)
    };
    let mut entry = Entry::text(&field.key, &field.label(), &help, default);
    match &field.kind {
        schema::Kind::OneOf(choices) => {
            let mut names: Vec<String> = choices.iter().map(|(_, name)| name.clone()).collect();
            let mut place = at(choices);
            if !field.required && field.default.is_none() {
                names.insert(0, String::new());
                place = 0;
            }
            entry.kind = Kind::One { names, at: place };
        }
        schema::Kind::SomeOf(choices) => {
            let names = choices.iter().map(|(_, name)| (name.clone(), false)).collect();
            entry.kind = Kind::Some { names, at: 0 };
        }
        schema::Kind::Flag => {
            let yes = field.default == Some(Value::Bool(true));
            entry.kind = Kind::One { names: vec!["no".into(), YES.into()], at: usize::from(yes) };
        }
        schema::Kind::Text | schema::Kind::Number { .. } | schema::Kind::Json => {}
    }
    entry
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn form(schema: Value) -> (Form, Vec<Field>) {
        let ask = AskId::new(uuid::Uuid::nil());
        let form = Form::for_question(ask, &Question { text: "?".into(), schema, url: None }).unwrap();
        let Subject::Question(_, fields) = form.subject.clone() else { panic!("a question") };
        (form, fields)
    }

    #[test]
    fn a_question_becomes_fields_and_the_fields_an_answer() {
        let (mut form, fields) = form(json!({
            "required": ["colour", "why"],
            "properties": {
                "colour": { "enum": ["red", "blue"] },
                "why": { "type": "string" },
                "tags": { "type": "array", "items": { "enum": ["a", "b"] } },
                "sure": { "type": "boolean" },
            }
        }));
        form.edit(Action::CharRight);
        assert!(form.step(false));
        "because".chars().for_each(|letter| form.write(letter));
        form.step(false);
        form.write('2');
        form.step(false);
        form.write(' ');
        assert!(!form.step(false), "that was the last one");
        let wanted = json!({ "colour": "blue", "why": "because", "tags": ["b"], "sure": true });
        assert_eq!(form.answer(&fields), Ok(wanted));
    }

    #[test]
    fn what_is_missing_is_told() {
        let (form, fields) = form(json!({ "required": ["n"], "properties": { "n": { "type": "integer" } } }));
        assert!(form.answer(&fields).unwrap_err().contains("n is needed"));
    }
}
