//! From what is known to what is seen: pure but for the layouts that transcripts keep and the places that can be clicked.
//!
//! One module per part of the screen. [`draw`] draws the parts that are damaged into a buffer that keeps the others.

mod ask;
pub(crate) mod composer;
mod overlay;
mod pane;
mod sidebar;
mod status;
mod welcome;

use consort_model::{Agent, Status};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use crate::app::{App, Connection, Damage, Selection};
use crate::text::theme::Theme;
use crate::text::width;

/// The pictures of the spinner.
const SPINNER: [&str; 8] = ["⠋", "⠙", "⠸", "⠴", "⠦", "⠇", "⠏", "⠹"];

/// Below this width the list of agents gives way.
const NARROW: u16 = 64;

/// Where the parts of the screen are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Parts {
    /// The list of agents; without a width if it is not shown.
    pub sidebar: Rect,
    /// The panes.
    pub panes: Rect,
    /// The prompt, with the line above it.
    pub composer: Rect,
    /// The bar at the bottom.
    pub status: Rect,
}

/// Draws what is damaged; where the cursor is.
pub fn draw(app: &mut App, buffer: &mut Buffer) -> Option<(u16, u16)> {
    let damage = Damage { urgent: false, ..std::mem::take(&mut app.damage) };
    let only_spinners = damage == Damage { spinners: true, ..Damage::default() };
    if only_spinners {
        for (x, y) in &app.spinners {
            if let Some(cell) = buffer.cell_mut((*x, *y)) {
                cell.set_symbol(SPINNER[app.spin % SPINNER.len()]);
            }
        }
        return app.cursor;
    }
    let area = buffer.area;
    let parts = parts(app, area);
    let all = damage.all
        || app.selection.is_some()
        || parts != app.parts
        || !app.overlays.is_empty()
        || app.completion.is_some()
        || app.toast.as_ref().is_some_and(|toast| status::is_tall(toast, area.width));
    app.parts = parts;
    let mut canvas = Canvas { buffer, theme: app.theme };
    if all {
        app.hits.clear();
        app.spinners.clear();
        canvas.clear(area);
    }
    for (part, damaged) in [
        (parts.sidebar, damage.sidebar),
        (parts.panes, damage.panes),
        (parts.composer, damage.composer),
        (parts.status, damage.status),
    ] {
        if damaged && !all {
            app.hits.clear_within(part);
            app.spinners.retain(|(x, y)| !part.contains(ratatui::layout::Position { x: *x, y: *y }));
            canvas.clear(part);
        }
    }
    if all || damage.sidebar {
        sidebar::draw(app, &mut canvas, parts.sidebar);
    }
    if all || damage.panes {
        pane::draw_all(app, &mut canvas, parts.panes);
    }
    if all || damage.composer {
        app.cursor = composer::draw(app, &mut canvas, parts.composer);
    }
    if all || damage.status {
        status::draw(app, &mut canvas, parts.status);
    }
    if app.overlays.is_empty() {
        composer::draw_completion(app, &mut canvas, parts.composer);
    } else {
        app.cursor = overlay::draw(app, &mut canvas, area);
    }
    if !matches!(app.connection, Connection::Lost { .. }) {
        status::draw_tall_toast(app, &mut canvas, parts.status);
    }
    if let Some(selection) = &mut app.selection {
        mark_selection(selection, &mut canvas);
    }
    // What lies over a spinner is not to spin.
    let spins = |symbol: &str| SPINNER.contains(&symbol);
    app.spinners.retain(|place| buffer.cell(*place).is_some_and(|cell| spins(cell.symbol())));
    app.cursor
}

