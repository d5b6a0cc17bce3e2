//! The dialogue with a person at the terminal about one approval or question.
//!
//! Pure: lines go in, what to say next or the answer comes out. Reading and writing is the caller's.

use std::collections::VecDeque;

use consort_daemon::protocol::InboxEntry;
use consort_model::{Answer, AskBody, AskId, GrantScope};
use serde_json::{Map, Value};

use crate::output::{Paint, Style, exact};
use crate::render;
use consort_daemon::form::{self, Field};

/// A dialogue about one ask.
pub struct Dialogue {
    /// Which ask.
    pub ask: AskId,
    stage: Stage,
}

enum Stage {
    /// Yes, no, and so on.
    Choice,
    /// What to do instead.
    Message,
    /// Free text.
    Text,
    /// A page to open.
    Page,
    /// The fields that are left, and what was filled in.
    Form { left: VecDeque<Field>, filled: Map<String, Value> },
}

/// What a line leads to.
#[derive(PartialEq, Debug)]
pub enum Step {
    /// Say this, and ask for another line.
    Ask(String),
    /// This is the answer.
    Answer(Answer),
}

const CHOICES: &str = "[y]es once, [s]ession, [a]lways, [n]o, [m] no with message, [q] stop: ";

impl Dialogue {
    /// Begins: the dialogue, and what to show.
    pub fn begin(entry: &InboxEntry, paint: Paint) -> (Self, String) {
        let stage = match &entry.body {
            AskBody::Approval { .. } => Stage::Choice,
            AskBody::Question(question) if question.url.is_some() => Stage::Page,
            AskBody::Question(question) => {
                let left: VecDeque<Field> = form::fields(&question.schema).into();
                if left.is_empty() { Stage::Text } else { Stage::Form { left, filled: Map::new() } }
            }
        };
        let mut who = exact(&entry.agent_name);
        for above in &entry.chain {
            who.push_str(" < ");
            who.push_str(&exact(above));
        }
        let kind = if matches!(entry.body, AskBody::Approval { .. }) { "wants to" } else { "asks" };
        let head = format!("? {who} {kind}: {}", exact(&entry.title));
        let body = render::ask_body(&entry.body, &entry.title, paint);
        let dialogue = Self { ask: entry.id, stage };
        let text = format!("{}\n{body}{}", paint.paint(Style::Yellow, &head), dialogue.prompt());
        (dialogue, text)
    }

    fn prompt(&self) -> String {
        match &self.stage {
            Stage::Choice => CHOICES.to_owned(),
            Stage::Message => "what should it do instead: ".to_owned(),
            Stage::Text => "answer (empty declines): ".to_owned(),
            Stage::Page => "press Enter when done, or [n]o to decline: ".to_owned(),
            Stage::Form { left, .. } => match left.front() {
                Some(field) => format!("{}, {}: ", exact(&field.label()), exact(&field.describe())),
                None => String::new(),
            },
        }
    }

    /// Takes in a line; none: standard input was closed, which stops the turn.
    pub fn line(&mut self, line: Option<&str>) -> Step {
        let Some(line) = line else { return Step::Answer(Answer::Stop) };
        match &mut self.stage {
            Stage::Choice => match line.trim().to_ascii_lowercase().as_str() {
                "y" | "yes" => allow(GrantScope::Once),
                "s" | "session" => allow(GrantScope::Session),
                "a" | "always" => allow(GrantScope::Always),
                "n" | "no" => Step::Answer(Answer::Deny { message: None }),
                "q" | "quit" | "stop" => Step::Answer(Answer::Stop),
                "m" | "message" => {
                    self.stage = Stage::Message;
                    Step::Ask(self.prompt())
                }
                _ => Step::Ask(CHOICES.to_owned()),
            },
            Stage::Message => {
                let message = Some(line.trim().to_owned()).filter(|message| !message.is_empty());
                Step::Answer(Answer::Deny { message })
            }
            Stage::Text if line.trim().is_empty() => Step::Answer(Answer::Deny { message: None }),
            Stage::Text => Step::Answer(Answer::Reply { value: Value::from(line) }),
            Stage::Page if form::yes_or_no(line) == Some(false) => {
                Step::Answer(Answer::Deny { message: None })
            }
            Stage::Page => Step::Answer(Answer::Reply { value: Value::Object(Map::new()) }),
            Stage::Form { left, filled } => {
                let problem = match left.front().map(|field| field.read(line)) {
                    Some(Ok(value)) => {
                        if let (Some(field), Some(value)) = (left.pop_front(), value) {
                            filled.insert(field.key, value);
                        }
                        None
                    }
                    Some(Err(problem)) => Some(problem),
                    None => None,
                };
                if left.is_empty() {
                    return Step::Answer(Answer::Reply { value: Value::Object(std::mem::take(filled)) });
                }
                let prompt = self.prompt();
                Step::Ask(match problem {
                    Some(problem) => format!("{}\n{prompt}", exact(&problem)),
                    None => prompt,
                })
            }
        }
    }
}

