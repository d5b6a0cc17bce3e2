//! Worktrees: which agent works in which, and bringing them home or removing them; and the form for a new agent, which may
//! get one.
//!
//! Invariant: everything that could lose work is refused by the daemon first, and done only after a person typed a word.

use std::path::PathBuf;

use consort_daemon::protocol::{
    Call, NewAgent, NewPrompt, NewWorktree, WorktreeFinished, WorktreeRemoved, WorktreeView,
};
use consort_model::{AgentId, Availability, Integration, PermissionMode, PromptId};
use uuid::Uuid;

use super::{App, Reply};
use crate::overlay::form::{Entry, Form, Subject, YES};
use crate::overlay::{Awaited, Choice, Command, Field, Overlay, Picker, Purpose};
use crate::text::clean;

/// The word by which work is thrown away.
const DISCARD: &str = "discard";

/// What stands for the profile's own permission mode.
const AS_PROFILE: &str = "as the profile says";

impl App {
    /// Asks for the worktrees and lists them.
    pub(super) fn open_worktrees(&mut self) {
        self.call(Call::ListWorktrees {}, Reply::Worktrees);
        let mut picker = Picker::new("Worktrees", Vec::new());
        picker.awaited = Some(Awaited::Worktrees);
        picker.empty = "asking git…".to_owned();
        self.open(Overlay::Picker(picker));
    }

    /// The worktrees came, or why not.
    pub(super) fn worktrees_told(&mut self, worktrees: Result<Vec<WorktreeView>, String>) {
        let here = self.focused_agent().and_then(|agent| self.state.worktree_of(agent));
        let here = here.map(|worktree| worktree.path.clone());
        let awaits = |overlay: &&mut Overlay| matches!(overlay, Overlay::Picker(picker) if picker.awaited == Some(Awaited::Worktrees));
        // Whoever closed the list does not want it any more.
        let Some(Overlay::Picker(picker)) = self.overlays.iter_mut().find(awaits) else { return };
        match worktrees {
            Ok(mut worktrees) => {
                worktrees.sort_by_key(|view| Some(&view.worktree.path) != here.as_ref());
                let choices = worktrees.into_iter().map(row).collect();
                picker.fill(choices, "no agent has a worktree of its own; a new agent can be given one");
            }
            Err(why) => picker.fill(Vec::new(), &clean::one_line(&why)),
        }
        self.redraw();
    }

    /// What can be done with a worktree.
    pub(super) fn pick_for_worktree(&mut self, view: &WorktreeView) {
        let worktree = &view.worktree;
        let base = clean::one_line(&worktree.base).into_owned();
        let path = worktree.path.clone();
        let finish = |by, keep| Command::FinishWorktree { path: path.clone(), by, keep };
        let mut choices = Vec::new();
        if let Some(agent) = view.agent {
            let name = clean::one_line(view.agent_name.as_deref().unwrap_or_default()).into_owned();
            choices.push(Choice::new("see what changed", Command::Changes(agent)));
            choices.push(Choice::new(format!("go to {name}"), Command::Show(agent)));
        }
        choices.push(
            Choice::new("finish it", finish(Integration::Rebase, false))
                .detail(format!("rebase it, bring it to {base}, remove it and close its agents")),
        );
        choices.push(
            Choice::new("finish it by a merge", finish(Integration::Merge, false))
                .detail(format!("the same, with {base} merged into it instead of a rebase")),
        );
        choices.push(
            Choice::new("bring it home and keep it", finish(Integration::Rebase, true))
                .detail(format!("{base} gets its commits; folder, branch and agents stay")),
        );
        choices.push(
            Choice::new("remove it", Command::RemoveWorktree(path.clone()))
                .detail("refused if there is work in it"),
        );
        let lost = lost(view);
        if let Some(lost) = lost {
            choices.push(
                Choice::new(
                    "remove it with the work in it…",
                    Command::DiscardWorktree(path.clone(), lost.clone()),
                )
                .detail(lost),
            );
        }
        let title = format!("{}: {}", clean::one_line(&worktree.branch), clean::one_line(&view.standing()));
        self.open(Overlay::Picker(Picker::new(title, choices)));
    }

    /// Asks for the word by which work is thrown away.
    pub(super) fn confirm_discard(&mut self, path: String, lost: &str) {
        let title = format!("Type `{DISCARD}` to remove {}", clean::one_line(&path));
        let field = Field::new(title, "", Purpose::DiscardWorktree(path));
        self.open(Overlay::Field(field.hint(format!("this is lost: {lost}"))));
    }

    /// The word was typed, or another.
    pub(super) fn discard_worktree(&mut self, path: String, typed: &str) {
        if typed == DISCARD {
            self.remove_worktree(path, true);
        } else {
            self.say("nothing was removed");
        }
    }

