//! Agents in git worktrees of their own: made with them, finished, removed, and what a killed daemon leaves of them.

use std::path::{Path, PathBuf};
use std::process::Command;

use consort_daemon::protocol::{
    AgentView, Call, NewWorktree, RuleView, WorktreeFinished, WorktreeRemoved, WorktreeView, codes,
};
use consort_model::{ChangeKind, Changes, DiffText, Integration, Status};
use consort_testkit::harness::{Client, Home, poll};

fn git(folder: &Path, args: &[&str]) -> String {
    let output = Command::new("git").args(args).current_dir(folder).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).trim_end().to_owned();
    assert!(output.status.success(), "git {args:?}: {said} {}", String::from_utf8_lossy(&output.stderr));
    said
}

fn commit(folder: &Path, file: &str, text: &str) {
    std::fs::create_dir_all(folder.join(file).parent().unwrap()).unwrap();
    std::fs::write(folder.join(file), text).unwrap();
    git(folder, &["add", "--", file]);
    git(folder, &["commit", "--quiet", "-m", file]);
}

/// A home whose agents work in a repository with one commit on `main`.
fn started() -> Home {
    let home = Home::new();
    let work = home.work();
    git(&work, &["init", "--quiet", "-b", "main"]);
    for (key, value) in [("user.name", "T"), ("user.email", "t@example.com"), ("commit.gpgsign", "false")] {
        git(&work, &["config", key, value]);
    }
    commit(&work, "a.txt", "one\n");
    commit(&work, "sub/b.txt", "b\n");
    home.start_daemon();
    home
}

fn project(home: &Home, text: &str) {
    let folder = home.work().join(".consort");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("project.toml"), format!("[worktree]\n{text}\n")).unwrap();
}

fn wish(name: Option<&str>) -> Option<NewWorktree> {
    Some(NewWorktree { name: name.map(str::to_owned), base: None })
}

/// A new agent `fixer` in a worktree of its own.
fn fixer(client: &Client) -> (AgentView, PathBuf) {
    let agent = client.create("scripted", |new| {
        new.name = Some("fixer".to_owned());
        new.worktree = wish(None);
    });
    client.wait_status(agent.id, Status::Idle);
    let path = PathBuf::from(&agent.worktree.as_ref().expect("it has a worktree").path);
    (agent, path)
}

fn list(client: &Client) -> Vec<WorktreeView> {
    client.call(&Call::ListWorktrees {})
}

fn finish(worktree: &str, by: Integration, keep: bool) -> Call {
    Call::FinishWorktree { worktree: worktree.to_owned(), by, keep }
}

fn remove(worktree: &str, force: bool) -> Call {
    Call::RemoveWorktree { worktree: worktree.to_owned(), force }
}

/// Fails unless the repository has nothing but `main`, and the home no agent and no worktree.
#[track_caller]
fn nothing_is_left(home: &Home, client: &Client) {
    assert_eq!(git(&home.work(), &["for-each-ref", "--format=%(refname:short)", "refs/heads"]), "main");
    assert_eq!(git(&home.work(), &["worktree", "list"]).lines().count(), 1);
    assert!(client.call::<Vec<AgentView>>(&Call::ListAgents { closed: true }).is_empty());
    assert!(list(client).is_empty());
    let plans = home.root().join("worktrees/.plans");
    assert_eq!(std::fs::read_dir(plans).map_or(0, Iterator::count), 0, "plans are left");
}

#[test]
fn an_agent_starts_in_a_worktree_of_its_own_with_what_the_project_wants_there() {
    let home = started();
    std::fs::write(home.work().join(".git/info/exclude"), ".env\nmade\n.consort\n").unwrap();
    std::fs::write(home.work().join(".env"), "KEY=1").unwrap();
    project(&home, "setup = \"pwd > made; echo $CONSORT_BRANCH >> made\"\ncopy = [\".env\", \"missing\"]");
    let client = home.client();
    let (agent, path) = fixer(&client);
    let worktree = agent.worktree.unwrap();
    assert_eq!((worktree.branch.as_str(), worktree.base.as_str()), ("consort/fixer", "main"));
    assert!(path.starts_with(home.root().canonicalize().unwrap().join("worktrees")), "{path:?}");
    assert_eq!(
        (agent.cwd.as_str(), git(&path, &["branch", "--show-current"])),
        (worktree.path.as_str(), worktree.branch.clone())
    );
    client.run(agent.id, "[[cwd]]");
    assert!(client.said(agent.id).contains(&worktree.path));
    assert_eq!(std::fs::read_to_string(path.join(".env")).unwrap(), "KEY=1");
    assert_eq!(
        std::fs::read_to_string(path.join("made")).unwrap(),
        format!("{}\nconsort/fixer\n", worktree.path)
    );
    let notices = client.notices(agent.id);
    assert!(
        notices[0].1.contains("on the branch consort/fixer") && notices[0].1.contains("Copied: .env."),
        "{notices:?}"
    );

    // Another one of the same name, from a folder inside, and one with a name of its own.
    let other = client.create("scripted", |new| {
        new.name = Some("fixer".to_owned());
        new.cwd = home.work().join("sub");
        new.worktree = wish(None);
    });
    assert_eq!(other.name, "fixer-2");
    assert!(other.cwd.ends_with("/fixer-2/sub"), "{}", other.cwd);
    let named = client.create("scripted", |new| new.worktree = wish(Some("größe")));
    assert_eq!(named.worktree.unwrap().branch, "consort/größe");
    let seen = list(&client);
    assert_eq!(
        seen.iter().map(|it| it.worktree.name.as_str()).collect::<Vec<_>>(),
        ["fixer", "fixer-2", "größe"]
    );
    assert!(seen.iter().all(|it| it.is_there && it.problem.is_none() && it.agent.is_some()));
    // The record is there after a crash too.
    drop(client);
    home.restart();
    let client = home.client();
    assert_eq!(client.view(agent.id).worktree.unwrap(), worktree);
}

