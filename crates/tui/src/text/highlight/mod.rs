//! Code in colours: a small lexer for the languages that agents write most.
//!
//! It knows words, strings, comments and numbers, not grammars: that is what the eye uses, it is ready at once, costs some
//! nanoseconds a letter, and works on half a file. It goes line by line and keeps between lines only whether a
//! comment or string is open, so streamed code is coloured as its lines come.
//!
//! [`languages`] holds the tables, one row a language; a language it does not know is shown plain.

mod languages;
mod lexer;
mod markup;

use ratatui::style::Style;
use ratatui::text::Span;

use super::theme::Theme;
pub use languages::Language;
use lexer::State;

/// What a piece of code is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Token {
    /// Nothing special.
    Plain,
    /// A word of the language.
    Keyword,
    /// The name of a type.
    Type,
    /// A name that is called or defined.
    Function,
    /// A string or character.
    String,
    /// A number, or a value with a name of its own such as `true`.
    Constant,
    /// A comment.
    Comment,
    /// An attribute, key, variable or lifetime.
    Attribute,
    /// Brackets and operators.
    Punctuation,
    /// An added line of a diff.
    Added,
    /// A removed line of a diff.
    Removed,
    /// Where in a file a diff is.
    Place,
}

impl Token {
    /// How it looks.
    pub fn style(self, theme: &Theme) -> Style {
        match self {
            Self::Plain => theme.code_block,
            Self::Keyword => theme.syntax_keyword,
            Self::Type => theme.syntax_type,
            Self::Function => theme.syntax_function,
            Self::String => theme.syntax_string,
            Self::Constant => theme.syntax_constant,
            Self::Comment => theme.syntax_comment,
            Self::Attribute => theme.syntax_attribute,
            Self::Punctuation => theme.syntax_punctuation,
            Self::Added => theme.diff_added,
            Self::Removed => theme.diff_removed,
            Self::Place => theme.diff_place,
        }
    }
}

/// Colours the lines of one piece of code, in their order.
#[derive(Clone, Debug)]
pub struct Highlighter {
    language: Option<&'static Language>,
    state: State,
}

impl Highlighter {
    /// For code of this language; none for plain.
    pub fn new(language: Option<&'static Language>) -> Self {
        Self { language, state: State::default() }
    }

    /// For code of what a fence or a person calls it, such as `rs` or `Python`.
    pub fn named(name: &str) -> Self {
        Self::new(Language::named(name))
    }

    /// For the file at this path.
    pub fn of_path(path: &str) -> Self {
        Self::new(Language::of_path(path))
    }

    /// Calls `each` with the pieces of the next line, which together are the line.
    pub fn pieces<'t>(&mut self, line: &'t str, mut each: impl FnMut(&'t str, Token)) {
        let Some(language) = self.language else {
            each(line, Token::Plain);
            return;
        };
        // Neighbours of the same kind are joined, and spaces go with what stands before them: fewer spans are quicker
        // to draw.
        let (mut start, mut end, mut kind) = (0, 0, Token::Plain);
        lexer::line(language, &mut self.state, line, &mut |to, token| {
            let blank = token == Token::Plain && line[end..to].bytes().all(|byte| byte == b' ');
            if token != kind && !blank {
                if end > start {
                    each(&line[start..end], kind);
                }
                (start, kind) = (end, token);
            }
            end = to;
        });
        if end > start {
            each(&line[start..end], kind);
        }
    }

    /// The next line in the colours of a theme.
    pub fn line(&mut self, line: &str, theme: &Theme) -> Vec<Span<'static>> {
        let mut spans = Vec::new();
        self.pieces(line, |text, token| spans.push(Span::styled(text.to_owned(), token.style(theme))));
        spans
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use ratatui::text::Line;

    use super::super::testing::marked;
    use super::*;

    fn shown(language: &str, code: &str) -> String {
        let theme = Theme::dark();
        let mut highlighter = Highlighter::named(language);
        let lines: Vec<_> = code.lines().map(|line| Line::from(highlighter.line(line, &theme))).collect();
        marked(&lines, &theme).replace("code_block:", ":").replace("syntax_", "")
    }

    #[test]
    fn languages_are_known_by_name_alias_and_file() {
        for name in
            ["rust", "rs", "Python", "py", "js", "tsx", "c++", "sh", "console", "yml", "json", "dockerfile"]
        {
            assert!(Language::named(name).is_some(), "{name}");
        }
        for path in ["src/main.rs", "a/b.PY", "Makefile", "x/Dockerfile", ".bashrc", "Cargo.lock", "a.d.ts"] {
            assert!(Language::of_path(path).is_some(), "{path}");
        }
        assert!(Language::named("klingon").is_none());
        assert!(Language::of_path("no-extension").is_none());
    }

    #[test]
    fn every_name_belongs_to_one_language() {
        let mut names: Vec<_> = languages::LANGUAGES.iter().flat_map(|language| language.names).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn common_languages_are_coloured() {
        let samples = [
            ("rust", include_str!("samples/sample.rs.txt")),
            ("python", include_str!("samples/sample.py.txt")),
            ("typescript", include_str!("samples/sample.ts.txt")),
            ("go", include_str!("samples/sample.go.txt")),
            ("c", include_str!("samples/sample.c.txt")),
            ("bash", include_str!("samples/sample.sh.txt")),
            ("json", include_str!("samples/sample.json.txt")),
            ("yaml", include_str!("samples/sample.yaml.txt")),
            ("toml", include_str!("samples/sample.toml.txt")),
            ("html", include_str!("samples/sample.html.txt")),
            ("css", include_str!("samples/sample.css.txt")),
            ("sql", include_str!("samples/sample.sql.txt")),
            ("diff", include_str!("samples/sample.diff.txt")),
        ];
        for (language, code) in samples {
            insta::assert_snapshot!(language, shown(language, code));
        }
    }

    #[test]
    fn comments_and_strings_go_on_over_lines() {
        let mut highlighter = Highlighter::named("rust");
        let mut kinds = |line| {
            let mut kinds = Vec::new();
            highlighter.pieces(line, |_, token| kinds.push(token));
            kinds
        };
        assert_eq!(kinds("/* a /* b */"), [Token::Comment]);
        assert_eq!(kinds("still */ 1"), [Token::Comment, Token::Constant]);
        assert_eq!(kinds("r#\"raw \" "), [Token::String]);
        assert_eq!(kinds("\"# 2"), [Token::String, Token::Constant]);
    }

    fn language() -> impl Strategy<Value = &'static Language> {
        prop::sample::select(languages::LANGUAGES.iter().collect::<Vec<_>>())
    }

    proptest! {
        #[test]
        fn no_letter_is_lost(
            language in language(),
            lines in prop::collection::vec("[a-z0-9 '\"`/*#<>{}()=:.$@!\\\\\\-日é\\[\\]]{0,30}", 0..6),
        ) {
            let mut highlighter = Highlighter::new(Some(language));
            for line in lines {
                let mut all = String::new();
                highlighter.pieces(&line, |text, _| all.push_str(text));
                prop_assert_eq!(all, line);
            }
        }
    }
}