    pub(super) fn remove_worktree(&mut self, path: String, force: bool) {
        self.say("removing…");
        self.call(Call::RemoveWorktree { worktree: path, force }, Reply::WorktreeRemoved);
    }

    pub(super) fn worktree_finished(&mut self, finished: &WorktreeFinished) {
        self.say(finished.sentence());
    }

    pub(super) fn worktree_removed(&mut self, removed: &WorktreeRemoved) {
        self.say(removed.sentence());
    }

    /// Opens the form for a new agent.
    pub(super) fn describe_agent(&mut self, worktree: bool) {
        let usable = self
            .state
            .profiles
            .iter()
            .filter(|profile| !matches!(profile.availability, Availability::Unavailable { .. }));
        let names: Vec<(String, bool)> =
            usable.map(|profile| (profile.id.to_string(), profile.is_default)).collect();
        if names.is_empty() {
            return self.complain("no profile can be used here; the settings say why");
        }
        let at = names.iter().position(|(_, default)| *default).unwrap_or(0);
        let modes: Vec<String> = std::iter::once(AS_PROFILE.to_owned())
            .chain(PermissionMode::ALL.iter().map(|mode| mode.word().to_owned()))
            .collect();
        let entries = vec![
            Entry::lines(
                "prompt",
                "prompt",
                "what it is to do; may follow later (alt-enter: a new line)",
                self.blank.text(),
            ),
            Entry::one(
                "profile",
                "profile",
                "who does it",
                names.into_iter().map(|(name, _)| name).collect(),
                at,
            ),
            Entry::text("name", "name", "empty: one is made up", ""),
            Entry::text(
                "cwd",
                "folder",
                "where it works, or whose repository it gets a worktree of",
                self.cwd.to_string_lossy(),
            ),
            Entry::one(
                "worktree",
                "worktree",
                "a branch and a folder of its own; nothing is started if they cannot be made",
                vec!["no".to_owned(), YES.to_owned()],
                usize::from(worktree),
            ),
            Entry::text(
                "worktree_name",
                "its name",
                "empty: made of the agent's name; the branch is consort/NAME",
                "",
            ),
            Entry::text("base", "from branch", "empty: the one that is checked out in the folder", ""),
            Entry::one("permissions", "permissions", "what its approvals follow", modes, 0),
        ];
        self.open(Overlay::Form(Form::new("New agent", entries, Subject::NewAgent)));
    }

    /// Makes the agent that the form describes; the form stays until it is made.
    pub(super) fn make_described(&mut self) {
        let Some(Overlay::Form(form)) = self.overlays.last_mut() else { return };
        let some = |key: &str| Some(form.value(key)).filter(|text| !text.is_empty());
        // What is none of the modes leaves it to the profile.
        let permissions = form.value("permissions").parse::<PermissionMode>().ok();
        let worktree = (form.value("worktree") == YES)
            .then(|| NewWorktree { name: some("worktree_name"), base: some("base") });
        let prompt = some("prompt").map(|text| NewPrompt {
            id: PromptId::new(Uuid::now_v7()),
            text,
            attachments: vec![],
        });
        let id = AgentId::new(Uuid::now_v7());
        let new = NewAgent {
            id,
            profile: some("profile"),
            name: some("name"),
            cwd: self.cwd.join(PathBuf::from(form.value("cwd"))),
            companion_of: None,
            permissions,
            worktree,
            prompt,
        };
        form.about = if new.worktree.is_some() { "making the worktree…".to_owned() } else { String::new() };
        let workspace = self.memory.desk.current;
        if workspace > 0 {
            self.memory.desk.workspaces[workspace].agents.insert(id);
        }
        self.wanted = Some(id);
        self.call(Call::CreateAgent(new), Reply::Described(id));
    }
}

fn row(view: WorktreeView) -> Choice {
    let who = view.agent_name.as_deref().unwrap_or("(left over)");
    let label = format!("{}  {}", clean::one_line(who), clean::one_line(&view.worktree.branch));
    let status = view.agent_status.map_or("", |status| status.words());
    let detail = format!("{}  {}", clean::one_line(&view.standing()), clean::one_line(&view.worktree.path));
    Choice::new(label, Command::Worktree(Box::new(view))).detail(detail).note(status)
}

/// What would be lost with a worktree; none if it is known that nothing would be.
fn lost(view: &WorktreeView) -> Option<String> {
    let (Some(uncommitted), Some(ahead)) = (view.uncommitted, view.ahead) else {
        return Some("what is in it is not known".to_owned());
    };
    let count = |count: u64, one: &str, many: &str| match count {
        0 => None,
        1 => Some(format!("1 {one}")),
        count => Some(format!("{count} {many}")),
    };
    let parts: Vec<String> = [
        count(uncommitted, "file that is not committed", "files that are not committed"),
        count(ahead, "commit that is nowhere else", "commits that are nowhere else"),
    ]
    .into_iter()
    .flatten()
    .collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}
