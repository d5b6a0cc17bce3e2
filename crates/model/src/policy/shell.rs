//! Reads a command line as a POSIX shell would, as far as approvals need it.
//!
//! Owns the split of a line into simple commands and words. It runs and expands nothing: a word that a shell would
//! change is marked, and so is everything that is more than simple commands in a row. Leaves to
//! [`command`](super::command) what may run.
//!
//! Invariant: text that is [`Script::plain`] means the same commands to every shell in use; where shells differ, or this
//! reader is not sure, it is not plain.

/// Longer text is not read: nobody looks through it either.
const MAX_TEXT: usize = 64 << 10;

/// How deep substitutions may stand in each other.
const MAX_DEPTH: u32 = 16;

/// A command line, taken apart.
#[derive(Debug, PartialEq, Eq)]
pub struct Script {
    /// Its simple commands, also those inside substitutions and compound commands.
    pub commands: Vec<Vec<Word>>,
    /// The files it is redirected from and to.
    pub files: Vec<Word>,
    /// It is nothing but simple commands, one after the other or piped, with their output at most thrown away.
    pub plain: bool,
    /// All commands that it runs are among `commands`, though some words may be unknown.
    pub readable: bool,
}

/// A word of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    /// Without quotes and escapes.
    pub text: String,
    /// Whether the command gets just this. Variables, substitutions, globs and `~` make other words of it, or several.
    pub known: bool,
}

impl Word {
    /// A word that no shell touches.
    pub fn literal(text: &str) -> Self {
        Self { text: text.to_owned(), known: true }
    }
}

/// Takes a command line apart.
pub fn read(text: &str) -> Script {
    read_at(text, 0)
}

fn read_at(text: &str, depth: u32) -> Script {
    let mut reader = Reader {
        chars: text.chars().collect(),
        at: 0,
        depth,
        words: vec![],
        cut: false,
        heredocs: vec![],
        script: Script { commands: vec![], files: vec![], plain: true, readable: true },
    };
    if text.len() > MAX_TEXT || depth > MAX_DEPTH || text.chars().any(is_deceptive) {
        reader.unreadable();
    }
    if text.len() <= MAX_TEXT && depth <= MAX_DEPTH {
        reader.script(false);
    }
    reader.script
}

/// Characters that a person does not see as what they are: controls, spaces that are none, marks of direction.
pub fn is_deceptive(c: char) -> bool {
    match c {
        '\n' | '\t' | ' ' => false,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{3164}' => {
            true
        }
        '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' => true,
        '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' => true,
        '\u{e0000}'..='\u{e0fff}' => true,
        other => other.is_control() || other.is_whitespace(),
    }
}

struct Reader {
    chars: Vec<char>,
    at: usize,
    depth: u32,
    /// The words of the command at hand.
    words: Vec<Piece>,
    /// The command at hand has an `&>`, which ends it for shells that do not know that: what follows is another command.
    cut: bool,
    /// The ends of the here-documents that begin at the next line, and whether tabs before them count.
    heredocs: Vec<(String, bool)>,
    script: Script,
}

/// A word as it is read.
#[derive(Default)]
struct Piece {
    text: String,
    unknown: bool,
    /// Some of it was quoted, so that it is no number of a file descriptor.
    quoted: bool,
}

