//! Everything the screen knows, and what becomes of what happens: keys, events, answers and time go in, changes to the
//! screen and [`Effect`]s come out. Does no I/O itself, so a test can play any scene in one process.
//!
//! - `connection`: the replica, pages of transcripts, answers to commands.
//! - `act`: what a key does. `asks`: answering. `prompt`: the composer. `hunt`: searching. `mouse`: the mouse.
//!
//! Invariant: what is shown about agents comes from the replica; what is done is a call to the daemon. An ask is answered
//! only by a key pressed while it had the keyboard and was on the screen.

mod act;
mod agents;
mod asks;
mod connection;
mod forms;
mod hunt;
mod mouse;
mod prompt;
mod sessions;
mod worktrees;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use consort_daemon::protocol::Call;
use consort_model::{Agent, AgentId, ProfileId, State, Status};

pub(crate) use act::edit;
pub use asks::AskFocus;
pub use connection::{Connection, Reply};
pub use mouse::{Hit, Hits, Selection};
pub use prompt::{Completion, Draft};

use crate::desk::Arrangement;
use crate::editor::Editor;
use crate::input::Input;
use crate::keys::{Context, Keys};
use crate::memory::Memory;
use crate::overlay::Overlay;
use crate::pictures::{self, Pictures};
use crate::text::picture::{Means, Picture};
use crate::text::theme::Theme;
use crate::transcript::Transcript;

/// How long a message at the bottom stays.
const TOAST: Duration = Duration::from_secs(6);

/// How long after the last change what is remembered is written.
const SAVE_AFTER: Duration = Duration::from_secs(2);

/// How long one picture of the spinner stays.
const SPIN: Duration = Duration::from_millis(160);

/// Transcripts that are held although they are not on the screen, so that going back is at once.
const KEPT_TRANSCRIPTS: usize = 8;

/// How terminals that show images by placeholders call themselves.
const PLACEHOLDERS: [&str; 2] = ["kitty", "ghostty"];

/// What has the keyboard, if no overlay does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Focus {
    /// The prompt.
    #[default]
    Composer,
    /// The conversation.
    Transcript,
    /// The list of agents.
    Sidebar,
    /// What the agent asks.
    Ask,
}

/// Something to be done outside.
#[derive(Clone, PartialEq, Debug)]
pub enum Effect {
    /// Ask the daemon.
    Call(Box<Call>, Reply),
    /// Leave.
    Quit,
    /// Suspend the program.
    Suspend,
    /// Draw everything anew.
    Redraw,
    /// Let a person edit a text in their editor.
    Edit(Editing, String),
    /// Put a text into the clipboard.
    Copy(String),
    /// Look whether there is an image in the clipboard.
    PasteImage,
    /// Read an image from a file.
    AttachImage(PathBuf),
    /// Tell a person who looks elsewhere.
    Notify(String),
    /// List the files under a folder.
    ListFiles(PathBuf),
    /// Ask git for a folder's branch.
    Branch(PathBuf),
    /// Start the daemon.
    StartDaemon,
    /// Read the keys from the settings' file.
    ReadKeys,
    /// Keep what is to be remembered.
    Save,
    /// Play the demo in this terminal, and come back.
    Demo,
}

/// What is edited elsewhere.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Editing {
    /// The prompt.
    Prompt,
    /// The settings' file.
    Config,
}

/// A message at the bottom of the screen.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Toast {
    /// What it says.
    pub text: String,
    /// Whether something went wrong.
    pub bad: bool,
    until: Instant,
    topic: Option<Topic>,
}

/// What a message is about that no longer holds once something else happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Topic {
    /// How far a search came.
    Search,
    /// An agent that has to be started again.
    Parked(AgentId),
}

/// Parts of the screen that are to be drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Damage {
    /// Everything.
    pub all: bool,
    /// The list of agents.
    pub sidebar: bool,
    /// The panes.
    pub panes: bool,
    /// The prompt.
    pub composer: bool,
    /// The bar at the bottom.
    pub status: bool,
    /// The spinners alone.
    pub spinners: bool,
    /// A person waits for it.
    pub urgent: bool,
}

