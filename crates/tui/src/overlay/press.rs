//! The question for a key: the next one that is pressed is not acted on but becomes the key of an action.

use crate::input::Key;
use crate::keys::{Binding, Context, Keys, parse, shown};

/// The question for a key.
pub struct Press {
    /// Of which action.
    pub binding: &'static Binding,
    /// Whether the action keeps the keys it has.
    pub adds: bool,
    /// Why the last key cannot be had.
    pub problem: Option<String>,
}

impl Press {
    /// What the action's keys are to be now that this one was pressed, or why it cannot be.
    pub fn answer(&self, key: Key, keys: &Keys) -> Result<Vec<String>, String> {
        let name = shown(key);
        if parse(&name) != Some(key) {
            return Err("that key has no name here: take another".to_owned());
        }
        let typed = matches!(self.binding.context, Context::Anywhere | Context::Composer);
        if typed && key.writes().is_some() {
            return Err(format!("{name} is for writing: take one with ctrl or alt, or a function key"));
        }
        let here = self.binding.context;
        // Those that have the keyboard at the same time: one would hide the other.
        let nearby = Context::ALL.into_iter().filter(|context| match here {
            Context::Anywhere => context.falls_through(),
            _ => *context == here || here.falls_through() && *context == Context::Anywhere,
        });
        let owner =
            nearby.filter_map(|context| keys.owner(context, key)).find(|it| it.name != self.binding.name);
        if let Some(other) = owner {
            return Err(format!("{name} is for something else there: {} ({})", other.help, other.name));
        }
        let kept = if self.adds { keys.of(self.binding) } else { vec![] };
        let mut names: Vec<String> = kept.into_iter().filter(|other| *other != key).map(shown).collect();
        names.push(name);
        Ok(names)
    }
}
