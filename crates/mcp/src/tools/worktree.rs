//! Git worktrees: one's own and those of the agents that one created.

use consort_hub::{NewWorktree, SeenWorktree};
use consort_model::{Actor, Integration, Worktree};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::tool::{Call, Effect, Nothing, Outcome, Reply, TeamTool};

/// The tools of this group.
pub fn tools() -> [TeamTool; 3] {
    [
        TeamTool::new(
            "list_worktrees",
            Effect::Reads,
            "Lists your git worktrees and those of the agents that you created: folder, branch, the branch it goes back to, and \
             how many files are uncommitted and how many commits are not merged yet. Use it before finish_worktree, or to \
             find the folder of one. Takes no arguments.",
            list_worktrees,
        ),
        TeamTool::new(
            "create_worktree",
            Effect::Adds,
            "Makes a git worktree with a branch of its own from the branch that is checked out in your folder, and runs the \
             project's setup in it. Use it when you are to work beside others in the same repository without getting in \
             their way; for another agent use create_agent with worktree: true instead. Returns its folder: work there, commit \
             there, and call finish_worktree when it is done.",
            create_worktree,
        ),
        TeamTool::new(
            "finish_worktree",
            Effect::Ends,
            "Brings the branch of a worktree home: up to date with the branch it came from, and that branch moved forward to \
             it. Everything must be committed first. Works for your own worktrees and for those of agents that you created; \
             the worktree that you work in yourself stays, others are removed and the agents in them closed unless keep is \
             set. Where both sides changed the same lines, the files are named and nothing is changed: resolve it in the \
             worktree, commit, and try again.",
            finish_worktree,
        ),
    ]
}

/// A worktree, as an agent sees it.
#[derive(Serialize)]
struct Shown {
    #[serde(flatten)]
    worktree: Worktree,
    /// The name of the agent that has it.
    agent: Option<String>,
    uncommitted_files: Option<u64>,
    unmerged_commits: Option<u64>,
    commits_behind: Option<u64>,
    problem: Option<String>,
}

impl Shown {
    fn line(&self) -> String {
        let Worktree { path, branch, base, .. } = &self.worktree;
        let agent = self.agent.as_deref().unwrap_or("nobody");
        let state = match (&self.problem, self.uncommitted_files, self.unmerged_commits) {
            (Some(problem), ..) => problem.clone(),
            (None, Some(files), Some(commits)) => {
                format!("{files} uncommitted files, {commits} commits ahead of {base}")
            }
            _ => "not known".to_owned(),
        };
        format!("{path} on {branch} ({agent}): {state}")
    }
}

impl From<SeenWorktree> for Shown {
    fn from(seen: SeenWorktree) -> Self {
        let (standing, problem) = match seen.standing {
            Ok(standing) => (Some(standing), None),
            Err(problem) => (None, Some(problem)),
        };
        Self {
            worktree: seen.worktree,
            agent: seen.agent.map(|(_, name, _)| name),
            uncommitted_files: standing.map(|standing| standing.uncommitted),
            unmerged_commits: standing.map(|standing| standing.ahead),
            commits_behind: standing.map(|standing| standing.behind),
            problem,
        }
    }
}

async fn list_worktrees(call: Call, _: Nothing) -> Outcome {
    #[derive(Serialize)]
    struct Listed {
        worktrees: Vec<Shown>,
    }
    let mine = call.hub.list_worktrees_of(call.caller).await;
    let worktrees: Vec<Shown> = mine.into_iter().map(Shown::from).collect();
    let text = match worktrees.is_empty() {
        true => "You have no worktrees, and neither have the agents that you created.".to_owned(),
        false => worktrees.iter().map(Shown::line).collect::<Vec<_>>().join("\n"),
    };
    Ok(Reply::new(text, Listed { worktrees }))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CreateWorktree {
    /// A short name for it and its branch, such as `login-form`. Left out: yours.
    #[serde(default)]
    name: Option<String>,
    /// The branch that it begins at and goes back to. Left out: the one that is checked out in your folder.
    #[serde(default)]
    base: Option<String>,
}

async fn create_worktree(call: Call, arguments: CreateWorktree) -> Outcome {
    #[derive(Serialize)]
    struct Created {
        worktree: Worktree,
    }
    let CreateWorktree { name, base } = arguments;
    let worktree = call.hub.add_worktree(call.caller, &NewWorktree { name, base }).await?;
    let Worktree { path, branch, base, .. } = &worktree;
    let text = format!(
        "{path} is yours, on the branch {branch}, which begins at {base}. Commit there and call finish_worktree when it is done."
    );
    Ok(Reply::new(text, Created { worktree }))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FinishWorktree {
    /// The worktree's name, branch or folder as list_worktrees shows it, or the agent that works in it.
    worktree: String,
    /// Whether the other branch is merged into it, instead of its commits being put on top of that one.
    #[serde(default)]
    merge: bool,
    /// Whether the worktree, its branch and the agents in it stay as they are.
    #[serde(default)]
    keep: bool,
}

async fn finish_worktree(call: Call, arguments: FinishWorktree) -> Outcome {
    #[derive(Serialize)]
    struct Finished {
        worktree: Worktree,
        commits: u64,
        commit: String,
        kept: bool,
    }
    let FinishWorktree { worktree, merge, keep } = arguments;
    let by = if merge { Integration::Merge } else { Integration::Rebase };
    let done = call.hub.finish_worktree(Actor::Agent(call.caller), &worktree, by, keep).await?;
    let end = if done.kept { "the worktree stays" } else { "the worktree and its branch are removed" };
    let Worktree { branch, base, .. } = &done.worktree;
    let text = format!("{} commits of {branch} went to {base}; {end}.", done.commits);
    let (worktree, commits, commit, kept) = (done.worktree, done.commits, done.commit, done.kept);
    Ok(Reply::new(text, Finished { worktree, commits, commit, kept }))
}
