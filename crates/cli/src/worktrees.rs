//! `consort worktrees` and `consort diff`: the branches that agents work on, and what they changed.

use consort_daemon::protocol::{Call, NewWorktree, WorktreeFinished, WorktreeRemoved, WorktreeView};
use consort_model::{ChangeKind, Changes, DiffText, FileChange, Integration};

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
                state(view),
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

/// How a worktree stands to its base, in few words.
fn state(view: &WorktreeView) -> String {
    if let Some(problem) = &view.problem {
        return format!("not known: {}", one_line(problem));
    }
    let base = one_line(&view.worktree.base);
    let mut parts = Vec::new();
    if !view.is_there {
        parts.push("folder gone".to_owned());
    }
    let mut tell = |count: Option<u64>, words: &str| {
        if let Some(count) = count.filter(|count| *count > 0) {
            parts.push(format!("{count} {words}"));
        }
    };
    tell(view.uncommitted, "uncommitted");
    tell(view.ahead, &format!("ahead of {base}"));
    tell(view.behind, "behind");
    if parts.is_empty() { format!("same as {base}") } else { parts.join(", ") }
}

fn finish(call: &Call, json: bool) -> Result<(), Stop> {
    let finished: WorktreeFinished = Link::new()?.call_once(call)?;
    if json {
        return print_json(&finished);
    }
    let WorktreeFinished { worktree, commits, kept, .. } = finished;
    let word = if commits == 1 { "commit" } else { "commits" };
    let end = if kept { "it stays" } else { "it was removed, and its agents closed" };
    let (branch, base) = (one_line(&worktree.branch), one_line(&worktree.base));
    print_line(&format!("{commits} {word} of {branch} went to {base}; {end}"))
}

fn remove(call: &Call, json: bool) -> Result<(), Stop> {
    let removed: WorktreeRemoved = Link::new()?.call_once(call)?;
    if json {
        return print_json(&removed);
    }
    let (path, branch) = (one_line(&removed.worktree.path), one_line(&removed.worktree.branch));
    print_line(&match (&removed.commit, removed.branch_kept) {
        (Some(_), true) => {
            format!("{path} was removed; its branch {branch} is checked out elsewhere and stays")
        }
        (Some(commit), false) => {
            format!("{path} was removed with its branch {branch}, which was at {commit}")
        }
        (None, _) => format!("{path} was removed"),
    })
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
        text.push_str(&format!("{}  {name}  {lines}\n", letter(file.change)));
    }
    let since = match &changes.base_commit {
        Some(commit) => {
            format!("{} ({})", one_line(&changes.base), commit.chars().take(10).collect::<String>())
        }
        None => "nothing: there is no commit yet".to_owned(),
    };
    let files = if changes.files.len() == 1 { "file" } else { "files" };
    let more = if changes.truncated { " and more" } else { "" };
    let commits = match changes.commits {
        0 => String::new(),
        1 => ", 1 commit".to_owned(),
        commits => format!(", {commits} commits"),
    };
    text.push_str(&format!(
        "{} {files}{more}, +{} -{}{commits} since {since}\n",
        changes.files.len(),
        changes.added,
        changes.removed
    ));
    text
}

fn shown(file: &FileChange) -> String {
    match &file.old_path {
        Some(old) => format!("{} -> {}", one_line(old), one_line(&file.path)),
        None => one_line(&file.path),
    }
}

fn letter(change: ChangeKind) -> char {
    match change {
        ChangeKind::Added => 'A',
        ChangeKind::Modified => 'M',
        ChangeKind::Deleted => 'D',
        ChangeKind::Renamed => 'R',
        ChangeKind::Copied => 'C',
        ChangeKind::TypeChanged => 'T',
        ChangeKind::Unmerged => 'U',
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use consort_model::Worktree;

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

    #[test]
    fn how_a_worktree_stands_is_said_in_few_words() {
        let worktree = Worktree {
            name: "x".into(),
            path: "/w/x".into(),
            branch: "consort/x".into(),
            base: "main".into(),
            base_commit: "0".into(),
            repository: "/r".into(),
        };
        let mut view = WorktreeView {
            worktree,
            agent: None,
            agent_name: None,
            agent_status: None,
            is_there: true,
            uncommitted: Some(0),
            ahead: Some(0),
            behind: Some(0),
            problem: None,
        };
        assert_eq!(state(&view), "same as main");
        (view.uncommitted, view.ahead, view.behind) = (Some(3), Some(2), Some(1));
        assert_eq!(state(&view), "3 uncommitted, 2 ahead of main, 1 behind");
        view.is_there = false;
        assert!(state(&view).starts_with("folder gone, "));
        view.problem = Some("git\nfailed".into());
        assert!(state(&view).starts_with("not known: git"));
        assert!(table(&[view]).contains("(left over)"));
    }
}