impl Reader {
    fn peek(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).copied()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek(0);
        self.at += usize::from(c.is_some());
        c
    }

    fn take(&mut self, text: &str) -> bool {
        let fits = text.chars().enumerate().all(|(n, c)| self.peek(n) == Some(c));
        if fits {
            self.at += text.chars().count();
        }
        fits
    }

    fn unreadable(&mut self) {
        self.script.plain = false;
        self.script.readable = false;
    }

    /// Reads commands to the end, or to the parenthesis that closes a substitution or subshell.
    fn script(&mut self, inside: bool) {
        let outer = std::mem::take(&mut self.words);
        loop {
            let Some(c) = self.peek(0) else {
                if inside {
                    self.unreadable();
                }
                break;
            };
            match c {
                ' ' | '\t' => self.at += 1,
                // A line that goes on in the next one; a word may begin there, or a comment.
                '\\' if self.peek(1) == Some('\n') => self.at += 2,
                '\n' => {
                    self.at += 1;
                    self.end_command();
                    self.skip_heredocs();
                }
                ';' => {
                    self.at += 1;
                    self.end_command();
                }
                '&' if self.peek(1) == Some('>') => self.redirection(),
                '&' => {
                    self.script.plain &= self.take("&&") || {
                        self.at += 1;
                        false
                    };
                    self.end_command();
                }
                '|' => {
                    if !self.take("||") {
                        self.at += 1;
                        self.script.plain &= !self.take("&");
                    }
                    self.end_command();
                }
                '(' => {
                    self.at += 1;
                    self.script.plain = false;
                    self.end_command();
                    self.nested();
                }
                ')' => {
                    self.at += 1;
                    if inside {
                        break;
                    }
                    // The end of a pattern of `case`, or a mistake.
                    self.script.plain = false;
                    self.end_command();
                }
                '<' | '>' => self.redirection(),
                '#' => {
                    // Not every shell knows comments everywhere, so what stands in one may run.
                    self.script.plain = false;
                    while self.peek(0).is_some_and(|c| c != '\n') {
                        self.at += 1;
                    }
                }
                _ => {
                    let word = self.word();
                    let descriptor = !word.quoted
                        && !word.text.is_empty()
                        && word.text.bytes().all(|byte| byte.is_ascii_digit())
                        && matches!(self.peek(0), Some('<' | '>'));
                    if self.cut {
                        self.unreadable();
                    }
                    if !descriptor {
                        self.words.push(word);
                    }
                }
            }
        }
        self.end_command();
        self.words = outer;
    }

    /// Reads what stands in parentheses; the opening one is read.
    fn nested(&mut self) {
        if self.depth >= MAX_DEPTH {
            self.unreadable();
            self.at = self.chars.len();
            return;
        }
        self.depth += 1;
        self.script(true);
        self.depth -= 1;
    }

    fn end_command(&mut self) {
        let mut words: &[Piece] = &self.words;
        while let Some(first) = words.first() {
            match first.text.as_str() {
                "if" | "then" | "else" | "elif" | "fi" | "while" | "until" | "do" | "done" | "esac" | "{"
                | "}" | "!" | "in" | "coproc" | "[[" => words = &words[1..],
                "function" => words = words.get(2..).unwrap_or_default(),
                "for" | "select" => {
                    let body = words.iter().position(|word| word.text == "do");
                    words = body.map_or(&[], |body| &words[body..]);
                }
                "case" => words = &[],
                text if is_assignment(text) => words = &words[1..],
                _ => break,
            }
            self.script.plain = false;
        }
        if !words.is_empty() {
            let words = words.iter().map(|word| Word { text: word.text.clone(), known: !word.unknown });
            self.script.commands.push(words.collect());
        }
        self.words.clear();
        self.cut = false;
    }

    /// `> file`, `2>&1`, `<<END`, `<(command)` and the like.
    fn redirection(&mut self) {
        if self.take("<(") || self.take(">(") {
            self.script.plain = false;
            self.nested();
            self.words.push(Piece { unknown: true, ..Piece::default() });
            return;
        }
        if self.take("<<<") {
            self.unreadable();
            self.target();
            return;
        }
        if self.take("<<") {
            self.unreadable();
            let tabs = self.take("-");
            if let Some(end) = self.target() {
                self.heredocs.push((end.text, tabs));
            }
            return;
        }
        let duplicates = self.take(">&") || self.take("<&");
        if !duplicates {
            self.cut |= self.peek(0) == Some('&');
            let operators = ["&>>", "&>", ">>", ">|", "<>", ">", "<"];
            if !operators.iter().any(|operator| self.take(operator)) {
                self.at += 1;
            }
        }
        let Some(target) = self.target() else { return };
        let number = target.text.strip_suffix('-').unwrap_or(&target.text);
        let is_descriptor = number.bytes().all(|byte| byte.is_ascii_digit()) && !target.text.is_empty();
        if target.unknown || !((duplicates && is_descriptor) || target.text == "/dev/null") {
            self.script.plain = false;
            self.script.files.push(Word { text: target.text, known: !target.unknown });
        }
    }

    /// The word after a redirection.
    fn target(&mut self) -> Option<Piece> {
        while self.take(" ") || self.take("\t") || self.take("\\\n") {}
        if self.peek(0).is_none_or(ends_word) {
            self.unreadable();
            return None;
        }
        Some(self.word())
    }

    fn skip_heredocs(&mut self) {
        for (end, tabs) in std::mem::take(&mut self.heredocs) {
            while self.at < self.chars.len() {
                let rest = &self.chars[self.at..];
                let length = rest.iter().position(|c| *c == '\n').unwrap_or(rest.len());
                let line: String = rest[..length].iter().collect();
                self.at = (self.at + length + 1).min(self.chars.len());
                if end == if tabs { line.trim_start_matches('\t') } else { &line } {
                    break;
                }
            }
        }
    }

    fn word(&mut self) -> Piece {
        let mut word = Piece::default();
        let mut glob = false;
        while let Some(c) = self.peek(0).filter(|c| !ends_word(*c)) {
            self.at += 1;
            match c {
                '\\' => match self.next() {
                    Some('\n') => {}
                    Some(c) => {
                        word.text.push(c);
                        word.quoted = true;
                    }
                    None => self.unreadable(),
                },
                '\'' => self.single_quoted(&mut word),
                '"' => self.double_quoted(&mut word),
                '`' => self.backquoted(&mut word),
                '$' => self.dollar(&mut word, false),
                '*' | '?' | '[' => {
                    glob = true;
                    word.text.push(c);
                }
                // `{}` and a lone `{` or `}` stay as they are; everything else may become several words.
                '{' | '}' => {
                    let alone = word.text.is_empty() && self.peek(0).is_none_or(ends_word);
                    let pair = c == '{'
                        && word.text.is_empty()
                        && self.peek(0) == Some('}')
                        && self.peek(1).is_none_or(ends_word);
                    if pair {
                        self.at += 1;
                        word.text.push_str("{}");
                    } else {
                        self.script.plain &= alone;
                        word.unknown |= !alone;
                        word.text.push(c);
                    }
                }
                // A home folder, or with zsh the path of a program.
                '~' | '=' if word.text.is_empty() || word.text.ends_with([':', '=']) => {
                    word.unknown = true;
                    word.text.push(c);
                }
                // Interactive shells put earlier commands in here.
                '!' => {
                    let alone = word.text.is_empty() && self.peek(0).is_none_or(ends_word);
                    self.script.plain &= alone || self.peek(0) == Some('=');
                    word.text.push(c);
                }
                c => word.text.push(c),
            }
        }
        word.unknown |= glob && word.text != "[";
        word
    }

    fn single_quoted(&mut self, word: &mut Piece) {
        word.quoted = true;
        let mut backslashes = 0;
        loop {
            match self.next() {
                Some('\'') => break,
                Some(c) => {
                    backslashes = if c == '\\' { backslashes + 1 } else { 0 };
                    word.text.push(c);
                }
                None => return self.unreadable(),
            }
        }
        // fish takes this quote as an escaped one and reads on.
        self.script.plain &= backslashes % 2 == 0;
    }

    fn double_quoted(&mut self, word: &mut Piece) {
        word.quoted = true;
        loop {
            match self.next() {
                Some('"') => return,
                Some('\\') => match self.next() {
                    Some('\n') => {}
                    Some(c) => {
                        if !matches!(c, '$' | '`' | '"' | '\\') {
                            word.text.push('\\');
                        }
                        word.text.push(c);
                    }
                    None => return self.unreadable(),
                },
                Some('`') => self.backquoted(word),
                Some('$') => self.dollar(word, true),
                Some(c) => word.text.push(c),
                None => return self.unreadable(),
            }
        }
    }

    fn backquoted(&mut self, word: &mut Piece) {
        word.unknown = true;
        self.script.plain = false;
        let mut text = String::new();
        loop {
            match self.next() {
                Some('`') => break,
                Some('\\') => match self.next() {
                    Some(c) => {
                        if !matches!(c, '$' | '`' | '\\') {
                            text.push('\\');
                        }
                        text.push(c);
                    }
                    None => return self.unreadable(),
                },
                Some(c) => text.push(c),
                None => return self.unreadable(),
            }
        }
        let inner = read_at(&text, self.depth + 1);
        self.script.commands.extend(inner.commands);
        self.script.files.extend(inner.files);
        self.script.readable &= inner.readable;
    }

    /// What follows a `$`.
    fn dollar(&mut self, word: &mut Piece, in_quotes: bool) {
        while self.take("\\\n") {}
        match self.peek(0) {
            Some('(') => {
                self.at += 1;
                self.nested();
            }
            Some('{') => {
                self.at += 1;
                self.braces();
            }
            Some('\'') if !in_quotes => {
                self.at += 1;
                loop {
                    match self.next() {
                        Some('\'') => break,
                        Some('\\') => drop(self.next()),
                        Some(_) => {}
                        None => return self.unreadable(),
                    }
                }
            }
            Some('"') if !in_quotes => {
                self.at += 1;
                self.double_quoted(word);
            }
            Some(c) if c.is_alphanumeric() || "_@*#?-$!".contains(c) => {
                self.at += 1;
                if c.is_alphabetic() || c == '_' {
                    while self.peek(0).is_some_and(|c| c.is_alphanumeric() || c == '_') {
                        self.at += 1;
                    }
                }
            }
            // `$[1+1]` of old shells.
            Some('[') if !in_quotes => {}
            _ => {
                word.text.push('$');
                return;
            }
        }
        word.unknown = true;
        self.script.plain = false;
    }

    /// `${name}`, in which further substitutions may stand.
    fn braces(&mut self) {
        if self.depth >= MAX_DEPTH {
            self.at = self.chars.len();
            return self.unreadable();
        }
        self.depth += 1;
        // What stands in it makes no word that is known, but its commands count.
        let mut unused = Piece::default();
        loop {
            match self.next() {
                Some('}') => break,
                Some('\\') => drop(self.next()),
                Some('"') => self.double_quoted(&mut unused),
                Some('`') => self.backquoted(&mut unused),
                Some('$') => self.dollar(&mut unused, false),
                Some(c) => {
                    // `${name@P}` runs what is in the variable; whether `'` quotes depends on what is around.
                    self.script.readable &= !matches!(c, '@' | '\'');
                }
                None => {
                    self.unreadable();
                    break;
                }
            }
        }
        self.depth -= 1;
    }
}

fn ends_word(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | ';' | '&' | '|' | '<' | '>' | '(' | ')')
}

/// `NAME=…`, `NAME+=…` or `NAME[…]=…`.
pub fn is_assignment(text: &str) -> bool {
    let Some((name, _)) = text.split_once('=') else { return false };
    let name = name.strip_suffix('+').unwrap_or(name);
    let name = name.split_once('[').map_or(name, |(name, _)| name);
    let mut chars = name.chars();
    chars.next().is_some_and(|c| c.is_alphabetic() || c == '_')
        && chars.all(|c| c.is_alphanumeric() || c == '_')
}
