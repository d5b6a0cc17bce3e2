//! Long results: all of one is in a file, what is handed on is its head and tail.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use consort_model::AgentId;
use consort_model::team::{MAX_RESULT, abridged};

/// A result as it is handed on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Kept {
    /// The text, or its head and tail.
    pub text: String,
    /// Where all of it is, if it is long.
    pub file: Option<PathBuf>,
}

/// Keeps a result: a long one in a file of `folder` that only this user can read, named by the agent. Blocking.
pub fn keep(folder: &Path, agent: AgentId, text: String) -> io::Result<Kept> {
    if text.len() <= MAX_RESULT {
        return Ok(Kept { text, file: None });
    }
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let file = folder.join(format!("{agent}.txt"));
    let partial = folder.join(format!("{agent}.partial"));
    match fs::remove_file(&partial) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut whole = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&partial)?;
    whole.write_all(text.as_bytes())?;
    whole.sync_all()?;
    fs::rename(&partial, &file)?;
    Ok(Kept { text: abridged(&text, &file.display().to_string()), file: Some(file) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_long_result_is_kept_whole_for_this_user_alone() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("results");
        let agent = AgentId::new(uuid::Uuid::nil());
        let short = keep(&folder, agent, "42".to_owned()).unwrap();
        assert_eq!(short, Kept { text: "42".to_owned(), file: None });
        assert!(!folder.exists());
        for n in 0..2 {
            let text = format!("{n} {}", "x".repeat(MAX_RESULT));
            let long = keep(&folder, agent, text.clone()).unwrap();
            let file = long.file.unwrap();
            assert!(long.text.contains(&file.display().to_string()));
            assert_eq!(fs::read_to_string(&file).unwrap(), text);
            assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        }
    }
}
