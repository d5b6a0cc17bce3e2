//! One CLI on a home of its own: its profile, its model, its agent, and what a turn of it looks like.

use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use consort_daemon::protocol::{Call, NewProfile, NewPrompt, Sent};
use consort_model::{
    Agent, AgentId, Answer, ApprovalPolicy, Ask, AskBody, Attachment, DriverKind, GrantScope, Image, Item,
    ItemBody, NoticeLevel, PermissionMode, ProfileSummary, PromptId, SandboxMode, SettledBy, Settlement,
    Status, ToolCall, TurnOutcome,
};
use consort_testkit::clis::Cli;
use consort_testkit::harness::{Client, Home};
use consort_testkit::model::{self, Recorded, Script, Server};
use uuid::Uuid;

/// Beside the built-in ones: a stream that outlasts the restart of a daemon, but not a person's patience; and a command
/// that outlasts its turn, until a file is there.
const SCRIPT: &str = r#"{"scenarios": {
    "steady": {"steps": [{"text": "beat {n}, ", "repeat": 60, "chunk": 9, "pace_ms": 50}]},
    "background-claude": {"steps": [
        {"calls": [{"tool": {"name": "Bash", "arguments": {"command": "touch background-began.txt; until test -e background-end.txt; do sleep 0.1; done", "description": "Wait", "run_in_background": true}}}]},
        {"text": "It runs."}
    ]},
    "background-codex": {"steps": [
        {"calls": [{"tool": {"name": "exec_command", "arguments": {"cmd": "touch background-began.txt; until test -e background-end.txt; do sleep 0.1; done", "yield_time_ms": 250}}}]},
        {"text": "It runs."}
    ]}
}}"#;

/// A CLI, its model and its agent.
pub struct Stage {
    pub cli: Cli,
    pub home: Home,
    pub model: Server,
    pub client: Client,
    pub agent: AgentId,
    /// The minute in which the agent's session began.
    began: u64,
}

/// What a prompt caused.
#[derive(Debug)]
pub struct Turn {
    pub agent: Agent,
    pub items: Vec<Item>,
}

impl Stage {
    pub fn new(cli: Cli) -> Self {
        let script = Script::parse(SCRIPT).expect("the script can be played");
        let model = Server::start_with(model::Options { script, ..Default::default() }).expect("a server");
        let home = Home::started();
        let client = home.client();
        let profile = cli.profile(&model.url(), &home.elsewhere().join("user")).expect("a profile");
        let environment = profile.environment.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let driver = match profile.driver {
            "claude" => DriverKind::Claude,
            "codex" => DriverKind::Codex,
            _ => DriverKind::Acp,
        };
        let codex = driver == DriverKind::Codex;
        let new = NewProfile {
            name: cli.name().to_owned(),
            driver,
            command: Some(profile.command.display().to_string()),
            args: profile.args,
            environment,
            default_model: None,
            default_permissions: PermissionMode::Default,
            sandbox_mode: codex.then_some(SandboxMode::WorkspaceWrite),
            // Asks for every command.
            approval_policy: codex.then_some(ApprovalPolicy::Untrusted),
        };
        let _: ProfileSummary = client.call(&Call::AddProfile(new));
        let agent = client.new_agent(cli.name());
        client.wait_status(agent, Status::Idle);
        Self { cli, home, model, client, agent, began: minute() }
    }

    /// Another agent, where the one before may be in any state.
    pub fn renew(&mut self) {
        // It may be closed already.
        self.client.try_call::<serde_json::Value>(&Call::Close { agent: self.agent.to_string() }).ok();
        self.agent = self.client.new_agent(self.cli.name());
        self.began = minute();
        self.client.wait_status(self.agent, Status::Idle);
    }

    /// Closes the agent and checks that nothing is left.
    pub fn end(self) {
        let Self { home, client, agent, model, .. } = self;
        client.try_call::<serde_json::Value>(&Call::Close { agent: agent.to_string() }).ok();
        drop(client);
        home.finish();
        drop(model);
    }

    /// Kills the daemon and starts another.
    pub fn kill_daemon(&mut self) {
        self.home.restart();
        self.client = self.home.client();
    }

    /// Gemini CLI forgets a session that is loaded in the minute in which it began.
    pub fn until_session_can_be_loaded(&self) {
        if self.cli == Cli::Gemini {
            while minute() == self.began {
                std::thread::sleep(std::time::Duration::from_millis(100));
            }
        }
    }

    /// A file in the working directory.
    pub fn file(&self, name: &str) -> PathBuf {
        self.home.work().join(name)
    }

