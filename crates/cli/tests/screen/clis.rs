//! The real CLIs on the real screen: typed to, answered, left, found again and carried over the daemon's death. They talk with
//! the scripted model.

use consort_daemon::protocol::{Call, NewProfile};
use consort_model::{ApprovalPolicy, DriverKind, PermissionMode, ProfileSummary, SandboxMode};
use consort_testkit::clis::Cli;
use consort_testkit::harness::Home;
use consort_testkit::model::{self, Script, Server};

use crate::pty::Pty;

/// Beside the built-in scenarios: an answer that outlasts what is done to the screen meanwhile.
const SCRIPT: &str = r#"{"scenarios": {
    "steady": {"steps": [{"text": "beat {n}, ", "repeat": 80, "chunk": 9, "pace_ms": 50}]}
}}"#;

/// A home with profiles of these CLIs, and their model; none where one is not installed, which CI does not allow.
fn stage(clis: &[Cli]) -> Option<(Home, Server)> {
    for cli in clis {
        cli.find().expect("the CLIs are installed")?;
    }
    let script = Script::parse(SCRIPT).expect("the script can be played");
    let model = Server::start_with(model::Options { script, ..Default::default() }).expect("a server");
    let home = Home::started();
    let client = home.client();
    for cli in clis {
        let user = home.elsewhere().join(cli.name());
        let profile = cli.profile(&model.url(), &user).expect("a profile");
        let driver: DriverKind = profile.driver.parse().expect("a driver");
        let codex = driver == DriverKind::Codex;
        let _: ProfileSummary = client.call(&Call::AddProfile(NewProfile {
            name: cli.name().to_owned(),
            driver,
            command: Some(profile.command.display().to_string()),
            args: profile.args,
            environment: profile.environment.iter().map(|(name, value)| format!("{name}={value}")).collect(),
            default_model: None,
            default_permissions: PermissionMode::Default,
            sandbox_mode: codex.then_some(SandboxMode::WorkspaceWrite),
            // Asks for every command.
            approval_policy: codex.then_some(ApprovalPolicy::Untrusted),
        }));
    }
    Some((home, model))
}

/// Makes an agent of a CLI by the keyboard and waits until it can be talked to.
fn new_agent(screen: &mut Pty, cli: Cli) {
    screen.write("\x14");
    screen.wait_for("New agent in");
    screen.write(&format!("{}\r", cli.name()));
    screen.wait_for(&format!("to {}", cli.name()));
}

fn lives_on_the_screen(cli: Cli) {
    let Some((home, model)) = stage(&[cli]) else { return };
    let mut screen = Pty::open(&home, 140, 40);
    // Only what the daemon told is there to be chosen from.
    screen.wait_for("choose who does it");
    new_agent(&mut screen, cli);

    screen.write("[[shell]]\r");
    screen.wait_for("wants to run");
    screen.write("\t");
    screen.wait_for("once");
    screen.write("y");
    screen.wait_for("The command said");
    screen.wait_for("allowed once by you");
    assert!(home.work().join("shell.txt").exists(), "the command ran");

    // Left in the middle of an answer, found again in the middle or at the end of it.
    screen.write("\t\t\x1b[1;5F");
    screen.leave();
    let mut screen = Pty::open(&home, 140, 40);
    screen.wait_for("The command said");
    screen.write("[[steady]]\r");
    screen.wait_for("beat 2,");
    screen.leave();
    let mut screen = Pty::open(&home, 100, 30);
    screen.wait_for("beat 4,");

    home.kill_daemon();
    screen.wait_for("the daemon is gone");
    home.start_daemon();
    screen.wait_until("it goes on", |text| !text.contains("the daemon is gone"));
    screen.wait_for("beat 80,");
    screen.write("[[say And on it goes.]]\r");
    screen.wait_until("the next answer", |text| text.matches("And on it goes.").count() >= 2);
    screen.leave();
    home.finish();
    drop(model);
}

#[test]
fn claude_lives_on_the_screen() {
    lives_on_the_screen(Cli::Claude);
}

#[test]
fn codex_lives_on_the_screen() {
    lives_on_the_screen(Cli::Codex);
}

#[test]
fn two_clis_are_seen_side_by_side_at_any_size() {
    let Some((home, model)) = stage(&[Cli::Claude, Cli::Codex]) else { return };
    let mut screen = Pty::open(&home, 180, 40);
    // Only what the daemon told is there to be chosen from.
    screen.wait_for("choose who does it");
    for (cli, words) in [(Cli::Claude, "Claude was here."), (Cli::Codex, "Codex was here.")] {
        new_agent(&mut screen, cli);
        screen.write(&format!("[[say {words}]]\r"));
        screen.wait_until("the answer", |text| text.matches(words).count() >= 2);
    }
    screen.write("\x1bl");
    screen.wait_for("panes: side by side");
    screen.write("\x1bo");
    screen.write("\x1b[1;3A");
    let both = |text: &str| text.contains("Claude was here.") && text.contains("Codex was here.");
    screen.wait_until("both are seen", both);
    screen.resize(120, 24);
    screen.wait_until("both are seen in less space", |text| both(text) && text.lines().count() <= 24);
    screen.resize(200, 60);
    screen.wait_until("both are seen in more space", |text| both(text) && text.lines().count() > 40);
    screen.leave();
    home.finish();
    drop(model);
}
