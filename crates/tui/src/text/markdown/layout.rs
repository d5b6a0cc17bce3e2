//! One top-level block laid out: from the parser's events to lines.
//!
//! Blocks nest without limit in Markdown, so what is open is a list here and not the call stack, and only the outer
//! levels are indented.

use pulldown_cmark::{BlockQuoteKind, CodeBlockKind, Event, HeadingLevel, Tag, TagEnd};
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::fence;
use super::inline::Inline;
use super::parse::Definitions;
use super::table::Table;
use crate::text::highlight::Highlighter;
use crate::text::theme::Theme;
use crate::text::wrap::{self, Prefix};
use crate::text::{clean, width};

/// Levels of lists and quotes that are indented; deeper ones are drawn at the last.
const MAX_INDENTED: usize = 12;

/// Lays out the events of one block.
pub fn block(
    events: &[Event<'_>],
    definitions: &Definitions,
    columns: usize,
    theme: &Theme,
) -> Vec<Line<'static>> {
    let mut layout = Layout {
        theme,
        columns: columns.max(1),
        lines: Vec::new(),
        open: Vec::new(),
        inline: Inline::new(theme, definitions),
        gap: false,
        code: None,
        html: false,
        table: None,
    };
    for event in events {
        layout.event(event);
    }
    layout.end_text();
    layout.lines
}

/// Something that indents what is in it.
enum Open {
    Quote,
    List {
        /// The next number of an ordered list.
        next: Option<u64>,
    },
    Item {
        /// The bullet or number, until it is drawn.
        marker: Option<Vec<Span<'static>>>,
        columns: usize,
    },
}

struct Code {
    language: String,
    text: String,
}

struct Layout<'t> {
    theme: &'t Theme,
    columns: usize,
    lines: Vec<Line<'static>>,
    open: Vec<Open>,
    inline: Inline<'t>,
    /// Whether the next thing is set apart by an empty line.
    gap: bool,
    code: Option<Code>,
    html: bool,
    table: Option<Table>,
}

