use consort_drivers::{Launch, McpServer};
use consort_model::{ApprovalPolicy, PermissionMode, SandboxMode, SessionInfo, Signal};
use serde_json::{Value, json};

use crate::support::{Talk, launch, thread, warning};

fn start_failed(signals: &[Signal]) -> &str {
    match signals.last() {
        Some(Signal::StartFailed { message }) => message,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_thread_is_opened_after_hello_and_login() {
    let mut talk = Talk::start(launch());
    assert_eq!(talk.driver.command_line().before, ["app-server"]);
    assert_eq!(talk.methods(), ["initialize"]);
    assert_eq!(talk.last_sent()["params"]["capabilities"]["experimentalApi"], true);
    talk.replies("initialize", json!({"userAgent": "consort/0.170.1 (Debian 12) x"}));
    assert_eq!(
        talk.methods()[1..],
        ["initialized", "account/read", "config/read", "model/list", "collaborationMode/list"]
    );
    talk.replies("account/read", json!({"account": null, "requiresOpenaiAuth": false}));
    assert!(!talk.methods().contains(&"thread/start"));
    talk.replies("config/read", json!({"config": {}}));
    assert_eq!(talk.last_sent()["params"], json!({"cwd": "/project"}));
    let mut opened = thread();
    opened["thread"]["cliVersion"] = Value::Null;
    let out = talk.replies("thread/start", opened);
    let info = SessionInfo {
        id: "t".into(),
        program: "Codex 0.170.1".into(),
        resumed: false,
        resumable: true,
        cannot_fork: false,
        images: true,
        files: true,
    };
    assert_eq!(out.signals[0], Signal::Ready(info));
}

#[test]
fn nothing_is_held_up_by_lists_that_come_late_or_never() {
    let mut talk = Talk::start(launch());
    talk.replies("initialize", json!({}));
    talk.fails("account/read", "unknown variant");
    talk.fails("config/read", "unknown variant");
    let out = talk.replies("thread/start", thread());
    assert!(matches!(out.signals[0], Signal::Ready(_)), "{out:?}");
    assert_eq!(talk.fails("model/list", "no network").signals, []);
    let out = talk.replies("collaborationMode/list", crate::support::modes());
    assert!(matches!(&out.signals[..], [Signal::Options(_)]), "{out:?}");
}

#[test]
fn a_missing_login_says_what_to_run() {
    let mut talk = Talk::start(launch());
    talk.replies("initialize", json!({}));
    let out = talk.replies("account/read", json!({"account": null, "requiresOpenaiAuth": true}));
    assert!(start_failed(&out.signals).contains("codex login"));
    assert_eq!(talk.replies("config/read", json!({"config": {}})).frames, Vec::<Vec<u8>>::new());

    let mut talk = Talk::start(launch());
    talk.replies("initialize", json!({}));
    talk.replies("account/read", json!({"account": {"type": "chatgpt"}, "requiresOpenaiAuth": true}));
    talk.replies("config/read", json!({"config": {}}));
    assert_eq!(talk.methods().last(), Some(&"thread/start"));
}

#[test]
fn what_fails_while_opening_is_one_sentence() {
    let mut talk = Talk::start(launch());
    let out = talk.fails("initialize", "no\nway.");
    assert_eq!(start_failed(&out.signals), "Codex refused to start: no way.");
    let mut talk = Talk::greeted(launch(), json!({}));
    let out = talk.fails("thread/start", "failed to load configuration: config.toml:1:9: extra `=`");
    assert_eq!(
        start_failed(&out.signals),
        "Codex could not open a thread: failed to load configuration: config.toml:1:9: extra `=`."
    );
    let mut talk = Talk::greeted(launch(), json!({}));
    let out = talk.replies("thread/start", json!({"thread": {}}));
    assert_eq!(start_failed(&out.signals), "Codex opened a thread without naming it.");
}

#[test]
fn model_roots_and_servers_go_with_the_thread_and_the_token_is_forgotten() {
    let server = McpServer {
        name: "consort".into(),
        url: "http://127.0.0.1:1/mcp".into(),
        headers: vec![("Authorization".into(), "Bearer secret".into())],
        bridge: None,
    };
    let launch = Launch {
        model: Some("small".into()),
        roots: vec!["/other".into()],
        mcp_servers: vec![server],
        ..launch()
    };
    let talk = Talk::open_with(launch);
    assert_eq!(
        *talk.sent("thread/start"),
        json!({
            "cwd": "/project", "model": "small", "runtimeWorkspaceRoots": ["/project", "/other"],
            "config": {"mcp_servers.consort": {"url": "http://127.0.0.1:1/mcp",
                "http_headers": {"Authorization": "Bearer secret"},
                "default_tools_approval_mode": "approve"}},
        })
    );
    assert!(!serde_json::to_string(&talk.driver).unwrap().contains("secret"));
}

#[test]
fn what_an_agent_may_do_is_said_at_its_start() {
    use PermissionMode::{AcceptEdits, Bypass, Default, Plan};
    let never = Some(ApprovalPolicy::Never);
    let write = Some(SandboxMode::WorkspaceWrite);
    // (mode, the profile's policy and sandbox, its configuration, resumed) → (policy, sandbox)
    let table = [
        (Default, None, None, json!({}), false, (None, None)),
        (Default, never, None, json!({}), false, (Some("never"), None)),
        (Default, None, write, json!({}), false, (None, Some("workspace-write"))),
        (Default, Some(ApprovalPolicy::OnFailure), None, json!({}), false, (Some("on-request"), None)),
        (AcceptEdits, never, None, json!({}), false, (Some("on-request"), Some("workspace-write"))),
        (Plan, never, write, json!({}), false, (Some("on-request"), Some("read-only"))),
        (Bypass, None, None, json!({}), false, (Some("never"), Some("danger-full-access"))),
        (Default, None, None, json!({}), true, (Some("on-request"), Some("read-only"))),
        (
            Default,
            None,
            None,
            json!({"approval_policy": "untrusted", "sandbox_mode": "workspace-write"}),
            true,
            (Some("untrusted"), Some("workspace-write")),
        ),
        (
            Default,
            None,
            None,
            json!({"projects": {"/": {"trust_level": "trusted"}}}),
            true,
            (Some("on-request"), Some("workspace-write")),
        ),
        (
            Default,
            never,
            write,
            json!({"approval_policy": "untrusted"}),
            true,
            (Some("never"), Some("workspace-write")),
        ),
    ];
    for (permissions, approval_policy, sandbox_mode, config, resumed, expected) in table {
        let resume = resumed.then(|| "t".to_owned());
        let launch = Launch { permissions, approval_policy, sandbox_mode, resume, ..launch() };
        let talk = Talk::greeted(launch, config.clone());
        let params = talk.sent(if resumed { "thread/resume" } else { "thread/start" });
        let said = (params["approvalPolicy"].as_str(), params["sandbox"].as_str());
        assert_eq!(said, expected, "{permissions:?} {approval_policy:?} {sandbox_mode:?} {config} {resumed}");
    }
}

#[test]
fn an_earlier_thread_is_taken_up_without_its_past() {
    let mut talk = Talk::greeted(Launch { resume: Some("t".into()), ..launch() }, json!({}));
    let params = talk.sent("thread/resume");
    assert_eq!((&params["threadId"], &params["excludeTurns"]), (&json!("t"), &json!(true)));
    assert_eq!(talk.tells("thread/status/changed", json!({"status": {"type": "idle"}})).signals, []);
    let mut opened = thread();
    opened["thread"]["name"] = json!("Earlier work");
    opened["collaborationMode"] = json!({"mode": "plan", "settings": {}});
    let out = talk.replies("thread/resume", opened);
    assert!(matches!(&out.signals[0], Signal::Ready(info) if info.resumed && info.id == "t"), "{out:?}");
    assert_eq!(out.signals[1], Signal::Title("Earlier work".into()));
    let Some(Signal::Options(options)) = out.signals.last() else { panic!("{out:?}") };
    assert!(options.iter().any(|option| option.id == "mode" && option.current == "plan"));
}

#[test]
fn a_thread_that_is_gone_gives_way_to_a_new_one() {
    let mut talk = Talk::greeted(Launch { resume: Some("gone".into()), ..launch() }, json!({}));
    let out = talk.fails("thread/resume", "no rollout found for thread id gone");
    assert!(warning(&out).contains("no rollout found"));
    let out = talk.replies("thread/start", thread());
    assert!(matches!(&out.signals[0], Signal::Ready(info) if !info.resumed && info.id == "t"), "{out:?}");
}

#[test]
fn a_fork_is_a_thread_of_its_own_or_a_failure() {
    let forking = || Launch { resume: Some("t".into()), fork: true, ..launch() };
    let mut talk = Talk::greeted(forking(), json!({}));
    assert_eq!(talk.sent("thread/fork")["threadId"], "t");
    let mut opened = thread();
    opened["thread"]["id"] = json!("branch");
    let out = talk.replies("thread/fork", opened);
    assert!(
        matches!(&out.signals[0], Signal::Ready(info) if !info.resumed && info.id == "branch"),
        "{out:?}"
    );

    let mut talk = Talk::greeted(forking(), json!({}));
    let out = talk.fails("thread/fork", "no rollout found");
    assert!(
        matches!(&out.signals[..], [Signal::StartFailed { message }] if message.contains("no rollout")),
        "{out:?}"
    );
}
