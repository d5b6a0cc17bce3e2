//! Paths as approvals compare them: the names by which a file goes, and globs over them.
//!
//! A file is known by the name that was written and by its real one, behind all links. What is allowed must hold for
//! both, so that neither `..` nor a link leaves a folder; a denial holds for either. Following links is I/O, which the
//! caller lends as [`Resolve`].

use std::path::{Component, Path, PathBuf};

use super::shell::is_deceptive;

/// Finds the real name of an absolute path: links followed as far as the path exists, the rest as written. None if that
/// cannot be told.
pub type Resolve<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The longest glob.
const MAX_GLOB: usize = 1000;

/// The names of the files that a call touches.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Names {
    /// Absolute, sorted, without `.` and `..`.
    pub all: Vec<String>,
    /// Whether these are all, and surely the files that are meant.
    pub certain: bool,
}

/// The names of paths as an agent in `cwd` wrote them.
pub fn names<'a>(cwd: &str, paths: impl Iterator<Item = &'a str>, resolve: Resolve<'_>) -> Names {
    let mut names = Names { all: vec![], certain: true };
    for path in paths {
        let path = path.strip_prefix("file://").unwrap_or(path);
        let elsewhere = path.starts_with('~') || path.contains("://") || path.is_empty();
        if elsewhere || path.chars().any(|c| is_deceptive(c) || c == '\n') {
            // What becomes of it is up to the tool.
            names.all.push(path.to_owned());
            names.certain = false;
            continue;
        }
        let written = normal(cwd, path);
        // A tool that lets the system walk the path gets elsewhere than one that cuts the `..` out.
        let walked = Path::new(cwd).join(path).to_string_lossy().into_owned();
        for real in [resolve(&written), resolve(&walked)] {
            names.certain &= real.is_some();
            names.all.extend(real);
        }
        names.all.push(written);
    }
    names.all.sort();
    names.all.dedup();
    names
}

/// An absolute path without `.` and `..`, by the text alone.
pub fn normal(base: &str, path: &str) -> String {
    let mut normal = PathBuf::new();
    for part in Path::new(base).join(path).components() {
        match part {
            Component::ParentDir => {
                normal.pop();
            }
            Component::CurDir => {}
            other => normal.push(other),
        }
    }
    normal.to_string_lossy().into_owned()
}

/// Whether a path is a folder or in it.
pub fn is_inside(path: &str, folder: &str) -> bool {
    Path::new(path).starts_with(folder)
}

/// Whether an agent's folder is in another, by its written and its real name.
pub fn is_folder_inside(cwd: &str, folder: &str, resolve: Resolve<'_>) -> (bool, bool) {
    let real = match (resolve(cwd), resolve(folder)) {
        (Some(cwd), Some(folder)) => is_inside(&cwd, &folder),
        _ => false,
    };
    (is_inside(&normal("/", cwd), &normal("/", folder)), real)
}

/// A pattern over absolute paths: `*` and `?` within a name, `**` for any folders.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Glob {
    parts: Vec<Part>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Part {
    /// `**`
    Any,
    /// A name, perhaps with `*` and `?`.
    Name(Vec<char>),
}

impl Glob {
    /// Checks a pattern as a person wrote it.
    pub fn check(pattern: &str) -> Result<(), String> {
        let wrong = |why: &str| Err(format!("`{}` is no path pattern: {why}", pattern.escape_debug()));
        if pattern.is_empty() || pattern.len() > MAX_GLOB {
            return wrong("give 1 to 1000 characters");
        }
        if pattern.chars().any(|c| is_deceptive(c) || c == '\n') {
            return wrong("it holds characters that cannot be seen");
        }
        if pattern.starts_with('~') {
            return wrong("write the home folder out");
        }
        if pattern.split('/').any(|part| part == "..") {
            return wrong("it has `..`; write the folder that is meant");
        }
        Ok(())
    }

    /// A pattern, taken from `base` on if it is relative. A folder with a `/` at its end stands for all that is in it.
    pub fn new(base: &str, pattern: &str) -> Self {
        let whole = normal(base, pattern);
        let mut parts: Vec<Part> = whole
            .split('/')
            .filter(|name| !name.is_empty())
            .map(|name| if name == "**" { Part::Any } else { Part::Name(name.chars().collect()) })
            .collect();
        if pattern.ends_with('/') {
            parts.push(Part::Any);
        }
        parts.dedup_by(|a, b| *a == Part::Any && *b == Part::Any);
        Self { parts }
    }

    /// Whether an absolute path fits. `folder/**` fits the folder too.
    pub fn fits(&self, path: &str, any_case: bool) -> bool {
        if !path.starts_with('/') {
            return false;
        }
        let names: Vec<Vec<char>> = path
            .split('/')
            .filter(|name| !name.is_empty())
            .map(|name| if any_case { name.to_lowercase().chars().collect() } else { name.chars().collect() })
            .collect();
        // reached[n]: the parts so far fit the first n names.
        let mut reached = vec![false; names.len() + 1];
        reached[0] = true;
        for part in &self.parts {
            let mut next = vec![false; names.len() + 1];
            match part {
                Part::Any => {
                    let from = reached.iter().position(|fits| *fits).unwrap_or(reached.len());
                    next[from..].fill(true);
                }
                Part::Name(name) => {
                    let lower: Vec<char>;
                    let name = if any_case {
                        lower = name.iter().flat_map(|c| c.to_lowercase()).collect();
                        &lower
                    } else {
                        name
                    };
                    for n in 0..names.len() {
                        next[n + 1] = reached[n] && fits_name(name, &names[n]);
                    }
                }
            }
            reached = next;
        }
        reached.last().copied().unwrap_or(false)
    }
}

/// Whether a name fits one with `*` and `?`.
fn fits_name(pattern: &[char], name: &[char]) -> bool {
    let (mut p, mut n) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    while n < name.len() {
        match pattern.get(p) {
            Some('*') => {
                retry = Some((p, n));
                p += 1;
            }
            Some(c) if *c == '?' || *c == name[n] => {
                p += 1;
                n += 1;
            }
            _ => match retry {
                Some((star, from)) => {
                    retry = Some((star, from + 1));
                    p = star + 1;
                    n = from + 1;
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

/// A glob as it is kept: absolute, once by its written folder and once by the real one where they differ.
pub fn kept_globs(base: &str, pattern: &str, resolve: Resolve<'_>) -> Vec<String> {
    let whole = normal(base, pattern) + if pattern.ends_with('/') { "/**" } else { "" };
    let is_glob = |name: &&str| name.contains(['*', '?']);
    let fixed: Vec<&str> = whole.split('/').take_while(|name| !is_glob(name)).collect();
    let fixed = fixed.join("/");
    let real = resolve(if fixed.is_empty() { "/" } else { &fixed });
    let real = real.map(|real| format!("{}{}", real.trim_end_matches('/'), &whole[fixed.len()..]));
    let mut kept = vec![whole];
    kept.extend(real.filter(|real| *real != kept[0]));
    kept
}
