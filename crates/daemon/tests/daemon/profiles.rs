//! Profiles: each process gets its own and nothing else, secrets stay where they are, a broken file harms nothing.

use std::path::{Path, PathBuf};

use consort_daemon::protocol::{Call, DaemonStatus, Done, NewProfile, codes};
use consort_model::{Availability, Limits, ProfileSummary, TurnOutcome};
use consort_testkit::harness::Home;

const SECRET: &str = "hunter2-9f3a71c6";

#[test]
fn two_profiles_of_one_program_get_their_own_environment_and_arguments() {
    let home = Home::new();
    home.profile_with("one", &["--name", "first"], &["ONLY=one", "SHARED=1", "-INHERITED", "EMPTY="]);
    home.profile_with("two", &["--name", "second", "--chunk", "3"], &["SHARED=2"]);
    home.start_daemon_with(|command| {
        command.env("INHERITED", "yes");
    });
    let client = home.client();
    let ask = "[[env ONLY]]|[[env SHARED]]|[[env INHERITED]]|[[env EMPTY]]|[[args]]";
    for (profile, expected) in [
        (
            "one",
            vec!["ONLY=one", "SHARED=1", "INHERITED is not set", "EMPTY=", "args: [\"--name\",\"first\"]"],
        ),
        (
            "two",
            vec![
                "ONLY is not set",
                "SHARED=2",
                "INHERITED=yes",
                "EMPTY is not set",
                "args: [\"--name\",\"second\",\"--chunk\",\"3\"]",
            ],
        ),
    ] {
        let agent = client.new_agent(profile);
        client.run(agent, ask);
        assert_eq!(client.said(agent), expected.concat(), "{profile}");
    }
}

#[test]
fn an_agents_commands_have_its_environment_and_a_hint_of_who_it_is() {
    let home = Home::new();
    home.profile_with("one", &[], &["ONLY=one"]);
    home.start_daemon();
    let client = home.client();
    let agent = client.new_agent("one");
    client.run(agent, "[[terminal sh -c \"echo $ONLY $CONSORT_AGENT_ID $CONSORT_HOME\"]]");
    let said = client.said(agent);
    assert!(said.contains(&format!("one {agent} {}", home.root().display())), "{said}");
}

#[test]
fn a_secret_is_in_the_configuration_and_nowhere_else() {
    let home = Home::new();
    let key = format!("API_KEY={SECRET}");
    home.profile_with("keyed", &["--name", "keyed"], &[&key]);
    home.start_daemon_with(|command| {
        command.env("CONSORT_LOG", "trace");
    });
    let client = home.client();
    let (agent, prompt) =
        client.new_agent_with("keyed", "[[say x]] [[terminal true]] [[stderr note]] [[fs-read none]]");
    client.wait_turn(agent, prompt);
    client.send(agent, "[[crash 4]]");
    client.wait_status(agent, consort_model::Status::Failed);
    client.reopen(agent);
    client.run(agent, "[[say again]]");
    let seen = client.look(|followed| serde_json::to_string(&(&followed.state, &followed.events)).unwrap());
    assert!(!seen.contains(SECRET), "a client sees it");
    for call in [
        Call::ListProfiles {},
        Call::CheckProfiles { profile: None },
        Call::Status {},
        Call::ListAgents { closed: true },
    ] {
        let answer: serde_json::Value = client.call(&call);
        assert!(!answer.to_string().contains(SECRET), "{call:?} tells it");
    }
    let mut holding = Vec::new();
    let mut looked_at = 0;
    files_under(home.root(), &mut |path| {
        looked_at += 1;
        let bytes = std::fs::read(path).unwrap_or_default();
        if bytes.windows(SECRET.len()).any(|window| window == SECRET.as_bytes()) {
            holding.push(path.file_name().unwrap().to_string_lossy().into_owned());
        }
    });
    assert!(looked_at > 4);
    holding.retain(|name| name != "config.toml" && name != "config.toml.last-good");
    assert!(holding.is_empty(), "it is also in {holding:?}");
    for process in home.processes() {
        assert!(!process.command.contains(SECRET), "{process:?}");
    }
}

fn files_under(folder: &Path, look: &mut impl FnMut(&Path)) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path: PathBuf = entry.path();
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => files_under(&path, look),
            Ok(kind) if kind.is_file() => look(&path),
            _ => {}
        }
    }
}

#[test]
fn a_broken_configuration_is_told_with_its_place_and_never_written_over() {
    let home = Home::started();
    let mut client = home.client();
    let config = home.paths().config();
    let good = std::fs::read_to_string(&config).unwrap();
    for (broken, place) in [
        (format!("{good}\n[profiles.x\n"), good.lines().count() + 2),
        (format!("{good}\n[profiles.x]\ndriver = \"teleport\"\n"), good.lines().count() + 3),
    ] {
        std::fs::write(&config, &broken).unwrap();
        let error = client.refused(&Call::CheckProfiles { profile: None });
        assert_eq!(error.code, codes::CONFIG);
        assert!(error.message.contains(&format!("config.toml:{place}:")), "{}", error.message);
        assert_eq!(client.refused(&Call::AddProfile(new_profile("other"))).code, codes::CONFIG);
        let status: DaemonStatus = client.call(&Call::Status {});
        assert!(status.trouble.is_some_and(|trouble| trouble.contains("config.toml:")));
        let agent = client.new_agent("scripted");
        assert_eq!(client.run(agent, "[[say on]]").last_outcome, Some(TurnOutcome::Completed));
        assert_eq!(std::fs::read_to_string(&config).unwrap(), broken);
        home.restart();
        client = home.client();
        assert_eq!(client.run(agent, "[[say on]]").last_outcome, Some(TurnOutcome::Completed));
        assert_eq!(std::fs::read_to_string(&config).unwrap(), broken);
        let agent = client.new_agent("scripted");
        assert_eq!(client.run(agent, "[[say on]]").last_outcome, Some(TurnOutcome::Completed));
    }
    std::fs::write(&config, &good).unwrap();
    client.call::<serde_json::Value>(&Call::CheckProfiles { profile: None });
    let status: DaemonStatus = client.call(&Call::Status {});
    assert_eq!(status.trouble, None);
}

