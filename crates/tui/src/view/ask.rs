//! What an agent asks: the whole command or diff, who asks, and a key for each answer.

use consort_daemon::protocol::InboxEntry;
use consort_model::{Agent, Ask, AskBody, ToolCall, ToolKind};
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::Canvas;
use crate::app::{App, AskFocus, Focus, Hit};
use crate::keys::Action;
use crate::text::theme::Theme;
use crate::text::wrap::{self, Prefix};
use crate::text::{clean, markdown, width};
use crate::transcript::item::{indented, pretty, prose};

/// The lines that show what is asked, whole.
pub(super) fn lines(app: &App, agent: &Agent, ask: &Ask, columns: usize) -> Vec<Line<'static>> {
    let theme = &app.theme;
    let mut lines = Vec::new();
    let entry = InboxEntry::new(&app.state, agent, ask);
    let mut who = vec![Span::styled(clean::one_line(&agent.name).into_owned(), theme.title)];
    for above in &entry.chain {
        who.push(Span::styled(" ‹ ", theme.dim));
        who.push(Span::styled(clean::one_line(above).into_owned(), theme.dim));
    }
    match &ask.body {
        AskBody::Approval { tool, .. } => {
            who.push(Span::styled(format!(" wants to {}", verb(tool.tool)), theme.text));
            lines.extend(wrap::words(&who, columns, &Prefix::none()));
            let command = tool.input.get("command").and_then(serde_json::Value::as_str);
            // Nothing may hide in what is allowed: control and invisible characters are spelled out.
            let title = clean::exact(command.unwrap_or(&ask.title));
            lines.extend(exact_lines(&title, columns, theme));
            if command.is_some_and(|command| command != ask.title) {
                lines.extend(prose(&ask.title, theme.dim, columns, &Prefix::same(vec![Span::raw("  ")])));
            }
            for diff in &tool.diffs {
                lines.extend(indented(diff, columns, theme));
            }
            if let Some(plan) = plan_of(tool) {
                lines.extend(markdown::render(plan, columns, theme));
            }
            let only_command =
                command.is_some() && tool.input.as_object().is_some_and(|fields| fields.len() == 1);
            if tool.diffs.is_empty() && !tool.input.is_null() && !only_command && plan_of(tool).is_none() {
                let input = clean::exact(&pretty(&tool.input));
                let prefix = Prefix::same(vec![Span::styled("  │ ", theme.border)]);
                for line in input.lines() {
                    lines.extend(wrap::hard(&[Span::styled(line.to_owned(), theme.dim)], columns, &prefix));
                }
            }
            for place in &tool.locations {
                lines.push(Line::styled(format!("  {}", clean::exact(place)), theme.dim));
            }
        }
        AskBody::Question(question) => {
            who.push(Span::styled(" asks", theme.text));
            lines.extend(wrap::words(&who, columns, &Prefix::none()));
            lines.extend(prose(&question.text, theme.text, columns, &Prefix::same(vec![Span::raw("  ")])));
            if let Some(url) = &question.url {
                lines.push(Line::styled(format!("  {}", clean::exact(url)), theme.link));
            }
        }
    }
    lines
}

/// Everything that the keys are for: one, or all that are marked; and before those the one that could be marked too.
pub(super) fn lines_in_reach(
    app: &App,
    focus: &AskFocus,
    agent: &Agent,
    ask: &Ask,
    columns: usize,
) -> Vec<Line<'static>> {
    let marked = app.marked_asks(focus);
    if marked.is_empty() {
        return lines(app, agent, ask, columns);
    }
    let theme = &app.theme;
    let mut all = Vec::new();
    if !focus.marked.contains(&ask.id) {
        let words = format!("not marked ({} marks it)", app.keys.label(Action::MarkAsk));
        all.push(Line::styled(words, theme.dim));
        all.extend(lines(app, agent, ask, columns));
        all.push(Line::default());
    }
    let count = marked.len();
    for (at, (agent, ask)) in marked.into_iter().enumerate() {
        let words = match count {
            1 => "◆ marked".to_owned(),
            _ => format!("◆ {} of {count}, answered together", at + 1),
        };
        all.push(Line::styled(words, theme.accent));
        all.extend(lines(app, agent, ask, columns));
    }
    all
}

fn exact_lines(text: &str, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let prefix = Prefix::same(vec![Span::styled("  ", theme.text)]);
    let wrap_line = |line: &str| wrap::hard(&[Span::styled(line.to_owned(), theme.strong)], columns, &prefix);
    text.split('\n').flat_map(wrap_line).collect()
}

