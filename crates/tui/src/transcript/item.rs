//! How an item of a conversation looks: folded to what one wants to know, or with everything it holds.

use consort_model::image::size;
use consort_model::{
    AgentId, Answer, AskBody, Attachment, Diff, GrantScope, Image, Item, ItemBody, NoticeLevel, PlanEntry,
    PlanStatus, PromptOrigin, SettledBy, Settlement, ToolCall, ToolKind, ToolStatus,
};
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use crate::pictures::{Drawing, Pictures};
use crate::text::theme::Theme;
use crate::text::wrap::{self, Prefix};
use crate::text::{clean, diff, markdown, width};

/// Lines of output that a folded tool call shows.
const FOLDED_OUTPUT: usize = 3;

/// Lines of a diff that a folded tool call shows.
const FOLDED_DIFF: usize = 12;

/// Lines that an unfolded item shows at most; nobody reads more here, and it can be opened whole.
const MAX_LINES: usize = 4000;

/// How things look, and where.
pub struct Look<'a> {
    /// The theme.
    pub theme: &'a Theme,
    /// How many columns there are.
    pub width: u16,
    /// The names of agents.
    pub name_of: &'a dyn Fn(AgentId) -> String,
    /// Images that are drawn.
    pub pictures: &'a Pictures,
    /// The key that opens an item whole.
    pub opens: &'a str,
}

/// Whether a line is left free between two items.
pub fn has_gap(before: &Item, this: &Item) -> bool {
    let is_work = |item: &Item| {
        matches!(item.body, ItemBody::Tool(_) | ItemBody::Ask { .. } | ItemBody::Thinking { .. })
    };
    !(is_work(before) && is_work(this))
}

/// How many bytes the images in it have; none: there are no images.
pub fn image_bytes(item: &Item) -> usize {
    let sent = |attachment: &Attachment| match attachment {
        Attachment::Image(image) => image.data.len(),
        Attachment::File { .. } => 0,
    };
    match &item.body {
        ItemBody::Image(image) => image.data.len(),
        ItemBody::Tool(call) => call.images.iter().map(|image| image.data.len()).sum(),
        ItemBody::User { attachments, .. } => attachments.iter().map(sent).sum(),
        _ => 0,
    }
}

/// The lines of an item.
pub fn lines(item: &Item, open: bool, look: &Look<'_>) -> Vec<Line<'static>> {
    let nested = item.within.is_some();
    let columns = usize::from(look.width).saturating_sub(if nested { 2 } else { 0 }).max(4);
    let mut lines = body(&item.body, item.done, open, columns, look);
    if lines.len() > MAX_LINES {
        let more = lines.len() - MAX_LINES;
        lines.truncate(MAX_LINES);
        lines.push(Line::styled(
            format!("… {more} more lines; {} opens the item whole", look.opens),
            look.theme.dim,
        ));
    }
    if nested {
        for line in &mut lines {
            line.spans.insert(0, Span::styled("│ ", look.theme.border));
        }
    }
    lines
}

fn body(body: &ItemBody, done: bool, open: bool, columns: usize, look: &Look<'_>) -> Vec<Line<'static>> {
    let theme = look.theme;
    match body {
        ItemBody::User { origin, text, attachments, .. } => {
            user(*origin, text, attachments, open, columns, look)
        }
        ItemBody::Image(image) => picture(image, open, columns, &Prefix::same(vec![]), look),
        ItemBody::Text { text } => markdown::render(text, columns, theme),
        ItemBody::Thinking { text } => thinking(text, done, open, columns, theme),
        ItemBody::Tool(call) => tool(call, open, columns, look),
        ItemBody::Plan { entries } => plan(entries, columns, theme),
        ItemBody::Ask { title, body, settlement, .. } => {
            ask(title, body, settlement.as_ref(), open, columns, look)
        }
        ItemBody::Notice { level, text } => {
            let (mark, style) = match level {
                NoticeLevel::Info => ("· ", theme.dim),
                NoticeLevel::Warning => ("! ", theme.warning),
                NoticeLevel::Error => ("✗ ", theme.bad),
            };
            prose(text, style, columns, &Prefix::hanging(vec![Span::styled(mark, style)]))
        }
        ItemBody::Unknown { label, raw } => {
            let mut lines = vec![Line::styled(format!("? {}", clean::one_line(label)), theme.dim)];
            if open {
                lines.extend(output(&pretty(raw), columns, theme.dim, theme));
            }
            lines
        }
    }
}

/// Plain text, wrapped.
pub fn prose(text: &str, style: Style, columns: usize, prefix: &Prefix) -> Vec<Line<'static>> {
    let text = clean::sanitize(text);
    let rest = Prefix::same(prefix.rest.clone());
    let wrap_line = |(at, line): (usize, &str)| {
        wrap::words(&[Span::styled(line.to_owned(), style)], columns, if at == 0 { prefix } else { &rest })
    };
    text.trim_end_matches('\n').split('\n').enumerate().flat_map(wrap_line).collect()
}

/// What a program said, line by line.
fn output(text: &str, columns: usize, style: Style, theme: &Theme) -> Vec<Line<'static>> {
    let prefix = Prefix::same(vec![Span::styled("  │ ", theme.border)]);
    let text = clean::output(text);
    let lines = text.trim_end_matches('\n').split('\n');
    lines.flat_map(|line| wrap::hard(&[Span::styled(line.to_owned(), style)], columns, &prefix)).collect()
}

