//! The real names of files, for the policy: links followed as far as a path exists.
//!
//! Owns the look at the disk and remembers it for one decision, so that none of it happens where state is locked. What a
//! link points at may change right after; a decision is about the moment it was made in.

use std::collections::HashMap;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Real names that were looked up.
#[derive(Default)]
pub struct RealPaths {
    seen: Mutex<HashMap<String, Option<String>>>,
}

impl RealPaths {
    /// The real name of an absolute path; none if it cannot be told.
    pub fn resolve(&self, path: &str) -> Option<String> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.entry(path.to_owned()).or_insert_with(|| real(Path::new(path))).clone()
    }
}

fn real(path: &Path) -> Option<String> {
    let parts: Vec<Component<'_>> = path.components().collect();
    for length in (1..=parts.len()).rev() {
        let existing: PathBuf = parts[..length].iter().collect();
        let mut whole = match existing.canonicalize() {
            Ok(whole) => whole,
            // A link to what does not exist yet: writing to it would write there.
            Err(_) if existing.is_symlink() => return None,
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            Err(_) => return None,
        };
        for part in &parts[length..] {
            match part {
                Component::ParentDir => {
                    whole.pop();
                }
                other => whole.push(other),
            }
        }
        return whole.into_os_string().into_string().ok();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn links_are_followed_and_what_does_not_exist_stays_as_written() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("work/src/deep")).unwrap();
        std::fs::create_dir(root.join("secret")).unwrap();
        std::fs::write(root.join("work/file"), "").unwrap();
        symlink(root.join("secret"), root.join("work/out")).unwrap();
        symlink(root.join("secret/new"), root.join("work/dangling")).unwrap();
        symlink("loop", root.join("work/loop")).unwrap();
        symlink("src/deep", root.join("work/deep")).unwrap();
        for (path, expected) in [
            ("work/src", Some("work/src")),
            ("work/src/a/b", Some("work/src/a/b")),
            ("work/src/../file", Some("work/file")),
            ("work/out/key", Some("secret/key")),
            ("work/out/../file", Some("file")),
            ("work/deep/../x", Some("work/src/x")),
            ("work/none/../x", Some("work/x")),
            ("work/dangling", None),
            ("work/dangling/x", None),
            ("work/loop", None),
            ("work/loop/x", None),
            ("work/file/x", None),
        ] {
            let got = RealPaths::default().resolve(root.join(path).to_str().unwrap());
            let expected = expected.map(|path| root.join(path).to_string_lossy().into_owned());
            assert_eq!(got, expected, "{path}");
        }
        assert_eq!(RealPaths::default().resolve("relative/and/absent"), None);
    }
}
