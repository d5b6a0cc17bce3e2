//! Texts to read: every key, what an agent changed.

use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::middle;
use crate::app::{App, Hit};
use crate::keys::{Context, TABLE};
use crate::overlay::Pager;
use crate::overlay::pager::Text;
use crate::text::wrap::Prefix;
use crate::text::{diff, width};
use crate::transcript::item::prose;
use crate::view::Canvas;

pub(super) fn draw(app: &mut App, canvas: &mut Canvas<'_>, area: Rect, pager: &mut Pager) {
    let theme = app.theme;
    let (title, columns) = match &pager.text {
        Text::Help => ("Every key".to_owned(), 96),
        Text::Changes(agent, _) => (format!("What changed where {} works", app.name_of(*agent)), area.width),
    };
    let area = middle(area, columns, area.height.saturating_sub(2));
    canvas.clear(area);
    app.hits.add(area, Hit::Overlay);
    let inner = canvas.frame(area, &title, theme.border_focused);
    if inner.height == 0 {
        return;
    }
    if pager.lines.as_ref().is_none_or(|(laid, _)| *laid != inner.width) {
        let lines = match &pager.text {
            Text::Help => help(app, inner.width.into()),
            Text::Changes(_, None) => vec![Line::styled("asking git…", theme.dim)],
            Text::Changes(_, Some(diff)) => changes(diff, inner.width.into(), app, &mut pager.marks),
        };
        pager.lines = Some((inner.width, lines));
    }
    pager.height = inner.height.into();
    pager.step(0);
    let Some((_, lines)) = &pager.lines else { return };
    for (y, line) in (inner.top()..inner.bottom()).zip(lines.iter().skip(pager.top)) {
        canvas.line(inner.x, y, inner.width, line);
    }
    let below = lines.len().saturating_sub(pager.top + usize::from(inner.height));
    let words =
        if below > 0 { format!(" {below} more lines · esc closes ") } else { " esc closes ".to_owned() };
    canvas.right(area.right() - 2, area.bottom() - 1, area.width - 4, &words, theme.dim);
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

fn changes(diff: &str, columns: usize, app: &App, marks: &mut Vec<usize>) -> Vec<Line<'static>> {
    if !diff::is_patch(diff) {
        return prose(diff, app.theme.text, columns, &Prefix::none());
    }
    let mut lines = Vec::new();
    marks.clear();
    for file in files(diff) {
        marks.push(lines.len());
        lines.extend(diff::patch(file, columns, &app.theme));
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