#[test]
fn an_agent_whose_worktree_cannot_be_made_is_not_started_and_nothing_is_left() {
    let home = started();
    let client = home.client();
    let refused = |reason: &str, change: &dyn Fn(&mut consort_daemon::protocol::NewAgent)| {
        let mut new = client.new_agent_request("scripted");
        new.worktree = wish(None);
        change(&mut new);
        let error = client.refused(&Call::CreateAgent(new));
        assert_eq!(error.code, codes::REFUSED);
        assert!(error.message.contains(reason), "{reason}: {}", error.message);
        nothing_is_left(&home, &client);
    };
    refused("is not in a git repository", &|new| new.cwd = home.elsewhere());
    refused("there is no branch `nowhere`", &|new| {
        new.worktree = Some(NewWorktree { name: None, base: Some("nowhere".to_owned()) });
    });
    refused("cannot be the name of a worktree", &|new| new.worktree = wish(Some("../up")));
    refused("there is no profile", &|new| new.profile = Some("nobody".to_owned()));
    refused("the prompt is empty", &|new| {
        new.prompt = Some(consort_daemon::protocol::NewPrompt {
            id: consort_model::PromptId::new(uuid::Uuid::now_v7()),
            text: " ".to_owned(),
            attachments: vec![],
        });
    });
    std::fs::create_dir(home.work().join("untracked")).unwrap();
    refused("is not in the branch `main`", &|new| new.cwd = home.work().join("untracked"));
    project(&home, "setup = \"echo half > done; echo no luck >&2; exit 3\"");
    refused("the project's setup", &|_| {});
    refused("no luck", &|_| {});
    project(&home, "setup = \"sleep 600 & sleep 600\"\nsetup_timeout_seconds = 1");
    refused("took longer than 1 seconds", &|_| {});
    project(&home, "copy = [\"/etc/passwd\"]");
    refused("not a path inside the repository", &|_| {});
    project(&home, "setpu = \"x\"");
    refused("project.toml:2:1", &|_| {});
    project(&home, "branch_prefix = \"main/\"");
    refused("the branch `main` is in the way", &|_| {});
    // A setup is no person, whoever wrote it.
    let consort = home.programs().consort.display().to_string();
    project(&home, &format!("setup = \"{consort} rules add allow --command 'rm *' --all\""));
    refused("only a person may do it", &|_| {});
    assert!(client.call::<Vec<RuleView>>(&Call::ListRules {}).is_empty());
    std::fs::remove_dir_all(home.work().join(".consort")).unwrap();
    git(&home.work(), &["checkout", "--quiet", "--detach"]);
    refused("its head is detached", &|_| {});
}

#[test]
fn changes_and_diffs_show_what_an_agent_did() {
    let home = started();
    let client = home.client();
    let (agent, path) = fixer(&client);
    let agent = agent.id;
    client.run(agent, "[[fs-write new.txt hello]] [[fs-write a.txt two]]");
    commit(&path, "sub/c.txt", "1\n2\n");
    let changes: Changes = client.call(&Call::Changes { agent: agent.to_string() });
    let seen: Vec<_> =
        changes.files.iter().map(|file| (file.path.as_str(), file.change, file.added)).collect();
    assert_eq!(
        seen,
        [
            ("a.txt", ChangeKind::Modified, Some(1)),
            ("new.txt", ChangeKind::Added, Some(1)),
            ("sub/c.txt", ChangeKind::Added, Some(2))
        ]
    );
    assert_eq!((changes.base.as_str(), changes.commits, changes.added, changes.removed), ("main", 1, 4, 1));
    let diff: DiffText =
        client.call(&Call::Diff { agent: agent.to_string(), paths: vec!["a.txt".to_owned()] });
    assert!(diff.text.contains("-one\n+two") && !diff.text.contains("new.txt"), "{}", diff.text);
    // One that shares the repository's own folder is compared with the last commit there.
    let other = client.new_agent("scripted");
    let changes: Changes = client.call(&Call::Changes { agent: other.to_string() });
    assert_eq!((changes.base.as_str(), changes.files.len()), ("HEAD", 0));
    let outside = client.create("scripted", |new| new.cwd = home.elsewhere()).id;
    let error = client.refused(&Call::Changes { agent: outside.to_string() });
    assert!(error.message.contains("is not in a git repository"), "{}", error.message);
}

