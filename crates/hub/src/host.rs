//! What agents ask of their host: files inside their roots.
//!
//! The driver checked paths by their text; here it is checked where links lead, since only that is the truth.

use std::io;
use std::path::{Path, PathBuf};

use consort_drivers::CallResult;

/// The largest file that is read for an agent.
const MAX_FILE: u64 = 32 << 20;

/// Reads a text file, or the wanted lines of it. Blocking.
pub fn read_file(roots: &[PathBuf], path: &Path, line: Option<u32>, limit: Option<u32>) -> CallResult {
    let outcome = inside(roots, path).and_then(|real| {
        let size = std::fs::metadata(&real)?.len();
        if size > MAX_FILE {
            return Err(io::Error::other(format!("it has {size} bytes, more than {MAX_FILE}")));
        }
        std::fs::read(&real)
    });
    let bytes = match outcome {
        Ok(bytes) => bytes,
        Err(error) => return failed("read", path, &error),
    };
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(_) => return failed("read", path, &io::Error::other("it is not UTF-8 text")),
    };
    if line.is_none() && limit.is_none() {
        return CallResult::Text { text };
    }
    let skip = line.unwrap_or(1).saturating_sub(1) as usize;
    let take = limit.map_or(usize::MAX, |limit| limit as usize);
    CallResult::Text { text: text.split_inclusive('\n').skip(skip).take(take).collect() }
}

/// Writes a text file whole, making its folders. Blocking.
pub fn write_file(roots: &[PathBuf], path: &Path, text: &str) -> CallResult {
    let outcome = inside(roots, path).and_then(|real| {
        if let Some(folder) = real.parent() {
            std::fs::create_dir_all(folder)?;
        }
        std::fs::write(&real, text)
    });
    match outcome {
        Ok(()) => CallResult::Done,
        Err(error) => failed("write", path, &error),
    }
}

/// Where `path` leads, if that is inside one of the roots. What does not exist yet is judged by its nearest folder.
fn inside(roots: &[PathBuf], path: &Path) -> io::Result<PathBuf> {
    if path.components().any(|part| matches!(part, std::path::Component::ParentDir)) {
        return Err(io::Error::other("its path has a `..` in it"));
    }
    let mut existing = path;
    let mut missing = Vec::new();
    let mut real = loop {
        match existing.canonicalize() {
            Ok(real) => break real,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                // A link that leads nowhere is not a missing file: writing through it could leave the roots.
                if existing.is_symlink() {
                    return Err(io::Error::other("it is a link that leads nowhere"));
                }
                let (Some(folder), Some(name)) = (existing.parent(), existing.file_name()) else {
                    return Err(error);
                };
                missing.push(name);
                existing = folder;
            }
            Err(error) => return Err(error),
        }
    };
    real.extend(missing.iter().rev());
    let allowed = roots.iter().filter_map(|root| root.canonicalize().ok()).any(|root| real.starts_with(root));
    if allowed { Ok(real) } else { Err(io::Error::other("it is outside of the agent's folders")) }
}

fn failed(action: &str, path: &Path, error: &io::Error) -> CallResult {
    let message = format!("cannot {action} {}: {error}", path.display());
    if error.kind() == io::ErrorKind::NotFound {
        CallResult::NotFound { message }
    } else {
        CallResult::Failed { message }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(result: CallResult) -> Option<String> {
        match result {
            CallResult::Text { text } => Some(text),
            _ => None,
        }
    }

    #[test]
    fn files_are_read_whole_or_by_lines() {
        let root = tempfile::tempdir().unwrap();
        let roots = [root.path().to_owned()];
        let file = root.path().join("a/b.txt");
        assert_eq!(write_file(&roots, &file, "1\n2\n3\n"), CallResult::Done);
        for (line, limit, expected) in [
            (None, None, "1\n2\n3\n"),
            (Some(2), None, "2\n3\n"),
            (Some(2), Some(1), "2\n"),
            (None, Some(2), "1\n2\n"),
            (Some(9), None, ""),
        ] {
            assert_eq!(text(read_file(&roots, &file, line, limit)).as_deref(), Some(expected));
        }
        let missing = read_file(&roots, &root.path().join("none"), None, None);
        assert!(matches!(missing, CallResult::NotFound { .. }));
    }

    #[test]
    fn links_and_dots_do_not_lead_out_of_the_roots() {
        let root = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        let roots = [root.path().to_owned()];
        std::fs::write(outside.path().join("secret"), "s").unwrap();
        std::os::unix::fs::symlink(outside.path(), root.path().join("out")).unwrap();
        std::os::unix::fs::symlink(outside.path().join("new"), root.path().join("dangling")).unwrap();
        for path in ["out/secret", "out/new", "dangling", "out/../out/secret", "../x"] {
            let path = root.path().join(path);
            assert_eq!(text(read_file(&roots, &path, None, None)), None, "{path:?}");
            assert!(matches!(write_file(&roots, &path, "x"), CallResult::Failed { .. }), "{path:?}");
        }
        assert!(!outside.path().join("new").exists());
        assert_eq!(std::fs::read_to_string(outside.path().join("secret")).unwrap(), "s");
    }
}