impl Damage {
    /// Whether there is anything to draw.
    pub fn any(self) -> bool {
        Self { urgent: false, ..self } != Self::default()
    }

    /// Whether it is only what streams: text and spinners.
    pub fn is_text(self) -> bool {
        self.any() && Self { panes: false, spinners: false, ..self } == Self::default()
    }
}

/// Everything the screen knows.
pub struct App {
    /// The looks.
    pub theme: Theme,
    /// The keys.
    pub keys: Keys,
    /// What is remembered.
    pub memory: Memory,
    /// Where new agents work.
    pub cwd: PathBuf,
    /// How the daemon can be reached.
    pub connection: Connection,
    /// The replica.
    pub state: State,
    /// Conversations.
    pub transcripts: HashMap<AgentId, Transcript>,
    /// What has the keyboard.
    pub focus: Focus,
    /// What lies over everything else, the last one on top.
    pub overlays: Vec<Overlay>,
    /// Prompts that are being written.
    pub composers: HashMap<AgentId, Editor>,
    /// The prompt for an agent that does not exist yet.
    pub blank: Editor,
    /// Where in the sent prompts one is.
    history_at: Option<usize>,
    /// What can be completed at the cursor.
    pub completion: Option<Completion>,
    /// Files under folders, as they were listed.
    pub files: HashMap<PathBuf, Vec<String>>,
    /// Images that go with the next prompt.
    pub images: HashMap<AgentId, Vec<consort_model::Attachment>>,
    /// The images of conversations, as they are shown.
    pub pictures: Pictures,
    /// How the terminal could show them.
    terminal_means: Means,
    /// The pixels of the terminal's cells.
    pub cell: (u16, u16),
    /// The branches of folders.
    pub branches: HashMap<PathBuf, String>,
    /// The ask that has or would have the keyboard.
    pub ask: AskFocus,
    /// Agents with something new since they were last looked at.
    pub unread: HashSet<AgentId>,
    /// The row of the list that is chosen.
    pub row: usize,
    /// A message at the bottom.
    pub toast: Option<Toast>,
    /// Whether that message took more than the bar when it was last drawn.
    pub tall_toast: bool,
    /// Whether the terminal has the focus.
    pub terminal_focused: bool,
    /// What can be clicked.
    pub hits: Hits,
    /// What is to be drawn.
    pub damage: Damage,
    /// Text that is being marked with the mouse.
    pub selection: Option<Selection>,
    /// Where spinners are on the screen.
    pub spinners: Vec<(u16, u16)>,
    /// Where the parts of the screen were when they were last drawn.
    pub parts: crate::view::Parts,
    /// Where the cursor was then.
    pub cursor: Option<(u16, u16)>,
    /// Which picture the spinners show.
    pub spin: usize,
    /// Now.
    pub now: Instant,
    /// Now, for people.
    pub wall: i64,
    effects: Vec<Effect>,
    next_spin: Option<Instant>,
    save_at: Option<Instant>,
    leaving_until: Option<Instant>,
    watched: Vec<AgentId>,
    /// The search that goes through what is not loaded.
    hunt: Option<hunt::Hunt>,
    hunts: u64,
    /// Profiles whose programs were asked for their sessions and have not told.
    asked_for_sessions: BTreeSet<ProfileId>,
    /// An agent that was asked for and is shown once it is there.
    wanted: Option<AgentId>,
    recent: Vec<AgentId>,
    /// Whether the prompt is to be sent once there is a snapshot.
    send_when_up: bool,
    drag_from: Option<(ratatui::layout::Rect, (u16, u16))>,
    /// How many columns the composer's text has.
    pub composer_columns: usize,
    /// Where the composer's text was when it was last drawn.
    pub composer_place: ratatui::layout::Rect,
    composer_rows: usize,
    /// Problems in the settings.
    pub problems: Vec<String>,
}