    /// The agent as it is now.
    pub fn now(&self) -> Agent {
        self.client.snapshot().agents.get(&self.agent).cloned().expect("the agent is there")
    }

    /// What can be chosen as one of its options now, and what is.
    pub fn option(&self, id: &str) -> (String, Vec<String>) {
        let agent = self.now();
        let option = agent.options.iter().find(|option| option.id == id);
        let option = option.unwrap_or_else(|| panic!("no option {id} in {:?}", agent.options));
        (option.current.clone(), option.choices.iter().map(|choice| choice.id.clone()).collect())
    }

    /// Chooses, and waits until it is chosen.
    pub fn choose(&self, id: &str, value: &str) {
        let call = Call::Choose { agent: self.agent.to_string(), option: id.into(), value: value.into() };
        let _: serde_json::Value = self.client.call(&call);
        self.client.wait_agent(self.agent, &format!("its {id} is {value}"), |agent| {
            agent.options.iter().any(|option| option.id == id && option.current == value)
        });
    }

    pub fn permit(&self, permissions: PermissionMode) {
        let call = Call::SetPermissions { agent: self.agent.to_string(), permissions };
        let _: serde_json::Value = self.client.call(&call);
    }

    /// Sends a prompt that is to be followed by hand.
    pub fn send(&self, text: &str) -> (PromptId, u64) {
        let from = self.now().cursor.items;
        (self.client.send(self.agent, text), from)
    }

    /// A turn in which nothing is asked.
    pub fn turn(&self, text: &str) -> Turn {
        self.turn_with(text, |ask| panic!("nothing should be asked, but: {ask:#?}"))
    }

    /// A turn in which everything is allowed once.
    pub fn turn_allowed(&self, text: &str) -> Turn {
        self.turn_with(text, |_| Answer::allow(GrantScope::Once))
    }

    /// A turn with answers to what is asked of a person.
    pub fn turn_with(&self, text: &str, answer: impl FnMut(&Ask) -> Answer) -> Turn {
        let (prompt, from) = self.send(text);
        self.finish(prompt, from, answer)
    }

    /// A turn with an image.
    pub fn turn_with_image(&self, text: &str, image: &str) -> Turn {
        let from = self.now().cursor.items;
        let attachments =
            vec![Attachment::Image(Image { mime_type: "image/png".to_owned(), data: image.to_owned() })];
        let prompt = NewPrompt { id: PromptId::new(Uuid::now_v7()), text: text.to_owned(), attachments };
        let call = Call::Send { agent: self.agent.to_string(), prompt };
        let sent: Sent = self.client.call(&call);
        self.finish(sent.prompt, from, |ask| panic!("nothing should be asked, but: {ask:#?}"))
    }

    /// Waits for the end of a prompt's turn and answers what is asked meanwhile.
    pub fn finish(&self, prompt: PromptId, from: u64, mut answer: impl FnMut(&Ask) -> Answer) -> Turn {
        let mut answered = Vec::new();
        loop {
            let agent = self.client.wait_agent(self.agent, "its turn is over or it asks", |agent| {
                let over = agent.taken.contains(&prompt) && agent.turn.is_none() && agent.asks.is_empty();
                over || agent.asks.iter().any(|ask| !answered.contains(&ask.id))
            });
            let Some(ask) = agent.asks.iter().find(|ask| !answered.contains(&ask.id)) else {
                let mut items = self.client.items(self.agent);
                items.drain(..from as usize);
                return Turn { agent, items };
            };
            answered.push(ask.id);
            // What a rule answers is told as asked and then as settled.
            if self.now().asks.iter().any(|open| open.id == ask.id) {
                self.client.answer(ask, answer(ask));
            }
        }
    }

    /// Waits until this is said after an item.
    pub fn wait_said(&self, from: u64, words: &str) {
        let mut looked_at = None;
        self.client.wait_until(&format!("it says {words:?}"), |state| {
            // The replica holds no text; a change in where the transcript stands says when to look.
            let cursor = &state.agents.get(&self.agent)?.cursor;
            if looked_at.as_ref() == Some(cursor) || cursor.items <= from {
                return None;
            }
            looked_at = Some(cursor.clone());
            let said = self.client.items(self.agent).into_iter().skip(from as usize);
            said.filter_map(|item| if let ItemBody::Text { text } = item.body { Some(text) } else { None })
                .any(|text| text.contains(words))
                .then_some(())
        });
    }

