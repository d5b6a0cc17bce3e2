//! Which key does what: one table, from which the bindings, the help, the hints and the documentation are made.
//!
//! A key is looked up in the context that has the keyboard, then in [`Context::Anywhere`]. What stands nowhere is typed.
//! `[keys]` in `config.toml` replaces the keys of an action by its name.

mod names;
mod table;

use std::collections::HashMap;

use crate::input::Key;

pub use names::{parse, shown};
pub use table::{Action, Binding, Context, TABLE};

/// The bindings in force.
pub struct Keys {
    actions: HashMap<(Context, Key), Action>,
    labels: HashMap<Action, String>,
}

impl Default for Keys {
    fn default() -> Self {
        Self::new(&[]).0
    }
}

impl Keys {
    /// The table with what a person changed: names of actions and their keys. Also what could not be understood.
    pub fn new(changes: &[(String, Vec<String>)]) -> (Self, Vec<String>) {
        let mut keys = Self { actions: HashMap::new(), labels: HashMap::new() };
        let mut problems = Vec::new();
        for (name, _) in changes {
            if !TABLE.iter().any(|binding| binding.name == name) {
                problems.push(format!("there is no action `{name}` in [keys]"));
            }
        }
        for binding in TABLE {
            let changed = changes.iter().rev().find(|(name, _)| name == binding.name);
            let wanted: Vec<&str> = match changed {
                Some((_, wanted)) => wanted.iter().map(String::as_str).collect(),
                None => binding.keys.split_whitespace().collect(),
            };
            let mut label = None;
            for word in wanted {
                match parse(word) {
                    Some(key) => {
                        keys.actions.insert((binding.context, key), binding.action);
                        label.get_or_insert_with(|| shown(key));
                    }
                    None => problems.push(format!("`{word}` in [keys] {} is not a key", binding.name)),
                }
            }
            if let Some(label) = label {
                keys.labels.entry(binding.action).or_insert(label);
            }
        }
        (keys, problems)
    }

    /// What a key does while `context` has the keyboard.
    pub fn action(&self, context: Context, key: Key) -> Option<Action> {
        let anywhere = || {
            let action = self.actions.get(&(Context::Anywhere, key))?;
            (context.falls_through() || action.works_over_everything()).then_some(action)
        };
        self.actions.get(&(context, key)).or_else(anywhere).copied()
    }

    /// The first key of an action, as it is shown to people; empty if it has none.
    pub fn label(&self, action: Action) -> &str {
        self.labels.get(&action).map_or("", String::as_str)
    }

    /// What has a key in this very context.
    pub fn owner(&self, context: Context, key: Key) -> Option<&'static Binding> {
        let action = self.actions.get(&(context, key))?;
        TABLE.iter().find(|binding| binding.context == context && binding.action == *action)
    }

    /// All keys of an action, the shortest first.
    pub fn of(&self, binding: &Binding) -> Vec<Key> {
        let of_it = |((context, key), action): (&(Context, Key), &Action)| {
            (*context == binding.context && *action == binding.action).then_some(*key)
        };
        let mut keys: Vec<Key> = self.actions.iter().filter_map(of_it).collect();
        keys.sort_by_cached_key(|key| (shown(*key).len(), shown(*key)));
        keys
    }

    /// The same, as they are shown to people.
    pub fn all_labels(&self, binding: &Binding) -> String {
        self.of(binding).into_iter().map(shown).collect::<Vec<_>>().join(", ")
    }
}

/// The table as Markdown, for the documentation.
pub fn markdown() -> String {
    let keys = Keys::default();
    let mut text = String::new();
    for context in Context::ALL {
        text.push_str(&format!(
            "### {}\n\n| keys | what they do | name in `[keys]` |\n| --- | --- | --- |\n",
            context.title()
        ));
        for binding in TABLE.iter().filter(|binding| binding.context == context) {
            let labels = keys.all_labels(binding);
            text.push_str(&format!("| {labels} | {} | `{}` |\n", binding.help, binding.name));
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::Code;

    #[test]
    fn every_key_of_the_table_is_a_key_and_is_used_once_per_context() {
        let mut seen = HashMap::new();
        let mut names = std::collections::HashSet::new();
        for binding in TABLE {
            assert!(names.insert(binding.name), "two bindings are named {}", binding.name);
            for word in binding.keys.split_whitespace() {
                let key = parse(word).unwrap_or_else(|| panic!("{word} of {}", binding.name));
                assert_eq!(parse(&shown(key)), Some(key), "{word}");
                let before = seen.insert((binding.context, key), binding.name);
                assert_eq!(before, None, "{word} is bound twice in {:?}", binding.context);
            }
        }
    }

    #[test]
    fn the_documentation_has_every_key() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/ui.md");
        let text = std::fs::read_to_string(path).unwrap();
        let mark = "made from the table in crates/tui/src/keys/table.rs -->\n\n";
        let (head, _) = text.split_once(mark).expect("docs/ui.md has the mark before its table");
        let wanted = format!("{head}{mark}{}\n", markdown().trim_end());
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::write(path, &wanted).unwrap();
        }
        assert_eq!(std::fs::read_to_string(path).unwrap(), wanted, "run this test with UPDATE_DOCS=1");
    }

    #[test]
    fn a_person_can_change_keys_and_is_told_what_cannot_be() {
        let change =
            |name: &str, keys: &[&str]| (name.to_owned(), keys.iter().map(|key| (*key).to_owned()).collect());
        let (keys, problems) =
            Keys::new(&[change("palette", &["ctrl-k", "hyper-x"]), change("dance", &["ctrl-d"])]);
        assert_eq!(
            keys.action(Context::Composer, Key::control('k')),
            Some(Action::KillToEnd),
            "the nearer one wins"
        );
        assert_eq!(keys.action(Context::Sidebar, Key::control('k')), Some(Action::Palette));
        assert_eq!(keys.action(Context::Sidebar, Key::control('p')), None);
        assert_eq!(problems.len(), 2, "{problems:?}");
    }

    #[test]
    fn what_can_be_typed_is_bound_nowhere_in_the_composer() {
        for binding in TABLE.iter().filter(|it| matches!(it.context, Context::Composer | Context::Anywhere)) {
            for word in binding.keys.split_whitespace() {
                let key = parse(word).unwrap();
                assert!(key.writes().is_none(), "{word}");
            }
        }
        assert_eq!(Keys::default().action(Context::Composer, Key::plain(Code::Char('y'))), None);
    }
}
