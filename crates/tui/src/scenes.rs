//! The whole screen in one process: keys go in, a daemon that is played answers, and what is seen is compared.

mod bar;
mod behaviour;
mod care;
mod chores;
mod images;
mod lists;
mod pictures;
mod reading;
mod screenshots;
mod svg;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use consort_daemon::protocol::{
    Call, ErrorBody, Notification, Sent, SessionView, Snapshot, TranscriptPage, WorktreeView,
};
use consort_model::event::AgentEvent;
use consort_model::{
    Agent, AgentId, AnswerOption, Ask, AskBody, AskId, Availability, Diff, DriverKind, Event, Item, ItemBody,
    ItemIndex, KeptSession, Letter, LetterState, OptionKind, Profile, ProfileId, PromptId, RevisionKey,
    Stamped, State, Status, Timestamp, ToolCall, ToolCallId, ToolKind, ToolStatus, Turn, TurnId, Worktree,
};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::app::{App, Effect, Reply};
use crate::input::{Code, Input, Key, Mouse, MouseAct};
use crate::keys::{Keys, parse};
use crate::memory::Memory;
use crate::paint::Canvas;
use crate::testing::{agent_id, item};
use crate::text::theme::Theme;
use crate::view;

/// The time of every scene, in milliseconds.
const NOW: i64 = 1_000_000;

/// A screen with a daemon that is played.
pub struct Scene {
    pub app: App,
    pub state: State,
    pub items: BTreeMap<AgentId, Vec<Item>>,
    /// What was asked of the daemon, but for what only reads.
    pub calls: Vec<Call>,
    pub effects: Vec<Effect>,
    pub watched: BTreeSet<AgentId>,
    /// The worktrees that the daemon knows.
    pub worktrees: Vec<WorktreeView>,
    /// The sessions that programs keep.
    pub sessions: Vec<SessionView>,
    canvas: Canvas,
    terminal: vt100::Parser,
    pub written: usize,
    now: Instant,
    wall: i64,
}

impl Scene {
    /// A screen of this size that is connected.
    pub fn new(columns: u16, rows: u16, state: State, items: BTreeMap<AgentId, Vec<Item>>) -> Self {
        let mut scene = Self::unconnected(columns, rows, state, items);
        scene.connect();
        scene
    }

    pub fn unconnected(columns: u16, rows: u16, state: State, items: BTreeMap<AgentId, Vec<Item>>) -> Self {
        let app = App::new(Memory::default(), Keys::default(), Theme::dark(), "/w".into());
        let area = Rect::new(0, 0, columns, rows);
        let size = |cells: u16| std::num::NonZero::new(cells).unwrap();
        let mut scene = Self {
            app,
            state,
            items,
            calls: vec![],
            effects: vec![],
            watched: BTreeSet::new(),
            worktrees: vec![],
            sessions: vec![],
            canvas: Canvas::new(area),
            terminal: vt100::Parser::new(size(rows), size(columns), 0),
            written: 0,
            now: Instant::now(),
            wall: NOW,
        };
        scene.app.tick(scene.now, NOW);
        scene
    }

    pub fn connect(&mut self) {
        self.app.connected();
        self.settle();
    }

    /// Lets the daemon answer everything that was asked.
    pub fn settle(&mut self) {
        for _ in 0..50 {
            let effects = self.app.take_effects();
            if effects.is_empty() {
                break;
            }
            for effect in effects {
                match effect {
                    Effect::Call(call, reply) => self.answer(*call, reply),
                    other => self.effects.push(other),
                }
            }
        }
        self.draw();
    }

