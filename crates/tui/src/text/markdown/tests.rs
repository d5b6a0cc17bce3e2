//! What is shown for which Markdown.

use proptest::prelude::*;

use super::super::testing::{marked, plain, wild_text};
use super::super::width;
use super::*;

/// The lines, each after a bar that shows where it begins.
fn shown(source: &str, columns: usize) -> String {
    plain(&render(source, columns, &Theme::dark())).lines().map(|line| format!("|{line}\n")).collect()
}

fn styled(source: &str, columns: usize) -> String {
    let theme = Theme::dark();
    marked(&render(source, columns, &theme), &theme).lines().map(|line| format!("|{line}\n")).collect()
}

#[test]
fn a_whole_answer() {
    insta::assert_snapshot!(styled(include_str!("samples/answer.md"), 60));
}

#[test]
fn a_whole_answer_in_a_narrow_pane() {
    insta::assert_snapshot!(shown(include_str!("samples/answer.md"), 24));
}

#[test]
fn text_has_its_styles() {
    insta::assert_snapshot!(styled("a *b **c*** ~~d~~ `e  f` <b>g</b>", 60), @r#"
    |a ⟨emphasis:b ⟩⟨title+emphasis:c⟩ ⟨struck:d⟩ ⟨syntax_attribute:e  f⟩ ⟨dim:<b>⟩g⟨dim:</b>⟩
    "#);
}

#[test]
fn links_show_where_they_lead() {
    insta::assert_snapshot!(styled(
        "[docs](https://x.org/a) <https://x.org> [x.org](https://x.org/) see https://x.org/b. ![pic](p.png) [top](#top)",
        200,
    ), @r#"
    |⟨link:docs⟩⟨dim: (https://x.org/a)⟩ ⟨link:https://x.org⟩ ⟨link:x.org⟩ see ⟨link:https://x.org/b⟩. ⟨dim:image: ⟩⟨link:pic⟩⟨dim: (p.png)⟩ ⟨link:top⟩
    "#);
    insta::assert_snapshot!(styled("see [the docs][d]\n\nmore\n\n[d]: https://x.org\n", 80), @r#"
    |see ⟨link:the docs⟩⟨dim: (https://x.org)⟩
    |
    |more
    "#);
}

#[test]
fn lists_nest_and_hang() {
    insta::assert_snapshot!(shown(
        "Steps:\n1. first item that is long\n   - inner item\n     goes on\n   - [ ] open\n   - [x] done\n2. second\n\n   more\n\n10. far\n-\n",
        20,
    ), @r#"
    |Steps:
    |1. first item that
    |   is long
    |
    |   ◦ inner item goes
    |     on
    |   [ ] open
    |   [x] done
    |2. second
    |
    |   more
    |
    |3. far
    |
    |•
    "#);
}

#[test]
fn quotes_nest_and_say_what_they_are() {
    insta::assert_snapshot!(shown("> one two three\n>\n> > inner\n> - item\n\n> [!WARNING]\n> hot\n", 12), @r#"
    |│ one two
    |│ three
    |│
    |│ │ inner
    |│
    |│ • item
    |
    |│ Warning
    |│ hot
    "#);
}

#[test]
fn tables_fit_the_width() {
    let source = "| name | what it does | n |\n|---|:---:|--:|\n| `a` | reads files and more | 1 |\n| b | writes | 200 |\n";
    insta::assert_snapshot!(shown(source, 60), @r#"
    |name │     what it does     │   n
    |─────┼──────────────────────┼────
    |a    │ reads files and more │   1
    |b    │        writes        │ 200
    "#);
    insta::assert_snapshot!(shown(source, 26), @r#"
    |name │ what it does  │   n
    |─────┼───────────────┼────
    |a    │  reads files  │   1
    |     │   and more    │    
    |─────┼───────────────┼────
    |b    │    writes     │ 200
    "#);
    insta::assert_snapshot!(shown(source, 12), @r#"
    |name: a
    |what it
    |  does:
    |  reads
    |  files and
    |  more
    |n: 1
    |
    |name: b
    |what it
    |  does:
    |  writes
    |n: 200
    "#);
}

#[test]
fn code_keeps_its_spaces_and_is_wrapped_anywhere() {
    insta::assert_snapshot!(styled("```rust\nfn  main() {\n\n\tlet x = 1;\n}\n```\n", 14), @r#"
    |  ⟨syntax_keyword:fn  ⟩⟨syntax_function:main⟩⟨syntax_punctuation:() {⟩
    |  
    |  ⟨code_block:    ⟩⟨syntax_keyword:let ⟩⟨code_block:x ⟩⟨syntax_punctuation:= ⟩
    |⟨marker:↪ ⟩⟨syntax_constant:1⟩⟨syntax_punctuation:;⟩
    |  ⟨syntax_punctuation:}⟩
    "#);
    insta::assert_snapshot!(shown("- item\n  ```\n  code\n  ```\n\n      indented\n", 30), @r#"
    |• item
    |
    |    code
    |
    |    indented
    "#);
}

#[test]
fn rules_html_and_breaks() {
    insta::assert_snapshot!(shown("a\\\nb<br>c  \nd\n\n---\n\n<div>\n<p>x\n</div>\n\nend", 12), @r#"
    |a
    |b
    |c
    |d
    |
    |────────────
    |
    |<div>
    |<p>x
    |</div>
    |
    |end
    "#);
}

#[test]
fn an_address_defined_later_reaches_what_was_shown_before() {
    let theme = Theme::dark();
    let mut stream = Stream::default();
    stream.append("see [it][a]\n\nsecond\n\nthird\n\n");
    assert!(plain(stream.lines(80, &theme)).contains("see [it][a]"));
    stream.append("[a]: https://x.o");
    assert!(plain(stream.lines(80, &theme)).contains("see it (https://x.o)"));
    stream.append("rg\n\nlast\n");
    assert!(plain(stream.lines(80, &theme)).contains("see it (https://x.org)"));
}

#[test]
fn settled_blocks_are_not_laid_out_again() {
    let theme = Theme::dark();
    let mut stream = Stream::default();
    stream.append("first\n\nsecond\n\nthi");
    let before = stream.lines(20, &theme)[0].spans[0].content.as_ptr();
    stream.append("rd\n\nfourth");
    assert_eq!(stream.lines(20, &theme)[0].spans[0].content.as_ptr(), before);
    assert_eq!(plain(stream.lines(20, &theme)), "first\n\nsecond\n\nthird\n\nfourth\n");
}

#[test]
fn entities_cannot_bring_control_characters_back() {
    let lines = shown("a &#27;[31m &#x202e; `&#27;`\n\n```&#27;\n&#27;\n```\n", 80);
    assert!(!lines.chars().any(|letter| letter.is_control() && letter != '\n'), "{lines:?}");
    assert!(!lines.contains('\u{202e}'));
}

#[test]
fn depth_costs_neither_the_stack_nor_the_width() {
    for (source, text) in [(">".repeat(5_000) + " deep", "deep"), ("- ".repeat(2_000) + "deep", "deep")] {
        let lines = render(&source, 20, &Theme::dark());
        assert!(lines.iter().all(|line| width::of_line(line) <= 20));
        assert!(plain(&lines).replace(['\n', ' ', '│'], "").contains(text));
    }
}

/// The lines without spaces at their ends and empty lines at the end of all, which nobody sees.
fn trimmed(lines: &[Line<'_>]) -> String {
    let lines: Vec<String> = plain(lines).lines().map(|line| line.trim_end().to_owned()).collect();
    lines.join("\n").trim_end().to_owned()
}

/// Markdown of all kinds of pieces, some of them broken.
fn wild_markdown() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        6 => prop::sample::select(vec![
            "\n", "\n\n", "# ", "- ", "* ", "1. ", "2", ". ", "> ", ">", "  ", "    ", "```", "```rust\n", "~~~\n", "|", "|-|-|\n",
            "a|b\n", "-|-\n", "---\n", "===\n", "[a]", "[a][b]", "[a]: /x\n", "[b]: <y>", "[l](u)", "![i](u)", "<div>\n", "<br>",
            "<!-- ", "-->", "*", "**", "_", "`", "~~", "\\\n", "&#27;", "[ ] ", "[x] ", "\t", "http://x.y/z", "[!NOTE]\n",
        ]).prop_map(str::to_owned),
        3 => "[a-z ]{1,8}",
        1 => wild_text(),
    ];
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn a_stream_shows_what_the_whole_shows(
        source in wild_markdown(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
        columns in 8usize..60,
    ) {
        let theme = Theme::dark();
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.index(source.len() + 1)).collect();
        cuts.retain(|cut| source.is_char_boundary(*cut));
        cuts.extend([0, source.len()]);
        cuts.sort_unstable();
        let mut stream = Stream::default();
        for pair in cuts.windows(2) {
            stream.append(&source[pair[0]..pair[1]]);
            let lines = stream.lines(columns, &theme).to_vec();
            prop_assert_eq!(&lines, &render(&source[..pair[1]], columns, &theme));
            let at_once = Stream::lines_at_once(&source[..pair[1]], columns, &theme);
            prop_assert_eq!(trimmed(&lines), trimmed(&at_once));
        }
    }

    #[test]
    fn no_line_is_too_wide_or_harmful(source in wild_markdown(), columns in 1usize..60) {
        for line in render(&source, columns, &Theme::dark()) {
            prop_assert!(width::of_line(&line) <= columns, "{:?}", line);
            prop_assert!(!line.to_string().contains(char::is_control), "{:?}", line);
        }
    }

    #[test]
    fn plain_words_are_never_lost(words in prop::collection::vec("[a-z]{1,9}", 1..40), columns in 4usize..60) {
        let lines = render(&words.join(" "), columns, &Theme::dark());
        prop_assert_eq!(plain(&lines).replace(['\n', ' '], ""), words.concat());
    }
}
