//! A hub in the test's own process, on a temporary home.

use std::sync::Arc;
use std::time::Duration;

use consort_hub::feed::Delivery;
use consort_hub::teamwork::Spawn;
use consort_hub::{Hub, NewAgent, Settings};
use consort_model::{
    Actor, Agent, AgentId, Brief, Item, ItemBody, Prompt, PromptId, PromptOrigin, Relation, State, Timestamp,
};
use consort_testkit::harness::{Home, LIMIT};
use uuid::Uuid;

pub struct Stage {
    pub home: Home,
    pub hub: Arc<Hub>,
}

impl Stage {
    /// A hub with these settings and the profiles `scripted`, and `terse`, which says `42` to what has no steps.
    pub async fn with(settings: &str) -> Self {
        let home = Home::with_config(settings);
        home.profile("terse", &["--on-prompt", "[[say 42]]"]);
        let hub = open(&home).await;
        Self { home, hub }
    }

    pub async fn new() -> Self {
        Self::with("").await
    }

    /// Another hub in place of this one; the agents' processes live on.
    pub async fn restart(&mut self) {
        self.hub.shut_down(true, true).await.unwrap();
        self.hub = open(&self.home).await;
    }

    /// Stops everything and fails if anything is left.
    pub async fn finish(self) {
        self.hub.shut_down(false, true).await.unwrap();
        let home = self.home;
        tokio::task::spawn_blocking(move || home.finish()).await.unwrap();
    }

    /// An agent that a person made, in a turn with these steps if there are any.
    pub async fn agent(&self, steps: &str) -> AgentId {
        let id = AgentId::new(Uuid::now_v7());
        let prompt = (!steps.is_empty()).then(|| prompt(steps));
        let began = prompt.is_some();
        let new = NewAgent {
            id,
            profile: Some("scripted".to_owned()),
            name: None,
            cwd: self.home.work(),
            relation: Relation::Primary,
            permissions: None,
            worktree: None,
            prompt,
            brief: Brief::default(),
        };
        self.hub.create(Actor::Person, new).await.unwrap();
        self.until("it is there", id, |agent| agent.session.is_some() && (agent.turn.is_some() || !began))
            .await;
        id
    }

    /// A sub-agent that says `42` once its steps are over.
    pub async fn spawn(&self, parent: AgentId, steps: &str) -> AgentId {
        self.hub.spawn(parent, task(steps)).await.unwrap()
    }

    pub fn look(&self, id: AgentId) -> Agent {
        self.hub.with(|state| state.agent(id).unwrap().clone())
    }

    /// Waits until an agent is as wanted.
    pub async fn until(&self, what: &str, id: AgentId, is: impl Fn(&Agent) -> bool) -> Agent {
        self.until_state(what, |state| state.agents.get(&id).filter(|agent| is(agent)).cloned()).await
    }

    /// Waits until there is something in the state.
    pub async fn until_state<T>(&self, what: &str, look: impl Fn(&State) -> Option<T>) -> T {
        let mut feed = self.hub.subscribe();
        let wait = async {
            loop {
                if let Some(found) = self.hub.with(&look) {
                    return found;
                }
                match feed.next().await {
                    Delivery::Events(_) | Delivery::Lagged => {}
                }
            }
        };
        match tokio::time::timeout(LIMIT, wait).await {
            Ok(found) => found,
            Err(_) => panic!("waiting until {what}: {:#?}", self.hub.with(|state| state.agents.clone())),
        }
    }

    /// The prompts in an agent's transcript.
    pub async fn told(&self, id: AgentId) -> Vec<String> {
        let text = |item: Item| match item.body {
            ItemBody::User { text, .. } => Some(text),
            _ => None,
        };
        self.hub.items(id, None, None, 1000).await.unwrap().into_iter().filter_map(text).collect()
    }

    /// How often an agent was told of a sub-agent's result, or waits to be.
    pub async fn told_of(&self, parent: AgentId, child: AgentId) -> usize {
        let name = format!("Sub-agent `{}`", self.look(child).name);
        let waiting = self.look(parent).queue.iter().filter(|prompt| prompt.text.contains(&name)).count();
        self.told(parent).await.iter().filter(|text| text.contains(&name)).count() + waiting
    }
}

pub const LONG: Duration = Duration::from_secs(60);
pub const SHORT: Duration = Duration::from_millis(100);

pub fn task(steps: &str) -> Spawn {
    Spawn { task: steps.to_owned(), profile: Some("terse".to_owned()), ..Spawn::default() }
}

pub fn prompt(text: &str) -> Prompt {
    Prompt {
        id: PromptId::new(Uuid::now_v7()),
        origin: PromptOrigin::Person,
        text: text.to_owned(),
        attachments: vec![],
        steers: false,
        at: Timestamp::default(),
    }
}

async fn open(home: &Home) -> Arc<Hub> {
    let mark = ("CONSORT_HOME".to_owned(), home.root().display().to_string());
    let settings = Settings {
        data: home.root().to_owned(),
        config: home.paths().config(),
        runners: home.paths().runners(),
        program: home.programs().consort.clone(),
        environment: std::env::vars().filter(|(key, _)| key != "CONSORT_HOME").chain([mark]).collect(),
    };
    Hub::open(settings, |_| None).await.unwrap()
}