    fn answer(&mut self, call: Call, reply: Reply) {
        let text = match &call {
            Call::Subscribe {} => json(&Snapshot { state: self.state.clone() }),
            Call::Watch { transcripts } => {
                self.watched = transcripts.iter().copied().collect();
                "{}".to_owned()
            }
            Call::Transcript { agent, before, from, limit } => {
                let id: AgentId = agent.parse().unwrap();
                let all = self.items.get(&id).cloned().unwrap_or_default();
                let limit = *limit as usize;
                let items: Vec<Item> = match (before, from) {
                    (_, Some(from)) => {
                        all.iter().filter(|it| it.index >= *from).take(limit).cloned().collect()
                    }
                    (Some(before), None) => {
                        let earlier: Vec<Item> =
                            all.iter().filter(|it| it.index < *before).cloned().collect();
                        earlier[earlier.len().saturating_sub(limit)..].to_vec()
                    }
                    (None, None) => all[all.len().saturating_sub(limit)..].to_vec(),
                };
                json(&TranscriptPage { items, total: all.len() as u64 })
            }
            Call::CheckProfiles { .. } => "[]".to_owned(),
            Call::Diff { .. } => return,
            Call::ListSessions { profile, .. } => {
                let of = |view: &&SessionView| profile.as_deref() == Some(&view.profile.to_string());
                json(&self.sessions.iter().filter(of).collect::<Vec<_>>())
            }
            Call::ListWorktrees {} => json(&self.worktrees),
            // What becomes of these is for the scene to say.
            Call::FinishWorktree { .. } | Call::RemoveWorktree { .. } | Call::SetLimits { .. } => {
                self.calls.push(call);
                return;
            }
            Call::Steer { agent, prompt } => {
                let id: AgentId = agent.parse().unwrap();
                let to = self.state.agents.get(&id);
                let joins = to.is_some_and(|agent| agent.driver.can_steer() && agent.turn.is_some());
                let sent = Sent { agent: id, prompt: prompt.id, waiting_behind: Some(0), joins };
                self.calls.push(call);
                json(&sent)
            }
            Call::AnswerMany { .. } => {
                self.calls.push(call);
                "[]".to_owned()
            }
            other => {
                self.calls.push(other.clone());
                "{}".to_owned()
            }
        };
        self.app.answered(reply, Ok(text));
    }

    /// Something happens to an agent.
    pub fn event(&mut self, agent: AgentId, change: AgentEvent) {
        let stamped =
            Stamped { seq: self.state.seq + 1, at: Timestamp(NOW), event: Event::of(agent, change) };
        self.state.apply(&stamped);
        let known = self.watched.contains(&agent);
        if !matches!(&stamped.event, Event::Agent { change, .. } if change.is_transcript()) || known {
            self.app.notification(Notification::Event(stamped));
        }
        self.settle();
    }

    /// Presses keys by their names.
    pub fn press(&mut self, keys: &str) {
        for word in keys.split_whitespace() {
            self.app.input(Input::Key(parse(word).unwrap_or_else(|| panic!("{word} is no key"))));
            self.settle();
        }
    }

    /// Types a text.
    pub fn write(&mut self, text: &str) {
        for letter in text.chars() {
            self.app.input(Input::Key(Key::plain(Code::Char(letter))));
        }
        self.settle();
    }

    pub fn click(&mut self, text: &str) {
        let screen = self.screen();
        let found = screen.lines().enumerate().find_map(|(y, line)| {
            let at = line.find(text)?;
            Some((crate::text::width::of(&line[..at]) as u16, y as u16))
        });
        let (x, y) = found.unwrap_or_else(|| panic!("{text:?} is not on the screen:\n{screen}"));
        self.app.input(Input::Mouse(Mouse { act: MouseAct::Press, x, y, held: Default::default() }));
        self.settle();
    }

    /// The terminal gets another size.
    pub fn resize(&mut self, columns: u16, rows: u16) {
        let size = |cells: u16| std::num::NonZero::new(cells).unwrap();
        self.canvas.reset(Rect::new(0, 0, columns, rows));
        self.terminal = vt100::Parser::new(size(rows), size(columns), 0);
        self.app.redraw();
        self.settle();
    }

    /// Time passes.
    pub fn pass(&mut self, time: Duration) {
        self.now += time;
        self.wall += time.as_millis() as i64;
        self.app.tick(self.now, self.wall);
        self.settle();
    }

    fn draw(&mut self) {
        if !self.app.damage.any() {
            return;
        }
        let cursor = view::draw(&mut self.app, &mut self.canvas.next);
        let mut bytes = Vec::new();
        self.canvas.frame(cursor, &mut bytes);
        self.written += bytes.len();
        self.terminal.process(&bytes);
    }

