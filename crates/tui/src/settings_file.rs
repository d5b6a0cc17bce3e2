//! What `config.toml` says about the screen: the keys.
//!
//! Only read here; the daemon is the one who writes the file.

use std::path::Path;

use toml_edit::{DocumentMut, Item};

/// What the file says.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ScreenSettings {
    /// Names of actions and their keys.
    pub keys: Vec<(String, Vec<String>)>,
    /// Why the file could not be read.
    pub problem: Option<String>,
}

/// Reads the file; one that is not there says nothing.
pub fn read(path: &Path) -> ScreenSettings {
    match std::fs::read_to_string(path) {
        // Most files say nothing about keys, and reading TOML takes longer than everything else at the start.
        Ok(text) if text.contains("[keys]") => parse(&text),
        _ => ScreenSettings::default(),
    }
}

fn parse(text: &str) -> ScreenSettings {
    let document = match text.parse::<DocumentMut>() {
        Ok(document) => document,
        Err(error) => {
            let problem = Some(format!("config.toml cannot be read: {}", error.message()));
            return ScreenSettings { problem, ..ScreenSettings::default() };
        }
    };
    let Some(table) = document.get("keys").and_then(Item::as_table_like) else {
        return ScreenSettings::default();
    };
    let mut settings = ScreenSettings::default();
    for (name, value) in table.iter() {
        let words: Option<Vec<String>> = match value {
            Item::Value(toml_edit::Value::String(word)) => Some(vec![word.value().clone()]),
            Item::Value(toml_edit::Value::Array(words)) => {
                words.iter().map(|word| word.as_str().map(str::to_owned)).collect()
            }
            _ => None,
        };
        match words {
            Some(words) => settings.keys.push((name.to_owned(), words)),
            None => {
                settings.problem = Some(format!("[keys] {name} in config.toml is a key or a list of keys"))
            }
        }
    }
    settings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_one_or_several_and_damage_is_told() {
        let settings = parse("[keys]\npalette = \"ctrl-k\"\nquit = [\"ctrl-q\", \"f10\"]\nhelp = 3\n");
        assert_eq!(settings.keys.len(), 2);
        assert!(settings.problem.unwrap().contains("help"));
        assert!(parse("[keys]\n= 3").problem.is_some());
        assert_eq!(parse("[profiles.a]\n"), ScreenSettings::default());
    }
}