/// Marks what is selected, and reads it off the screen.
fn mark_selection(selection: &mut Selection, canvas: &mut Canvas<'_>) {
    let order = |(x, y): (u16, u16)| (y, x);
    let (first, last) = if order(selection.from) <= order(selection.to) {
        (selection.from, selection.to)
    } else {
        (selection.to, selection.from)
    };
    let style = canvas.theme.marked;
    let mut lines = Vec::new();
    for y in first.1..=last.1 {
        let left = if y == first.1 { first.0 } else { selection.area.left() };
        let right = if y == last.1 { last.0 } else { selection.area.right().saturating_sub(1) };
        let mut line = String::new();
        let mut x = left;
        while x <= right {
            let Some(cell) = canvas.buffer.cell((x, y)) else { break };
            line.push_str(cell.symbol());
            x += width::of(cell.symbol()).max(1) as u16;
        }
        canvas.style(Rect::new(left, y, (right + 1).saturating_sub(left), 1), style);
        lines.push(line.trim_end().to_owned());
    }
    selection.text = lines.join("\n");
}

fn parts(app: &App, area: Rect) -> Parts {
    let status = Rect { y: area.bottom().saturating_sub(1), height: area.height.min(1), ..area };
    let above = Rect { height: area.height.saturating_sub(1), ..area };
    let hidden = app.memory.sidebar_hidden || area.width < NARROW;
    let columns = if hidden { 0 } else { (area.width / 4).clamp(22, 36) };
    let sidebar = Rect { width: columns, ..above };
    let right = Rect { x: area.x + columns, width: area.width - columns, ..above };
    let wanted = composer::height(app, right.width);
    let composer_height = wanted.min(right.height.saturating_sub(4).max(2)).min(right.height);
    let panes = Rect { height: right.height - composer_height, ..right };
    let composer = Rect { y: right.y + panes.height, height: composer_height, ..right };
    Parts { sidebar, panes, composer, status }
}

/// A buffer to draw on, and how things look.
pub(crate) struct Canvas<'a> {
    pub buffer: &'a mut Buffer,
    pub theme: Theme,
}

