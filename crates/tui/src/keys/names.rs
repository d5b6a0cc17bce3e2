//! Keys by their names: `ctrl-p`, `alt-down`, `shift-tab`, `?`.

use crate::input::{Code, Held, Key};

const NAMED: &[(&str, Code)] = &[
    ("enter", Code::Enter),
    ("tab", Code::Tab),
    ("esc", Code::Escape),
    ("backspace", Code::Backspace),
    ("delete", Code::Delete),
    ("insert", Code::Insert),
    ("home", Code::Home),
    ("end", Code::End),
    ("pageup", Code::PageUp),
    ("pagedown", Code::PageDown),
    ("up", Code::Up),
    ("down", Code::Down),
    ("left", Code::Left),
    ("right", Code::Right),
    ("space", Code::Char(' ')),
];

/// The key of this name.
pub fn parse(word: &str) -> Option<Key> {
    let mut held = Held::default();
    let mut rest = word;
    loop {
        let (modifier, after) = match rest.split_once('-') {
            Some(parts) if !parts.1.is_empty() => parts,
            _ => break,
        };
        match modifier {
            "ctrl" => held.control = true,
            "alt" => held.alt = true,
            "shift" => held.shift = true,
            _ => return None,
        }
        rest = after;
    }
    let named = NAMED.iter().find(|(name, _)| *name == rest).map(|(_, code)| *code);
    let function = || {
        let number = rest.strip_prefix('f')?.parse().ok()?;
        (1..=12).contains(&number).then_some(Code::Function(number))
    };
    let letter = || {
        let mut letters = rest.chars();
        match (letters.next(), letters.next()) {
            (Some(letter), None) => Some(Code::Char(letter)),
            _ => None,
        }
    };
    Some(Key { code: named.or_else(function).or_else(letter)?, held })
}

/// The name of a key.
pub fn shown(key: Key) -> String {
    let mut text = String::new();
    for (held, name) in [(key.held.control, "ctrl-"), (key.held.alt, "alt-"), (key.held.shift, "shift-")] {
        if held {
            text.push_str(name);
        }
    }
    match key.code {
        Code::Function(number) => text.push_str(&format!("f{number}")),
        code => match (NAMED.iter().find(|(_, named)| *named == code), code) {
            (Some((name, _)), _) => text.push_str(name),
            (None, Code::Char(letter)) => text.push(letter),
            (None, _) => {}
        },
    }
    text
}
