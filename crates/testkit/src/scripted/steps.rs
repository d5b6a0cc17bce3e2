//! The language of the prompts: text with steps in double brackets, parsed whole before the first step runs.
//!
//! The grammar is described in `help.txt`, what a step does in [`super::play`].

use std::collections::HashMap;

use serde_json::Value;

#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    Say { text: String, chunk: Option<usize> },
    Think { text: String, chunk: Option<usize> },
    Stream { count: u64, rate: f64, size: usize, stamp: bool, text: String },
    Flood { count: u64, size: usize },
    Late(String),
    Tool(Tool),
    Ask(Ask),
    AskMany { count: usize, kind: String, title: String },
    Edit { path: String, old: String, new: String, ask: bool },
    Write { path: String, text: String, ask: bool },
    Plan(Vec<String>),
    Mode(String),
    Title(String),
    Commands(Vec<String>),
    ConfigUpdate,
    Usage { used: u64, size: u64, cost: Option<f64> },
    TurnUsage { input: u64, output: u64 },
    Update(Value),
    UnknownUpdate,
    UnknownNotification,
    UnknownRequest,
    FsRead { path: String, line: Option<u64>, limit: Option<u64> },
    FsWrite { path: String, text: String },
    Terminal { command: Vec<String>, kill: bool, limit: Option<u64> },
    Elicit(String),
    Wait(u64),
    Hang,
    HangDeaf,
    Misbehave(Misbehaviour),
    Env(String),
    Args,
    Cwd,
    Meta,
    Mcp,
    McpCall { server: String, tool: String, arguments: Value },
    Client,
    EchoImages,
    Error { code: i64, message: String },
    Stop(String),
}