#[test]
fn a_finished_worktree_goes_home_and_its_agent_is_closed() {
    let home = started();
    let client = home.client();
    let (agent, path) = fixer(&client);
    client.run(agent.id, "[[fs-write c.txt new]]");
    let error = client.refused(&finish("fixer", Integration::Rebase, false));
    assert!(error.message.contains("uncommitted work (c.txt)"), "{}", error.message);
    git(&path, &["add", "c.txt"]);
    git(&path, &["commit", "--quiet", "-m", "c"]);
    commit(&home.work(), "meanwhile.txt", "x\n");
    let kept: WorktreeFinished = client.call(&finish("fixer", Integration::Rebase, true));
    assert_eq!((kept.commits, kept.kept), (1, true));
    assert!(home.work().join("c.txt").exists() && path.exists());
    commit(&path, "d.txt", "x\n");
    let done: WorktreeFinished = client.call(&finish("consort/fixer", Integration::Merge, false));
    assert_eq!((done.commits, done.kept), (1, false));
    assert_eq!(git(&home.work(), &["rev-parse", "main"]), done.commit);
    assert!(!path.exists() && home.work().join("d.txt").exists());
    client
        .wait_agent(agent.id, "it has no worktree", |agent| agent.is_closed() && agent.worktrees.is_empty());
    assert!(client.notices(agent.id).iter().any(|(_, text)| text.contains("went to main")));
    assert!(list(&client).is_empty());
    assert_eq!(git(&home.work(), &["for-each-ref", "--format=%(refname:short)", "refs/heads"]), "main");
}

#[test]
fn a_conflict_is_told_and_everything_stays_as_it_was() {
    let home = started();
    let client = home.client();
    let (agent, path) = fixer(&client);
    commit(&path, "a.txt", "ours\n");
    commit(&home.work(), "a.txt", "theirs\n");
    let before = (git(&path, &["rev-parse", "HEAD"]), git(&home.work(), &["rev-parse", "HEAD"]));
    for by in [Integration::Rebase, Integration::Merge] {
        let error = client.refused(&finish("fixer", by, false));
        assert_eq!(error.data["refusal"], "conflicts");
        assert_eq!(error.data["files"], serde_json::json!(["a.txt"]));
        assert_eq!((git(&path, &["rev-parse", "HEAD"]), git(&home.work(), &["rev-parse", "HEAD"])), before);
        assert_eq!(git(&path, &["status", "--porcelain"]), "");
    }
    assert_eq!(client.view(agent.id).status, Status::Idle);
}

#[test]
fn work_is_removed_only_by_a_word_that_says_so() {
    let home = started();
    let client = home.client();
    let (agent, path) = fixer(&client);
    let prompt = client.send(agent.id, "[[fs-write new.txt x]] [[hang]]");
    client.wait_text(agent.id, "written");
    for call in [remove("fixer", false), finish("fixer", Integration::Rebase, false)] {
        let error = client.refused(&call);
        assert!(error.message.contains("while fixer is at work in it"), "{}", error.message);
    }
    client.interrupt(agent.id);
    client.wait_turn(agent.id, prompt);
    let error = client.refused(&remove("fixer", false));
    assert!(error.message.contains("new files that are not committed (new.txt)"), "{}", error.message);
    assert_eq!(client.view(agent.id).status, Status::Idle, "it is not closed for nothing");
    commit(&path, "new.txt", "x");
    let error = client.refused(&remove(&path.display().to_string(), false));
    assert!(error.message.contains("1 unmerged commit"), "{}", error.message);
    let tip = git(&path, &["rev-parse", "HEAD"]);
    let removed: WorktreeRemoved = client.call(&remove("fixer", true));
    assert_eq!(removed.commit, Some(tip));
    assert!(!path.exists());
    client
        .wait_agent(agent.id, "it has no worktree", |agent| agent.is_closed() && agent.worktrees.is_empty());
    let error = client.refused(&remove("fixer", false));
    assert!(error.message.contains("has no worktree"), "{}", error.message);
    assert!(client.refused(&remove("nobody", true)).message.contains("there is no worktree `nobody`"));
    // One that was never worked in goes without a word; so does one whose folder somebody deleted.
    let again = client.create("scripted", |new| new.worktree = wish(Some("again")));
    client.call::<WorktreeRemoved>(&remove("again", false));
    client.wait_status(again.id, Status::Closed);
    let gone = client.create("scripted", |new| new.worktree = wish(Some("gone")));
    client.close(gone.id);
    std::fs::remove_dir_all(&gone.cwd).unwrap();
    assert!(!list(&client)[0].is_there);
    client.call::<WorktreeRemoved>(&remove("gone", false));
    assert!(list(&client).is_empty());
}

