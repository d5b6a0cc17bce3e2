//! Texts to read: every key, what an agent changed, an item of a conversation.

use consort_model::DiffText;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::{about, middle};
use crate::app::{App, Hit};
use crate::keys::{Action, Context, TABLE};
use crate::overlay::pager::Text;
use crate::overlay::{Pager, Whole};
use crate::text::wrap::Prefix;
use crate::text::{clean, diff, width};
use crate::transcript::item::prose;
use crate::view::pane::mark_found;
use crate::view::{Canvas, welcome};

pub(super) fn draw(app: &mut App, canvas: &mut Canvas<'_>, area: Rect, pager: &mut Pager) {
    let theme = app.theme;
    if let Text::Item(whole) = &mut pager.text {
        pager.height = draw_whole(app, canvas, area, whole);
        return;
    }
    let (title, columns) = match &pager.text {
        Text::Help => ("Every key".to_owned(), 96),
        Text::About(agent) => (app.name_of(*agent), 100),
        Text::Welcome => ("Consort".to_owned(), 96),
        Text::Changes(agent, _) => (format!("What changed where {} works", app.name_of(*agent)), area.width),
        Text::Item(_) => return,
    };
    let inside = columns.min(area.width.saturating_sub(2)).saturating_sub(4);
    // What an agent does changes while one looks at it; the others stay as they were laid out.
    let changes = matches!(pager.text, Text::About(_) | Text::Welcome);
    if changes || pager.lines.as_ref().is_none_or(|(laid, _)| *laid != inside) {
        let lines = match &pager.text {
            Text::Help => help(app, inside.into()),
            Text::About(agent) => about::lines(app, *agent, inside.into()),
            Text::Welcome => welcome::lines(app, inside.into()).into_iter().map(|(line, _)| line).collect(),
            Text::Changes(_, None) => vec![Line::styled("asking git…", theme.dim)],
            Text::Changes(_, Some(Err(why))) => prose(why, theme.text, inside.into(), &Prefix::none()),
            Text::Item(_) => vec![],
            Text::Changes(_, Some(Ok(diff))) => patch(diff, inside.into(), app, &mut pager.marks),
        };
        pager.lines = Some((inside, lines));
    }
    // As high as the text is; but what git says comes later, and what it is put into does not jump then.
    let count = pager.lines.as_ref().map_or(0, |(_, lines)| lines.len());
    let rows = if changes { u16::try_from(count + 2).unwrap_or(u16::MAX) } else { u16::MAX };
    let area = middle(area, columns, rows);
    canvas.clear(area);
    app.hits.add(area, Hit::Overlay);
    let inner = canvas.frame(area, &title, theme.border_focused);
    if inner.height == 0 {
        return;
    }
    pager.height = inner.height.into();
    pager.step(0);
    let Some((_, lines)) = &pager.lines else { return };
    for (y, line) in (inner.top()..inner.bottom()).zip(lines.iter().skip(pager.top)) {
        canvas.line(inner.x, y, inner.width, line);
    }
    let below = lines.len().saturating_sub(pager.top + usize::from(inner.height));
    draw_foot(app, canvas, area, below);
}

/// Draws an item with all that it holds; how many rows of it are on the screen.
fn draw_whole(app: &mut App, canvas: &mut Canvas<'_>, area: Rect, whole: &mut Whole) -> usize {
    let theme = app.theme;
    let area = middle(area, area.width, u16::MAX);
    canvas.clear(area);
    app.hits.add(area, Hit::Overlay);
    let inner = canvas.frame(area, &whole.title, theme.border_focused);
    if inner.height == 0 {
        return 0;
    }
    let (lines, below) = whole.view(inner.width.into(), inner.height.into(), theme.text);
    for (y, line) in (inner.top()..inner.bottom()).zip(&lines) {
        canvas.line(inner.x, y, inner.width, line);
        if !whole.searched.is_empty() {
            mark_found(canvas, Rect { y, height: 1, ..inner }, &whole.searched);
        }
    }
    draw_foot(app, canvas, area, below);
    inner.height.into()
}

