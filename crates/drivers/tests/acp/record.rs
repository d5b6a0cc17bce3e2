//! Records the fixtures from the scripted agent; without the variable the test does nothing.
//!
//! `CONSORT_RECORD=target/debug/consort-testkit cargo nextest run -p consort-drivers record::`

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use consort_drivers::host::TerminalExit;
use consort_drivers::{CallResult, Driver, HostCall, Launch, Output};
use consort_model::{Answer, DriverKind, GrantScope, SessionOption, Signal};
use serde_json::json;

use crate::scene::{self, Line, Step};

struct Scene {
    name: &'static str,
    args: &'static [&'static str],
    launch: Launch,
    /// What the person does whenever the agent is idle.
    steps: Vec<Step>,
    /// How asks are answered, in order.
    answers: Vec<Answer>,
}

fn prompt(text: &str) -> Step {
    Step::Prompt { text: text.into() }
}

/// Chooses the second of what is offered.
fn choose_second(option: &str) -> Step {
    Step::Choose { option: option.into(), value: String::new() }
}

fn scenes() -> Vec<Scene> {
    let launch = Launch { cwd: "/tmp".into(), ..Launch::default() };
    let allow = Answer::allow(GrantScope::Once);
    let deny = Answer::Deny { message: None };
    vec![
        Scene {
            name: "talk",
            args: &[
                "--chunk",
                "6",
                "--message-ids",
                "--commands",
                "--config-options",
                "--modes",
                "code,plan",
            ],
            launch: launch.clone(),
            steps: vec![
                prompt("hello"),
                choose_second("model"),
                prompt(
                    "[[think Let me see]] [[say One]] [[plan Read|Write]] [[title Work]] [[usage used=5 size=9 cost=0.5]] [[turn-usage input=3 output=4]]",
                ),
                prompt("[[refuse]]"),
                prompt("[[error -32603 broken]]"),
                Step::Farewell,
            ],
            answers: vec![],
        },
        Scene {
            name: "tools",
            args: &["--name", "gemini-cli"],
            launch: launch.clone(),
            steps: vec![prompt(
                "[[tool read output=text location=/tmp/a:3 Read a]] [[tool edit diff=/tmp/a|old|new Edit a]] \
                 [[tool execute fail input={\"command\":\"false\"} false]] [[say done]]",
            )],
            answers: vec![],
        },
        Scene {
            name: "approvals",
            args: &[],
            launch: launch.clone(),
            steps: vec![
                prompt("[[ask execute ls]] [[ask edit diff=/tmp/a|x|y Edit]]"),
                prompt("[[ask-many 3]]"),
                prompt("[[ask execute gemini rm]] [[elicit Who are you?]]"),
                prompt("[[ask execute stop]] [[say never said]]"),
            ],
            answers: vec![
                allow.clone(),
                deny.clone(),
                allow.clone(),
                deny.clone(),
                allow,
                deny,
                Answer::Reply { value: json!({"name": "Ada"}) },
                Answer::Stop,
            ],
        },
        Scene {
            name: "calls",
            args: &[],
            launch: launch.clone(),
            steps: vec![prompt(
                "[[fs-read /tmp/there]] [[fs-read /tmp/missing]] [[fs-read /etc/passwd]] [[fs-write /tmp/new text]] [[terminal kill echo hi]]",
            )],
            answers: vec![],
        },
        Scene {
            name: "interrupt",
            args: &[],
            launch: launch.clone(),
            steps: vec![prompt("[[tool execute first]] [[say interrupt me]] [[hang]]"), prompt("again")],
            answers: vec![],
        },
        Scene {
            name: "login",
            args: &["--auth", "key"],
            launch: launch.clone(),
            steps: vec![prompt("hello")],
            answers: vec![Answer::Reply { value: json!({"method": "key"}) }],
        },
        Scene {
            name: "noise",
            args: &[],
            launch: launch.clone(),
            steps: vec![
                prompt(
                    "[[garbage]] [[empty-lines]] [[reply-to-nothing]] [[unknown-update]] [[unknown-notification]] [[unknown-request]] [[say still here]]",
                ),
                prompt("[[tool execute unfinished]] [[crash 3]]"),
            ],
            answers: vec![],
        },
        Scene {
            name: "resume",
            args: &["--no-resume", "--late-replay", "--commands"],
            launch: Launch { resume: Some("__earlier__".into()), ..launch },
            steps: vec![prompt("and now")],
            answers: vec![],
        },
    ]
}

