//! `.consort/project.toml`: what a project says about its worktrees.
//!
//! Read from the folder that a worktree is made from, as it stands there, committed or not.

use std::path::{Path, PathBuf};
use std::time::Duration;

use consort_git::Repository;
use consort_model::Refusal;
use serde::Deserialize;

/// Where the file is, from the repository's root on.
pub const FILE: &str = ".consort/project.toml";

/// The longest file that is read.
const MAX_FILE: u64 = 1 << 20;

/// What the file may hold; other tables are for others.
#[derive(Deserialize, Default)]
struct File {
    #[serde(default)]
    worktree: Project,
}

/// What a project says about its worktrees.
#[derive(Deserialize, Clone, PartialEq, Eq, Debug)]
#[serde(deny_unknown_fields, default)]
pub struct Project {
    /// A line of shell that is run in a new worktree before its agent starts.
    pub setup: Option<String>,
    /// How long that may take.
    pub setup_timeout_seconds: u64,
    /// Files and folders that are copied into a new worktree, since git does not have them.
    pub copy: Vec<String>,
    /// What the branches' names begin with.
    pub branch_prefix: String,
    /// The folder of the worktrees, absolute or from the repository's root on; none: one in Consort's home.
    pub folder: Option<PathBuf>,
}

impl Default for Project {
    fn default() -> Self {
        Self {
            setup: None,
            setup_timeout_seconds: 900,
            copy: vec![],
            branch_prefix: "consort/".to_owned(),
            folder: None,
        }
    }
}

impl Project {
    /// What the project of a repository says; without a file, the defaults.
    pub fn read(root: &Path) -> Result<Self, Refusal> {
        let path = root.join(FILE);
        let broken = |reason: String| Refusal::Invalid { reason: format!("{}{reason}", path.display()) };
        let text = match std::fs::metadata(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Self::default()),
            Ok(meta) if !meta.is_file() || meta.len() > MAX_FILE => {
                return Err(broken(" is not a file of settings".to_owned()));
            }
            Ok(_) => std::fs::read_to_string(&path),
            Err(error) => Err(error),
        };
        let text = text.map_err(|error| broken(format!(" cannot be read: {error}")))?;
        Self::parse(&text).map_err(broken)
    }

    /// Reads the text of the file; an error begins with its place.
    fn parse(text: &str) -> Result<Self, String> {
        let file: File = toml_edit::de::from_str(text).map_err(|error| {
            let before = &text[..error.span().map_or(0, |span| span.start.min(text.len()))];
            let line = before.matches('\n').count() + 1;
            let column = before.rsplit('\n').next().map_or(0, |rest| rest.chars().count()) + 1;
            format!(":{line}:{column}: {}", error.message().lines().collect::<Vec<_>>().join(" "))
        })?;
        Ok(file.worktree)
    }

    /// How long the setup may take.
    pub fn setup_limit(&self) -> Duration {
        Duration::from_secs(self.setup_timeout_seconds.clamp(1, 24 * 3600))
    }

    /// The folder that holds the worktrees of a repository.
    pub fn folder(&self, repository: &Repository, home: &Path) -> PathBuf {
        match &self.folder {
            Some(folder) => repository.root.join(folder),
            None => home.join(label(&repository.common)),
        }
    }
}

/// A name for a repository that people recognise and no other repository has.
fn label(common: &Path) -> String {
    let inside = common.file_name().is_some_and(|name| name == ".git");
    let folder = if inside { common.parent() } else { Some(common) };
    let name = folder.and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
    let name = consort_model::worktree::name_from(name.unwrap_or_default().trim_end_matches(".git"));
    // FNV-1a: the same in every version.
    let hash = common
        .as_os_str()
        .as_encoded_bytes()
        .iter()
        .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193));
    format!("{name}-{hash:08x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_says_what_its_worktrees_need() {
        let text =
            "[worktree]\nsetup = \"npm ci\"\ncopy = [\".env\"]\nfolder = \"../trees\"\n[other]\nx = 1\n";
        let project = Project::parse(text).unwrap();
        assert_eq!(
            (project.setup.as_deref(), project.copy.as_slice()),
            (Some("npm ci"), [".env".to_owned()].as_slice())
        );
        assert_eq!((project.branch_prefix.as_str(), project.setup_limit().as_secs()), ("consort/", 900));
        let repository = Repository {
            root: "/a/r".into(),
            common: "/a/r/.git".into(),
            prefix: PathBuf::new(),
            branch: None,
            head: None,
        };
        assert_eq!(project.folder(&repository, Path::new("/h")), Path::new("/a/r/../trees"));
        let default = Project::parse("").unwrap();
        let folder = default.folder(&repository, Path::new("/h"));
        assert!(folder.to_string_lossy().starts_with("/h/r-"), "{folder:?}");
        assert_ne!(label(Path::new("/a/r/.git")), label(Path::new("/b/r/.git")));
        assert!(label(Path::new("/x/bare.git")).starts_with("bare-"));
    }

    #[test]
    fn a_broken_file_is_told_with_its_place() {
        for (text, place) in [
            ("[worktree]\nsetup = 3\n", ":2:9: "),
            ("[worktree]\nsetpu = \"x\"\n", ":2:1: "),
            ("[worktree\n", ":1:"),
        ] {
            let said = Project::parse(text).unwrap_err();
            assert!(said.starts_with(place), "{text:?}: {said}");
        }
    }
}
