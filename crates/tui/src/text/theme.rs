//! Themes: what a style means, and how it looks on dark, light and colourless terminals.
//!
//! Views and renderers name a meaning (`theme.warning`), never a colour. Colours are of the 256 that terminals have had
//! for decades, since neither tmux nor ssh lets everything through that a modern terminal can; plain text has the
//! terminal's own colours.

use ratatui::style::{Color, Modifier, Style};

macro_rules! theme {
    ($($(#[$doc:meta])* $style:ident: $dark:expr, $light:expr, $plain:expr;)*) => {
        /// The looks of everything on the screen, by meaning.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub struct Theme {
            /// What the configuration calls it.
            pub name: &'static str,
            $($(#[$doc])* pub $style: Style,)*
        }

        impl Theme {
            /// For light text on a dark ground.
            pub const fn dark() -> Self {
                Self { name: "dark", $($style: $dark,)* }
            }

            /// For dark text on a light ground.
            pub const fn light() -> Self {
                Self { name: "light", $($style: $light,)* }
            }

            /// Without any colour: bold, dim, underlined and reversed have to do.
            pub const fn no_colour() -> Self {
                Self { name: "no-colour", $($style: $plain,)* }
            }

            /// Every style with its name, in the order of their declaration.
            pub fn styles(&self) -> Vec<(&'static str, Style)> {
                vec![$((stringify!($style), self.$style),)*]
            }
        }
    };
}

const PLAIN: Style = Style::new();
const BOLD: Style = PLAIN.add_modifier(Modifier::BOLD);
const DIM: Style = PLAIN.add_modifier(Modifier::DIM);
const UNDERLINED: Style = PLAIN.add_modifier(Modifier::UNDERLINED);
const REVERSED: Style = PLAIN.add_modifier(Modifier::REVERSED);
const ITALIC: Style = PLAIN.add_modifier(Modifier::ITALIC);

const fn colour(index: u8) -> Style {
    PLAIN.fg(Color::Indexed(index))
}

const fn ground(index: u8) -> Style {
    PLAIN.bg(Color::Indexed(index))
}

const fn on(foreground: u8, background: u8) -> Style {
    colour(foreground).bg(Color::Indexed(background))
}

const fn bold(style: Style) -> Style {
    style.add_modifier(Modifier::BOLD)
}

const fn underlined(style: Style) -> Style {
    style.add_modifier(Modifier::UNDERLINED)
}

theme! {
    /// Ordinary text.
    text: PLAIN, PLAIN, PLAIN;
    /// What matters less: times, counts, hints.
    dim: colour(245), colour(242), DIM;
    /// What is the program's own: names, keys, the focused thing.
    accent: colour(110), colour(25), BOLD;
    /// Ended well, allowed.
    good: colour(114), colour(28), PLAIN;
    /// Failed, denied.
    bad: colour(203), colour(160), BOLD;
    /// Needs a person, or is about to go wrong.
    warning: colour(179), colour(130), underlined(BOLD);
    /// At work.
    working: colour(116), colour(31), PLAIN;
    /// The chosen row.
    selection: ground(237), ground(254), REVERSED;
    /// Text marked for copying.
    marked: on(255, 60), on(16, 153), REVERSED;
    /// What a search found.
    found: on(16, 179), on(16, 222), underlined(REVERSED);
    /// Letters that a fuzzy search matched.
    matched: bold(colour(179)), bold(colour(130)), underlined(BOLD);
    /// A key to press, in hints and help.
    key: bold(colour(110)), bold(colour(25)), BOLD;
    /// What a person wrote.
    person: colour(152), colour(24), BOLD;
    /// What an agent thought aloud.
    thinking: ITALIC.fg(Color::Indexed(245)), ITALIC.fg(Color::Indexed(242)), DIM;
    /// Lines around panes.
    border: colour(239), colour(250), DIM;
    /// Lines around the pane that has the keyboard.
    border_focused: colour(110), colour(25), BOLD;
    /// The title of a pane or overlay.
    title: BOLD, BOLD, BOLD;
    /// The bar at the bottom.
    status_bar: on(250, 235), on(238, 254), PLAIN;
    /// The largest headings.
    heading: bold(colour(117)), bold(colour(25)), underlined(BOLD);
    /// Headings below the second level.
    heading_small: bold(colour(152)), bold(colour(24)), BOLD;
    /// Stressed.
    emphasis: ITALIC, ITALIC, UNDERLINED;
    /// Strongly stressed.
    strong: BOLD, BOLD, BOLD;
    /// Struck out.
    struck: PLAIN.add_modifier(Modifier::CROSSED_OUT), PLAIN.add_modifier(Modifier::CROSSED_OUT), DIM;
    /// Code within text.
    code: colour(180), colour(94), DIM;
    /// Code in blocks that no language colours.
    code_block: colour(252), colour(236), PLAIN;
    /// The text of a link, and addresses.
    link: underlined(colour(110)), underlined(colour(25)), UNDERLINED;
    /// Quoted text.
    quote: colour(248), colour(240), DIM;
    /// Bullets, numbers and boxes of lists, rules and lines of tables.
    marker: colour(243), colour(245), DIM;
    /// Added lines.
    diff_added: colour(114), colour(28), BOLD;
    /// Removed lines.
    diff_removed: colour(174), colour(124), DIM;
    /// What is new within an added line.
    diff_added_word: on(194, 22), on(22, 194), underlined(BOLD);
    /// What went away within a removed line.
    diff_removed_word: on(224, 52), on(52, 224), underlined(DIM);
    /// Names of files and places of hunks.
    diff_place: colour(110), colour(25), DIM;
    /// Numbers beside lines.
    line_number: colour(240), colour(248), DIM;
    /// Words of a language.
    syntax_keyword: colour(139), colour(90), BOLD;
    /// Names of types.
    syntax_type: colour(116), colour(30), PLAIN;
    /// Names that are called.
    syntax_function: colour(110), colour(25), PLAIN;
    /// Strings and characters.
    syntax_string: colour(144), colour(64), PLAIN;
    /// Numbers, booleans and the like.
    syntax_constant: colour(173), colour(130), PLAIN;
    /// Comments.
    syntax_comment: ITALIC.fg(Color::Indexed(243)), ITALIC.fg(Color::Indexed(245)), DIM;
    /// Attributes, decorators, tags, keys and variables of a shell.
    syntax_attribute: colour(180), colour(94), PLAIN;
    /// Punctuation and operators.
    syntax_punctuation: colour(246), colour(241), PLAIN;
}

impl Theme {
    /// What [`Theme::named`] knows.
    pub const NAMES: [&str; 3] = ["dark", "light", "no-colour"];

    /// The theme of this name.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "dark" => Some(Self::dark()),
            "light" => Some(Self::light()),
            "no-colour" | "no-color" | "none" => Some(Self::no_colour()),
            _ => None,
        }
    }
}

impl Default for Theme {
    fn default() -> Self {
        Self::dark()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_theme_has_its_name() {
        for name in Theme::NAMES {
            assert_eq!(Theme::named(name).map(|theme| theme.name), Some(name));
        }
        assert_eq!(Theme::named("solarized"), None);
    }

    #[test]
    fn without_colour_there_is_only_bold_dim_underlined_reversed() {
        let allowed = Modifier::BOLD | Modifier::DIM | Modifier::UNDERLINED | Modifier::REVERSED;
        for (name, style) in Theme::no_colour().styles() {
            assert_eq!((style.fg, style.bg, style.underline_color), (None, None, None), "{name}");
            assert!(allowed.contains(style.add_modifier), "{name}");
        }
    }

    #[test]
    fn no_style_needs_more_than_256_colours() {
        for theme in [Theme::dark(), Theme::light()] {
            for (name, style) in theme.styles() {
                for colour in [style.fg, style.bg].into_iter().flatten() {
                    assert!(matches!(colour, Color::Indexed(16..)), "{name} of {}: {colour:?}", theme.name);
                }
            }
        }
    }

    #[test]
    fn what_must_be_told_apart_looks_different() {
        for theme in [Theme::dark(), Theme::light(), Theme::no_colour()] {
            assert_ne!(theme.text, theme.dim);
            assert_ne!(theme.text, theme.selection);
            assert_ne!(theme.bad, theme.good);
            assert_ne!(theme.diff_added, theme.diff_removed);
            assert_ne!(theme.diff_added, theme.diff_added_word);
            assert_ne!(theme.diff_removed, theme.diff_removed_word);
            assert_ne!(theme.border, theme.border_focused);
        }
    }
}