fn user(
    origin: PromptOrigin,
    text: &str,
    attachments: &[Attachment],
    open: bool,
    columns: usize,
    look: &Look<'_>,
) -> Vec<Line<'static>> {
    let theme = look.theme;
    let prefix = Prefix::same(vec![Span::styled("▌ ", theme.person)]);
    let mut lines = Vec::new();
    if let PromptOrigin::Agent { agent } = origin {
        let from = format!("from {}", (look.name_of)(agent));
        lines.extend(prose(&from, theme.dim, columns, &prefix));
    }
    lines.extend(prose(text, theme.person, columns, &prefix));
    for attachment in attachments {
        lines.extend(match attachment {
            Attachment::Image(image) => picture(image, open, columns, &prefix, look),
            Attachment::File { path, text } => {
                prose(&format!("[file {path} {}]", size(text.len())), theme.dim, columns, &prefix)
            }
        });
    }
    lines
}

/// An image: what it is, and what is to be seen where the terminal can show it.
fn picture(
    image: &Image,
    open: bool,
    columns: usize,
    prefix: &Prefix,
    look: &Look<'_>,
) -> Vec<Line<'static>> {
    let room = columns.saturating_sub(width::of_spans(&prefix.rest));
    let (failed, drawn) = match look.pictures.find(image, room, open) {
        Drawing::None => ("", vec![]),
        Drawing::Failed => (", cannot be shown", vec![]),
        Drawing::Lines(lines) => ("", lines),
    };
    let mut lines = prose(&format!("[{}{failed}]", image.words()), look.theme.dim, columns, prefix);
    for mut line in drawn {
        line.spans.splice(0..0, prefix.rest.iter().cloned());
        lines.push(line);
    }
    lines
}

fn thinking(text: &str, done: bool, open: bool, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let prefix = Prefix::hanging(vec![Span::styled("∴ ", theme.thinking)]);
    if open {
        return prose(text, theme.thinking, columns, &prefix);
    }
    // While it thinks, what it thinks now; afterwards, what it began with.
    let text = text.trim();
    let line = if done { text.lines().next() } else { text.lines().rfind(|line| !line.trim().is_empty()) };
    let line = clean::one_line(line.unwrap_or_default()).into_owned();
    let line = if line.is_empty() { "thinking".to_owned() } else { line };
    let more = done && text.lines().count() > 1;
    let kept = width::cut(&line, columns.saturating_sub(if more { 4 } else { 2 })).into_owned();
    let mut spans = vec![Span::styled("∴ ", theme.thinking), Span::styled(kept, theme.thinking)];
    if more {
        spans.push(Span::styled(" ›", theme.dim));
    }
    vec![Line::from(spans)]
}

/// The mark and style of a tool call's status.
pub fn tool_mark(status: ToolStatus, theme: &Theme) -> (&'static str, Style) {
    match status {
        ToolStatus::Pending => ("○", theme.dim),
        ToolStatus::Running => ("◐", theme.working),
        ToolStatus::Completed => ("●", theme.good),
        ToolStatus::Failed => ("✗", theme.bad),
    }
}