#[derive(Debug, Clone, PartialEq)]
pub enum Misbehaviour {
    Crash(i32),
    KillSelf,
    Torn,
    Garbage(String),
    BadUtf8,
    BigLine { megabytes: u16 },
    EmptyLines,
    ReplyToNothing,
    Raw(String),
    Stderr(String),
    SpawnOrphan { seconds: u64, own_session: bool, hold: bool },
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Tool {
    pub kind: String,
    pub title: String,
    pub output: Option<String>,
    pub locations: Vec<(String, Option<u64>)>,
    pub diff: Option<Diff>,
    pub image: Option<String>,
    pub input: Option<Value>,
    pub delay: u64,
    pub fail: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Diff {
    pub path: String,
    pub old: String,
    pub new: String,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Ask {
    pub kind: String,
    pub title: String,
    pub diff: Option<Diff>,
    pub input: Option<Value>,
    pub reject_always: bool,
    pub gemini: bool,
    pub remember: bool,
    pub patient: bool,
}

#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum StepError {
    #[error("step {0:?} is unknown; see `consort-testkit agent --help`")]
    Unknown(String),
    #[error("a step that begins with {0:?} has no closing brackets")]
    Unclosed(String),
    #[error("step {step} needs {what}")]
    Missing { step: String, what: &'static str },
    #[error("step {step} cannot take {value:?} for {what}")]
    Malformed { step: String, what: &'static str, value: String },
    #[error("script {0:?} is not in the script file")]
    NoScript(String),
    #[error("scripts call one another without end, through {0:?}")]
    Endless(String),
}

const DEEPEST_SCRIPT: usize = 16;

/// The steps in a text; empty if it has none.
pub fn parse(text: &str, scripts: &HashMap<String, String>) -> Result<Vec<Step>, StepError> {
    let mut steps = Vec::new();
    parse_into(text, scripts, DEEPEST_SCRIPT, &mut steps)?;
    Ok(steps)
}

fn parse_into(
    text: &str,
    scripts: &HashMap<String, String>,
    depth: usize,
    steps: &mut Vec<Step>,
) -> Result<(), StepError> {
    let mut rest = text;
    while let Some(open) = rest.find("[[") {
        let body = &rest[open + 2..];
        let close = closing(body).ok_or_else(|| StepError::Unclosed(body.chars().take(40).collect()))?;
        let mut words = Words::new(body[..close].trim());
        if words.name == "script" {
            let name = words.text("a name")?;
            let script = scripts.get(&name).ok_or_else(|| StepError::NoScript(name.clone()))?;
            let depth = depth.checked_sub(1).ok_or(StepError::Endless(name))?;
            parse_into(script, scripts, depth, steps)?;
        } else {
            steps.push(step(words)?);
        }
        rest = &body[close + 2..];
    }
    Ok(())
}

/// Where `]]` stands in `body`, escapes aside. The last two of a longer row count, so that JSON may end in a bracket.
fn closing(body: &str) -> Option<usize> {
    let bytes = body.as_bytes();
    let mut at = 0;
    while at + 1 < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b']' if bytes[at + 1] == b']' && bytes.get(at + 2) != Some(&b']') => return Some(at),
            _ => at += 1,
        }
    }
    None
}

fn step(mut words: Words<'_>) -> Result<Step, StepError> {
    use Misbehaviour::*;
    Ok(match words.name.clone().as_str() {
        "say" => {
            words.options(&["chunk"], &[])?;
            Step::Say { chunk: words.number("chunk")?, text: words.rest() }
        }
        "think" => {
            words.options(&["chunk"], &[])?;
            Step::Think { chunk: words.number("chunk")?, text: words.rest() }
        }
        "stream" => {
            words.options(&["n", "rate", "size"], &["stamp"])?;
            let rate = words.number("rate")?.unwrap_or(100.0);
            if !(rate > 0.0 && f64::is_finite(rate)) {
                return Err(words.malformed("rate", &rate.to_string()));
            }
            Step::Stream {
                count: words.number("n")?.unwrap_or(100),
                rate,
                size: words.number("size")?.unwrap_or(0),
                stamp: words.flag("stamp"),
                text: words.rest(),
            }
        }
        "flood" => {
            words.options(&["n", "size"], &[])?;
            Step::Flood {
                count: words.number("n")?.unwrap_or(1000),
                size: words.number("size")?.unwrap_or(0),
            }
        }
        "late" => Step::Late(words.rest()),
        "tool" => {
            let kind = words.word("a kind")?;
            words.options(&["output", "location", "diff", "image", "input", "delay"], &["fail"])?;
            Step::Tool(Tool {
                kind,
                output: words.option("output"),
                locations: words.all("location").into_iter().map(location).collect(),
                diff: words.diff()?,
                image: words.option("image"),
                input: words.json("input")?,
                delay: words.number("delay")?.unwrap_or(0),
                fail: words.flag("fail"),
                title: words.text("a title")?,
            })
        }
        "ask" => {
            let kind = words.word("a kind")?;
            words.options(&["diff", "input"], &["reject-always", "gemini", "remember", "patient"])?;
            Step::Ask(Ask {
                kind,
                diff: words.diff()?,
                input: words.json("input")?,
                reject_always: words.flag("reject-always"),
                gemini: words.flag("gemini"),
                remember: words.flag("remember"),
                patient: words.flag("patient"),
                title: words.text("a title")?,
            })
        }
        "ask-many" => {
            let count = words.parsed("a count")?;
            let kind = words.next().unwrap_or_else(|| "execute".into());
            let title = words.rest();
            Step::AskMany { count, kind, title: if title.is_empty() { "command".into() } else { title } }
        }
        "edit" => {
            words.options(&[], &["noask"])?;
            Step::Edit {
                ask: !words.flag("noask"),
                path: words.word("a path")?,
                old: words.word("the old text")?,
                new: words.word("the new text")?,
            }
        }
        "write" => {
            words.options(&[], &["noask"])?;
            Step::Write { ask: !words.flag("noask"), path: words.word("a path")?, text: words.rest() }
        }
        "plan" => {
            Step::Plan(words.text("entries")?.split('|').map(|entry| entry.trim().to_owned()).collect())
        }
        "mode" => Step::Mode(words.text("a mode")?),
        "title" => Step::Title(words.text("a title")?),
        "commands" => {
            let names = words.next();
            Step::Commands(names.iter().flat_map(|names| names.split(',')).map(str::to_owned).collect())
        }
        "config-update" | "config-option-update" => Step::ConfigUpdate,
        "usage" => {
            words.options(&["used", "size", "cost"], &[])?;
            Step::Usage {
                used: words.number("used")?.unwrap_or(1200),
                size: words.number("size")?.unwrap_or(200_000),
                cost: words.number("cost")?,
            }
        }
        "turn-usage" => {
            words.options(&["input", "output"], &[])?;
            Step::TurnUsage {
                input: words.number("input")?.unwrap_or(100),
                output: words.number("output")?.unwrap_or(20),
            }
        }
        "update" => {
            let text = words.raw();
            Step::Update(serde_json::from_str(text).map_err(|_| words.malformed("an update", text))?)
        }
        "unknown-update" => Step::UnknownUpdate,
        "unknown-notification" => Step::UnknownNotification,
        "unknown-request" => Step::UnknownRequest,
        "fs-read" => {
            words.options(&["line", "limit"], &[])?;
            let (line, limit) = (words.number("line")?, words.number("limit")?);
            Step::FsRead { line, limit, path: words.word("a path")? }
        }
        "fs-write" => Step::FsWrite { path: words.word("a path")?, text: words.rest() },
        "terminal" => {
            words.options(&["limit"], &["kill"])?;
            let (kill, limit) = (words.flag("kill"), words.number("limit")?);
            let mut command = vec![words.word("a command")?];
            command.extend(std::iter::from_fn(|| words.next()));
            Step::Terminal { command, kill, limit }
        }
        "elicit" => Step::Elicit(words.rest()),
        "wait" => Step::Wait(words.parsed("milliseconds")?),
        "hang" => Step::Hang,
        "hang-deaf" => Step::HangDeaf,
        "crash" => Step::Misbehave(Crash(words.next_parsed("an exit code")?.unwrap_or(1))),
        "kill-self" => Step::Misbehave(KillSelf),
        "torn" => Step::Misbehave(Torn),
        "garbage" => {
            let text = words.rest();
            let broken = r#"{"jsonrpc":"2.0","method":"session/update","params":{"#;
            Step::Misbehave(Garbage(if text.is_empty() { broken.into() } else { text }))
        }
        "bad-utf8" => Step::Misbehave(BadUtf8),
        "bigline" => Step::Misbehave(BigLine { megabytes: words.parsed("megabytes")? }),
        "empty-lines" => Step::Misbehave(EmptyLines),
        "reply-to-nothing" => Step::Misbehave(ReplyToNothing),
        "raw" => Step::Misbehave(Raw(words.raw().to_owned())),
        "stderr" => Step::Misbehave(Stderr(words.rest())),
        "spawn-orphan" => {
            words.options(&["seconds"], &["same-group", "hold"])?;
            Step::Misbehave(SpawnOrphan {
                seconds: words.number("seconds")?.unwrap_or(300),
                own_session: !words.flag("same-group"),
                hold: words.flag("hold"),
            })
        }
        "env" => Step::Env(words.text("a name")?),
        "args" => Step::Args,
        "cwd" => Step::Cwd,
        "meta" => Step::Meta,
        "mcp" if words.rest.is_empty() => Step::Mcp,
        "mcp" => {
            words.options(&["server"], &[])?;
            let server = words.option("server").unwrap_or_else(|| "consort".to_owned());
            let tool = words.word("a tool")?;
            let json = words.raw().trim();
            let arguments = if json.is_empty() { "{}" } else { json };
            let arguments =
                serde_json::from_str(arguments).map_err(|_| words.malformed("arguments", arguments))?;
            Step::McpCall { server, tool, arguments }
        }
        "client" => Step::Client,
        "echo-images" => Step::EchoImages,
        "error" => Step::Error { code: words.parsed("a code")?, message: words.rest() },
        "refuse" => Step::Stop("refusal".into()),
        "max-tokens" => Step::Stop("max_tokens".into()),
        "max-turns" => Step::Stop("max_turn_requests".into()),
        "stop" => Step::Stop(words.text("a reason")?),
        _ => return Err(StepError::Unknown(words.name)),
    })
}

fn location(value: String) -> (String, Option<u64>) {
    match value.rsplit_once(':') {
        Some((path, line)) if line.parse::<u64>().is_ok() => (path.to_owned(), line.parse().ok()),
        _ => (value, None),
    }
}

/// A step taken apart: its name, its options once asked for, and what is left.
struct Words<'a> {
    name: String,
    rest: &'a str,
    options: Vec<(String, String)>,
    flags: Vec<String>,
}

impl<'a> Words<'a> {
    fn new(step: &'a str) -> Self {
        let (name, rest) = step.split_once(char::is_whitespace).unwrap_or((step, ""));
        Self { name: name.replace('_', "-"), rest: rest.trim_start(), options: Vec::new(), flags: Vec::new() }
    }

