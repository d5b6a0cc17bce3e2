//! Unified diffs read as rows, as forgiving as can be: an agent's diff is often cut, wrongly counted or not quite one.
//!
//! A hunk with numbers holds as many lines as it says, so a removed line `-- x` is not taken for a file's name. One without
//! numbers (`@@ fn main`), as some agents write them, holds the lines that begin with a sign.

use super::compare::{mark_words, row};
use super::{Counts, Kind, Row};
use crate::text::clean;

/// Where a hunk stands, and how many of its lines are still to come.
struct Hunk {
    old: Option<usize>,
    new: Option<usize>,
    old_left: usize,
    new_left: usize,
}

/// Whether a line begins a hunk and says where it stands.
pub fn is_numbered_hunk(line: &str) -> bool {
    numbered_hunk(line).is_some()
}

/// The rows of a patch.
pub fn rows(patch: &str) -> Vec<Row> {
    let patch = clean::sanitize(patch);
    let mut reader = Reader { rows: Vec::new(), hunk: None, run: 0, file: None };
    for line in patch.strip_suffix('\n').unwrap_or(&patch).split('\n') {
        reader.line(line);
    }
    reader.end_run();
    reader.end_file();
    reader.rows
}

struct Reader {
    rows: Vec<Row>,
    hunk: Option<Hunk>,
    /// Where in the rows the changed lines begin that stand next to each other.
    run: usize,
    /// Where in the rows the file's name is.
    file: Option<usize>,
}

impl Reader {
    fn line(&mut self, line: &str) {
        if self.hunk_line(line) {
            return;
        }
        self.end_run();
        self.hunk = None;
        if let Some((hunk, place)) = numbered_hunk(line).or_else(|| bare_hunk(line)) {
            // The first hunk of a file that begins with its first line leaves nothing out.
            if hunk.new.is_none_or(|new| new > 1) || !place.is_empty() {
                self.rows.push(Row::Fold { count: None, place: place.to_owned() });
            }
            self.hunk = Some(hunk);
            self.run = self.rows.len();
        } else if !self.file_line(line) {
            self.rows.push(Row::Text(line.to_owned()));
        }
    }

    /// A line of the open hunk; false if it is none.
    fn hunk_line(&mut self, line: &str) -> bool {
        let Some(hunk) = &mut self.hunk else { return false };
        let counted = hunk.old.is_some();
        let (kind, text) = match line.as_bytes().first() {
            Some(b'+') if !counted || hunk.new_left > 0 => (Kind::Added, &line[1..]),
            Some(b'-') if !counted || hunk.old_left > 0 => (Kind::Removed, &line[1..]),
            Some(b' ') if !counted || hunk.old_left > 0 && hunk.new_left > 0 => (Kind::Same, &line[1..]),
            // Spaces at the end of a line get lost on the way, and with them the sign of an empty one.
            None if counted && hunk.old_left > 0 && hunk.new_left > 0 => (Kind::Same, ""),
            Some(b'\\') => {
                self.end_run();
                self.rows.push(Row::Text(line.to_owned()));
                self.run = self.rows.len();
                return true;
            }
            _ => return false,
        };
        let number = if kind == Kind::Removed { hunk.old } else { hunk.new };
        if kind != Kind::Added {
            hunk.old = hunk.old.map(|number| number.saturating_add(1));
            hunk.old_left = hunk.old_left.saturating_sub(1);
        }
        if kind != Kind::Removed {
            hunk.new = hunk.new.map(|number| number.saturating_add(1));
            hunk.new_left = hunk.new_left.saturating_sub(1);
        }
        let follows_added = matches!(self.rows[self.run..].last(), Some(Row::Line { kind: Kind::Added, .. }))
            && kind == Kind::Removed;
        if kind == Kind::Same || follows_added {
            self.end_run();
        }
        self.rows.push(row(kind, number, text));
        if kind == Kind::Same {
            self.run = self.rows.len();
        }
        true
    }

    /// Compares the removed and added lines that stand next to each other.
    fn end_run(&mut self) {
        let run = &mut self.rows[self.run..];
        let added = run
            .iter()
            .position(|row| matches!(row, Row::Line { kind: Kind::Added, .. }))
            .unwrap_or(run.len());
        let (removed, added) = run.split_at_mut(added);
        mark_words(removed, added);
        self.run = self.rows.len();
    }

