//! What is shown for which change.

use proptest::prelude::*;

use super::super::testing::{marked, plain, wild_text};
use super::*;

fn barred(text: &str) -> String {
    text.lines().map(|line| format!("|{line}\n")).collect()
}

fn shown(old: &str, new: &str, columns: usize) -> String {
    barred(&plain(&texts(old, new, columns, &Theme::dark())))
}

fn shown_patch(source: &str, columns: usize) -> String {
    barred(&plain(&patch(source, columns, &Theme::dark())))
}

#[test]
fn changed_words_stand_out() {
    let theme = Theme::dark();
    let lines = texts("let a = read(x);\nsame\n", "let b = read(x, y);\nsame\n", 60, &theme);
    insta::assert_snapshot!(barred(&marked(&lines, &theme)), @r#"
    |⟨line_number:1 ⟩⟨diff_removed:- ⟩⟨diff_removed:let ⟩⟨diff_removed_word:a⟩⟨diff_removed: = read(x);⟩
    |⟨line_number:1 ⟩⟨diff_added:+ ⟩⟨diff_added:let ⟩⟨diff_added_word:b⟩⟨diff_added: = read(x⟩⟨diff_added_word:, y⟩⟨diff_added:);⟩
    |⟨line_number:2 ⟩  same
    "#);
}

#[test]
fn lines_with_little_in_common_are_not_compared_by_words() {
    let theme = Theme::dark();
    let lines = texts("completely different\n", "nothing alike here\n", 60, &theme);
    insta::assert_snapshot!(barred(&marked(&lines, &theme)), @r#"
    |⟨line_number:1 ⟩⟨diff_removed:- ⟩⟨diff_removed:completely different⟩
    |⟨line_number:1 ⟩⟨diff_added:+ ⟩⟨diff_added:nothing alike here⟩
    "#);
}

#[test]
fn what_did_not_change_is_folded() {
    let old: String = (1..=30).map(|number| format!("line {number}\n")).collect();
    let new = old.replace("line 15\n", "line fifteen\nand more\n");
    insta::assert_snapshot!(shown(&old, &new, 40), @r#"
    | ⋯ 11 lines
    |12   line 12
    |13   line 13
    |14   line 14
    |15 - line 15
    |15 + line fifteen
    |16 + and more
    |17   line 16
    |18   line 17
    |19   line 18
    | ⋯ 12 lines
    "#);
}

#[test]
fn a_new_file_has_its_name_above() {
    let diff = Diff { path: "src/new.rs".to_owned(), old_text: None, new_text: "one\n\ttwo".to_owned() };
    insta::assert_snapshot!(barred(&plain(&render(&diff, 40, &Theme::dark()))), @r#"
    |src/new.rs new +2
    |1 + one
    |2 +     two
    "#);
}

#[test]
fn long_lines_hang_below_themselves() {
    insta::assert_snapshot!(shown("", "a rather long line of text\n", 16), @r#"
    |1 + a rather lon
    |    g line of te
    |    xt
    "#);
}

#[test]
fn a_patch_of_git() {
    insta::assert_snapshot!(shown_patch(
        "diff --git a/src/a.rs b/src/a.rs\nindex 1..2 100644\n--- a/src/a.rs\n+++ b/src/a.rs\n@@ -9,4 +9,4 @@ fn main() {\n one\n--- two\n+++ two\n three\n\ndiff --git a/b b/c\nsimilarity index 100%\nrename from b\nrename to c\ndiff --git a/x b/x\nnew file mode 100644\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+x\n\\ No newline at end of file\n",
        60,
    ), @r#"
    |src/a.rs +1 -1
    | ⋯ fn main() {
    | 9   one
    |10 - -- two
    |10 + ++ two
    |11   three
    |12   
    |
    |c
    |similarity index 100%
    |rename from b
    |rename to c
    |
    |x new +1
    | 1 + x
    |\ No newline at end of file
    "#);
}

#[test]
fn a_patch_without_numbers() {
    insta::assert_snapshot!(shown_patch(
        "*** Begin Patch\n*** Update File: src/a.rs\n@@ fn main() {\n one\n-two\n+three\n*** Add File: new.txt\n+hello\n*** Delete File: old.txt\n*** End Patch",
        60,
    ), @r#"
    |src/a.rs +1 -1
    |⋯ fn main() {
    |  one
    |- two
    |+ three
    |
    |new.txt new +1
    |+ hello
    |
    |old.txt removed
    "#);
}

#[test]
fn what_is_no_diff_is_shown_as_text() {
    insta::assert_snapshot!(shown_patch("@@ -1,99999999999999999999 +1 @@\n@@ -1,9 +1,9 @@\n cut\nnot a diff\n+neither\n", 60), @r#"
    |⋯ -1,99999999999999999999 +1
    |1   cut
    |not a diff
    |+neither
    "#);
}

#[test]
fn diffs_are_told_from_other_text() {
    assert!(is_patch("diff --git a/x b/x\n"));
    assert!(is_patch("--- a\n+++ b\n@@ -1 +1 @@\n"));
    assert!(!is_patch("- a list\n+ of things\n"));
    assert_eq!(counts("a\nb\n", "a\nc\nd\n"), Counts { added: 2, removed: 1 });
    assert_eq!(patch_counts("@@ -1 +1,2 @@\n-a\n+b\n+c\n"), Counts { added: 2, removed: 1 });
}

#[test]
fn a_huge_diff_is_cut_and_says_so() {
    let new: String = (0..MAX_ROWS + 10).map(|number| format!("{number}\n")).collect();
    let lines = texts("", &new, 40, &Theme::dark());
    assert_eq!(lines.len(), MAX_ROWS + 1);
    assert_eq!(lines.last().map(Line::to_string).as_deref(), Some("⋯ 10 more lines"));
}

fn wild_lines() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        prop::sample::select(vec!["a b c", "a b d", "", "  x", "fn main() {", "}"]).prop_map(str::to_owned),
        wild_text(),
    ];
    prop::collection::vec(line, 0..12).prop_map(|lines| lines.join("\n"))
}

fn wild_patch() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        3 => prop::sample::select(vec![
            "diff --git a/x b/x", "--- a/x", "+++ b/x", "--- /dev/null", "+++ /dev/null", "@@ -1,2 +1,2 @@", "@@ -1 +1 @@ fn",
            "@@", "@@ x", "*** Add File: y", "*** End Patch", "\\ No newline", "index 1..2", "new file mode 1", "",
        ]).prop_map(str::to_owned),
        3 => "[-+ ][a-c ]{0,6}",
        1 => wild_text(),
    ];
    prop::collection::vec(line, 0..20).prop_map(|lines| lines.join("\n"))
}

proptest! {
    #[test]
    fn no_line_is_too_wide_or_harmful(old in wild_lines(), new in wild_lines(), source in wild_patch(), columns in 1usize..50) {
        let theme = Theme::dark();
        let diff = Diff { path: old.clone(), old_text: Some(old), new_text: new };
        for line in render(&diff, columns, &theme).into_iter().chain(patch(&source, columns, &theme)) {
            prop_assert!(width::of_line(&line) <= columns, "{:?}", line);
            prop_assert!(!line.to_string().contains(char::is_control), "{:?}", line);
        }
    }

    #[test]
    fn the_new_text_can_be_read_off(old in "([ab]\n){0,8}", new in "([ab]\n){0,8}") {
        let rows = compare::rows(&old, &new);
        let kept: Vec<_> = rows
            .iter()
            .map(|row| match row {
                Row::Line { kind: Kind::Removed, .. } => String::new(),
                Row::Line { text, .. } => format!("{text}\n"),
                Row::Fold { count, .. } => "?\n".repeat(count.unwrap_or(0)),
                other => panic!("{other:?}"),
            })
            .collect();
        let kept = kept.concat();
        prop_assert_eq!(kept.len(), new.len());
        prop_assert!(kept.chars().zip(new.chars()).all(|(kept, new)| kept == new || kept == '?'));
    }

    #[test]
    fn no_line_of_a_patch_is_lost(lines in prop::collection::vec("[-+ ][a-c]{1,6}", 0..20)) {
        let source = format!("@@ -1,9 +1,9 @@\n{}\n", lines.join("\n"));
        let shown = plain(&patch(&source, 80, &Theme::dark()));
        for line in lines {
            prop_assert!(shown.contains(line[1..].trim()), "{}", shown);
        }
    }
}
