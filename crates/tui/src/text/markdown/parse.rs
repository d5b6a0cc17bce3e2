//! Markdown cut into its top-level blocks.
//!
//! A block that is followed by another can be read by itself: all that reaches across blocks are the addresses that
//! `[label]: address` lines give to links, and those are kept in [`Definitions`].

use std::collections::{HashMap, HashSet};

use pulldown_cmark::{BrokenLink, CowStr, Event, Options, Parser, Tag};

/// What a block is, as far as its neighbours care.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Running text.
    Paragraph,
    /// A list.
    List,
    /// Something that may go on after an empty line: code, raw HTML.
    Open,
    /// Anything else.
    Other,
}

/// A top-level block.
pub struct Block<'t> {
    /// Where its first line begins, or the first of the definitions right above it: what follows a definition may be
    /// read differently than it would be alone.
    pub start: usize,
    /// What it is.
    pub kind: Kind,
    /// What is in it.
    pub events: Vec<Event<'t>>,
}

/// The addresses of links by label. The first one that was given stands.
#[derive(Clone, Default, Debug)]
pub struct Definitions(HashMap<String, String>);

impl Definitions {
    /// The address of a label.
    pub fn get(&self, label: &str) -> Option<&str> {
        if self.0.is_empty() { None } else { self.0.get(&normal(label)).map(String::as_str) }
    }
}

/// The form in which labels are compared.
fn normal(label: &str) -> String {
    label.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
}

/// A text taken apart.
pub struct Parsed<'t> {
    /// Its blocks.
    pub blocks: Vec<Block<'t>>,
    /// Labels without an address.
    pub wanted: HashSet<String>,
    /// Labels and addresses that it gives, each with where that ends.
    given: Vec<(String, String, usize)>,
}

impl Parsed<'_> {
    /// Whether it gives an address to one of these labels.
    pub fn gives_any(&self, labels: &HashSet<String>) -> bool {
        self.given.iter().any(|(label, ..)| labels.contains(label))
    }

    /// Adds the addresses that are given before a place.
    pub fn define(&self, before: usize, definitions: &mut Definitions) {
        for (label, address, end) in &self.given {
            if *end <= before {
                definitions.0.entry(label.clone()).or_insert_with(|| address.clone());
            }
        }
    }
}

/// Takes a text apart; `definitions` were given by what stands before it.
pub fn parse<'t>(text: &'t str, definitions: &Definitions) -> Parsed<'t> {
    let options = Options::ENABLE_TABLES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_GFM;
    let mut wanted = HashSet::new();
    let look_up = |link: BrokenLink<'_>| {
        let address = definitions.get(&link.reference);
        if address.is_none() {
            wanted.insert(normal(&link.reference));
        }
        address.map(|address| (CowStr::from(address.to_owned()), CowStr::Borrowed("")))
    };
    let parser = Parser::new_with_broken_link_callback(text, options, Some(look_up));
    let mut given: Vec<_> = parser
        .reference_definitions()
        .iter()
        .map(|(label, definition)| (normal(label), definition.dest.to_string(), definition.span.end))
        .collect();
    given.sort_by_key(|(_, _, end)| *end);

    let mut blocks: Vec<Block<'t>> = Vec::new();
    let mut depth = 0usize;
    let mut ended = 0;
    for (event, range) in parser.into_offset_iter() {
        if depth == 0 {
            let start = first_line(text, range.start, ended);
            ended = range.end;
            let kind = match &event {
                Event::Start(Tag::Paragraph) => Kind::Paragraph,
                Event::Start(Tag::List(_)) => Kind::List,
                Event::Start(Tag::CodeBlock(_) | Tag::HtmlBlock) | Event::Html(_) => Kind::Open,
                _ => Kind::Other,
            };
            blocks.push(Block { start, kind, events: Vec::new() });
        }
        match &event {
            Event::Start(_) => depth += 1,
            Event::End(_) => depth = depth.saturating_sub(1),
            _ => {}
        }
        if let Some(block) = blocks.last_mut() {
            block.events.push(event);
        }
    }
    Parsed { blocks, wanted, given }
}

/// Where the lines begin that stand without an empty one between a block and the end of the block before it.
fn first_line(text: &str, block: usize, ended: usize) -> usize {
    let line_start = |at: usize| text[..at].rfind('\n').map_or(0, |end| end + 1);
    let mut start = line_start(block);
    while start > ended {
        let above = line_start(start - 1);
        if above < ended || text[above..start].trim().is_empty() {
            break;
        }
        start = above;
    }
    start
}