    /// A line about a file; false if it is none.
    fn file_line(&mut self, line: &str) -> bool {
        if let Some(names) = line.strip_prefix("diff --git ") {
            let path = names.rsplit_once(" b/").map_or(names, |(_, path)| path);
            self.begin_file(path, "");
        } else if let Some(name) = line.strip_prefix("--- ") {
            let path = path_of(name);
            if !self.is_fresh_file() && path != "/dev/null" {
                self.begin_file(path, "");
            }
        } else if let Some(name) = line.strip_prefix("+++ ") {
            match path_of(name) {
                "/dev/null" => self.note("removed"),
                path if self.is_fresh_file() => self.rename(path),
                path => self.begin_file(path, ""),
            }
        } else if let Some(name) = line.strip_prefix("*** Add File: ") {
            self.begin_file(name, "new");
            self.hunk = Some(Hunk { old: None, new: None, old_left: 0, new_left: 0 });
            self.run = self.rows.len();
        } else if let Some(name) = line.strip_prefix("*** Update File: ") {
            self.begin_file(name, "");
        } else if let Some(name) = line.strip_prefix("*** Delete File: ") {
            self.begin_file(name, "removed");
        } else if line.starts_with("new file mode ") && self.file.is_some() {
            self.note("new");
        } else if line.starts_with("deleted file mode ") && self.file.is_some() {
            self.note("removed");
        } else {
            // What git says for machines.
            return line.starts_with("index ") && self.file.is_some()
                || matches!(line, "*** Begin Patch" | "*** End Patch" | "*** End of File");
        }
        true
    }

    fn begin_file(&mut self, path: &str, note: &'static str) {
        self.end_file();
        self.file = Some(self.rows.len());
        let path = clean::one_line(path).into_owned();
        self.rows.push(Row::File { path, note, counts: Counts::default() });
        self.run = self.rows.len();
    }

    /// Whether the file has a name and no lines yet.
    fn is_fresh_file(&self) -> bool {
        self.file.is_some_and(|file| {
            !self.rows[file..].iter().any(|row| matches!(row, Row::Line { .. } | Row::Fold { .. }))
        })
    }

    fn rename(&mut self, new: &str) {
        if let Some(Row::File { path, .. }) = self.file.and_then(|file| self.rows.get_mut(file)) {
            *path = clean::one_line(new).into_owned();
        }
    }

    fn note(&mut self, now: &'static str) {
        if let Some(Row::File { note, .. }) = self.file.and_then(|file| self.rows.get_mut(file)) {
            *note = now;
        }
    }

    /// Writes beside the file's name what was counted.
    fn end_file(&mut self) {
        if let Some(file) = self.file.take() {
            let counted = super::count(&self.rows[file..]);
            if let Some(Row::File { counts, .. }) = self.rows.get_mut(file) {
                *counts = counted;
            }
        }
    }
}

/// The path in a line such as `+++ b/src/main.rs<tab>2026-01-01`.
fn path_of(name: &str) -> &str {
    // Tabs have become spaces by now: two of them end the name.
    let name = name.split("  ").next().unwrap_or(name).trim();
    name.strip_prefix("a/").or_else(|| name.strip_prefix("b/")).unwrap_or(name)
}

/// `@@ -1,2 +3,4 @@ place`.
fn numbered_hunk(line: &str) -> Option<(Hunk, &str)> {
    let (ranges, place) = line.strip_prefix("@@ -")?.split_once(" @@")?;
    let (old, new) = ranges.split_once(" +")?;
    let range = |text: &str| -> Option<(usize, usize)> {
        let (start, count) = text.split_once(',').unwrap_or((text, "1"));
        Some((start.parse().ok()?, count.parse().ok()?))
    };
    let ((old, old_left), (new, new_left)) = (range(old)?, range(new)?);
    Some((Hunk { old: Some(old), new: Some(new), old_left, new_left }, place.trim()))
}

/// `@@` or `@@ place`, without numbers.
fn bare_hunk(line: &str) -> Option<(Hunk, &str)> {
    let place = line.strip_prefix("@@")?;
    (place.is_empty() || place.starts_with(' ')).then(|| {
        let hunk = Hunk { old: None, new: None, old_left: 0, new_left: 0 };
        (hunk, place.trim().trim_end_matches("@@").trim_end())
    })
}
