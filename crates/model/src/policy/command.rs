//! Command patterns such as `git *`, and which command lines they cover.
//!
//! Allowing is strict: every simple command of a [plain](Script::plain) line must be covered word by word, and a `*` does
//! not stand for the program that a wrapper such as `sudo` runs, nor for options that make a program run another one.
//! Denying is loose: a command counts wherever it stands in the line, and what cannot be read may be it.

use super::shell::{self, Script, Word, is_deceptive};
use super::wrappers;

/// How deep `sh -c 'sh -c …'` is followed.
const MAX_DEPTH: u32 = 4;

/// In a longer command nobody looks for another one that it runs.
pub const MAX_WORDS: usize = 500;

/// The longest pattern.
const MAX_PATTERN: usize = 1000;

/// A command as a tool call gives it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Line {
    /// Text for a shell.
    Text(String),
    /// A program and its arguments, which no shell reads.
    Words(Vec<String>),
}

impl Line {
    /// Its simple commands.
    pub fn read(&self) -> Script {
        match self {
            Self::Text(text) => shell::read(text),
            Self::Words(words) => {
                let deceptive = words.iter().any(|word| word.chars().any(is_deceptive)) || words.is_empty();
                let words: Vec<Word> = words.iter().map(|word| Word::literal(word)).collect();
                Script { commands: vec![words], files: vec![], plain: !deceptive, readable: !deceptive }
            }
        }
    }
}

/// Whether something is denied.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Denial {
    /// It is not.
    No,
    /// It cannot be told: a person decides.
    Perhaps,
    /// It is.
    Yes,
}

/// A command with gaps: `*` as the last word stands for any further words, elsewhere for any characters of one word.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pattern {
    words: Vec<PatternWord>,
    /// Whether further words may follow.
    open: bool,
}

#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct PatternWord {
    /// The texts between the gaps: one text has no gap.
    parts: Vec<String>,
}

impl Pattern {
    /// Reads a pattern. Quotes and backslashes take away the meaning of `*` and of spaces.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| Err(format!("`{}` is no command pattern: {why}", text.escape_debug()));
        if text.len() > MAX_PATTERN {
            return Err(format!("a command pattern has at most {MAX_PATTERN} characters"));
        }
        if text.chars().any(|c| is_deceptive(c) || c == '\n') {
            return wrong("it holds characters that cannot be seen");
        }
        let mut words: Vec<PatternWord> = Vec::new();
        let mut word: Option<PatternWord> = None;
        let mut quote: Option<char> = None;
        let mut chars = text.chars();
        while let Some(c) = chars.next() {
            let literal = match (quote, c) {
                (None, ' ' | '\t') => {
                    words.extend(word.take());
                    continue;
                }
                (Some(open), c) if c == open => {
                    quote = None;
                    continue;
                }
                (None, '\'' | '"') => {
                    quote = Some(c);
                    word.get_or_insert_with(PatternWord::new);
                    continue;
                }
                (None | Some('"'), '\\') => match chars.next() {
                    Some(c) => c,
                    None => return wrong("it ends with a backslash"),
                },
                (None, '*') => {
                    word.get_or_insert_with(PatternWord::new).parts.push(String::new());
                    continue;
                }
                (None, ';' | '&' | '|' | '<' | '>' | '(' | ')' | '$' | '`') => {
                    return wrong("it is more than one simple command; give one rule for each");
                }
                (_, c) => c,
            };
            let word = word.get_or_insert_with(PatternWord::new);
            if let Some(last) = word.parts.last_mut() {
                last.push(literal);
            }
        }
        if quote.is_some() {
            return wrong("a quote is not closed");
        }
        words.extend(word);
        let open = words.last().is_some_and(PatternWord::is_gap);
        if open && words.len() > 1 {
            words.pop();
        }
        match words.first() {
            None => wrong("it is empty"),
            Some(first) if first.parts.first().is_some_and(|text| shell::is_assignment(text)) => {
                wrong("it begins with an assignment, which no pattern covers")
            }
            Some(_) => Ok(Self { words, open }),
        }
    }

    /// Whether a command is one that this pattern allows.
    fn covers(&self, command: &[Word]) -> bool {
        let Some(program) = command.first().filter(|word| word.known && !word.text.is_empty()) else {
            return false;
        };
        let fits =
            if self.open { command.len() >= self.words.len() } else { command.len() == self.words.len() };
        if !fits {
            return false;
        }
        let spelled = wrappers::spelled(command);
        let guard = wrappers::guard(&program.text);
        command.iter().enumerate().all(|(n, word)| {
            let pattern = self.words.get(n);
            if n < spelled && pattern.is_none_or(|pattern| !pattern.is_literal()) {
                return false;
            }
            match pattern {
                Some(pattern) if pattern.is_literal() => word.known && pattern.fits(&word.text, false),
                Some(pattern) => word.known && !guard.forbids(word) && pattern.covers(&word.text),
                None => !guard.forbids(word),
            }
        })
    }

    /// Whether a command is one that this pattern denies.
    fn denies(&self, command: &[Word], depth: u32) -> Denial {
        let Some(program) = command.first() else { return Denial::No };
        if depth > MAX_DEPTH {
            return Denial::Perhaps;
        }
        let mut denial = self.resembles(command);
        if command.len() > MAX_WORDS {
            return denial.max(Denial::Perhaps);
        }
        if wrappers::runs_others(command) {
            // Any of its words may be the beginning of the command that it runs, or hold it whole.
            let words = command.iter().enumerate().skip(1);
            for (n, word) in words {
                denial = denial.max(self.resembles(&command[n..]));
                let text = word.text.as_str();
                if text.contains([' ', '\t', '\n', ';', '|', '&', '$', '`', '!', '=']) {
                    let after = |c| text.split_once(c).map(|(_, after)| after);
                    for script in [Some(text), after('!'), after('=')].into_iter().flatten() {
                        denial = denial.max(self.denies_script(&shell::read(script), depth + 1));
                    }
                }
            }
            let takes_file = command.get(1).is_some_and(|word| word.known && !word.text.starts_with('-'));
            let reads_input =
                wrappers::is_shell(&program.text) && !takes_file && shell_script(command).is_none();
            if reads_input || command.iter().any(|word| !word.known) {
                denial = denial.max(Denial::Perhaps);
            }
        }
        denial
    }

    /// How like the pattern a command is, by its own words.
    fn resembles(&self, command: &[Word]) -> Denial {
        let (Some(program), Some(first)) = (command.first(), self.words.first()) else { return Denial::No };
        if !program.known {
            return Denial::Perhaps;
        }
        if !first.fits(&program.text, true) && !first.fits(wrappers::base_name(&program.text), true) {
            return Denial::No;
        }
        let as_written = self.words.len() <= command.len()
            && (self.open || self.words.len() == command.len())
            && self
                .words
                .iter()
                .zip(command)
                .skip(1)
                .all(|(pattern, word)| word.known && pattern.fits(&word.text, true));
        if as_written {
            return Denial::Yes;
        }
        // `git -C . push` for `git push`: the same words in the same order, with others between.
        let mut words = command[1..].iter();
        let found = self.words[1..]
            .iter()
            .all(|pattern| words.any(|word| !word.known || pattern.fits(&word.text, true)));
        if found { Denial::Perhaps } else { Denial::No }
    }

    fn denies_script(&self, script: &Script, depth: u32) -> Denial {
        let floor = if script.readable { Denial::No } else { Denial::Perhaps };
        script.commands.iter().map(|command| self.denies(command, depth)).fold(floor, Denial::max)
    }

    /// Whether a command of the line is one that this pattern denies.
    pub fn denies_line(&self, line: &Line) -> Denial {
        self.denies_script(&line.read(), 0)
    }
}

