//! `consort worktrees` and `consort diff`: the branches that agents work on, and what they changed.

use consort_daemon::protocol::{Call, NewWorktree, WorktreeFinished, WorktreeRemoved, WorktreeView};
use consort_model::{Changes, DiffText, FileChange, Integration};

use crate::args::{Diff, WorktreeOptions, Worktrees};
use crate::exit::Stop;
use crate::link::Link;
use crate::output::{Output, Paint, Style, exact, one_line, pad, print_json, print_line, text_width};

/// The worktree that options ask for.
pub fn wish(options: &WorktreeOptions) -> Option<NewWorktree> {
    let name = options.worktree.as_ref()?;
    Some(NewWorktree { name: Some(name.clone()).filter(|name| !name.is_empty()), base: options.base.clone() })
}

/// `consort worktrees`.
pub fn worktrees(command: &Worktrees) -> Result<(), Stop> {
    match command {
        Worktrees::List(args) => list(args.json),
        Worktrees::Finish { worktree, merge, keep, json, .. } => {
            let by = if *merge { Integration::Merge } else { Integration::Rebase };
            finish(&Call::FinishWorktree { worktree: worktree.clone(), by, keep: *keep }, *json)
        }
        Worktrees::Remove { worktree, force, json } => {
            remove(&Call::RemoveWorktree { worktree: worktree.clone(), force: *force }, *json)
        }
    }
}

fn list(json: bool) -> Result<(), Stop> {
    let worktrees: Vec<WorktreeView> = Link::new()?.call(&Call::ListWorktrees {})?;
    if json {
        return print_json(&worktrees);
    }
    let mut output = Output::human();
    if worktrees.is_empty() {
        output.line("no worktrees; `consort new --worktree \"task\"` makes one with an agent in it")?;
    } else {
        output.write(&table(&worktrees))?;
    }
    output.flush()
}

fn table(worktrees: &[WorktreeView]) -> String {
    let rows: Vec<[String; 5]> = worktrees
        .iter()
        .map(|view| {
            let who = view.agent_name.as_deref().unwrap_or("(left over)");
            [
                one_line(who),
                view.agent_status.map_or("-", |status| status.words()).to_owned(),
                one_line(&view.worktree.branch),
                one_line(&view.standing()),
                one_line(&view.worktree.path),
            ]
        })
        .collect();
    let heads = ["AGENT", "STATUS", "BRANCH", "STATE", "FOLDER"].map(str::to_owned);
    let all: Vec<&[String; 5]> = std::iter::once(&heads).chain(&rows).collect();
    let widths: Vec<usize> =
        (0..4).map(|at| all.iter().map(|row| text_width(&row[at])).max().unwrap_or(0)).collect();
    let line = |row: &&[String; 5]| {
        let cells: Vec<String> = (0..4).map(|at| pad(&row[at], widths[at])).collect();
        format!("{}  {}\n", cells.join("  "), row[4])
    };
    all.iter().map(line).collect()
}

fn finish(call: &Call, json: bool) -> Result<(), Stop> {
    let finished: WorktreeFinished = Link::new()?.call_once(call)?;
    if json {
        return print_json(&finished);
    }
    print_line(&one_line(&finished.sentence()))
}

fn remove(call: &Call, json: bool) -> Result<(), Stop> {
    let removed: WorktreeRemoved = Link::new()?.call_once(call)?;
    if json {
        return print_json(&removed);
    }
    print_line(&one_line(&removed.sentence()))
}

/// `consort diff`.
pub fn diff(args: &Diff) -> Result<(), Stop> {
    let mut link = Link::new()?;
    let agent = args.agent.clone();
    if args.stat {
        let changes: Changes = link.call(&Call::Changes { agent })?;
        if args.json {
            return print_json(&changes);
        }
        let mut output = Output::human();
        let text = stat(&changes, output.paint);
        output.write(&text)?;
        return output.flush();
    }
    let diff: DiffText = link.call(&Call::Diff { agent, paths: args.paths.clone() })?;
    if args.json {
        return print_json(&diff);
    }
    let mut output = Output::human();
    let paint = output.paint;
    for line in diff.text.lines() {
        output.line(&painted(line, paint))?;
    }
    output.flush()?;
    if diff.truncated {
        crate::output::note("the diff is longer than is shown; name files to see theirs");
    }
    Ok(())
}

fn painted(line: &str, paint: Paint) -> String {
    let text = exact(line);
    let style = match line.as_bytes() {
        [b'+', b'+', b'+', b' ', ..] | [b'-', b'-', b'-', b' ', ..] => Style::Bold,
        [b'+', ..] => Style::Green,
        [b'-', ..] => Style::Red,
        [b'@', b'@', ..] => Style::Cyan,
        [b'd', b'i', b'f', b'f', b' ', ..] => Style::Bold,
        _ => return text,
    };
    paint.paint(style, &text).into_owned()
}

/// The changed files with + and -, and the sum.
fn stat(changes: &Changes, paint: Paint) -> String {
    let width = changes.files.iter().map(|file| text_width(&shown(file))).max().unwrap_or(0).min(60);
    let mut text = String::new();
    for file in &changes.files {
        let lines = match (file.added, file.removed) {
            (Some(added), Some(removed)) => {
                let (plus, minus) = (format!("+{added}"), format!("-{removed}"));
                format!("{} {}", paint.paint(Style::Green, &plus), paint.paint(Style::Red, &minus))
            }
            _ => "not text".to_owned(),
        };
        let name = pad(&shown(file), width);
        text.push_str(&format!("{}  {name}  {lines}\n", file.change.letter()));
    }
    text.push_str(&one_line(&changes.sum()));
    text.push('\n');
    text
}

fn shown(file: &FileChange) -> String {
    match &file.old_path {
        Some(old) => format!("{} -> {}", one_line(old), one_line(&file.path)),
        None => one_line(&file.path),
    }
}

#[cfg(test)]
mod tests {
    use consort_model::ChangeKind;

    use super::*;

    fn file(path: &str, change: ChangeKind, lines: Option<(u64, u64)>) -> FileChange {
        let (added, removed) = (lines.map(|it| it.0), lines.map(|it| it.1));
        FileChange { path: path.into(), old_path: None, change, added, removed }
    }

    #[test]
    fn changed_files_are_aligned_with_their_lines() {
        let changes = Changes {
            base: "main".into(),
            base_commit: Some("0123456789abcdef".into()),
            commits: 2,
            files: vec![
                file("src/long/name.rs", ChangeKind::Modified, Some((12, 3))),
                file("日本", ChangeKind::Added, None),
            ],
            added: 12,
            removed: 3,
            ..Changes::default()
        };
        assert_eq!(
            stat(&changes, Paint::plain()),
            "M  src/long/name.rs  +12 -3\nA  日本              not text\n2 files, +12 -3, 2 commits since main (0123456789)\n"
        );
    }
}
