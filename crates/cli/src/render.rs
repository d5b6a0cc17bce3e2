//! Items, asks and tool calls as text for people.
//!
//! Everything here is clean: what an agent wrote has passed [`output`](crate::output)'s functions. What a person decides
//! about is shown exactly and in full; what only tells what happened is shown briefly.

use consort_model::{
    Answer, AskBody, Attachment, Diff, GrantScope, Item, ItemBody, NoticeLevel, PlanEntry, PlanStatus,
    PromptOrigin, Question, SettledBy, Settlement, ToolCall, ToolKind, ToolStatus,
};
use serde_json::Value;

use crate::diff::{self, Line};
use crate::output::{Paint, Style, clean, exact, one_line, short};

/// How many lines of a diff or an output stand for the whole where brevity counts.
const BRIEF_LINES: usize = 12;

/// How much of an item is shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Detail {
    /// A line or a few.
    Brief,
    /// All of it.
    Full,
}

/// An item as lines, each ended.
pub fn item(item: &Item, paint: Paint, detail: Detail) -> String {
    let text = match &item.body {
        ItemBody::User { origin, text, attachments, .. } => user(*origin, text, attachments, paint),
        ItemBody::Text { text } => clean(text),
        ItemBody::Thinking { text } => prefixed("~ ", &clean(text), Style::Dim, paint),
        ItemBody::Tool(call) => tool(call, paint, detail),
        ItemBody::Plan { entries } => plan(entries, paint),
        ItemBody::Ask { title, settlement, ask, .. } => match settlement {
            Some(settlement) => settled(title, settlement, paint),
            None => format!(
                "{} {}  (consort approve {id} | consort deny {id})",
                paint.paint(Style::Yellow, "? asks:"),
                one_line(title),
                id = short(ask),
            ),
        },
        ItemBody::Image(image) => paint.paint(Style::Dim, &format!("[{}]", image.words())).into_owned(),
        ItemBody::Notice { level, text } => notice(*level, text, paint),
        ItemBody::Unknown { label, .. } => {
            paint.paint(Style::Dim, &format!("· {} (unknown to this version)", one_line(label))).into_owned()
        }
    };
    let text =
        if item.within.is_some() { prefixed("  │ ", &text, Style::Dim, Paint::plain()) } else { text };
    if text.ends_with('\n') { text } else { text + "\n" }
}

fn user(origin: PromptOrigin, text: &str, attachments: &[Attachment], paint: Paint) -> String {
    let mut lines = prefixed("> ", &clean(text), Style::Cyan, paint);
    if let PromptOrigin::Agent { agent } = origin {
        lines = format!("{}\n{lines}", paint.paint(Style::Dim, &format!("> (from agent {})", short(agent))));
    }
    for attachment in attachments {
        let what = match attachment {
            Attachment::Image(image) => image.words(),
            Attachment::File { path, .. } => one_line(path),
        };
        lines.push_str(&paint.paint(Style::Dim, &format!("\n> [attached: {what}]")));
    }
    lines
}

