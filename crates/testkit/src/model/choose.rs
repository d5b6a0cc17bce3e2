//! Which step answers a conversation.
//!
//! A pure function of the request. The newest user message with a marker names the scenario; the tool results after it
//! say how far the scenario has come. So retries, parallel sessions, killed clients and resumed ones all get the step
//! that they need, and no counter can go out of step.

use super::conversation::{Conversation, Entry, Offered};
use super::dialect;
use super::script::{Scenario, Script, Step, is_name};

/// What a prompt without a marker gets, where the script does not name a scenario `default`.
const DEFAULTS: [&str; 2] = ["default", "plain"];

/// The step to play, with what its placeholders stand for.
#[derive(Clone, Debug)]
pub struct Chosen {
    /// The scenario's name; `side` for what is beside the conversation.
    pub scenario: String,
    /// Counted from zero.
    pub at: usize,
    pub step: Step,
    pub words: Words,
}

/// What placeholders stand for.
#[derive(Clone, Debug, Default)]
pub struct Words {
    arg: String,
    prompt: String,
    results: Vec<String>,
    images: String,
    cwd: String,
}

/// Chooses the answer to a conversation.
pub fn choose(script: &Script, conversation: &Conversation) -> Chosen {
    let side = script.side.iter().find(|rule| conversation.system.contains(&rule.system_contains));
    if let Some(rule) = side {
        let step = rule.step.clone();
        return Chosen { scenario: "side".into(), at: 0, step, words: Words::default() };
    }
    let mut unknown = None;
    let marked = conversation.entries.iter().enumerate().rev().find_map(|(at, entry)| {
        let Entry::User { text, .. } = entry else { return None };
        let marker = last_marker(text)?;
        match script.scenarios.get(marker.name) {
            Some(scenario) => Some((at, marker, scenario)),
            None => {
                unknown.get_or_insert(marker.name);
                None
            }
        }
    });
    if let Some((at, marker, scenario)) = marked {
        return play(marker.name, scenario, marker.argument, conversation, at);
    }
    if let Some(name) = unknown {
        let step = Step::saying(format!("There is no scenario {name:?}."));
        return Chosen { scenario: name.to_owned(), at: 0, step, words: Words::default() };
    }
    let newest = conversation.entries.iter().rposition(|entry| matches!(entry, Entry::User { .. }));
    let default = DEFAULTS.iter().find_map(|name| Some((*name, script.scenarios.get(*name)?)));
    match default {
        Some((name, scenario)) => play(name, scenario, "", conversation, newest.unwrap_or(0)),
        None => Chosen { scenario: String::new(), at: 0, step: Step::default(), words: Words::default() },
    }
}

fn play(name: &str, scenario: &Scenario, argument: &str, conversation: &Conversation, from: usize) -> Chosen {
    let after = conversation.entries.get(from..).unwrap_or_default();
    let results: Vec<String> = after
        .iter()
        .filter_map(|entry| match entry {
            Entry::ToolResult(result) => Some(result.clone()),
            Entry::User { .. } => None,
        })
        .collect();
    let (prompt, images) = match after.first() {
        Some(Entry::User { text, images }) => {
            let shown: Vec<String> = images.iter().map(ToString::to_string).collect();
            (text.clone(), if shown.is_empty() { "no image".into() } else { shown.join("; ") })
        }
        _ => (String::new(), "no image".into()),
    };
    let cwd = working_directory(conversation).unwrap_or_else(|| ".".into());
    let argument =
        if argument.is_empty() { scenario.arg.replace("{cwd}", &cwd) } else { argument.to_owned() };
    let at = reached(&scenario.steps, &conversation.tools, results.len());
    // Past the end the model has nothing left to do; saying so keeps every loop of a client bounded.
    let step =
        scenario.steps.get(at).cloned().unwrap_or_else(|| Step::saying("There is nothing left to do."));
    let words = Words { arg: argument, prompt, results, images, cwd };
    Chosen { scenario: name.to_owned(), at, step, words }
}