/// Starts making a worktree whose setup waits, kills the daemon meanwhile, and lets the setup end with `then`.
fn killed_while_making(home: &Home, then: &str) {
    let (started, go) = (home.elsewhere().join("started"), home.elsewhere().join("go"));
    let script =
        format!("mkfifo {0}; echo x > {1}; read line < {0}; {then}", go.display(), started.display());
    project(home, &format!("setup = \"{script}; echo x > {}\"", home.elsewhere().join("ended").display()));
    let mut new = home.consort_command(&["new", "--worktree=half", "--name", "half"]);
    let mut new =
        new.stderr(std::process::Stdio::null()).stdout(std::process::Stdio::null()).spawn().unwrap();
    poll("the setup runs", || started.exists().then_some(()));
    // The command would start a daemon again and repeat its call.
    new.kill().unwrap();
    new.wait().unwrap();
    home.kill_daemon();
    std::fs::write(&go, "go\n").unwrap();
    poll("the setup ends", || home.elsewhere().join("ended").exists().then_some(()));
    poll("nothing of it runs", || home.processes().is_empty().then_some(()));
}

#[test]
fn what_a_killed_daemon_left_of_a_worktree_is_cleared_away() {
    let home = started();
    killed_while_making(&home, "true");
    assert_eq!(git(&home.work(), &["worktree", "list"]).lines().count(), 2);
    home.start_daemon();
    nothing_is_left(&home, &home.client());
}

#[test]
fn what_a_killed_daemon_left_is_kept_and_told_if_something_is_in_it() {
    let home = started();
    killed_while_making(&home, "echo precious > found");
    home.start_daemon();
    let client = home.client();
    let seen = list(&client);
    assert_eq!((seen.len(), seen[0].agent, seen[0].uncommitted), (1, None, Some(1)));
    let error = client.refused(&remove("half", false));
    assert!(error.message.contains("not committed (found)"), "{}", error.message);
    client.call::<WorktreeRemoved>(&remove("half", true));
    nothing_is_left(&home, &client);
}

#[test]
fn an_agent_finishes_its_own_worktrees_and_those_of_its_children_only() {
    let home = started();
    let client = home.client();
    let (agent, path) = fixer(&client);
    let tool = |call: &str| {
        client.run(agent.id, &format!("[[mcp {call}]]"));
        client.said(agent.id).lines().next_back().unwrap_or_default().to_owned()
    };
    commit(&path, "c.txt", "x\n");
    let said = tool("list_worktrees {}");
    assert!(
        said.contains("on consort/fixer (fixer): 0 uncommitted files, 1 commits ahead of main"),
        "{said}"
    );
    let said = tool(r#"finish_worktree {"worktree": "fixer"}"#);
    assert!(said.contains("1 commits of consort/fixer went to main; the worktree stays"), "{said}");
    assert!(home.work().join("c.txt").exists() && path.exists());

    let said = tool(r#"create_worktree {"name": "side"}"#);
    assert!(said.contains("/side is yours, on the branch consort/side"), "{said}");
    let said = tool(r#"finish_worktree {"worktree": "side"}"#);
    assert!(said.contains("0 commits") && said.contains("are removed"), "{said}");

    tool(r#"create_agent {"name": "kid", "worktree": true}"#);
    let kid: AgentView = client.call(&Call::GetAgent { agent: "kid".to_owned() });
    client.wait_status(kid.id, Status::Idle);
    let worktree = kid.worktree.unwrap();
    assert_eq!((worktree.base.as_str(), kid.created_by), ("consort/fixer", Some(agent.id)));
    commit(Path::new(&worktree.path), "d.txt", "x\n");
    let said = tool(r#"finish_worktree {"worktree": "kid"}"#);
    assert!(said.contains("1 commits of consort/kid went to consort/fixer"), "{said}");
    assert!(path.join("d.txt").exists() && !Path::new(&worktree.path).exists());
    client.wait_status(kid.id, Status::Closed);

    let other = client.create("scripted", |new| new.worktree = wish(Some("other")));
    let said = tool(r#"finish_worktree {"worktree": "other"}"#);
    assert!(said.contains("refused") && said.contains("those of agents that it created only"), "{said}");
    assert_eq!(client.view(other.id).worktree.unwrap().name, "other");
}