fn tool(call: &ToolCall, open: bool, columns: usize, look: &Look<'_>) -> Vec<Line<'static>> {
    let theme = look.theme;
    let (mark, style) = tool_mark(call.status, theme);
    let word = call.tool.verb();
    let head = vec![Span::styled(format!("{mark} "), style), Span::styled(format!("{word} "), theme.dim)];
    let mut lines;
    let title = clean::sanitize(&call.title);
    if open {
        lines = prose(&title, theme.text, columns, &Prefix::hanging(head));
    } else {
        let room = columns.saturating_sub(width::of_spans(&head));
        let mut spans = head;
        spans.push(Span::styled(width::cut(&clean::one_line(&title), room).into_owned(), theme.text));
        lines = vec![Line::from(spans)];
    }
    lines.extend(diffs(&call.diffs, open, columns, theme));
    let beside = Prefix::same(vec![Span::styled("  │ ", theme.border)]);
    lines.extend(call.images.iter().flat_map(|image| picture(image, open, columns, &beside, look)));
    if open && !call.input.is_null() && call.diffs.is_empty() {
        lines.extend(output(&pretty(&call.input), columns, theme.dim, theme));
    }
    let text = call.output.trim_end();
    if !text.is_empty() {
        let all = output(text, columns, theme.dim, theme);
        let folded = call.status == ToolStatus::Completed && call.tool != ToolKind::Execute;
        let keep = if open {
            all.len()
        } else if folded {
            0
        } else {
            FOLDED_OUTPUT
        };
        let hidden = all.len().saturating_sub(keep);
        // The end of what a program says tells how it went.
        let skip = if open { 0 } else { hidden };
        if hidden > 0 && !open {
            let words = format!("  │ {} line{} ›", hidden, if hidden == 1 { "" } else { "s" });
            lines.push(Line::styled(words, theme.dim));
        }
        lines.extend(all.into_iter().skip(skip));
    }
    lines
}

/// A change, set in under its tool call.
pub fn indented(change: &Diff, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let mut lines = diff::render(change, columns.saturating_sub(2).max(1), theme);
    for line in &mut lines {
        line.spans.insert(0, Span::raw("  "));
    }
    lines
}

/// The changes of a tool call: whole, or the first lines of them.
pub fn diffs(diffs: &[Diff], open: bool, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    for diff in diffs {
        let rendered = indented(diff, columns, theme);
        let hidden = rendered.len().saturating_sub(FOLDED_DIFF);
        if open || hidden <= 2 {
            lines.extend(rendered);
        } else {
            lines.extend(rendered.into_iter().take(FOLDED_DIFF));
            lines.push(Line::styled(format!("  │ {hidden} more lines ›"), theme.dim));
        }
    }
    lines
}

fn plan(entries: &[PlanEntry], columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    entries
        .iter()
        .flat_map(|entry| {
            let (mark, style) = match entry.status {
                PlanStatus::Pending => ("☐ ", theme.text),
                PlanStatus::InProgress => ("▶ ", theme.working),
                PlanStatus::Completed => ("☑ ", theme.dim),
            };
            prose(&entry.text, style, columns, &Prefix::hanging(vec![Span::styled(mark, style)]))
        })
        .collect()
}

fn ask(
    title: &str,
    body: &AskBody,
    settlement: Option<&Settlement>,
    open: bool,
    columns: usize,
    look: &Look<'_>,
) -> Vec<Line<'static>> {
    let theme = look.theme;
    let (mark, style, how) = match settlement {
        None => ("?", theme.warning, "waits for you".to_owned()),
        Some(settlement) => {
            let (mark, style) = match &settlement.answer {
                Some(Answer::Allow { .. } | Answer::Choose { .. } | Answer::Reply { .. }) => {
                    ("✓", theme.good)
                }
                Some(Answer::Deny { .. } | Answer::Stop) => ("✗", theme.bad),
                None => ("–", theme.dim),
            };
            (mark, style, settled(settlement, look))
        }
    };
    let head = vec![Span::styled(format!("{mark} "), style)];
    let words = format!("{} — {how}", clean::one_line(title));
    let mut lines = if open {
        prose(&words, theme.dim, columns, &Prefix::hanging(head))
    } else {
        // How it ended is what one wants to know: the title gives way.
        let room = columns.saturating_sub(2 + width::of(&how) + 3);
        let title = width::cut(&clean::one_line(title), room.max(8)).into_owned();
        let text = width::cut(&format!("{title} — {how}"), columns.saturating_sub(2)).into_owned();
        vec![Line::from([head, vec![Span::styled(text, theme.dim)]].concat())]
    };
    if open {
        match body {
            AskBody::Approval { tool, .. } => {
                lines.extend(diffs(&tool.diffs, true, columns, theme));
                if tool.diffs.is_empty() && !tool.input.is_null() {
                    lines.extend(output(&pretty(&tool.input), columns, theme.dim, theme));
                }
            }
            AskBody::Question(question) => {
                lines.extend(prose(
                    &question.text,
                    theme.text,
                    columns,
                    &Prefix::same(vec![Span::raw("  ")]),
                ));
            }
        }
    }
    lines
}