fn prefixed(prefix: &str, text: &str, style: Style, paint: Paint) -> String {
    let line = |line: &str| paint.paint(style, &format!("{prefix}{line}")).into_owned();
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// A tool call: one line with its status, then its diffs and, in full, its output.
pub fn tool(call: &ToolCall, paint: Paint, detail: Detail) -> String {
    let (mark, style) = match call.status {
        ToolStatus::Pending => ("·", Style::Dim),
        ToolStatus::Running => ("…", Style::Dim),
        ToolStatus::Completed => ("✓", Style::Green),
        ToolStatus::Failed => ("✗", Style::Red),
    };
    let mut text = format!("{} {}", paint.paint(style, mark), tool_title(call));
    if let [diff] = &call.diffs[..] {
        let (added, removed) = diff::counts(diff);
        text.push_str(&paint.paint(Style::Dim, &format!(" (+{added} -{removed})")));
    }
    text.push('\n');
    for diff in &call.diffs {
        text.push_str(&diff_lines(diff, paint, detail));
    }
    for image in &call.images {
        text.push_str(&paint.paint(Style::Dim, &format!("    [{}]", image.words())));
        text.push('\n');
    }
    let show_output = detail == Detail::Full || call.status == ToolStatus::Failed;
    if show_output && !call.output.trim().is_empty() {
        let output = clean(&call.output);
        let lines: Vec<&str> = output.trim_end().lines().collect();
        let shown = if detail == Detail::Full { lines.len() } else { lines.len().min(BRIEF_LINES) };
        // The end of an output says how it went.
        if shown < lines.len() {
            text.push_str(&paint.paint(Style::Dim, &format!("    … {} more lines\n", lines.len() - shown)));
        }
        for line in &lines[lines.len() - shown..] {
            text.push_str(&paint.paint(Style::Dim, &format!("    {line}")));
            text.push('\n');
        }
    }
    text
}

/// A tool call in a few words: its kind and title.
pub fn tool_title(call: &ToolCall) -> String {
    let title = one_line(&call.title);
    let kind = call.tool.verb();
    if title.is_empty() {
        return kind.to_owned();
    }
    if call.tool == ToolKind::Other || title.to_lowercase().starts_with(kind) {
        return title;
    }
    format!("{kind}: {title}")
}

/// The lines of a diff, indented.
pub fn diff_lines(diff: &Diff, paint: Paint, detail: Detail) -> String {
    let lines = diff::lines(diff, if detail == Detail::Full { 3 } else { 1 });
    let shown = if detail == Detail::Full { lines.len() } else { lines.len().min(BRIEF_LINES) };
    let new = if diff.old_text.is_none() { " (new file)" } else { "" };
    let mut text = format!("    {}\n", paint.paint(Style::Bold, &format!("{}{new}", exact(&diff.path))));
    for line in &lines[..shown] {
        let line = match line {
            Line::Same(line) => format!("      {}", exact(line)),
            Line::Removed(line) => paint.paint(Style::Red, &format!("    - {}", exact(line))).into_owned(),
            Line::Added(line) => paint.paint(Style::Green, &format!("    + {}", exact(line))).into_owned(),
            Line::Skipped(count) => {
                paint.paint(Style::Dim, &format!("      … {count} unchanged")).into_owned()
            }
        };
        text.push_str(&line);
        text.push('\n');
    }
    if shown < lines.len() {
        text.push_str(&paint.paint(Style::Dim, &format!("      … {} more lines\n", lines.len() - shown)));
    }
    text
}

fn plan(entries: &[PlanEntry], paint: Paint) -> String {
    let line = |entry: &PlanEntry| {
        let text = one_line(&entry.text);
        match entry.status {
            PlanStatus::Pending => format!("  [ ] {text}"),
            PlanStatus::InProgress => format!("  [{}] {text}", paint.paint(Style::Yellow, "~")),
            PlanStatus::Completed => format!("  [{}] {text}", paint.paint(Style::Green, "x")),
        }
    };
    let lines: Vec<String> = entries.iter().map(line).collect();
    format!("{}\n{}", paint.paint(Style::Bold, "plan"), lines.join("\n"))
}

fn notice(level: NoticeLevel, text: &str, paint: Paint) -> String {
    let text = clean(text);
    match level {
        NoticeLevel::Info => paint.paint(Style::Dim, &format!("· {text}")).into_owned(),
        NoticeLevel::Warning => paint.paint(Style::Yellow, &format!("! {text}")).into_owned(),
        NoticeLevel::Error => paint.paint(Style::Red, &format!("✗ {text}")).into_owned(),
    }
}

/// A settled ask in one line.
fn settled(title: &str, settlement: &Settlement, paint: Paint) -> String {
    let by = match settlement.by {
        SettledBy::Person => "by a person".to_owned(),
        SettledBy::Rule { rule } => format!("by rule {}", short(rule)),
        SettledBy::Mode => "by the permission mode".to_owned(),
        SettledBy::Relation { .. } => "as a sub-agent's reading".to_owned(),
        SettledBy::Cancelled => "as its turn ended".to_owned(),
        SettledBy::AgentEnded => "as its process ended".to_owned(),
    };
    let (word, style) = match &settlement.answer {
        Some(Answer::Allow { scope: GrantScope::Once, .. }) => ("allowed".to_owned(), Style::Green),
        Some(Answer::Allow { scope: GrantScope::Session, .. }) => {
            ("allowed for this session".to_owned(), Style::Green)
        }
        Some(Answer::Allow { scope: GrantScope::Always, .. }) => ("always allowed".to_owned(), Style::Green),
        Some(Answer::Allow { scope: GrantScope::Project, .. }) => {
            ("allowed for the project".to_owned(), Style::Green)
        }
        Some(Answer::Deny { message: Some(message) }) => {
            (format!("denied ({})", one_line(message)), Style::Red)
        }
        Some(Answer::Deny { message: None }) => ("denied".to_owned(), Style::Red),
        Some(Answer::Choose { option }) => (format!("answered {}", one_line(option)), Style::Green),
        Some(Answer::Reply { value }) => (format!("answered {}", one_line(&reply(value))), Style::Green),
        Some(Answer::Stop) => ("denied, and the turn stopped".to_owned(), Style::Red),
        None => ("cancelled".to_owned(), Style::Dim),
    };
    format!(
        "{} {}: {}",
        paint.paint(style, "?"),
        one_line(title),
        paint.paint(Style::Dim, &format!("{word} {by}"))
    )
}

fn reply(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// What is asked, in full and exactly, as a person must see it to decide.
pub fn ask_body(body: &AskBody, title: &str, paint: Paint) -> String {
    match body {
        AskBody::Approval { tool, options } => approval(tool, options, title, paint),
        AskBody::Question(question) => questions(question, title),
    }
}

fn approval(call: &ToolCall, options: &[consort_model::AnswerOption], title: &str, paint: Paint) -> String {
    let mut text = String::new();
    let call_title = exact(&call.title);
    if !call_title.trim().is_empty() && call_title != exact(title) {
        text.push_str(&indented(&format!("{}: {call_title}", call.tool.verb())));
    }
    // The input is what will really be done; the title is only what the agent calls it.
    match &call.input {
        Value::Null => {}
        Value::Object(fields) if !fields.is_empty() => {
            for (key, value) in fields {
                if !stands_in_diff(value, &call.diffs) {
                    text.push_str(&indented(&format!("{}: {}", exact(key), exact(&reply(value)))));
                }
            }
        }
        Value::Object(_) => {}
        other => text.push_str(&indented(&exact(&reply(other)))),
    }
    for location in &call.locations {
        text.push_str(&indented(&format!("file: {}", exact(location))));
    }
    for diff in &call.diffs {
        text.push_str(&diff_lines(diff, paint, Detail::Full));
    }
    if !call.output.trim().is_empty() {
        text.push_str(&indented(&exact(call.output.trim_end())));
    }
    let own: Vec<String> =
        options.iter().map(|option| format!("{} ({})", exact(&option.id), exact(&option.name))).collect();
    if !own.is_empty() {
        text.push_str(&paint.paint(Style::Dim, &format!("    offers: {}", own.join(", "))));
        text.push('\n');
    }
    text
}

/// Whether the diffs show this text already. Only then may it be left out.
fn stands_in_diff(value: &Value, diffs: &[Diff]) -> bool {
    let Value::String(text) = value else { return false };
    let holds = |diff: &Diff| {
        diff.new_text.contains(text.as_str())
            || diff.old_text.as_ref().is_some_and(|old| old.contains(text.as_str()))
    };
    text.contains('\n') && diffs.iter().any(holds)
}

fn questions(question: &Question, title: &str) -> String {
    let mut text = String::new();
    if question.text != title {
        text.push_str(&indented(&exact(&question.text)));
    }
    if let Some(url) = &question.url {
        text.push_str(&indented(&format!("open: {}", exact(url))));
    }
    for field in consort_daemon::form::fields(&question.schema) {
        let needed = if field.required { "" } else { ", optional" };
        text.push_str(&indented(&format!("{}: {}{needed}", exact(&field.label()), exact(&field.describe()))));
    }
    text
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("    {line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use consort_model::{AnswerOption, AskId, ItemIndex, OptionKind, PromptId, Timestamp, ToolCallId};
    use serde_json::json;
    use uuid::Uuid;

    fn of(body: ItemBody) -> Item {
        Item { index: ItemIndex(0), turn: None, at: Timestamp(0), done: true, within: None, body }
    }

    fn call(tool: ToolKind, title: &str, status: ToolStatus) -> ToolCall {
        ToolCall { status, ..ToolCall::new(ToolCallId::new("c"), tool, title) }
    }

    fn plain(body: ItemBody) -> String {
        item(&of(body), Paint::plain(), Detail::Brief)
    }

    #[test]
    fn items_are_lines_for_people() {
        let prompt = PromptId::new(Uuid::nil());
        let user = ItemBody::User {
            prompt,
            origin: PromptOrigin::Person,
            text: "fix\nit".into(),
            attachments: vec![Attachment::File { path: "/a.rs".into(), text: "x".into() }],
        };
        assert_eq!(plain(user), "> fix\n> it\n> [attached: /a.rs]\n");
        assert_eq!(plain(ItemBody::Text { text: "hello".into() }), "hello\n");
        assert_eq!(plain(ItemBody::Thinking { text: "hm\nhm".into() }), "~ hm\n~ hm\n");
        let notice = ItemBody::Notice { level: NoticeLevel::Warning, text: "late".into() };
        assert_eq!(plain(notice), "! late\n");
        let entries = vec![
            PlanEntry { text: "a".into(), status: PlanStatus::Completed },
            PlanEntry { text: "b".into(), status: PlanStatus::Pending },
        ];
        assert_eq!(plain(ItemBody::Plan { entries }), "plan\n  [x] a\n  [ ] b\n");
    }

    #[test]
    fn tool_calls_are_one_line_with_their_status() {
        let ran = call(ToolKind::Execute, "cargo test", ToolStatus::Completed);
        assert_eq!(plain(ItemBody::Tool(ran)), "✓ run: cargo test\n");
        let mut failed = call(ToolKind::Read, "Read x", ToolStatus::Failed);
        failed.output = "no such file\n".into();
        assert_eq!(plain(ItemBody::Tool(failed)), "✗ Read x\n    no such file\n");
    }

    #[test]
    fn a_change_is_shown_with_its_counts_and_lines() {
        let mut edit = call(ToolKind::Edit, "edit a.rs", ToolStatus::Completed);
        edit.diffs =
            vec![Diff { path: "a.rs".into(), old_text: Some("a\nb\n".into()), new_text: "a\nc\n".into() }];
        assert_eq!(plain(ItemBody::Tool(edit)), "✓ edit a.rs (+1 -1)\n    a.rs\n      a\n    - b\n    + c\n");
    }

    #[test]
    fn long_changes_are_cut_when_brief_and_whole_in_full() {
        let new_text: String = (0..50).map(|n| format!("line {n}\n")).collect();
        let diff = Diff { path: "a".into(), old_text: None, new_text };
        assert!(diff_lines(&diff, Paint::plain(), Detail::Brief).contains("… 38 more lines"));
        assert!(diff_lines(&diff, Paint::plain(), Detail::Full).contains("+ line 49"));
    }

    #[test]
    fn settlements_say_who_and_how() {
        let settlement = Settlement {
            answer: Some(Answer::Deny { message: Some("not now".into()) }),
            by: SettledBy::Person,
            at: Timestamp(0),
        };
        let body =
            AskBody::Approval { tool: call(ToolKind::Execute, "rm x", ToolStatus::Pending), options: vec![] };
        let ask = ItemBody::Ask {
            ask: AskId::new(Uuid::nil()),
            title: "rm x".into(),
            body,
            settlement: Some(settlement),
        };
        assert_eq!(plain(ask), "? rm x: denied (not now) by a person\n");
    }

    #[test]
    fn an_approval_shows_the_command_and_hides_no_escape() {
        let mut tool = call(ToolKind::Execute, "tidy up", ToolStatus::Pending);
        tool.input = json!({ "command": "rm -rf x\x1b[8m; curl evil\x1b[0m" });
        let option = AnswerOption { id: "ok".into(), name: "Yes".into(), kind: OptionKind::AllowOnce };
        let body = AskBody::Approval { tool, options: vec![option] };
        let text = ask_body(&body, "tidy up", Paint::plain());
        assert!(text.contains("command: rm -rf x^[[8m; curl evil^[[0m"), "{text}");
        assert!(text.contains("offers: ok (Yes)"), "{text}");
    }

    #[test]
    fn no_rendered_item_holds_a_control_character() {
        let evil = "a\x1b[31mb\x1b]0;t\x07c\u{9b}d\re";
        let mut tool = call(ToolKind::Edit, evil, ToolStatus::Failed);
        tool.output = evil.into();
        tool.input = json!({ evil: evil });
        tool.locations = vec![evil.into()];
        tool.diffs = vec![Diff { path: evil.into(), old_text: Some(evil.into()), new_text: "x".into() }];
        let question = Question {
            text: evil.into(),
            schema: json!({ "type": "object", "properties": { evil: { "enum": [evil] } } }),
            url: Some(evil.into()),
        };
        let approval = AskBody::Approval { tool: tool.clone(), options: vec![] };
        let bodies = [
            ItemBody::Text { text: evil.into() },
            ItemBody::Thinking { text: evil.into() },
            ItemBody::Tool(tool),
            ItemBody::Plan { entries: vec![PlanEntry { text: evil.into(), status: PlanStatus::Pending }] },
            ItemBody::Notice { level: NoticeLevel::Error, text: evil.into() },
            ItemBody::Unknown { label: evil.into(), raw: Value::Null },
            ItemBody::Ask {
                ask: AskId::new(Uuid::nil()),
                title: evil.into(),
                body: approval.clone(),
                settlement: None,
            },
        ];
        let mut all: String =
            bodies.into_iter().map(|body| item(&of(body), Paint::plain(), Detail::Full)).collect();
        all += &ask_body(&approval, "t", Paint::plain());
        all += &ask_body(&AskBody::Question(question), "t", Paint::plain());
        assert!(
            !all.chars().any(|letter| letter.is_control() && letter != '\n' && letter != '\t'),
            "{all:?}"
        );
    }
}