#[test]
fn limits_are_set_at_once_and_survive_the_daemon() {
    let home = Home::started();
    let client = home.client();
    let set = |name: &str, value: u64| Call::SetLimits { limits: [(name.to_owned(), value)].into() };
    let limits: Limits = client.call(&set("companions_per_owner", 1));
    assert_eq!(limits.companions_per_owner, 1);
    let owner = client.new_agent("scripted");
    let companion = |client: &consort_testkit::harness::Client| {
        let mut request = client.new_agent_request("scripted");
        request.companion_of = Some(owner.to_string());
        Call::CreateAgent(request)
    };
    client.call::<serde_json::Value>(&companion(&client));
    assert_eq!(client.refused(&companion(&client)).code, codes::REFUSED);
    for (name, value) in [("patience", 1), ("subagent_depth", u64::MAX)] {
        let refused = client.refused(&set(name, value));
        assert!(refused.message.contains(name), "{}", refused.message);
    }
    home.restart();
    let state = home.client().call::<consort_daemon::protocol::Snapshot>(&Call::Subscribe {}).state;
    assert_eq!(state.limits, limits);
}

#[test]
fn keys_are_kept_in_the_file_and_nothing_else_can_be() {
    let home = Home::started();
    let client = home.client();
    let set = |action: &str, keys: &[&str]| Call::SetKeys {
        action: action.to_owned(),
        keys: Some(keys.iter().map(|key| (*key).to_owned()).collect()),
    };
    client.call::<Done>(&set("palette", &["ctrl-k"]));
    let file = home.paths().config();
    assert!(std::fs::read_to_string(&file).unwrap().contains("[keys]\npalette = \"ctrl-k\"\n"));
    for (action, key) in
        [("a = 1\n[profiles]", "b"), ("", "b"), ("palette", "\u{1b}[A"), ("palette", &"k".repeat(40))]
    {
        assert_eq!(client.refused(&set(action, &[key])).code, codes::REFUSED);
    }
    client.call::<Done>(&Call::SetKeys { action: "palette".to_owned(), keys: None });
    assert!(!std::fs::read_to_string(&file).unwrap().contains("palette"));
}

fn new_profile(name: &str) -> NewProfile {
    serde_json::from_value(serde_json::json!({"name": name, "driver": "acp", "command": "true"})).unwrap()
}

#[test]
fn profiles_are_added_used_and_removed_while_agents_run() {
    let home = Home::started();
    let client = home.client();
    let program = home.programs().testkit.display().to_string();
    let mut new = new_profile("Second One");
    new.command = Some(program);
    new.args = vec!["agent".to_owned()];
    let added: ProfileSummary = client.call(&Call::AddProfile(new.clone()));
    assert!(matches!(added.availability, Availability::Available { .. }));
    client.refused(&Call::AddProfile(new));
    let agent = client.new_agent("Second One");
    client.run(agent, "[[say x]]");
    let remove = |force| Call::RemoveProfile { profile: "Second One".to_owned(), force };
    assert_eq!(client.refused(&remove(false)).code, codes::REFUSED);
    client.call::<serde_json::Value>(&remove(true));
    assert_eq!(client.said(agent), "x");
    let refused = client.refused(&Call::CreateAgent(client.new_agent_request("Second One")));
    assert_eq!(refused.code, codes::REFUSED);
    let children = home.processes().into_iter().filter(|process| process.command.contains(" agent")).count();
    assert_eq!(children, 0, "{:?}", home.processes());
}

#[test]
fn a_profile_whose_program_is_missing_is_refused_and_leaves_nothing() {
    let home = Home::started();
    let client = home.client();
    let mut new = new_profile("ghost");
    new.command = Some("/nowhere/agent".to_owned());
    let added: ProfileSummary = client.call(&Call::AddProfile(new));
    assert!(matches!(added.availability, Availability::Unavailable { .. }));
    let error = client.refused(&Call::CreateAgent(client.new_agent_request("ghost")));
    assert!(error.message.contains("/nowhere/agent"), "{}", error.message);
    assert!(client.snapshot().agents.is_empty());
    assert!(home.runner_folders().is_empty());
}

#[test]
fn a_folder_that_is_not_there_is_refused_and_leaves_nothing() {
    let home = Home::started();
    let client = home.client();
    for cwd in ["/nowhere/at/all", "relative", "/etc/hostname"] {
        let mut new = client.new_agent_request("scripted");
        new.cwd = cwd.into();
        assert_eq!(client.refused(&Call::CreateAgent(new)).code, codes::REFUSED, "{cwd}");
    }
    assert!(client.snapshot().agents.is_empty());
}