/// How an ask ended, in a few words: what was decided, by whom, and what was said with it.
pub fn settled(settlement: &Settlement, look: &Look<'_>) -> String {
    let (what, said) = match &settlement.answer {
        Some(Answer::Allow { scope, pattern }) => {
            let reach = match scope {
                GrantScope::Once => "allowed once",
                GrantScope::Session => "allowed for this session",
                GrantScope::Always => "always allowed",
                GrantScope::Project => "always allowed in this folder",
            };
            (reach, pattern.clone())
        }
        Some(Answer::Deny { message }) => ("denied", message.clone()),
        Some(Answer::Choose { option }) => ("answered", Some(option.clone())),
        Some(Answer::Reply { value: serde_json::Value::String(text) }) => ("answered", Some(text.clone())),
        Some(Answer::Reply { value }) => ("answered", Some(value.to_string())),
        Some(Answer::Stop) => ("denied, turn stopped", None),
        None => ("not answered", None),
    };
    let by = match settlement.by {
        SettledBy::Person => " by you".to_owned(),
        SettledBy::Rule { .. } => " by a rule".to_owned(),
        SettledBy::Mode => " by the permission mode".to_owned(),
        SettledBy::Relation { parent } => format!(", as a sub-agent of {} may", (look.name_of)(parent)),
        SettledBy::Cancelled => ": cancelled".to_owned(),
        SettledBy::AgentEnded => ": the agent ended".to_owned(),
    };
    let said = said.map(|said| format!(": {}", clean::one_line(&said))).unwrap_or_default();
    format!("{what}{by}{said}")
}

/// JSON for people: a lone command or text as it is, everything else indented.
pub fn pretty(value: &serde_json::Value) -> String {
    let lone = match value {
        serde_json::Value::String(text) => Some(text.as_str()),
        serde_json::Value::Object(fields) if fields.len() == 1 => {
            fields.get("command").and_then(serde_json::Value::as_str)
        }
        _ => None,
    };
    match lone {
        Some(text) => text.to_owned(),
        None => serde_json::to_string_pretty(value).unwrap_or_default(),
    }
}

/// Whether words that an item has are in the part of it that is left out even where it is unfolded.
pub fn hides(item: &Item, words: &str, look: &Look<'_>) -> bool {
    // Every line but an empty one has a letter.
    if plain_text(item).len() <= MAX_LINES {
        return false;
    }
    let lines = lines(item, true, look);
    let has = |line: &Line<'_>| line.to_string().to_lowercase().contains(words);
    lines.len() > MAX_LINES && !lines.iter().take(MAX_LINES).any(has)
}

/// All that an item says, as plain text to read.
pub fn whole_text(item: &Item) -> String {
    let (title, input, output) = match &item.body {
        ItemBody::Tool(call) if call.diffs.is_empty() => (&call.title, &call.input, call.output.as_str()),
        ItemBody::Ask { title, body: AskBody::Approval { tool, .. }, .. } if tool.diffs.is_empty() => {
            (title, &tool.input, "")
        }
        ItemBody::Ask { title, body: AskBody::Question(question), .. } => {
            return format!("{title}\n{}", question.text);
        }
        ItemBody::Ask { title, body: AskBody::Approval { tool, .. }, .. } => {
            let changes = tool.diffs.iter().map(|diff| format!("\n{}\n{}", diff.path, diff.new_text));
            return std::iter::once(title.clone()).chain(changes).collect();
        }
        _ => return plain_text(item),
    };
    let input = if input.is_null() { String::new() } else { pretty(input) };
    let parts = [title.as_str(), input.as_str(), output].into_iter().filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join("\n")
}

/// What an item is, in one line.
pub fn title(item: &Item) -> Option<String> {
    match &item.body {
        ItemBody::Tool(call) => Some(format!("{} {}", call.tool.verb(), clean::one_line(&call.title))),
        _ => None,
    }
}

/// An item as plain text, for copying and searching.
pub fn plain_text(item: &Item) -> String {
    match &item.body {
        ItemBody::User { text, .. }
        | ItemBody::Text { text }
        | ItemBody::Thinking { text }
        | ItemBody::Notice { text, .. } => text.clone(),
        ItemBody::Tool(call) => {
            let mut text = call.title.clone();
            for diff in &call.diffs {
                text.push_str(&format!("\n{}\n{}", diff.path, diff.new_text));
            }
            if !call.output.is_empty() {
                text.push('\n');
                text.push_str(&call.output);
            }
            text
        }
        ItemBody::Plan { entries } => {
            entries.iter().map(|entry| entry.text.as_str()).collect::<Vec<_>>().join("\n")
        }
        ItemBody::Ask { title, .. } => title.clone(),
        ItemBody::Image(image) => image.words(),
        ItemBody::Unknown { label, raw } => format!("{label} {raw}"),
    }
}