    fn malformed(&self, what: &'static str, value: &str) -> StepError {
        StepError::Malformed { step: self.name.clone(), what, value: value.to_owned() }
    }

    /// Takes the options and flags that stand next; the first other word begins the text.
    fn options(&mut self, keys: &[&'static str], flags: &[&'static str]) -> Result<(), StepError> {
        loop {
            let end = self.rest.find(|c: char| c.is_whitespace() || c == '=').unwrap_or(self.rest.len());
            let (head, tail) = self.rest.split_at(end);
            if let (Some(key), Some(value)) = (keys.iter().find(|key| **key == head), tail.strip_prefix('='))
            {
                self.rest = value;
                let value = self.word(key)?;
                self.options.push(((*key).to_owned(), value));
            } else if !tail.starts_with('=') && flags.contains(&head.replace('_', "-").as_str()) {
                self.flags.push(head.replace('_', "-"));
                self.rest = tail.trim_start();
            } else {
                if head == "--" {
                    self.rest = tail.trim_start();
                }
                return Ok(());
            }
        }
    }

    fn all(&self, key: &str) -> Vec<String> {
        self.options.iter().filter(|(name, _)| name == key).map(|(_, value)| value.clone()).collect()
    }

    fn option(&self, key: &str) -> Option<String> {
        self.all(key).pop()
    }