    /// What a person sees.
    pub fn screen(&mut self) -> String {
        let seen = self.terminal.screen().rows(0, self.canvas.area().width);
        let lines: Vec<String> = seen.map(|line| line.trim_end().to_owned()).collect();
        let text = lines.join("\n");
        // What was drawn bit by bit is what is drawn at once.
        let mut fresh = Buffer::empty(self.canvas.area());
        self.app.redraw();
        view::draw(&mut self.app, &mut fresh);
        assert!(
            fresh == self.canvas.next,
            "a part was not drawn anew:\n{}",
            difference(&self.canvas.next, &fresh)
        );
        text
    }

    pub fn sees(&mut self, text: &str) {
        let screen = self.screen();
        assert!(screen.contains(text), "{text:?} is not on the screen:\n{screen}");
    }

    pub fn does_not_see(&mut self, text: &str) {
        let screen = self.screen();
        assert!(!screen.contains(text), "{text:?} is on the screen:\n{screen}");
    }
}

fn difference(drawn: &Buffer, fresh: &Buffer) -> String {
    let line = |buffer: &Buffer, y: u16| -> String {
        (0..buffer.area.width).map(|x| buffer[(x, y)].symbol().to_owned()).collect()
    };
    let rows = (0..drawn.area.height).filter(|y| line(drawn, *y) != line(fresh, *y));
    rows.map(|y| format!("- {}\n+ {}\n", line(drawn, y), line(fresh, y))).collect()
}

fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap()
}

fn refusal(message: &str) -> ErrorBody {
    ErrorBody::new(-32001, message)
}

/// A profile.
pub fn profile(name: &str, driver: DriverKind, available: bool) -> consort_model::ProfileSummary {
    let availability = if available {
        Availability::Available { path: format!("/usr/bin/{}", name.to_lowercase()) }
    } else {
        Availability::Unavailable { reason: format!("`{}` is not on PATH; install it", name.to_lowercase()) }
    };
    let profile = Profile::new(ProfileId::new(name.to_lowercase()), name, driver);
    profile.summary(&RevisionKey::new([0; 16]), availability, name == "Scripted")
}

/// A turn that began twelve seconds ago.
pub fn turn() -> Turn {
    let id = TurnId::new(Uuid::from_u128(7));
    Turn { id, started_at: Timestamp(NOW - 12_000), interrupted: false, stalled: false, yielded: false }
}

/// An agent at work.
pub fn working(mut agent: Agent) -> Agent {
    agent.turn = Some(turn());
    agent
}

pub fn named(name: &str, agent: Agent) -> Agent {
    Agent { name: name.to_owned(), ..agent }
}

pub fn ask_id(n: u128) -> AskId {
    AskId::new(Uuid::from_u128(n))
}

pub fn tool(kind: ToolKind, title: &str) -> ToolCall {
    ToolCall { status: ToolStatus::Completed, ..ToolCall::new(ToolCallId::new(title), kind, title) }
}

/// An approval to run a command.
pub fn approval(n: u128, command: &str) -> Ask {
    let tool = ToolCall {
        status: ToolStatus::Pending,
        input: json!({ "command": command }),
        ..tool(ToolKind::Execute, command)
    };
    let options = vec![
        AnswerOption { id: "yes".into(), name: "Yes".into(), kind: OptionKind::AllowOnce },
        AnswerOption { id: "no".into(), name: "No".into(), kind: OptionKind::RejectOnce },
    ];
    let body = AskBody::Approval { tool, options };
    Ask {
        id: ask_id(n),
        key: "k".into(),
        item: ItemIndex(0),
        at: Timestamp(NOW - 5000),
        title: command.into(),
        body,
    }
}

/// An approval to change a file.
pub fn edit_approval(n: u128) -> Ask {
    let mut ask = approval(n, "Edit src/lib.rs");
    if let AskBody::Approval { tool, .. } = &mut ask.body {
        tool.tool = ToolKind::Edit;
        tool.input = Value::Null;
        tool.diffs = vec![Diff {
            path: "/w/src/lib.rs".into(),
            old_text: Some("fn a() {\n    1\n}\n\nfn b() {}\n".into()),
            new_text: "fn a() {\n    2\n}\n\nfn b() {}\n".into(),
        }];
    }
    ask
}