#[test]
fn record() {
    let Some(program) = std::env::var_os("CONSORT_RECORD") else { return };
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(program);
    for scene in scenes() {
        let sessions =
            std::env::temp_dir().join(format!("consort-record-{}-{}", std::process::id(), scene.name));
        std::fs::create_dir_all(&sessions).unwrap();
        let mut launch = scene.launch.clone();
        if launch.resume.is_some() {
            let steps = vec![prompt("[[say earlier]]")];
            let first = Launch { resume: None, ..launch.clone() };
            launch.resume = Some(play(&program, &sessions, scene.args, steps, vec![], first).session);
        }
        let lines = play(&program, &sessions, scene.args, scene.steps, scene.answers, launch).lines;
        std::fs::remove_dir_all(&sessions).unwrap();
        let text: String = lines.iter().map(|line| serde_json::to_string(line).unwrap() + "\n").collect();
        std::fs::write(scene::folder().join(format!("{}.jsonl", scene.name)), text).unwrap();
    }
}

struct Player {
    driver: Driver,
    lines: Vec<Line>,
    steps: VecDeque<Step>,
    answers: VecDeque<Answer>,
    options: Vec<SessionOption>,
    session: String,
}

/// Plays one scene with a process of the scripted agent until nothing is left to do.
fn play(
    program: &Path,
    sessions: &Path,
    args: &[&str],
    steps: Vec<Step>,
    answers: Vec<Answer>,
    launch: Launch,
) -> Player {
    let mut child = Command::new(program)
        .arg("agent")
        .args(args)
        .arg("--state-dir")
        .arg(sessions)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut player = Player {
        driver: Driver::new(DriverKind::Acp, launch.clone()).unwrap(),
        lines: vec![Line::Launch { launch }],
        steps: steps.into(),
        answers: answers.into(),
        options: vec![],
        session: String::new(),
    };
    let mut todo = VecDeque::from([Line::Do { step: Step::Start }]);
    loop {
        let Some(input) = todo.pop_front() else {
            if stdin.is_none() {
                break;
            }
            let mut frame = String::new();
            if stdout.read_line(&mut frame).unwrap() == 0 {
                stdin = None;
                todo.push_back(Line::Do { step: Step::Ended });
            } else {
                todo.push_back(Line::In { frame: frame.trim_end_matches('\n').to_owned() });
            }
            continue;
        };
        player.lines.push(input.clone());
        let output = scene::give(&mut player.driver, &input);
        player.lines.extend(scene::lines(&output));
        if let Some(stdin) = &mut stdin {
            for frame in &output.frames {
                stdin.write_all(frame).unwrap();
            }
        }
        let done = player.react(&input, &output, &mut todo);
        if done {
            // The agent ends when there is nothing more to read.
            stdin = None;
            todo.push_back(Line::Do { step: Step::Ended });
        }
    }
    child.wait().unwrap();
    player
}

impl Player {
    /// What the person and the host do next; whether the scene is over.
    fn react(&mut self, input: &Line, output: &Output, todo: &mut VecDeque<Line>) -> bool {
        for (call, wanted) in &output.calls {
            let step = Step::Complete { call: call.clone(), result: host(wanted) };
            todo.push_back(Line::Do { step });
        }
        let mut idle = matches!(input, Line::Do { step: Step::Farewell });
        let chosen = self.lines.iter().rev().find_map(|line| match line {
            Line::Do { step: Step::Choose { .. } } => Some(true),
            Line::Do { step: Step::Prompt { .. } } => Some(false),
            _ => None,
        });
        for signal in &output.signals {
            match signal {
                Signal::Options(options) => {
                    self.options.clone_from(options);
                    idle |= chosen == Some(true);
                }
                Signal::Ready(info) => {
                    self.session.clone_from(&info.id);
                    idle = true;
                }
                Signal::TurnEnded(_) => idle = true,
                Signal::Ask { key, .. } => {
                    let answer = self.answers.pop_front().expect("an answer for every ask");
                    todo.push_back(Line::Do { step: Step::Answer { key: key.clone(), answer } });
                }
                Signal::Text { text, .. } if text == "interrupt me" => {
                    todo.push_back(Line::Do { step: Step::Interrupt });
                }
                _ => {}
            }
        }
        if idle {
            match self.steps.pop_front() {
                Some(Step::Choose { option, .. }) => {
                    let offered = self.options.iter().find(|offered| offered.id == option).unwrap();
                    let value = offered.choices[1].id.clone();
                    todo.push_back(Line::Do { step: Step::Choose { option, value } });
                }
                Some(step) => todo.push_back(Line::Do { step }),
                None => return true,
            }
        }
        false
    }
}

fn host(call: &HostCall) -> CallResult {
    match call {
        HostCall::ReadFile { path, .. } if path.ends_with("missing") => {
            CallResult::NotFound { message: format!("There is no {path}.") }
        }
        HostCall::ReadFile { .. } => CallResult::Text { text: "text\n".into() },
        HostCall::TerminalOutput { .. } => CallResult::Output {
            text: "hi\n".into(),
            truncated: false,
            exit: Some(TerminalExit { code: None, signal: Some("SIGKILL".into()) }),
        },
        HostCall::TerminalWait { .. } => {
            CallResult::Exited(TerminalExit { code: None, signal: Some("SIGKILL".into()) })
        }
        _ => CallResult::Done,
    }
}