    fn flag(&self, flag: &str) -> bool {
        self.flags.iter().any(|name| name == flag)
    }

    fn number<N: std::str::FromStr>(&self, key: &'static str) -> Result<Option<N>, StepError> {
        let Some(value) = self.option(key) else { return Ok(None) };
        value.parse().map(Some).map_err(|_| self.malformed(key, &value))
    }

    fn json(&self, key: &'static str) -> Result<Option<Value>, StepError> {
        let Some(value) = self.option(key) else { return Ok(None) };
        serde_json::from_str(&value).map(Some).map_err(|_| self.malformed(key, &value))
    }

    fn diff(&self) -> Result<Option<Diff>, StepError> {
        let Some(value) = self.option("diff") else { return Ok(None) };
        let mut parts = value.splitn(3, '|').map(str::to_owned);
        match (parts.next(), parts.next(), parts.next()) {
            (Some(path), Some(old), Some(new)) => Ok(Some(Diff { path, old, new })),
            _ => Err(self.malformed("diff", &value)),
        }
    }

    /// The next word: quoted (only then may it hold spaces or be empty) or up to the next space.
    fn next(&mut self) -> Option<String> {
        if self.rest.is_empty() {
            return None;
        }
        let quoted = self.rest.strip_prefix('"');
        let source = quoted.unwrap_or(self.rest);
        let mut end = source.len();
        let mut escaped = false;
        for (at, c) in source.char_indices() {
            let ends = if quoted.is_some() { c == '"' } else { c.is_whitespace() };
            if ends && !escaped {
                end = at;
                break;
            }
            escaped = c == '\\' && !escaped;
        }
        let word = unescape(&source[..end]);
        let after = &source[end..];
        self.rest =
            if quoted.is_some() { after.strip_prefix('"').unwrap_or(after) } else { after }.trim_start();
        Some(word)
    }