/// A conversation with a bit of everything.
pub fn conversation() -> Vec<Item> {
    use consort_model::{PlanEntry, PlanStatus, PromptOrigin};
    let user = ItemBody::User {
        prompt: PromptId::new(Uuid::nil()),
        origin: PromptOrigin::Person,
        text: "make the tests pass".into(),
        attachments: vec![],
    };
    let mut ran = tool(ToolKind::Execute, "cargo test");
    ran.output = "running 3 tests\ntest a ... ok\ntest b ... FAILED\ntest c ... ok\n".into();
    ran.status = ToolStatus::Failed;
    let mut edited = tool(ToolKind::Edit, "src/lib.rs");
    edited.diffs =
        vec![Diff { path: "/w/src/lib.rs".into(), old_text: Some("1\n".into()), new_text: "2\n".into() }];
    let plan = |text: &str, status| PlanEntry { text: text.into(), status };
    let bodies = vec![
        user,
        ItemBody::Thinking { text: "First I look which tests there are.\nThen I mend them.".into() },
        ItemBody::Tool(ran),
        ItemBody::Plan {
            entries: vec![plan("find the cause", PlanStatus::Completed), plan("mend it", PlanStatus::InProgress)],
        },
        ItemBody::Tool(edited),
        ItemBody::Text {
            text: "## Mended\n\nThe test **b** expected `2`:\n\n```rust\nassert_eq!(a(), 2);\n```\n\n- one\n- two 漢字\n".into(),
        },
    ];
    bodies.into_iter().enumerate().map(|(index, body)| item(index as u64, body)).collect()
}

/// A worktree that an agent has.
pub fn worktree(name: &str) -> Worktree {
    Worktree {
        name: name.into(),
        path: format!("/worktrees/{name}"),
        branch: format!("consort/{name}"),
        base: "main".into(),
        base_commit: "0".repeat(40),
        repository: "/w".into(),
    }
}

/// The same as the daemon lists it, with work in it.
pub fn seen_worktree(name: &str, agent: Option<AgentId>) -> WorktreeView {
    WorktreeView {
        worktree: worktree(name),
        agent,
        agent_name: agent.map(|_| "fixer".to_owned()),
        agent_status: agent.map(|_| Status::Idle),
        is_there: true,
        uncommitted: Some(3),
        ahead: Some(2),
        behind: Some(0),
        problem: None,
    }
}

/// A session that the program of the profile `Scripted` keeps.
pub fn kept_session(id: &str, title: &str, cwd: &str) -> SessionView {
    let updated_at = Some(Timestamp(NOW - 300_000));
    let session = KeptSession { id: id.into(), title: Some(title.into()), cwd: cwd.into(), updated_at };
    SessionView { session, profile: ProfileId::new("scripted"), agent: None }
}

/// Messages between the agents 1 and 2.
pub fn letters() -> VecDeque<Letter> {
    let letter = |n: u128, state: LetterState, preview: &str| Letter {
        prompt: PromptId::new(Uuid::from_u128(n)),
        from: agent_id(2),
        at: Timestamp(NOW - 60_000 * n as i64),
        state,
        preview: preview.into(),
    };
    VecDeque::from([
        letter(2, LetterState::Read, "Which port does the server use?"),
        letter(1, LetterState::Queued, "The tests are green; have a look at src/lib.rs when you can."),
    ])
}

/// A state with profiles and these agents.
pub fn team(agents: Vec<Agent>) -> State {
    let mut state = crate::testing::state_of(agents);
    state.profiles = vec![
        profile("Claude", DriverKind::Claude, false),
        profile("Codex", DriverKind::Codex, false),
        profile("Scripted", DriverKind::Acp, true),
    ];
    state.seq = 1;
    state
}

/// The first agent's conversation.
pub fn talked() -> BTreeMap<AgentId, Vec<Item>> {
    BTreeMap::from([(agent_id(1), conversation())])
}