/// How many steps have all of their results, when there are `results` of them.
fn reached(steps: &[Step], offered: &[Offered], mut results: usize) -> usize {
    for (at, step) in steps.iter().enumerate() {
        let Some(calls) = dialect::results(&step.calls, offered) else { continue };
        // A step without calls ends the turn: results beyond it are those of something else.
        if calls == 0 || results < calls {
            return at;
        }
        results -= calls;
    }
    steps.len()
}

struct Marker<'a> {
    name: &'a str,
    argument: &'a str,
}

/// The last `[[name]]` or `[[name argument]]` in a text. An argument may hold a marker itself, for a sub-agent.
fn last_marker(text: &str) -> Option<Marker<'_>> {
    let mut found = None;
    let mut rest = text;
    while let Some(begin) = rest.find("[[") {
        rest = &rest[begin + 2..];
        let Some(end) = closing(rest) else { continue };
        let inside = &rest[..end];
        let (name, argument) = inside.split_once(char::is_whitespace).unwrap_or((inside, ""));
        if is_name(name) {
            found = Some(Marker { name, argument: argument.trim() });
            rest = &rest[end + 2..];
        }
    }
    found
}

/// Where the brackets that were opened before this text close.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 1;
    let mut at = 0;
    while let Some(pair) = text.as_bytes().get(at..at + 2) {
        match pair {
            b"[[" => depth += 1,
            b"]]" => depth -= 1,
            _ => {
                at += 1;
                continue;
            }
        }
        if depth == 0 {
            return Some(at);
        }
        at += 2;
    }
    None
}

/// The working directory that the CLI tells its model. Tools want whole paths.
fn working_directory(conversation: &Conversation) -> Option<String> {
    const SAYS: [(&str, char); 5] = [
        ("<cwd>", '<'),
        ("Primary working directory: ", '\n'),
        ("Working directory: ", '\n'),
        ("working in the directory: ", '\n'),
        ("Workspace Directories:**\n  - ", '\n'),
    ];
    let users = conversation.entries.iter().filter_map(|entry| match entry {
        Entry::User { text, .. } => Some(text.as_str()),
        Entry::ToolResult(_) => None,
    });
    let texts: Vec<&str> = std::iter::once(conversation.system.as_str()).chain(users).collect();
    SAYS.iter().find_map(|(words, end)| {
        texts.iter().find_map(|text| {
            let from = text.find(words)? + words.len();
            let path = text[from..].split(*end).next()?.trim();
            path.starts_with('/').then(|| path.to_owned())
        })
    })
}

impl Words {
    /// Fills the placeholders of a text.
    pub fn fill(&self, template: &str) -> String {
        if !template.contains('{') {
            return template.to_owned();
        }
        let (first, rest) = self.arg.split_once(char::is_whitespace).unwrap_or((&self.arg, ""));
        let last = self.results.last().map(|result| result.trim()).unwrap_or_default();
        let all = self.results.iter().map(|result| result.trim()).collect::<Vec<_>>().join(" | ");
        let mut filled = String::new();
        let mut left = template;
        // Once from left to right, so that what is filled in is never read as a placeholder.
        while let Some(at) = left.find('{') {
            filled.push_str(&left[..at]);
            left = &left[at..];
            let known = [
                ("{arg}", self.arg.as_str()),
                ("{arg.first}", first),
                ("{arg.rest}", rest.trim()),
                ("{prompt}", &self.prompt),
                ("{result}", last),
                ("{results}", &all),
                ("{images}", &self.images),
                ("{cwd}", &self.cwd),
            ];
            match known.iter().find(|(name, _)| left.starts_with(name)) {
                Some((name, value)) => {
                    filled.push_str(value);
                    left = &left[name.len()..];
                }
                None => {
                    filled.push('{');
                    left = &left[1..];
                }
            }
        }
        filled.push_str(left);
        filled
    }
}