impl Layout<'_> {
    fn event(&mut self, event: &Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(*tag),
            Event::Text(text) => match &mut self.code {
                Some(code) => code.text.push_str(text),
                None => self.inline.text(text),
            },
            Event::Code(code) => self.inline.code(code),
            Event::InlineMath(text) | Event::DisplayMath(text) => self.inline.code(text),
            Event::Html(text) if self.html => {
                let theme = self.theme;
                for line in clean::sanitize(text.trim_end_matches('\n')).split('\n') {
                    self.paragraph(&[Span::styled(line.to_owned(), theme.dim)]);
                }
            }
            Event::Html(text) | Event::InlineHtml(text) => {
                let is_break = matches!(text.trim_end_matches(['/', '>', ' ']), "<br" | "<BR");
                if is_break { self.break_text() } else { self.inline.literal(text) }
            }
            Event::FootnoteReference(label) => self.inline.literal(&format!("[^{label}]")),
            Event::SoftBreak => self.inline.text(" "),
            Event::HardBreak => self.break_text(),
            Event::Rule => {
                let columns = self.room();
                let style = self.theme.marker;
                self.paragraph(&[Span::styled("─".repeat(columns), style)]);
                self.gap = true;
            }
            Event::TaskListMarker(done) => {
                let box_span = if *done {
                    Span::styled("[x] ", self.theme.good)
                } else {
                    Span::styled("[ ] ", self.theme.marker)
                };
                if let Some(Open::Item { marker: Some(marker), columns }) = self.open.last_mut() {
                    // The box says all that a bullet would.
                    if marker.len() == 1 && *columns == 2 {
                        marker.clear();
                        *columns = 0;
                    }
                    *columns += 4;
                    marker.push(box_span);
                }
            }
        }
    }

    fn start(&mut self, tag: &Tag<'_>) {
        if self.inline.start(tag) {
            return;
        }
        if !matches!(tag, Tag::TableCell | Tag::TableRow | Tag::TableHead | Tag::Paragraph) {
            self.end_text();
        }
        match tag {
            Tag::Heading { level, .. } => {
                let style = match level {
                    HeadingLevel::H1 | HeadingLevel::H2 => self.theme.heading,
                    _ => self.theme.heading_small,
                };
                self.inline.push_style(style);
            }
            Tag::BlockQuote(kind) => {
                self.separate();
                self.open.push(Open::Quote);
                self.inline.push_style(self.theme.quote);
                if let Some(kind) = kind {
                    let (title, style) = alert(*kind, self.theme);
                    self.paragraph(&[Span::styled(title, style)]);
                }
            }
            Tag::CodeBlock(kind) => {
                let language = match kind {
                    CodeBlockKind::Fenced(info) => fence::language(info).to_owned(),
                    CodeBlockKind::Indented => String::new(),
                };
                self.code = Some(Code { language, text: String::new() });
            }
            Tag::HtmlBlock => self.html = true,
            Tag::List(first) => self.open.push(Open::List { next: *first }),
            Tag::Item => self.item(),
            Tag::Table(alignments) => self.table = Some(Table::new(alignments)),
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph => {
                self.end_text();
                self.gap = true;
            }
            TagEnd::Heading(_) => {
                self.end_text();
                self.inline.pop_style();
                self.gap = true;
            }
            TagEnd::BlockQuote(_) => {
                self.end_text();
                self.inline.pop_style();
                self.open.pop();
                self.gap = true;
            }
            TagEnd::CodeBlock => {
                if let Some(code) = self.code.take() {
                    self.code_block(&code);
                }
                self.gap = true;
            }
            TagEnd::HtmlBlock => {
                self.html = false;
                self.gap = true;
            }
            TagEnd::Item => {
                self.end_text();
                if matches!(self.open.last(), Some(Open::Item { marker: Some(_), .. })) {
                    self.paragraph(&[]);
                }
                self.open.pop();
            }
            TagEnd::List(_) => {
                self.open.pop();
                self.gap |= !self.open.iter().any(|open| matches!(open, Open::List { .. }));
            }
            TagEnd::TableCell => {
                let cell = self.inline.take();
                if let Some(table) = &mut self.table {
                    table.cell(cell);
                }
            }
            TagEnd::TableRow | TagEnd::TableHead => {
                if let Some(table) = &mut self.table {
                    table.end_row();
                }
            }
            TagEnd::Table => {
                if let Some(table) = self.table.take() {
                    let lines = table.lines(self.room(), self.theme);
                    for line in lines {
                        self.raw_line(line.spans);
                    }
                }
                self.gap = true;
            }
            tag => self.inline.end(tag),
        }
    }

    fn item(&mut self) {
        let depth = self.open.iter().filter(|open| matches!(open, Open::List { .. })).count();
        let marker = match self.open.last_mut() {
            Some(Open::List { next: Some(number) }) => {
                let marker = format!("{number}. ");
                *number = number.saturating_add(1);
                marker
            }
            _ => ["• ", "◦ ", "▪ "][depth.saturating_sub(1) % 3].to_owned(),
        };
        let columns = width::of(&marker);
        self.open.push(Open::Item { marker: Some(vec![Span::styled(marker, self.theme.marker)]), columns });
    }

    /// Columns for text within all that is open.
    fn room(&self) -> usize {
        let indent: usize = self.indented().map(columns_of).sum();
        // The same part that wrapping keeps free of prefixes.
        self.columns.saturating_sub(indent).max(self.columns.div_ceil(4))
    }

    fn indented(&self) -> impl Iterator<Item = &Open> {
        self.open.iter().filter(|open| !matches!(open, Open::List { .. })).take(MAX_INDENTED)
    }

    /// What stands before the next lines; markers are drawn once.
    fn prefix(&mut self) -> Prefix {
        let rest = self.rest_prefix();
        let theme = self.theme;
        let mut first = Vec::new();
        for open in self.open.iter_mut().filter(|open| !matches!(open, Open::List { .. })).take(MAX_INDENTED)
        {
            match open {
                Open::Item { marker, columns } => {
                    first.extend(marker.take().unwrap_or_else(|| vec![Span::raw(" ".repeat(*columns))]));
                }
                _ => first.push(quote_bar(theme)),
            }
        }
        for open in self.open.iter_mut().filter(|open| matches!(open, Open::Item { .. })).skip(MAX_INDENTED) {
            if let Open::Item { marker, .. } = open {
                *marker = None;
            }
        }
        Prefix { first, rest }
    }

    fn rest_prefix(&self) -> Vec<Span<'static>> {
        self.indented()
            .map(|open| match open {
                Open::Item { columns, .. } => Span::raw(" ".repeat(*columns)),
                _ => quote_bar(self.theme),
            })
            .collect()
    }

    /// Puts an empty line between what was and what comes, where there is one.
    fn separate(&mut self) {
        if std::mem::take(&mut self.gap) && !self.lines.is_empty() {
            let mut spans = self.rest_prefix();
            while spans.last().is_some_and(|span| span.content.trim().is_empty()) {
                spans.pop();
            }
            if let Some(span) = spans.last_mut() {
                span.content = span.content.trim_end().to_owned().into();
            }
            // A deep prefix is cut as wrapping cuts it.
            let lines = wrap::words(&[], self.columns, &Prefix { first: spans, rest: Vec::new() });
            self.lines.extend(lines);
        }
    }

    /// Ends a run of text, if there is one.
    fn end_text(&mut self) {
        if !self.inline.is_empty() {
            let spans = self.inline.take();
            self.paragraph(&spans);
        }
    }

    /// Goes on in a new line of the same text.
    fn break_text(&mut self) {
        if self.table.is_some() {
            self.inline.text(" ");
        } else {
            let spans = self.inline.take();
            self.paragraph(&spans);
        }
    }

    fn paragraph(&mut self, spans: &[Span<'static>]) {
        self.separate();
        let prefix = self.prefix();
        self.lines.extend(wrap::words(spans, self.columns, &prefix));
    }

    /// A line that fits as it is.
    fn raw_line(&mut self, spans: Vec<Span<'static>>) {
        self.separate();
        let prefix = self.prefix();
        self.lines.extend(wrap::hard(&spans, self.columns, &prefix));
    }

    fn code_block(&mut self, code: &Code) {
        self.separate();
        let mut highlighter = Highlighter::named(&code.language);
        let text = clean::sanitize(&code.text);
        let text = text.strip_suffix('\n').unwrap_or(&text);
        for line in text.split('\n') {
            let prefix = self.prefix();
            fence::code_line(&mut highlighter, line, self.columns, self.theme, prefix, &mut self.lines);
        }
    }
}

fn columns_of(open: &Open) -> usize {
    match open {
        Open::Quote => 2,
        Open::List { .. } => 0,
        Open::Item { columns, .. } => *columns,
    }
}

fn quote_bar(theme: &Theme) -> Span<'static> {
    Span::styled("│ ", theme.marker)
}

fn alert(kind: BlockQuoteKind, theme: &Theme) -> (&'static str, Style) {
    match kind {
        BlockQuoteKind::Note => ("Note", theme.accent),
        BlockQuoteKind::Tip => ("Tip", theme.good),
        BlockQuoteKind::Important => ("Important", theme.accent),
        BlockQuoteKind::Warning => ("Warning", theme.warning),
        BlockQuoteKind::Caution => ("Caution", theme.bad),
    }
}