/// How many lines follow, and what closes it.
fn draw_foot(app: &App, canvas: &mut Canvas<'_>, area: Rect, below: usize) {
    let close = app.keys.label(Action::PagerLeave);
    let words = match below {
        0 => format!(" {close} closes "),
        1 => format!(" 1 more line · {close} closes "),
        below => format!(" {below} more lines · {close} closes "),
    };
    canvas.right(area.right() - 2, area.bottom() - 1, area.width - 4, &words, app.theme.dim);
}

fn help(app: &App, columns: usize) -> Vec<Line<'static>> {
    let theme = &app.theme;
    let mut lines = Vec::new();
    for context in Context::ALL {
        if !lines.is_empty() {
            lines.push(Line::default());
        }
        lines.push(Line::styled(context.title(), theme.heading_small));
        for binding in TABLE.iter().filter(|binding| binding.context == context) {
            let labels = app.keys.all_labels(binding);
            let labels = width::fit(&labels, 24).into_owned();
            let help = width::cut(binding.help, columns.saturating_sub(26)).into_owned();
            lines.push(Line::from(vec![
                Span::styled(labels, theme.key),
                Span::styled(format!("  {help}"), theme.text),
            ]));
        }
    }
    lines.push(Line::default());
    lines.push(Line::styled("[keys] in config.toml changes them; docs/ui.md has their names.", theme.dim));
    lines
}

/// The changed files with their lines, then what changed in each.
fn patch(diff: &DiffText, columns: usize, app: &App, marks: &mut Vec<usize>) -> Vec<Line<'static>> {
    let theme = &app.theme;
    marks.clear();
    if diff.changes.files.is_empty() && diff.text.is_empty() {
        let since = match diff.changes.base.as_str() {
            "HEAD" => "the last commit",
            base => base,
        };
        return prose(&format!("Nothing changed since {since}."), theme.text, columns, &Prefix::none());
    }
    let mut lines = Vec::new();
    for file in &diff.changes.files {
        let name = match &file.old_path {
            Some(old) => format!("{old} → {}", file.path),
            None => file.path.clone(),
        };
        let name = clean::one_line(&name).into_owned();
        let mut spans = vec![
            Span::styled(format!("{} ", file.change.letter()), theme.dim),
            Span::styled(width::fit(&name, columns.saturating_sub(18).min(60)).into_owned(), theme.text),
        ];
        match (file.added, file.removed) {
            (Some(added), Some(removed)) => {
                spans.push(Span::styled(format!(" +{added}"), theme.good));
                spans.push(Span::styled(format!(" -{removed}"), theme.bad));
            }
            _ => spans.push(Span::styled(" not text", theme.dim)),
        }
        lines.push(Line::from(spans));
    }
    let mut sum = diff.changes.sum();
    if diff.truncated {
        sum.push_str("; the diff is longer than is shown");
    }
    lines.extend(prose(&sum, theme.dim, columns, &Prefix::none()));
    lines.push(Line::default());
    if !diff::is_patch(&diff.text) {
        lines.extend(prose(&diff.text, theme.text, columns, &Prefix::none()));
        return lines;
    }
    for file in files(&diff.text) {
        marks.push(lines.len());
        lines.extend(diff::patch(file, columns, theme));
        lines.push(Line::default());
    }
    lines
}

/// The parts of a patch, a file each.
fn files(patch: &str) -> Vec<&str> {
    let mut starts: Vec<usize> = patch.match_indices("\ndiff --git ").map(|(at, _)| at + 1).collect();
    starts.insert(0, 0);
    let ends = starts.iter().skip(1).copied().chain([patch.len()]);
    starts.iter().zip(ends).map(|(start, end)| &patch[*start..end]).collect()
}