impl App {
    /// A screen that knows nothing yet.
    pub fn new(memory: Memory, keys: Keys, theme: Theme, cwd: PathBuf) -> Self {
        let composers =
            memory.drafts.iter().map(|(agent, text)| (*agent, Editor::with(text.clone()))).collect();
        let blank = Editor::with(memory.blank_draft.clone());
        Self {
            theme,
            keys,
            memory,
            cwd,
            connection: Connection::Connecting,
            state: State::default(),
            transcripts: HashMap::new(),
            focus: Focus::Composer,
            overlays: Vec::new(),
            composers,
            blank,
            history_at: None,
            completion: None,
            files: HashMap::new(),
            images: HashMap::new(),
            pictures: Pictures::default(),
            terminal_means: Means::Words,
            cell: (8, 16),
            branches: HashMap::new(),
            ask: AskFocus::default(),
            unread: HashSet::new(),
            row: 0,
            toast: None,
            tall_toast: false,
            terminal_focused: true,
            hits: Hits::default(),
            damage: Damage { all: true, ..Damage::default() },
            selection: None,
            spinners: Vec::new(),
            parts: crate::view::Parts::default(),
            cursor: None,
            spin: 0,
            now: Instant::now(),
            wall: 0,
            effects: Vec::new(),
            next_spin: None,
            save_at: None,
            leaving_until: None,
            watched: Vec::new(),
            hunt: None,
            hunts: 0,
            asked_for_sessions: BTreeSet::new(),
            wanted: None,
            recent: Vec::new(),
            send_when_up: false,
            drag_from: None,
            composer_columns: 80,
            composer_place: Default::default(),
            composer_rows: 1,
            problems: Vec::new(),
        }
    }