    fn word(&mut self, what: &'static str) -> Result<String, StepError> {
        self.next().ok_or_else(|| StepError::Missing { step: self.name.clone(), what })
    }

    fn next_parsed<N: std::str::FromStr>(&mut self, what: &'static str) -> Result<Option<N>, StepError> {
        let Some(word) = self.next() else { return Ok(None) };
        word.parse().map(Some).map_err(|_| self.malformed(what, &word))
    }

    fn parsed<N: std::str::FromStr>(&mut self, what: &'static str) -> Result<N, StepError> {
        self.next_parsed(what)?.ok_or_else(|| StepError::Missing { step: self.name.clone(), what })
    }

    /// All that is left, as it stands.
    fn raw(&mut self) -> &'a str {
        std::mem::take(&mut self.rest)
    }

    /// All that is left, escapes replaced; a text that is one quoted word loses its quotes.
    fn rest(&mut self) -> String {
        let whole = self.raw();
        let quoted = whole.starts_with('"') && closing_quote(whole) == Some(whole.len() - 1);
        unescape(if quoted { &whole[1..whole.len() - 1] } else { whole })
    }

    fn text(&mut self, what: &'static str) -> Result<String, StepError> {
        let text = self.rest();
        if text.is_empty() { Err(StepError::Missing { step: self.name.clone(), what }) } else { Ok(text) }
    }
}

/// Where the first unescaped quote after the opening one stands.
fn closing_quote(text: &str) -> Option<usize> {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        if c == '"' && !escaped {
            return Some(at);
        }
        escaped = c == '\\' && !escaped;
    }
    None
}

fn unescape(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            plain.push(c);
            continue;
        }
        match chars.next() {
            Some('n') => plain.push('\n'),
            Some('t') => plain.push('\t'),
            Some(c @ ('"' | '\\' | '[' | ']')) => plain.push(c),
            Some(other) => plain.extend(['\\', other]),
            None => plain.push('\\'),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn one(text: &str) -> Step {
        parse(text, &HashMap::new()).unwrap().remove(0)
    }

    #[test]
    fn options_stand_before_the_text_and_only_there() {
        let say = |text: &str, chunk| Step::Say { text: text.into(), chunk };
        assert_eq!(one("[[say chunk=2 a]]"), say("a", Some(2)));
        assert_eq!(one("[[say a chunk=2]]"), say("a chunk=2", None));
        assert_eq!(one("[[say size=2 a]]"), say("size=2 a", None));
        assert_eq!(one(r#"[[say "a b "]]"#), say("a b ", None));
        assert_eq!(one(r#"[[say "a" and "b"]]"#), say(r#""a" and "b""#, None));
    }

    #[test]
    fn underscores_and_hyphens_are_the_same_in_names_and_flags() {
        assert_eq!(one("[[hang_deaf]]"), one("[[hang-deaf]]"));
        assert_eq!(one("[[ask edit reject_always x]]"), one("[[ask edit reject-always x]]"));
    }

    #[test]
    fn every_option_in_the_help_is_known() {
        let help = include_str!("help.txt");
        let names = help.lines().filter_map(|line| line.strip_prefix("  --"));
        for name in names.filter_map(|line| line.split_whitespace().next()) {
            let parsed = crate::scripted::options::parse([format!("--{name}")]);
            assert!(!matches!(parsed, Err(crate::scripted::options::OptionError::Unknown(_))), "--{name}");
        }
    }

    proptest! {
        #[test]
        fn no_prompt_makes_the_parser_fail_badly(text in r#"(\[\[|\]\]|[ -~é\\"=|]|say |tool |edit |stream ){0,30}"#) {
            drop(parse(&text, &HashMap::new()));
        }
    }
}
