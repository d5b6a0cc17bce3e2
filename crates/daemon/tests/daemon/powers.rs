//! An agent cannot do what is a person's to do, however its processes go about it.

use consort_daemon::protocol::{AgentView, Call, NewProfile, RuleView};
use consort_model::{AgentId, Ask, DriverKind, Status};
use consort_testkit::harness::{Client, Home, poll};
use uuid::Uuid;

/// What the daemon tells an agent's process.
const REFUSED: &str = "only a person may do it";

/// Runs a shell script in a terminal of an agent and returns what it printed, with its exit code in front.
fn in_a_terminal(home: &Home, client: &Client, agent: AgentId, script: &str) -> String {
    let file = home.elsewhere().join(format!("{}.sh", Uuid::now_v7()));
    std::fs::write(&file, script.replace("consort ", &format!("{} ", home.programs().consort.display())))
        .unwrap();
    client.run(agent, &format!("[[terminal sh {}]]", file.display()));
    let said = client.said(agent);
    said.rsplit("terminal: ").next().unwrap().to_owned()
}

/// An agent that asks, and the ask.
fn asking(client: &Client) -> (AgentId, Ask) {
    let (agent, _) = client.new_agent_with("scripted", "[[ask execute rm -r build]]");
    (agent, client.wait_ask(agent))
}

#[test]
fn an_agent_cannot_approve_from_its_shell_however_it_is_started() {
    let home = Home::started();
    let client = home.client();
    let (asker, ask) = asking(&client);
    let other = client.new_agent("scripted");
    let (id, root) = (ask.id, home.root().display().to_string());
    for (how, script) in [
        ("as it is", format!("consort approve {id}")),
        ("below another shell", format!("sh -c 'consort approve {id}; exit $?'")),
        ("without its marks", format!("env -u CONSORT_AGENT_ID -u CONSORT_PROCESS consort approve {id}")),
        ("with an empty environment", format!("env -i CONSORT_HOME={root} consort approve {id}")),
        (
            "in a session of its own, its parents gone",
            format!(
                "mkfifo {root}/f; (setsid sh -c 'env -i CONSORT_HOME={root} consort approve {id} >{root}/f 2>&1; \
                 echo code $? >{root}/g' &); cat {root}/f; rm {root}/f; exit 4"
            ),
        ),
    ] {
        let said = in_a_terminal(&home, &client, other, &script);
        assert!(said.starts_with("exit 4") && said.contains(REFUSED), "{how}: {said}");
        assert_eq!(client.view(asker).status, Status::NeedsInput, "{how}");
    }
    assert_eq!(client.inbox().len(), 1);
    client.allow(&ask);
    client.wait_status(asker, Status::Idle);
}

#[test]
fn an_agent_cannot_answer_itself_from_its_own_program() {
    let home = Home::started();
    let client = home.client();
    let (asker, ask) = asking(&client);
    let (consort, testkit) = (&home.programs().consort, &home.programs().testkit);
    let out = home.elsewhere().join("out");
    let script = format!(
        "{} approve {} >{} 2>&1; exec {} agent",
        consort.display(),
        ask.id,
        out.display(),
        testkit.display()
    );
    let profile = NewProfile {
        name: "sly".to_owned(),
        driver: DriverKind::Acp,
        command: Some("/bin/sh".to_owned()),
        args: vec!["-c".to_owned(), script],
        environment: vec![],
        default_model: None,
        default_permissions: Default::default(),
        sandbox_mode: None,
        approval_policy: None,
    };
    client.call::<serde_json::Value>(&Call::AddProfile(profile));
    let sly = client.new_agent("sly");
    client.wait_status(sly, Status::Idle);
    let said = std::fs::read_to_string(out).unwrap();
    assert!(said.contains(REFUSED), "{said}");
    assert_eq!(client.view(asker).status, Status::NeedsInput);
}