/// The plan, of a call that presents one and does nothing else.
fn plan_of(tool: &ToolCall) -> Option<&str> {
    let fields = tool.input.as_object().filter(|_| tool.tool == ToolKind::Think)?;
    fields.get("plan")?.as_str().filter(|_| fields.len() == 1)
}

fn verb(kind: ToolKind) -> &'static str {
    match kind {
        ToolKind::Execute => "run",
        ToolKind::Other | ToolKind::Think => "use a tool",
        kind => kind.verb(),
    }
}

/// The keys for the answers to an ask.
pub(super) fn buttons(ask: &Ask) -> &'static [(Action, &'static str)] {
    match &ask.body {
        AskBody::Approval { tool, .. } if plan_of(tool).is_some() => &[
            (Action::AllowOnce, "go ahead"),
            (Action::AnswerAsk, "its own answers"),
            (Action::Deny, "no"),
            (Action::DenyWith, "no, do…"),
            (Action::StopTurn, "stop"),
        ],
        AskBody::Approval { .. } => &[
            (Action::AllowOnce, "once"),
            (Action::AllowSession, "session"),
            (Action::AllowPattern, "pattern"),
            (Action::AllowAlways, "always"),
            (Action::AllowProject, "in folder"),
            (Action::Deny, "no"),
            (Action::DenyWith, "no, do…"),
            (Action::StopTurn, "stop"),
            (Action::AnswerAsk, "its own"),
        ],
        AskBody::Question(_) => {
            &[(Action::AnswerAsk, "answer"), (Action::Deny, "do not answer"), (Action::StopTurn, "stop")]
        }
    }
}

/// Draws the keys for the answers, on as many rows as they take; where there are too few, without words for the rarer ones.
pub(super) fn draw_buttons(app: &mut App, canvas: &mut Canvas<'_>, area: Rect, ask: &Ask, live: bool) {
    let theme = app.theme;
    let (mut x, mut y) = (area.x, area.y);
    let short = button_rows(app, ask, area.width, false) > area.height;
    for (action, words) in buttons(ask) {
        let words = if short { brief(*action, words) } else { words };
        let key = app.keys.label(*action).to_owned();
        let columns = (width::of(&key) + 1 + width::of(words)) as u16;
        if x > area.x && x + columns > area.right() {
            x = area.x;
            y += 1;
        }
        if y >= area.bottom() {
            break;
        }
        let (key_style, style) = if live { (theme.key, theme.text) } else { (theme.dim, theme.dim) };
        let end = canvas.text(x, y, area.right().saturating_sub(x), &key, key_style);
        let end = canvas.text(end + 1, y, area.right().saturating_sub(end + 1), words, style);
        app.hits.add(Rect::new(x, y, end.saturating_sub(x), 1), Hit::Button(*action));
        x = end + if words.is_empty() { 0 } else { 3 };
    }
}

/// The words for a key where there is little room: only those of the answers that are mostly given.
fn brief(action: Action, words: &'static str) -> &'static str {
    match action {
        Action::AllowOnce | Action::Deny | Action::AnswerAsk => words,
        _ => "",
    }
}

fn button_rows(app: &App, ask: &Ask, columns: u16, short: bool) -> u16 {
    let (mut x, mut rows) = (0, 1);
    for (action, words) in buttons(ask) {
        let words = if short { brief(*action, words) } else { words };
        let wide = (width::of(app.keys.label(*action)) + 1 + width::of(words)) as u16;
        if x > 0 && x + wide > columns {
            x = 0;
            rows += 1;
        }
        x += wide + if words.is_empty() { 0 } else { 3 };
    }
    rows
}

/// The rows for the keys within so many: at least the beginning of what is asked goes before them.
fn key_rows(app: &App, ask: &Ask, columns: u16, rows: u16, lines: usize) -> u16 {
    let whole = button_rows(app, ask, columns, false);
    if whole + lines.min(3) as u16 <= rows {
        return whole;
    }
    button_rows(app, ask, columns, true).min(rows / 2).max(1)
}

fn current<'a>(focus: &AskFocus, agent: &'a Agent) -> Option<&'a Ask> {
    agent.asks.iter().find(|ask| Some(ask.id) == focus.current).or(agent.asks.first())
}

