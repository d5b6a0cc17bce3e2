//! Copying what git does not have into a new worktree, such as `.env`.
//!
//! Nothing is read from outside the one folder or written outside the other, whatever links there are, and nothing that
//! is there is overwritten.

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

/// The most files and folders that are copied.
const MOST: usize = 50_000;

/// Copies files and folders, named from `from` on, to the same place in `to`. Those that are not there, or are there
/// already, are left out. Returns the names of what was copied.
pub fn copy(from: &Path, to: &Path, names: &[String]) -> Result<Vec<String>, String> {
    let mut copied = Vec::new();
    let mut left = MOST;
    for name in names {
        let path = Path::new(name);
        let inside = !name.is_empty() && path.components().all(|part| matches!(part, Component::Normal(_)));
        if !inside {
            return Err(format!("`copy` names `{name}`, which is not a path inside the repository"));
        }
        let failed = |error: io::Error| format!("`{name}` cannot be copied: {error}");
        let source = from.join(path);
        if source.symlink_metadata().is_err() {
            continue;
        }
        if !is_inside(&source, from) {
            return Err(format!("`copy` names `{name}`, which a link leads out of the repository"));
        }
        let target = to.join(path);
        if target.symlink_metadata().is_ok() {
            continue;
        }
        if let Some(parent) = target.parent() {
            fs::create_dir_all(parent).map_err(failed)?;
        }
        if !is_inside(&target, to) {
            return Err(format!("`copy` names `{name}`, which a link leads out of the worktree"));
        }
        copy_one(&source, &target, &mut left).map_err(failed)?;
        copied.push(name.clone());
    }
    Ok(copied)
}

/// Whether the folder that a path is in is really below `root`.
fn is_inside(path: &Path, root: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().ok();
    let parent = path.parent().and_then(real);
    parent.zip(real(root)).is_some_and(|(parent, root): (PathBuf, PathBuf)| parent.starts_with(root))
}

fn copy_one(source: &Path, target: &Path, left: &mut usize) -> io::Result<()> {
    *left =
        left.checked_sub(1).ok_or_else(|| io::Error::other(format!("it holds more than {MOST} files")))?;
    let kind = source.symlink_metadata()?.file_type();
    if kind.is_symlink() {
        return std::os::unix::fs::symlink(fs::read_link(source)?, target);
    }
    if kind.is_dir() {
        fs::create_dir(target)?;
        for entry in fs::read_dir(source)? {
            let entry = entry?;
            copy_one(&entry.path(), &target.join(entry.file_name()), left)?;
        }
        return Ok(());
    }
    // A pipe or socket is nobody's data.
    if kind.is_file() { fs::copy(source, target).map(drop) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn files_folders_and_links_are_copied_and_what_is_there_stays() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        fs::create_dir_all(from.join("config/deep")).unwrap();
        fs::create_dir_all(&to).unwrap();
        fs::write(from.join(".env"), "KEY=1").unwrap();
        fs::set_permissions(from.join(".env"), PermissionsExt::from_mode(0o600)).unwrap();
        fs::write(from.join("config/deep/x"), "x").unwrap();
        symlink("deep/x", from.join("config/link")).unwrap();
        fs::write(from.join("both"), "theirs").unwrap();
        fs::write(to.join("both"), "ours").unwrap();
        let copied = copy(&from, &to, &names(&[".env", "config", "both", "missing"])).unwrap();
        assert_eq!(copied, [".env", "config"]);
        assert_eq!(fs::read_to_string(to.join("config/link")).unwrap(), "x");
        assert_eq!(fs::read_to_string(to.join("both")).unwrap(), "ours");
        assert_eq!(to.join(".env").metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn nothing_is_copied_out_of_or_into_anywhere_else() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        let outside = folder.path().join("outside");
        for made in [&from, &to, &outside] {
            fs::create_dir_all(made).unwrap();
        }
        fs::write(outside.join("secret"), "s").unwrap();
        symlink(&outside, from.join("out")).unwrap();
        symlink(&outside, to.join("sub")).unwrap();
        fs::create_dir(from.join("sub")).unwrap();
        fs::write(from.join("sub/file"), "f").unwrap();
        for bad in
            ["", "/etc/passwd", "../outside/secret", "a/../../outside/secret", ".", "out/secret", "sub/file"]
        {
            assert!(copy(&from, &to, &names(&[bad])).is_err(), "{bad:?}");
        }
        assert!(!outside.join("file").exists());
    }
}