#[test]
fn whatever_changes_something_is_refused_and_looking_is_not() {
    let home = Home::started();
    let client = home.client();
    let (_, ask) = asking(&client);
    let agent = client.new_agent("scripted");
    let settings = home.elsewhere().join("config.json");
    std::fs::write(&settings, "{}").unwrap();
    let settings = settings.display().to_string();
    let id = ask.id;
    let refused = [
        format!("approve {id}"),
        format!("deny {id}"),
        format!("answer {id} allow-once"),
        "rules add allow --command 'rm *' --all".to_owned(),
        "profiles add x --driver acp --command x".to_owned(),
        "profiles edit scripted --permissions bypass".to_owned(),
        "profiles duplicate scripted y".to_owned(),
        "profiles remove scripted --force".to_owned(),
        "profiles default scripted".to_owned(),
        format!("import cc-insights {settings}"),
        format!("send {agent} hello"),
        "new --profile scripted hello".to_owned(),
        "run --profile scripted hello".to_owned(),
        format!("mode {agent} bypass"),
        format!("choose {agent} model fast"),
        format!("rename {agent} boss"),
        format!("interrupt {agent}"),
        format!("restart {agent}"),
        format!("rebind {agent} scripted"),
        format!("reopen {agent}"),
        format!("fork {agent}"),
        format!("close {agent}"),
        "new --worktree hello".to_owned(),
        "worktrees finish x".to_owned(),
        "worktrees remove x --force".to_owned(),
        "daemon stop --force".to_owned(),
        "daemon stop --keep-agents".to_owned(),
    ];
    let script: String = refused.iter().map(|line| format!("consort {line}; echo code=$?\n")).collect();
    let said = in_a_terminal(&home, &client, agent, &script);
    assert_eq!(said.matches("code=4").count(), refused.len(), "{said}");
    assert_eq!(said.matches(REFUSED).count(), refused.len(), "{said}");
    assert!(client.call::<Vec<RuleView>>(&Call::ListRules {}).is_empty());
    assert_eq!(client.call::<Vec<AgentView>>(&Call::ListAgents { closed: true }).len(), 2);

    let allowed = [
        "agents",
        "inbox",
        "rules list",
        "profiles list",
        "profiles check",
        "daemon status",
        "worktrees list",
    ];
    let mut script: String = allowed.iter().map(|line| format!("consort {line}; echo code=$?\n")).collect();
    script.push_str(&format!("consort log {agent} >/dev/null; echo code=$?\n"));
    let said = in_a_terminal(&home, &client, agent, &script);
    assert_eq!(said.matches("code=0").count(), allowed.len() + 1, "{said}");
}

#[test]
fn a_process_that_is_left_of_an_agent_is_known_by_its_mark() {
    let home = Home::started();
    let client = home.client();
    let (asker, ask) = asking(&client);
    let id = ask.id.to_string();
    for (key, value) in [("CONSORT_AGENT_ID", asker.to_string()), ("CONSORT_PROCESS", format!("{asker}.1"))] {
        let output = home.consort_command(&["approve", &id]).env(key, value).output().unwrap();
        assert_eq!(output.status.code(), Some(4), "{key}");
        assert!(String::from_utf8_lossy(&output.stderr).contains(REFUSED), "{key}");
    }
    // The mark of an agent that is not this daemon's says nothing here.
    let stranger = Uuid::now_v7().to_string();
    let output = home.consort_command(&["approve", &id]).env("CONSORT_AGENT_ID", stranger).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    client.wait_status(asker, Status::Idle);
}

#[test]
fn an_agent_may_run_a_consort_of_its_own() {
    let home = Home::started();
    let inner = Home::started();
    let client = home.client();
    let agent = client.new_agent("scripted");
    let script = format!(
        "export CONSORT_HOME={}\nconsort new --name nested\nconsort send nested hello --wait\n",
        inner.root().display()
    );
    let said = in_a_terminal(&home, &client, agent, &script);
    assert!(said.starts_with("exit 0") && said.contains("You said: hello"), "{said}");
}

#[test]
fn an_agent_does_not_start_the_daemon_it_belongs_to() {
    let home = Home::started();
    let client = home.client();
    let agent = client.new_agent("scripted");
    client.wait_status(agent, Status::Idle);
    let (out, go) = (home.elsewhere().join("out"), home.elsewhere().join("go"));
    let file = home.elsewhere().join("script.sh");
    let script = format!(
        "mkfifo {go}; echo waiting >{out}; read line <{go}; {consort} agents >{out}.2 2>&1; echo code=$? >>{out}.2; \
         mv {out}.2 {out}.3",
        go = go.display(),
        out = out.display(),
        consort = home.programs().consort.display()
    );
    std::fs::write(&file, script).unwrap();
    let prompt = client.send(agent, &format!("[[terminal sh {}]]", file.display()));
    poll("the script waits", || out.exists().then_some(()));
    drop(client);
    home.kill_daemon();
    std::fs::write(&go, "go\n").unwrap();
    let done = out.with_extension("3");
    let said = poll("the script goes on", || std::fs::read_to_string(&done).ok());
    assert!(said.contains("an agent cannot start the daemon") && said.contains("code=1"), "{said}");
    home.start_daemon();
    home.client().wait_turn(agent, prompt);
}