fn allow(scope: GrantScope) -> Step {
    Step::Answer(Answer::allow(scope))
}

#[cfg(test)]
mod tests {
    use super::*;
    use consort_model::{AgentId, Question, Timestamp, ToolCall, ToolCallId, ToolKind};
    use serde_json::json;
    use uuid::Uuid;

    fn entry(body: AskBody) -> InboxEntry {
        InboxEntry {
            id: AskId::new(Uuid::nil()),
            agent: AgentId::new(Uuid::nil()),
            agent_name: "fixer".into(),
            chain: vec!["lead".into()],
            kind: body.kind().into(),
            title: "rm x".into(),
            at: Timestamp(0),
            body,
        }
    }

    fn approval() -> Dialogue {
        let tool = ToolCall {
            input: json!({ "command": "rm x" }),
            ..ToolCall::new(ToolCallId::new("c"), ToolKind::Execute, "rm x")
        };
        let (dialogue, text) =
            Dialogue::begin(&entry(AskBody::Approval { tool, options: vec![] }), Paint::plain());
        assert!(text.starts_with("? fixer < lead wants to: rm x\n    command: rm x\n"), "{text}");
        dialogue
    }

    fn question(schema: Value) -> Dialogue {
        let question = Question { text: "which".into(), schema, url: None };
        Dialogue::begin(&entry(AskBody::Question(question)), Paint::plain()).0
    }

    #[test]
    fn one_letter_answers_an_approval() {
        let deny = Answer::Deny { message: None };
        for (line, answer) in [
            ("y", Answer::allow(GrantScope::Once)),
            (" S ", Answer::allow(GrantScope::Session)),
            ("a", Answer::allow(GrantScope::Always)),
            ("n", deny),
            ("q", Answer::Stop),
        ] {
            assert_eq!(approval().line(Some(line)), Step::Answer(answer), "{line}");
        }
        assert_eq!(approval().line(None), Step::Answer(Answer::Stop));
    }

    #[test]
    fn anything_else_asks_again_and_never_allows() {
        for line in ["", "yy", "ok", "\u{0}"] {
            assert_eq!(approval().line(Some(line)), Step::Ask(CHOICES.to_owned()), "{line:?}");
        }
    }

    #[test]
    fn no_with_a_message_asks_for_it() {
        let mut dialogue = approval();
        assert!(matches!(dialogue.line(Some("m")), Step::Ask(_)));
        let answer = Answer::Deny { message: Some("use mv".into()) };
        assert_eq!(dialogue.line(Some(" use mv ")), Step::Answer(answer));
    }

    #[test]
    fn a_form_is_filled_field_by_field() {
        let mut dialogue = question(json!({
            "properties": { "colour": { "enum": ["red", "blue"] }, "flag": { "type": "boolean" } },
            "required": ["colour"],
        }));
        assert!(matches!(dialogue.line(Some("green")), Step::Ask(text) if text.contains("must be one of")));
        assert!(matches!(dialogue.line(Some("2")), Step::Ask(text) if text.starts_with("flag")));
        let value = json!({ "colour": "blue", "flag": true });
        assert_eq!(dialogue.line(Some("y")), Step::Answer(Answer::Reply { value }));
    }

    #[test]
    fn a_plain_question_takes_text() {
        let reply = Answer::Reply { value: json!("the left one") };
        assert_eq!(question(Value::Null).line(Some("the left one")), Step::Answer(reply));
        assert_eq!(question(Value::Null).line(Some("")), Step::Answer(Answer::Deny { message: None }));
    }
}