/// The patterns that cover a line together: the first one for each of its commands. None if a command is left over, or if
/// there is more in the line than commands.
pub fn covering<'a, T>(patterns: &'a [(T, Pattern)], line: &Line) -> Option<Vec<&'a T>> {
    covering_script(patterns, &line.read(), 0)
}

fn covering_script<'a, T>(patterns: &'a [(T, Pattern)], script: &Script, depth: u32) -> Option<Vec<&'a T>> {
    if !script.plain || !script.readable || script.commands.is_empty() || depth > MAX_DEPTH {
        return None;
    }
    let mut used = Vec::new();
    for command in &script.commands {
        match patterns.iter().find(|(_, pattern)| pattern.covers(command)) {
            Some((whose, _)) => used.push(whose),
            None => used.extend(covering_script(patterns, &shell::read(shell_script(command)?), depth + 1)?),
        }
    }
    Some(used)
}

/// The script in `bash -lc 'script'`, if a usual shell is given nothing but that.
fn shell_script(command: &[Word]) -> Option<&str> {
    let [shell, option, script] = command else { return None };
    let usual = wrappers::is_usual_shell(&shell.text) && matches!(option.text.as_str(), "-c" | "-lc" | "-cl");
    (usual && shell.known && option.known && script.known).then_some(&*script.text)
}

impl PatternWord {
    fn new() -> Self {
        Self { parts: vec![String::new()] }
    }

    /// A lone `*`.
    fn is_gap(&self) -> bool {
        self.parts.len() == 2 && self.parts.iter().all(String::is_empty)
    }

    fn is_literal(&self) -> bool {
        self.parts.len() == 1
    }

    /// As [`PatternWord::fits`], but a gap inside a word does not climb out of a folder.
    fn covers(&self, word: &str) -> bool {
        let climbs = |text: &str| text.split(['/', '=', ':']).any(|part| part == "..");
        self.fits(word, false)
            && (self.is_gap() || !climbs(word) || self.parts.iter().any(|part| climbs(part)))
    }

    fn fits(&self, word: &str, any_case: bool) -> bool {
        fits(&self.parts, word, any_case)
    }
}

/// Whether a text is these parts in order, with anything between them.
pub fn fits(parts: &[String], text: &str, any_case: bool) -> bool {
    if any_case {
        let parts: Vec<String> = parts.iter().map(|part| part.to_lowercase()).collect();
        return fits(&parts, &text.to_lowercase(), false);
    }
    let [first, between @ .., last] = parts else { return parts.iter().all(|part| part == text) };
    let Some(mut rest) = text.strip_prefix(first.as_str()) else { return false };
    for part in between {
        let Some(at) = rest.find(part.as_str()) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last.as_str())
}
