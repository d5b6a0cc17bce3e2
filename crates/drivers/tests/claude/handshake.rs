//! The beginning: the command line, the first words, and which session it is.

use consort_drivers::{Driver, Frame, Launch, McpServer};
use consort_model::{DriverKind, PermissionMode, SessionInfo, Signal};
use serde_json::json;

use crate::support::{Talk, hello, launch, warning};

fn arguments(launch: Launch) -> Vec<String> {
    Driver::new(DriverKind::Claude, launch).unwrap().command_line().after
}

fn session(signal: &Signal) -> &SessionInfo {
    match signal {
        Signal::Ready(session) => session,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_command_line_says_what_the_launch_says() {
    let plain = arguments(launch());
    for flag in ["-p", "--verbose", "--include-partial-messages"] {
        assert!(plain.contains(&flag.to_owned()), "{plain:?}");
    }
    assert!(!plain.iter().any(|argument| argument == "--permission-mode" || argument == "--resume"));
    let all = arguments(Launch {
        resume: Some("s".into()),
        model: Some("small".into()),
        permissions: PermissionMode::Plan,
        roots: vec!["/a".into(), "/b".into()],
        ..launch()
    });
    let expected = [
        "--resume",
        "s",
        "--model",
        "small",
        "--permission-mode",
        "plan",
        "--add-dir",
        "/a",
        "--add-dir",
        "/b",
    ];
    assert_eq!(all[plain.len()..], expected);
}

#[test]
fn where_everything_is_allowed_consort_allows_it() {
    let all = arguments(Launch { permissions: PermissionMode::Bypass, ..launch() });
    assert_eq!(all, arguments(launch()));
}

#[test]
fn the_session_takes_prompts_once_the_agent_answered() {
    let mut talk = Talk::start(launch());
    assert_eq!(talk.kinds_sent(), ["initialize"]);
    let out = talk.replies("initialize", hello());
    let ready = session(&out.signals[0]);
    assert_eq!((ready.id.as_str(), ready.resumable, ready.images), ("", false, true));
    let Signal::Options(options) = &out.signals[1] else { panic!("{out:?}") };
    let modes: Vec<&str> = options[0].choices.iter().map(|choice| choice.id.as_str()).collect();
    assert_eq!(modes, ["default", "acceptEdits", "plan", "dontAsk", "auto"]);
    let models: Vec<&str> = options[1].choices.iter().map(|choice| choice.name.as_str()).collect();
    assert_eq!((options[1].current.as_str(), models), ("default", vec!["Default", "Small"]));
    let Signal::Commands(commands) = &out.signals[2] else { panic!("{out:?}") };
    assert_eq!(commands[1].hint.as_deref(), Some("[what]"));
}

#[test]
fn the_first_turn_tells_the_session_and_later_ones_only_a_change() {
    let mut talk = Talk::open();
    talk.prompt("go");
    let out = talk.begins("s1");
    let known = session(&out.signals[0]);
    assert_eq!((known.id.as_str(), known.program.as_str(), known.resumable), ("s1", "Claude Code 2.1", true));
    talk.results(json!({}));
    talk.prompt("go on");
    assert_eq!(talk.begins("s1").signals, []);
    talk.results(json!({}));
    talk.prompt("/clear");
    let out = talk.begins("s2");
    assert_eq!(session(&out.signals[0]).id, "s2");
    assert!(matches!(out.signals[1], Signal::Usage(usage) if usage.context_used == Some(0)));
}

#[test]
fn a_session_is_taken_up_again() {
    let mut talk = Talk::start(Launch { resume: Some("old".into()), ..launch() });
    let out = talk.replies("initialize", hello());
    let ready = session(&out.signals[0]);
    assert_eq!((ready.id.as_str(), ready.resumed, ready.resumable), ("old", true, true));
    talk.prompt("go");
    let again = talk.begins("old");
    assert!(session(&again.signals[0]).resumed);
}

#[test]
fn a_session_that_is_gone_is_begun_anew_next_time() {
    let mut talk = Talk::start(Launch { resume: Some("old".into()), ..launch() });
    let out = talk.results(json!({"subtype": "error_during_execution", "is_error": true,
        "errors": ["No conversation found with session ID: old"]}));
    assert_eq!(out.signals[0], Signal::SessionLost);
    assert!(matches!(&out.signals[1], Signal::StartFailed { message } if message.contains("old")));
    assert_eq!(talk.replies("initialize", hello()).signals, []);
}

#[test]
fn a_refused_hello_is_a_failed_start() {
    let mut talk = Talk::start(launch());
    let out = talk.fails("initialize", "no");
    assert_eq!(out.signals, [Signal::StartFailed { message: "Claude cannot open a session: no.".into() }]);
}

#[test]
fn mcp_servers_are_given_before_the_first_prompt_and_not_on_the_command_line() {
    let server = McpServer {
        name: "notes".into(),
        url: "http://127.0.0.1:1/mcp".into(),
        headers: vec![("Authorization".into(), "Bearer secret".into())],
        bridge: None,
    };
    let launch = Launch { mcp_servers: vec![server], ..launch() };
    let given = arguments(launch.clone());
    assert!(!given.concat().contains("secret"));
    assert!(given.windows(2).any(|pair| pair == ["--allowedTools", "mcp__notes"]), "{given:?}");
    let mut talk = Talk::start(launch);
    let server = &talk.last_sent()["request"]["servers"]["notes"];
    assert_eq!(server["headers"]["Authorization"], "Bearer secret");
    assert_eq!(server["type"], "http");
    assert_eq!(talk.replies("initialize", hello()).signals, []);
    let out = talk.replies("mcp_set_servers", json!({"errors": {"notes": "refused"}}));
    assert!(warning(&out).contains("notes"));
    session(&out.signals[1]);
    assert!(!serde_json::to_string(&talk.driver).unwrap().contains("secret"), "the token is not kept");
    // Once is enough.
    talk.prompt("go");
    let out = talk.hears(json!({"type": "system", "subtype": "init", "session_id": "s",
        "mcp_servers": [{"name": "notes", "status": "failed"}, {"name": "other", "status": "failed"}]}));
    assert!(warning(&out).contains("other"));
}

#[test]
fn the_farewell_ends_the_session_even_after_the_end() {
    let mut driver = Talk::working().driver;
    driver.ended();
    let frame = driver.farewell().unwrap();
    assert!(String::from_utf8(frame).unwrap().contains("end_session"));
    assert_eq!(driver.receive(Frame::Line(b"{}")), consort_drivers::Output::default());
}
