//! Plans: what is written down before a worktree is made, so that a daemon that is killed before its agent exists leaves
//! nothing behind that nobody knows of.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use consort_model::{AgentId, Worktree};
use serde::{Deserialize, Serialize};

/// A worktree that is being made for an agent that does not exist yet, or has no record of it yet.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Plan {
    /// For whom.
    pub agent: AgentId,
    /// What is made.
    pub worktree: Worktree,
    /// Where git keeps what the repository's worktrees share.
    pub common: PathBuf,
}

/// The folder of the plans.
#[derive(Debug)]
pub struct Plans {
    folder: PathBuf,
}

impl Plans {
    pub fn new(worktrees: &Path) -> Self {
        Self { folder: worktrees.join(".plans") }
    }

    /// Writes a plan down for good, before anything is done about it.
    pub fn keep(&self, plan: &Plan) -> io::Result<()> {
        fs::create_dir_all(&self.folder)?;
        let path = self.path(plan);
        let draft = path.with_extension("new");
        let mut file = File::create(&draft)?;
        file.write_all(&serde_json::to_vec(plan)?)?;
        file.sync_all()?;
        fs::rename(&draft, &path)?;
        File::open(&self.folder)?.sync_all()
    }

    /// Forgets a plan: it was carried out, or taken back.
    pub fn forget(&self, plan: &Plan) {
        match fs::remove_file(self.path(plan)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::warn!(%error, path = plan.worktree.path, "the plan of a worktree stays");
            }
            _ => {}
        }
    }

    /// All plans. One that cannot be read was never acted upon, or is damaged: it is told and left alone.
    pub fn all(&self) -> Vec<Plan> {
        let Ok(entries) = fs::read_dir(&self.folder) else { return vec![] };
        let files = entries.flatten().map(|entry| entry.path());
        let plans = files.filter(|path| path.extension().is_some_and(|end| end == "json"));
        plans
            .filter_map(|path| {
                let read = fs::read(&path).map_err(|error| error.to_string());
                let plan =
                    read.and_then(|bytes| serde_json::from_slice(&bytes).map_err(|error| error.to_string()));
                plan.map_err(|error| tracing::warn!(error, path = %path.display(), "a plan cannot be read"))
                    .ok()
            })
            .collect()
    }

    fn path(&self, plan: &Plan) -> PathBuf {
        self.folder.join(format!("{}-{}.json", plan.agent, plan.worktree.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    #[test]
    fn a_plan_is_there_until_it_is_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let plans = Plans::new(folder.path());
        assert!(plans.all().is_empty());
        let worktree = Worktree {
            name: "größe".into(),
            path: "/w/größe".into(),
            branch: "consort/größe".into(),
            base: "main".into(),
            base_commit: "0".into(),
            repository: "/r".into(),
        };
        let plan = Plan { agent: AgentId::new(Uuid::now_v7()), worktree, common: "/r/.git".into() };
        plans.keep(&plan).unwrap();
        plans.keep(&plan).unwrap();
        std::fs::write(folder.path().join(".plans/broken.json"), "{").unwrap();
        assert_eq!(plans.all(), std::slice::from_ref(&plan));
        plans.forget(&plan);
        plans.forget(&plan);
        assert!(plans.all().is_empty());
    }
}