    /// Waits until what a sub-agent says after the turn is there, and gives the turn with it.
    pub fn wait_for_nested(&self, turn: Turn) -> Turn {
        let from = turn.items.first().expect("a prompt").index.0;
        let mut seen = None;
        self.client.wait_until("its sub-agent is done", |state| {
            let seq = Some(state.seq);
            if std::mem::replace(&mut seen, seq) == seq {
                return None;
            }
            let turn = self.since(from);
            let done = turn.items.iter().all(|item| item.done);
            (done && turn.items.iter().any(|item| item.within.is_some())).then_some(turn)
        })
    }

    /// What came since an item.
    pub fn since(&self, from: u64) -> Turn {
        let mut items = self.client.items(self.agent);
        items.drain(..from as usize);
        Turn { agent: self.now(), items }
    }

    /// The last request for a scenario.
    pub fn request(&self, scenario: &str) -> Recorded {
        let requests = self.model.conversation();
        let found = requests.into_iter().rev().find(|request| request.scenario == scenario);
        found.unwrap_or_else(|| panic!("the model was not asked for {scenario}"))
    }

    /// What holds between any two scenarios: everything that was opened is closed.
    pub fn is_at_rest(&self) {
        let agent = self.now();
        if agent.is_closed() {
            return;
        }
        assert_eq!(agent.status(), Status::Idle, "{agent:#?}");
        assert!(agent.queue.is_empty(), "{:?}", agent.queue);
        for item in self.client.items(self.agent) {
            assert!(item.done, "never ended: {item:#?}");
            match &item.body {
                ItemBody::Unknown { .. } => panic!("not understood: {item:#?}"),
                ItemBody::Tool(tool) => assert!(tool.status.is_over(), "never ended: {tool:#?}"),
                ItemBody::Ask { settlement, .. } => assert!(settlement.is_some(), "never settled: {item:#?}"),
                _ => {}
            }
        }
    }

    /// The end of the transcript, for a failure.
    pub fn shown(&self) -> String {
        let items = self.client.items(self.agent);
        let end = &items[items.len().saturating_sub(14)..];
        end.iter().map(|item| format!("  {item:?}\n")).collect()
    }
}

impl Turn {
    pub fn completed(&self) -> &Self {
        self.ended(TurnOutcome::Completed)
    }

    pub fn ended(&self, outcome: TurnOutcome) -> &Self {
        assert_eq!(self.agent.last_outcome, Some(outcome), "{:#?}", self.items);
        self
    }

    /// No warning or error stands in it.
    pub fn without_trouble(&self) -> &Self {
        let trouble = self
            .items
            .iter()
            .find(|item| matches!(&item.body, ItemBody::Notice { level, .. } if *level != NoticeLevel::Info));
        assert!(trouble.is_none(), "{trouble:#?}");
        self
    }

    /// All that was said outside of sub-agents, in order.
    pub fn said(&self) -> String {
        let texts =
            self.items.iter().filter(|item| item.within.is_none()).filter_map(|item| match &item.body {
                ItemBody::Text { text } => Some(text.as_str()),
                _ => None,
            });
        texts.collect::<Vec<_>>().join("\n")
    }

    pub fn says(&self, words: &str) -> &Self {
        assert!(self.said().contains(words), "{words:?} is not said in {:#?}", self.items);
        self
    }

    pub fn tools(&self) -> Vec<&ToolCall> {
        let tool = |item| match item {
            &Item { body: ItemBody::Tool(ref tool), .. } => Some(tool),
            _ => None,
        };
        self.items.iter().filter_map(tool).collect()
    }

    /// The only tool call.
    pub fn tool(&self) -> &ToolCall {
        let tools = self.tools();
        let [tool] = tools.as_slice() else { panic!("one tool call should be in {:#?}", self.items) };
        tool
    }

    /// What was asked, with how it was settled.
    pub fn asks(&self) -> Vec<(&AskBody, &Settlement)> {
        let ask = |item| match item {
            &Item { body: ItemBody::Ask { ref body, ref settlement, .. }, .. } => {
                Some((body, settlement.as_ref().expect("a settled ask")))
            }
            _ => None,
        };
        self.items.iter().filter_map(ask).collect()
    }

    /// Whether all asks were settled like this.
    pub fn settled_by(&self, is: impl Fn(SettledBy) -> bool) -> bool {
        self.asks().iter().all(|(_, settlement)| is(settlement.by))
    }
}

/// The call that an approval is about.
pub fn call_of(body: &AskBody) -> &ToolCall {
    match body {
        AskBody::Approval { tool, .. } => tool,
        AskBody::Question(question) => panic!("not an approval: {question:?}"),
    }
}

fn minute() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("a time after 1970").as_secs() / 60
}
