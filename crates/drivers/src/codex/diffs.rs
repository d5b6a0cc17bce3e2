//! Changes to files: from the app server's form (a whole text, or hunks of a unified diff) to texts before and after.

use consort_model::Diff;
use serde::Deserialize;

use super::wire::lenient;

/// One file of a change.
#[derive(Deserialize, Default, Debug)]
pub struct Change {
    #[serde(default, deserialize_with = "lenient")]
    pub path: String,
    #[serde(default, deserialize_with = "lenient")]
    pub kind: Kind,
    #[serde(default, deserialize_with = "lenient")]
    pub diff: String,
}

/// What is done to a file.
#[derive(Deserialize, Default, Debug)]
pub struct Kind {
    #[serde(default, rename = "type", deserialize_with = "lenient")]
    pub what: What,
    /// Where the file is moved to.
    #[serde(default, deserialize_with = "lenient")]
    pub move_path: Option<String>,
}

#[derive(Deserialize, Default, Debug, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub enum What {
    Add,
    Delete,
    Update,
    #[default]
    #[serde(other)]
    Unknown,
}

/// A part of a unified diff.
#[derive(Debug, PartialEq, Eq)]
pub struct Hunk {
    /// The first line of the file after the change, from 1.
    pub line: u64,
    pub old: String,
    pub new: String,
}

impl Change {
    /// The change as texts, one for each hunk, and where they stand; none if its diff cannot be read.
    pub fn read(&self) -> Option<(Vec<Diff>, Vec<String>)> {
        let whole = |old_text: Option<String>, new_text: String| {
            let diff = Diff { path: self.path.clone(), old_text, new_text };
            Some((vec![diff], vec![self.path.clone()]))
        };
        let looks_unified = self.diff.starts_with("@@ ") || self.diff.starts_with("--- ");
        match self.kind.what {
            // A new file may itself begin like a diff; its text is what counts.
            What::Add => whole(None, self.diff.clone()),
            What::Delete if !looks_unified => whole(Some(self.diff.clone()), String::new()),
            What::Delete | What::Update | What::Unknown => {
                let hunks = hunks(&self.diff)?;
                let locations = hunks.iter().map(|hunk| format!("{}:{}", self.path, hunk.line.max(1)));
                let locations = locations.collect();
                let diffs = hunks.into_iter().map(|hunk| Diff {
                    path: self.path.clone(),
                    old_text: Some(hunk.old),
                    new_text: hunk.new,
                });
                Some((diffs.collect(), locations))
            }
        }
    }
}

/// The hunks of a unified diff; none if it is not one. An empty diff has none and is one: a mere move.
pub fn hunks(diff: &str) -> Option<Vec<Hunk>> {
    let mut hunks: Vec<Hunk> = Vec::new();
    let mut last = ' ';
    for line in diff.split_inclusive('\n') {
        if let Some(header) = line.strip_prefix("@@ ") {
            hunks.push(Hunk { line: new_line(header)?, old: String::new(), new: String::new() });
            last = ' ';
            continue;
        }
        let Some(hunk) = hunks.last_mut() else {
            // What stands before the first hunk: names and modes.
            let known =
                ["--- ", "+++ ", "diff ", "index ", "new file", "deleted file", "rename ", "similarity "];
            let blank = line.trim().is_empty();
            if blank || known.iter().any(|start| line.starts_with(start)) {
                continue;
            }
            return None;
        };
        let mark = line.chars().next()?;
        let text = line.get(1..).unwrap_or_default();
        match mark {
            ' ' => {
                hunk.old.push_str(text);
                hunk.new.push_str(text);
            }
            '-' => hunk.old.push_str(text),
            '+' => hunk.new.push_str(text),
            // An empty line whose blank was lost on the way.
            '\n' => {
                hunk.old.push('\n');
                hunk.new.push('\n');
            }
            // "No newline at end of file", about the line before.
            '\\' => {
                if last != '+' && hunk.old.ends_with('\n') {
                    hunk.old.pop();
                }
                if last != '-' && hunk.new.ends_with('\n') {
                    hunk.new.pop();
                }
            }
            _ => return None,
        }
        last = mark;
    }
    Some(hunks)
}

/// The line in `-1,3 +1,3 @@`.
fn new_line(header: &str) -> Option<u64> {
    let (_, after) = header.split_once('+')?;
    let digits: String = after.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hunk(line: u64, old: &str, new: &str) -> Hunk {
        Hunk { line, old: old.into(), new: new.into() }
    }

    #[test]
    fn hunks_become_texts_before_and_after() {
        let table = [
            ("@@ -1,3 +1,3 @@\n a\n-b\n+c\n d\n", Some(vec![hunk(1, "a\nb\nd\n", "a\nc\nd\n")])),
            (
                "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n@@ -9,0 +10 @@ fn x()\n+c\n",
                Some(vec![hunk(1, "a\n", "b\n"), hunk(10, "", "c\n")]),
            ),
            (
                "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n\\ No newline at end of file\n",
                Some(vec![hunk(1, "a", "b")]),
            ),
            ("@@ -1,2 +1,2 @@\n\n-a\n+ü", Some(vec![hunk(1, "\na\n", "\nü")])),
            ("", Some(vec![])),
            ("plain text\n", None),
            ("@@ nonsense\n", None),
            ("@@ -1 +1 @@\nünmarked\n", None),
        ];
        for (diff, expected) in table {
            assert_eq!(hunks(diff), expected, "{diff:?}");
        }
    }
}