impl Canvas<'_> {
    /// Makes an area empty.
    pub fn clear(&mut self, area: Rect) {
        let area = area.intersection(self.buffer.area);
        for y in area.top()..area.bottom() {
            let start = self.buffer.index_of(area.x, y);
            let row = self.buffer.content.iter_mut().skip(start).take(area.width.into());
            row.for_each(ratatui::buffer::Cell::reset);
        }
    }

    /// Gives an area a style.
    pub fn style(&mut self, area: Rect, style: Style) {
        self.buffer.set_style(area.intersection(self.buffer.area), style);
    }

    /// Writes a text into at most `columns`; the column after it.
    pub fn text(&mut self, x: u16, y: u16, columns: u16, text: &str, style: Style) -> u16 {
        if !self.is_inside(x, y) {
            return x;
        }
        // Nearly all text is this, and needs no search for what belongs together.
        if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
            let room = columns.min(self.buffer.area.right() - x);
            let start = self.buffer.index_of(x, y);
            let cells = self.buffer.content.iter_mut().skip(start).take(room.into());
            let written = cells.zip(text.chars()).map(|(cell, letter)| {
                cell.set_char(letter).set_style(style);
            });
            return x + written.count() as u16;
        }
        self.buffer.set_stringn(x, y, text, columns.into(), style).0
    }

    /// Writes spans into at most `columns`; the column after them.
    pub fn spans(&mut self, x: u16, y: u16, columns: u16, spans: &[Span<'_>]) -> u16 {
        let end = x.saturating_add(columns);
        let mut at = x;
        for span in spans {
            at = self.text(at, y, end.saturating_sub(at), &span.content, span.style);
        }
        at
    }

    /// Writes a line into at most `columns`.
    pub fn line(&mut self, x: u16, y: u16, columns: u16, line: &Line<'_>) {
        if self.is_inside(x, y) && line.style != Style::default() {
            self.buffer.set_style(Rect::new(x, y, columns, 1).intersection(self.buffer.area), line.style);
        }
        let end = x.saturating_add(columns);
        let mut at = x;
        for span in &line.spans {
            at = self.text(at, y, end.saturating_sub(at), &span.content, line.style.patch(span.style));
        }
    }

    /// Writes a text that ends at a column; the column where it begins.
    pub fn right(&mut self, end: u16, y: u16, columns: u16, text: &str, style: Style) -> u16 {
        let text = width::cut(text, columns.into());
        let x = end.saturating_sub(width::of(&text) as u16);
        self.text(x, y, columns, &text, style);
        x
    }

    /// A line from left to right.
    pub fn rule(&mut self, area: Rect, style: Style) {
        for x in area.left()..area.right() {
            self.text(x, area.y, 1, "─", style);
        }
    }

    /// A line from top to bottom.
    pub fn wall(&mut self, x: u16, top: u16, bottom: u16, style: Style) {
        for y in top..bottom {
            self.text(x, y, 1, "│", style);
        }
    }

    /// A box; what is inside of it.
    pub fn frame(&mut self, area: Rect, title: &str, style: Style) -> Rect {
        if area.width < 4 || area.height < 3 {
            return Rect { width: 0, height: 0, ..area };
        }
        let (left, right, top, bottom) = (area.x, area.right() - 1, area.y, area.bottom() - 1);
        self.rule(Rect { height: 1, ..area }, style);
        self.rule(Rect { y: bottom, height: 1, ..area }, style);
        self.wall(left, top + 1, bottom, style);
        self.wall(right, top + 1, bottom, style);
        for (x, y, corner) in [(left, top, "╭"), (right, top, "╮"), (left, bottom, "╰"), (right, bottom, "╯")]
        {
            self.text(x, y, 1, corner, style);
        }
        if !title.is_empty() {
            let title = format!(" {} ", width::cut(title, usize::from(area.width).saturating_sub(6)));
            let theme = self.theme;
            self.text(left + 2, top, area.width - 4, &title, theme.title);
        }
        Rect { x: left + 2, y: top + 1, width: area.width - 4, height: area.height - 2 }
    }

    fn is_inside(&self, x: u16, y: u16) -> bool {
        self.buffer.area.contains(ratatui::layout::Position { x, y })
    }
}

/// The mark of an agent's status.
pub(crate) fn mark(app: &App, agent: &Agent) -> (&'static str, Style, bool) {
    let theme = &app.theme;
    match agent.status() {
        Status::Working | Status::Starting => (SPINNER[app.spin % SPINNER.len()], theme.working, true),
        Status::Queued => ("◌", theme.dim, false),
        Status::NeedsInput => ("!", theme.warning, false),
        Status::Stalled => ("…", theme.warning, false),
        Status::Failed => ("✗", theme.bad, false),
        Status::Closed => ("·", theme.dim, false),
        Status::Idle if crate::tree::is_finished(agent) => ("✓", theme.good, false),
        Status::Idle if app.unread.contains(&agent.id) => ("●", theme.accent, false),
        Status::Idle => ("○", theme.dim, false),
    }
}

/// Draws an agent's mark, and remembers where if it spins.
pub(crate) fn draw_mark(app: &mut App, canvas: &mut Canvas<'_>, x: u16, y: u16, agent: &Agent) {
    let (mark, style, spins) = mark(app, agent);
    canvas.text(x, y, 1, mark, style);
    if spins {
        app.spinners.push((x, y));
    }
}

/// What stands before a cost that is estimated: of the drivers, only Claude's program tells what was really charged.
pub(crate) fn about_cost(agent: &Agent) -> &'static str {
    if agent.driver == consort_model::DriverKind::Claude { "" } else { "~" }
}

/// How long something takes, for people.
pub(crate) fn duration(milliseconds: i64) -> String {
    let seconds = milliseconds.max(0) / 1000;
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h{:02}m", seconds / 3600, seconds / 60 % 60),
    }
}
