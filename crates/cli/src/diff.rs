//! The lines that differ between two texts, with a little around them.

use consort_model::Diff;

/// One line of a rendered diff.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Line<'a> {
    /// In both.
    Same(&'a str),
    /// Only before.
    Removed(&'a str),
    /// Only after.
    Added(&'a str),
    /// So many lines that are in both are left out.
    Skipped(usize),
}

/// Above this many pairs of lines the differing middle is shown as removed and added as a whole.
const MAX_PAIRS: usize = 1_000_000;

/// The diff with so many lines of context.
pub fn lines(diff: &Diff, context: usize) -> Vec<Line<'_>> {
    let old: Vec<&str> = diff.old_text.as_deref().unwrap_or_default().lines().collect();
    let new: Vec<&str> = diff.new_text.lines().collect();
    let head = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    let tail =
        old[head..].iter().rev().zip(new[head..].iter().rev()).take_while(|(old, new)| old == new).count();
    let mut all: Vec<Line<'_>> = old[..head].iter().map(|line| Line::Same(line)).collect();
    middle(&old[head..old.len() - tail], &new[head..new.len() - tail], &mut all);
    all.extend(old[old.len() - tail..].iter().map(|line| Line::Same(line)));
    skip_far(all, context)
}

/// How many lines were added and removed.
pub fn counts(diff: &Diff) -> (usize, usize) {
    lines(diff, 0).iter().fold((0, 0), |(added, removed), line| match line {
        Line::Added(_) => (added + 1, removed),
        Line::Removed(_) => (added, removed + 1),
        Line::Same(_) | Line::Skipped(_) => (added, removed),
    })
}

/// The longest common subsequence of two differing middles, as lines.
fn middle<'a>(old: &[&'a str], new: &[&'a str], into: &mut Vec<Line<'a>>) {
    if old.len().saturating_mul(new.len()) > MAX_PAIRS {
        into.extend(old.iter().map(|line| Line::Removed(line)));
        into.extend(new.iter().map(|line| Line::Added(line)));
        return;
    }
    let columns = new.len() + 1;
    let mut common = vec![0u32; (old.len() + 1) * columns];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            common[i * columns + j] = if old[i] == new[j] {
                common[(i + 1) * columns + j + 1] + 1
            } else {
                common[(i + 1) * columns + j].max(common[i * columns + j + 1])
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    while i < old.len() || j < new.len() {
        if i < old.len() && j < new.len() && old[i] == new[j] {
            into.push(Line::Same(old[i]));
            (i, j) = (i + 1, j + 1);
        } else if j == new.len()
            || (i < old.len() && common[(i + 1) * columns + j] >= common[i * columns + j + 1])
        {
            into.push(Line::Removed(old[i]));
            i += 1;
        } else {
            into.push(Line::Added(new[j]));
            j += 1;
        }
    }
}

/// Leaves out unchanged lines that are further than `context` from a change.
fn skip_far(all: Vec<Line<'_>>, context: usize) -> Vec<Line<'_>> {
    let changed: Vec<usize> =
        all.iter().enumerate().filter(|(_, line)| !matches!(line, Line::Same(_))).map(|(at, _)| at).collect();
    let mut kept = Vec::new();
    let mut skipped = 0;
    let mut next = 0;
    for (at, line) in all.into_iter().enumerate() {
        while changed.get(next).is_some_and(|change| change + context < at) {
            next += 1;
        }
        if changed.get(next).is_some_and(|change| change.abs_diff(at) <= context) {
            if skipped > 0 {
                kept.push(Line::Skipped(std::mem::take(&mut skipped)));
            }
            kept.push(line);
        } else {
            skipped += 1;
        }
    }
    if skipped > 0 && !kept.is_empty() {
        kept.push(Line::Skipped(skipped));
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn diff(old: Option<&str>, new: &str) -> Diff {
        Diff { path: "f".into(), old_text: old.map(Into::into), new_text: new.into() }
    }

    #[test]
    fn only_what_differs_and_its_surroundings_are_shown() {
        let change = diff(Some("a\nb\nc\nd\ne\nf\n"), "a\nb\nc\nD\ne\nf\n");
        let expected = [
            Line::Skipped(2),
            Line::Same("c"),
            Line::Removed("d"),
            Line::Added("D"),
            Line::Same("e"),
            Line::Skipped(1),
        ];
        assert_eq!(lines(&change, 1), expected);
        assert_eq!(counts(&change), (1, 1));
    }

    #[test]
    fn a_new_file_is_all_added_and_an_equal_one_is_empty() {
        assert_eq!(lines(&diff(None, "x\ny"), 3), [Line::Added("x"), Line::Added("y")]);
        assert_eq!(lines(&diff(Some("x"), "x"), 3), []);
        assert_eq!(counts(&diff(Some("x\ny\n"), "")), (0, 2));
    }

    #[test]
    fn lines_in_both_stay_between_changes() {
        let change = diff(Some("one\nkeep\ntwo"), "eins\nkeep\nzwei");
        let expected = [
            Line::Removed("one"),
            Line::Added("eins"),
            Line::Same("keep"),
            Line::Removed("two"),
            Line::Added("zwei"),
        ];
        assert_eq!(lines(&change, 3), expected);
    }

    #[test]
    fn huge_changes_are_shown_without_comparing_every_pair() {
        let old = "a\n".repeat(3000);
        let new = "b\n".repeat(3000);
        assert_eq!(counts(&diff(Some(&old), &new)), (3000, 3000));
    }
}