    /// What is to be done outside, since the last call.
    pub fn take_effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects)
    }

    fn effect(&mut self, effect: Effect) {
        self.effects.push(effect);
    }

    fn call(&mut self, call: Call, reply: Reply) {
        self.effects.push(Effect::Call(Box::new(call), reply));
    }

    /// Everything is to be drawn.
    pub fn redraw(&mut self) {
        self.damage.all = true;
    }

    /// What is on the screen.
    pub fn arranged(&self) -> Arrangement {
        self.memory.desk.arranged(&self.state)
    }

    /// The agent that has the keyboard.
    pub fn focused(&self) -> Option<AgentId> {
        match &self.connection {
            // Before the first snapshot nobody is known; a draft still belongs to whom it was begun for.
            Connection::Connecting => self.memory.desk.workspace().panes.first().copied().flatten(),
            _ => self.arranged().focused(),
        }
    }

    /// The same with all that is known of it.
    pub fn focused_agent(&self) -> Option<&Agent> {
        self.state.agents.get(&self.focused()?)
    }

    /// An agent's name.
    pub fn name_of(&self, id: AgentId) -> String {
        let name =
            self.state.agents.get(&id).map(|agent| crate::text::clean::one_line(&agent.name).into_owned());
        name.unwrap_or_else(|| "someone".to_owned())
    }

    /// The prompt that is being written.
    pub fn composer(&self) -> &Editor {
        self.focused().and_then(|agent| self.composers.get(&agent)).unwrap_or(&self.blank)
    }

    /// The same, to change it.
    pub fn composer_mut(&mut self) -> &mut Editor {
        match self.focused() {
            Some(agent) => self.composers.entry(agent).or_default(),
            None => &mut self.blank,
        }
    }

    /// What has the keyboard.
    pub fn context(&self) -> Context {
        match self.overlays.last() {
            Some(overlay) => overlay.context(),
            None => match self.focus {
                Focus::Composer => Context::Composer,
                Focus::Transcript => Context::Transcript,
                Focus::Sidebar => Context::Sidebar,
                Focus::Ask => Context::Ask,
            },
        }
    }

    /// Says something at the bottom for a while.
    pub fn say(&mut self, text: impl Into<String>) {
        self.toast(text.into(), false);
    }

    /// Says at the bottom that something went wrong.
    pub fn complain(&mut self, text: impl Into<String>) {
        self.toast(text.into(), true);
    }

    fn toast(&mut self, text: String, bad: bool) {
        // What takes longer to read stays longer.
        let more = Duration::from_millis(40) * u32::try_from(text.len().min(1000)).unwrap_or_default();
        self.end_toast();
        self.toast = Some(Toast { text, bad, until: self.now + TOAST + more, topic: None });
        self.damage.status = true;
    }

    /// What was just said holds until this is over.
    fn until_over(&mut self, topic: Topic) {
        if let Some(toast) = &mut self.toast {
            toast.topic = Some(topic);
        }
    }

    /// Takes back what was said about this.
    fn is_over(&mut self, topic: Topic) {
        if self.toast.as_ref().is_some_and(|toast| toast.topic == Some(topic)) {
            self.end_toast();
        }
    }

    fn end_toast(&mut self) {
        // One that did not fit into the bar lay over other parts.
        if self.toast.take().is_some() && std::mem::take(&mut self.tall_toast) {
            self.redraw();
        }
        self.damage.status = true;
    }

    /// Takes the keys of a file that was edited.
    pub fn set_keys(&mut self, settings: &crate::settings_file::ScreenSettings) {
        let (keys, mut problems) = Keys::new(&settings.keys);
        problems.extend(settings.problem.clone());
        self.keys = keys;
        if let Some(problem) = problems.first() {
            self.complain(problem.clone());
        }
        self.problems = problems;
        self.redraw();
    }

    /// Something that is remembered changed.
    fn remember(&mut self) {
        self.save_at.get_or_insert(self.now + SAVE_AFTER);
    }

    /// What is remembered, with the drafts as they are now.
    pub fn to_remember(&mut self) -> Memory {
        let known = |agent: &AgentId| self.state.agents.is_empty() || self.state.agents.contains_key(agent);
        self.memory.drafts = self
            .composers
            .iter()
            .filter(|(agent, editor)| !editor.is_empty() && known(agent))
            .map(|(agent, editor)| (*agent, editor.text().to_owned()))
            .collect();
        self.memory.blank_draft = self.blank.text().to_owned();
        self.memory.unread = self.unread.iter().copied().filter(known).collect();
        // Before the first snapshot nothing of what happened meanwhile was told.
        if self.connection != Connection::Connecting {
            self.memory.left_at = self.wall;
        }
        self.memory.clone()
    }

    /// Something came from the terminal.
    pub fn input(&mut self, input: Input) {
        self.damage.urgent = true;
        match input {
            Input::Key(key) => self.key(key),
            Input::Mouse(mouse) => self.mouse(mouse),
            Input::Paste(text) => self.paste(&text),
            Input::Focus(focused) => {
                self.terminal_focused = focused;
                if focused {
                    self.look_at_shown();
                }
            }
            Input::Background { light } => {
                let chosen = self.memory.theme.is_some() || self.theme.name == Theme::no_colour().name;
                let fitting = if light { Theme::light() } else { Theme::dark() };
                if !chosen && self.theme != fitting {
                    self.set_theme(fitting);
                }
            }
            Input::Terminal { name } => {
                if PLACEHOLDERS.iter().any(|known| name.starts_with(known)) {
                    self.terminal_shows(Means::Placeholders { cell: self.cell });
                }
            }
        }
    }

    /// This is how the terminal can show pictures.
    pub fn terminal_shows(&mut self, means: Means) {
        self.terminal_means = means;
        self.choose_means();
    }

    /// Shows pictures as the terminal can and a person wants them.
    fn choose_means(&mut self) {
        let colours = self.theme.name != Theme::no_colour().name;
        let means = if colours && !self.memory.pictures_hidden { self.terminal_means } else { Means::Words };
        if self.pictures.means() != means {
            self.pictures.set_means(means);
            self.lay_pictures_out_anew();
        }
    }

    /// A picture was drawn, or could not be.
    pub fn picture_drawn(&mut self, key: pictures::Key, picture: Option<Picture>) {
        self.pictures.drew(key, picture.map(|picture| picture.lines));
        self.lay_pictures_out_anew();
    }

    fn lay_pictures_out_anew(&mut self) {
        self.transcripts.values_mut().for_each(Transcript::forget_pictures);
        self.damage.panes = true;
    }

    /// Another program had the terminal: what it knew of pictures may be gone.
    pub fn forget_pictures(&mut self) {
        self.pictures.forget();
        self.lay_pictures_out_anew();
        self.redraw();
    }

    /// Takes other looks.
    pub fn set_theme(&mut self, theme: Theme) {
        self.theme = theme;
        self.choose_means();
        self.transcripts.values_mut().for_each(Transcript::forget_layout);
        self.redraw();
    }

    /// Who is shown is looked at.
    fn look_at_shown(&mut self) {
        if !self.terminal_focused {
            return;
        }
        for agent in self.arranged().agents() {
            if self.unread.remove(&agent) {
                self.damage.sidebar = true;
            }
        }
    }

    /// What is on the screen may have changed: watch it, load it, look at it.
    pub fn screen_changed(&mut self) {
        self.redraw();
        self.look_at_shown();
        let mut shown: Vec<AgentId> = self.arranged().agents().collect();
        shown.sort_unstable();
        if shown != self.watched {
            self.watched = shown.clone();
            self.call(Call::Watch { transcripts: shown.clone() }, Reply::Quiet);
            // What happened to the others meanwhile was not told.
            for (agent, transcript) in &mut self.transcripts {
                if !shown.contains(agent) {
                    transcript.disconnected();
                }
            }
        }
        for agent in &shown {
            self.recent.retain(|recent| recent != agent);
            self.recent.push(*agent);
            self.transcripts.entry(*agent).or_default();
        }
        let surplus = self.recent.len().saturating_sub(KEPT_TRANSCRIPTS.max(shown.len()));
        for agent in self.recent.drain(..surplus) {
            self.transcripts.remove(&agent);
        }
        self.load_pages();
        self.remember();
        if let Some(agent) = self.focused_agent() {
            let cwd = PathBuf::from(&agent.cwd);
            self.effect(Effect::Branch(cwd));
        }
    }

    /// Shows an agent and gives its prompt the keyboard.
    pub fn show(&mut self, agent: AgentId, alone: bool) {
        self.memory.desk.show(&self.state, agent, alone);
        self.focus = Focus::Composer;
        self.completion = None;
        self.history_at = None;
        self.follow_row();
        self.screen_changed();
    }

    /// A folder's branch was read.
    pub fn branch_read(&mut self, folder: PathBuf, branch: Option<String>) {
        let before = self.branches.get(&folder).cloned();
        if before != branch {
            match branch {
                Some(branch) => self.branches.insert(folder, branch),
                None => self.branches.remove(&folder),
            };
            self.damage.status = true;
        }
    }

    /// Whether a spinner is on the screen.
    fn spins(&self) -> bool {
        let working = |agent: &Agent| matches!(agent.status(), Status::Working | Status::Starting);
        self.connection == Connection::Up && self.state.agents.values().any(working)
    }

    /// When something is due although nothing happens.
    pub fn due(&self) -> Option<Instant> {
        let toast = self.toast.as_ref().map(|toast| toast.until);
        let in_inbox = self.inbox().and_then(|inbox| inbox.ask.armed_at());
        [self.next_spin, toast, self.save_at, self.leaving_until, self.ask.armed_at(), in_inbox]
            .into_iter()
            .flatten()
            .min()
    }

    /// Time passed.
    pub fn tick(&mut self, now: Instant, wall: i64) {
        let another_second = wall / 1000 != self.wall / 1000;
        self.now = now;
        self.wall = wall;
        if another_second
            && self
                .arranged()
                .agents()
                .any(|id| self.state.agents.get(&id).is_some_and(|it| it.turn.is_some()))
        {
            self.damage.panes = true;
        }
        if self.toast.as_ref().is_some_and(|toast| toast.until <= now) {
            self.end_toast();
        }
        if self.leaving_until.is_some_and(|until| until <= now) {
            self.leaving_until = None;
        }
        if self.save_at.is_some_and(|at| at <= now) {
            self.save_at = None;
            self.effect(Effect::Save);
        }
        if self.ask.arm(now) | self.ask_focus_mut().arm(now) {
            self.redraw();
        }
        match (self.spins(), self.next_spin) {
            (false, _) => self.next_spin = None,
            (true, None) => self.next_spin = Some(now + SPIN),
            (true, Some(at)) if at <= now => {
                self.spin = self.spin.wrapping_add(1);
                self.damage.spinners = true;
                self.next_spin = Some(now + SPIN);
            }
            (true, Some(_)) => {}
        }
    }
}
