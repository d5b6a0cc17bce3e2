//! The text within a block: styles that nest, links that show where they lead, code.

use pulldown_cmark::{CowStr, LinkType, Tag, TagEnd};
use ratatui::style::Style;
use ratatui::text::Span;

use super::parse::Definitions;
use crate::text::clean;
use crate::text::theme::Theme;

/// Spans in the making.
pub struct Inline<'t> {
    theme: &'t Theme,
    definitions: &'t Definitions,
    spans: Vec<Span<'static>>,
    /// Text of the current style that may still go on: the parser cuts text at every letter that could have a meaning.
    text: String,
    style: Style,
    outer: Vec<Style>,
    links: Vec<Link>,
}

struct Link {
    address: String,
    first_span: usize,
    is_image: bool,
}

impl<'t> Inline<'t> {
    /// Empty.
    pub fn new(theme: &'t Theme, definitions: &'t Definitions) -> Self {
        Self {
            theme,
            definitions,
            spans: Vec::new(),
            text: String::new(),
            style: theme.text,
            outer: Vec::new(),
            links: Vec::new(),
        }
    }

    /// Whether there is nothing to show.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty() && self.text.is_empty()
    }

    /// What was added since the last time; styles that are open stay open.
    pub fn take(&mut self) -> Vec<Span<'static>> {
        self.flush();
        for link in &mut self.links {
            link.first_span = 0;
        }
        std::mem::take(&mut self.spans)
    }

    /// Adds text.
    pub fn text(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// Adds code.
    pub fn code(&mut self, code: &str) {
        self.styled(code, self.theme.code);
    }

    /// Adds something that is shown as it is written.
    pub fn literal(&mut self, text: &str) {
        self.styled(text, self.theme.dim);
    }

    fn styled(&mut self, text: &str, style: Style) {
        self.flush();
        let text = clean::one_line_keeping_spaces(text);
        if !text.is_empty() {
            self.spans.push(Span::styled(text.into_owned(), self.style.patch(style)));
        }
    }

    /// Begins a style for all that follows, such as a heading's.
    pub fn push_style(&mut self, style: Style) {
        self.flush();
        self.outer.push(self.style);
        self.style = self.style.patch(style);
    }

    /// Ends the style that began last.
    pub fn pop_style(&mut self) {
        self.flush();
        if let Some(style) = self.outer.pop() {
            self.style = style;
        }
    }

    /// Begins what a tag means; false if it is not one of text.
    pub fn start(&mut self, tag: &Tag<'_>) -> bool {
        match tag {
            Tag::Emphasis => self.push_style(self.theme.emphasis),
            Tag::Strong => self.push_style(self.theme.strong),
            Tag::Strikethrough => self.push_style(self.theme.struck),
            Tag::Superscript | Tag::Subscript => self.push_style(Style::new()),
            Tag::Link { link_type, dest_url, id, .. } => self.link(*link_type, dest_url, id, false),
            Tag::Image { link_type, dest_url, id, .. } => self.link(*link_type, dest_url, id, true),
            _ => return false,
        }
        true
    }

    fn link(&mut self, link_type: LinkType, address: &CowStr<'_>, label: &CowStr<'_>, is_image: bool) {
        use LinkType::{Collapsed, CollapsedUnknown, Reference, ReferenceUnknown, Shortcut, ShortcutUnknown};
        // What stands above in the text counts more than what the block itself defines.
        let known = match link_type {
            Reference | ReferenceUnknown | Collapsed | CollapsedUnknown | Shortcut | ShortcutUnknown => {
                self.definitions.get(label)
            }
            _ => None,
        };
        let address = clean::one_line(known.unwrap_or(address)).into_owned();
        if is_image {
            self.literal("image: ");
        }
        self.push_style(self.theme.link);
        self.links.push(Link { address, first_span: self.spans.len(), is_image });
    }

    /// Ends what a tag meant.
    pub fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Emphasis
            | TagEnd::Strong
            | TagEnd::Strikethrough
            | TagEnd::Superscript
            | TagEnd::Subscript => {
                self.pop_style();
            }
            TagEnd::Link | TagEnd::Image => {
                self.pop_style();
                let Some(link) = self.links.pop() else { return };
                let shown: String =
                    self.spans[link.first_span..].iter().map(|span| span.content.as_ref()).collect();
                if shown.is_empty() {
                    self.styled(&link.address, self.theme.link);
                } else if link.is_image || leads_elsewhere(&shown, &link.address) {
                    self.literal(&format!(" ({})", link.address));
                }
            }
            _ => {}
        }
    }

    /// Turns the held back text into spans, addresses in it into links.
    fn flush(&mut self) {
        if self.text.is_empty() {
            return;
        }
        let text = std::mem::take(&mut self.text);
        let text = clean::one_line_keeping_spaces(&text);
        let mut rest = text.as_ref();
        while let Some((start, end)) = find_address(rest) {
            if start > 0 {
                self.spans.push(Span::styled(rest[..start].to_owned(), self.style));
            }
            self.spans.push(Span::styled(rest[start..end].to_owned(), self.style.patch(self.theme.link)));
            rest = &rest[end..];
        }
        if !rest.is_empty() {
            self.spans.push(Span::styled(rest.to_owned(), self.style));
        }
    }
}

/// Whether a reader of the text would not know the address.
fn leads_elsewhere(shown: &str, address: &str) -> bool {
    let bare = |text: &str| {
        let text = text.trim().trim_end_matches('/');
        ["https://", "http://", "mailto:", "www."]
            .iter()
            .fold(text, |text, prefix| text.strip_prefix(prefix).unwrap_or(text))
            .to_lowercase()
    };
    !address.is_empty() && !address.starts_with('#') && bare(shown) != bare(address)
}

/// The first address in running text.
fn find_address(text: &str) -> Option<(usize, usize)> {
    let mut from = 0;
    while let Some(found) = text[from..].find("://") {
        let mark = from + found;
        let start = if text[..mark].ends_with("https") {
            mark - 5
        } else if text[..mark].ends_with("http") {
            mark - 4
        } else {
            from = mark + 3;
            continue;
        };
        let end = text[start..].find(|letter: char| letter.is_whitespace() || "<>\"`".contains(letter));
        let address = &text[start..end.map_or(text.len(), |end| start + end)];
        let mut address = address.trim_end_matches(['.', ',', ';', ':', '!', '?', '\'', '*', '_']);
        if address.ends_with(')') && !address.contains('(') {
            address = address.trim_end_matches([')', '.', ',']);
        }
        let end = start + address.len();
        if end > mark + 3 {
            return Some((start, end));
        }
        from = mark + 3;
    }
    None
}