/// How many rows what is asked takes in a pane.
pub(super) fn height(app: &App, agent: &Agent, body: Rect, focused: bool) -> u16 {
    let Some(ask) = current(&app.ask, agent) else { return 0 };
    let inner = body.width.saturating_sub(4).max(8);
    let text = match focused {
        true => lines_in_reach(app, &app.ask, agent, ask, inner.into()).len(),
        false => lines(app, agent, ask, inner.into()).len(),
    };
    let text = u16::try_from(text).unwrap_or(u16::MAX / 2);
    let rows = if focused { button_rows(app, ask, inner, false) } else { 1 };
    // A small pane still shows some of the conversation, but for one that is too small to show what is asked as well.
    let most = match focused {
        true if body.height < 12 => body.height,
        true => body.height * 3 / 4,
        false => body.height / 3,
    };
    (text + rows + 2).min(most.max(4)).min(body.height)
}

/// Draws what is asked in a pane.
pub(super) fn draw_card(app: &mut App, canvas: &mut Canvas<'_>, area: Rect, agent: &Agent, focused: bool) {
    let Some(ask) = current(&app.ask, agent).cloned() else { return };
    let has_keyboard = focused && app.focus == Focus::Ask && app.overlays.is_empty();
    let theme = app.theme;
    let style = if has_keyboard { theme.warning } else { theme.border };
    let count = agent.asks.len();
    let at = agent.asks.iter().position(|it| it.id == ask.id).unwrap_or(0) + 1;
    let marked =
        if app.ask.marked.is_empty() { String::new() } else { format!(", {} marked", app.ask.marked.len()) };
    let kind = match &ask.body {
        AskBody::Approval { .. } => "approval",
        AskBody::Question(_) => "question",
    };
    let title = if count > 1 { format!("{kind} {at} of {count}{marked}") } else { kind.to_owned() };
    app.hits.add(area, Hit::Ask);
    let inner = canvas.frame(area, &title, style);
    if inner.height == 0 {
        return;
    }
    let lines = match focused {
        true => lines_in_reach(app, &app.ask, agent, &ask, inner.width.into()),
        false => lines(app, agent, &ask, inner.width.into()),
    };
    let rows = if focused { key_rows(app, &ask, inner.width, inner.height, lines.len()) } else { 1 };
    let text = Rect { height: inner.height.saturating_sub(rows), ..inner };
    let keys = Rect { y: text.bottom(), height: inner.height - text.height, ..inner };
    if focused {
        draw_lines(&mut app.ask, canvas, text, &lines);
    } else {
        draw_plain(canvas, text, &lines);
    }
    if focused && !has_keyboard {
        let words = format!(
            "{} answers here, {} in the inbox",
            app.keys.label(Action::FocusNext),
            app.keys.label(Action::Inbox)
        );
        canvas.text(keys.x, keys.y, keys.width, &words, theme.dim);
    } else if focused {
        let live = app.ask.is_armed();
        draw_buttons(app, canvas, keys, &ask, live);
    } else {
        let words = format!("{} goes there", app.keys.label(Action::NextNeedy));
        canvas.text(keys.x, keys.y, keys.width, &words, theme.dim);
    }
}

fn draw_plain(canvas: &mut Canvas<'_>, area: Rect, lines: &[Line<'static>]) {
    for (y, line) in (area.top()..area.bottom()).zip(lines) {
        canvas.line(area.x, y, area.width, line);
    }
}

/// Draws lines from where they were scrolled to, and says if there are more.
pub(super) fn draw_lines(focus: &mut AskFocus, canvas: &mut Canvas<'_>, area: Rect, lines: &[Line<'static>]) {
    // How much more there is has a row of its own: it must not cover what is asked.
    let too_long = lines.len() > usize::from(area.height) && area.height > 1;
    let shown = if too_long { area.height - 1 } else { area.height };
    focus.count = lines.len();
    focus.height = shown.into();
    focus.scroll(0);
    for (y, line) in (area.top()..area.top() + shown).zip(lines.iter().skip(focus.top)) {
        canvas.line(area.x, y, area.width, line);
    }
    let below = lines.len().saturating_sub(focus.top + usize::from(shown));
    if below > 0 && too_long {
        let text = format!(" {below} more line{} ↓ ", if below == 1 { "" } else { "s" });
        let style = canvas.theme.status_bar;
        canvas.right(area.right(), area.bottom() - 1, area.width, &text, style);
    }
}
