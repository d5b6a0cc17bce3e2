//! Workspaces and panes: which agents are on the screen, and where.
//!
//! Owns what a person arranged. What is really shown ([`Desk::arranged`]) is derived from that and the state each time:
//! companions follow their owner, so one that is made joins by itself and one that is closed leaves by itself.

use std::collections::BTreeSet;

use consort_model::{AgentId, State};
use ratatui::layout::Rect;
use serde::{Deserialize, Serialize};

/// How panes lie beside each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Layout {
    /// One.
    #[default]
    Single,
    /// Two side by side.
    Columns,
    /// Two, one above the other.
    Rows,
    /// One at the left, two at the right.
    Three,
    /// Four.
    Grid,
}

impl Layout {
    /// All of them, in the order one steps through them.
    pub const ALL: [Self; 5] = [Self::Single, Self::Columns, Self::Rows, Self::Three, Self::Grid];

    /// How many panes it has.
    pub fn panes(self) -> usize {
        match self {
            Self::Single => 1,
            Self::Columns | Self::Rows => 2,
            Self::Three => 3,
            Self::Grid => 4,
        }
    }

    /// What people call it.
    pub fn words(self) -> &'static str {
        match self {
            Self::Single => "single",
            Self::Columns => "side by side",
            Self::Rows => "stacked",
            Self::Three => "three",
            Self::Grid => "grid of four",
        }
    }

    /// The next one.
    pub fn next(self) -> Self {
        let at = Self::ALL.iter().position(|layout| *layout == self).unwrap_or(0);
        Self::ALL[(at + 1) % Self::ALL.len()]
    }

    /// For an owner with so many companions.
    fn for_companions(count: usize) -> Self {
        match count {
            0 => Self::Single,
            1 => Self::Columns,
            2 => Self::Three,
            _ => Self::Grid,
        }
    }

    /// The places of its panes, with one column or row between them for a line.
    pub fn areas(self, area: Rect) -> Vec<Rect> {
        match self {
            Self::Single => vec![area],
            Self::Columns => {
                let (left, right) = beside(area);
                vec![left, right]
            }
            Self::Rows => {
                let (upper, lower) = stacked(area);
                vec![upper, lower]
            }
            Self::Three => {
                let (left, right) = beside(area);
                let (upper, lower) = stacked(right);
                vec![left, upper, lower]
            }
            Self::Grid => {
                let (left, right) = beside(area);
                let ((a, c), (b, d)) = (stacked(left), stacked(right));
                vec![a, b, c, d]
            }
        }
    }
}

fn beside(area: Rect) -> (Rect, Rect) {
    let left = area.width.saturating_sub(1).div_ceil(2);
    let right = area.width.saturating_sub(left + 1);
    (Rect { width: left, ..area }, Rect { x: area.x + area.width - right, width: right, ..area })
}

fn stacked(area: Rect) -> (Rect, Rect) {
    let upper = area.height.div_ceil(2);
    let lower = area.height - upper;
    (Rect { height: upper, ..area }, Rect { y: area.y + upper, height: lower, ..area })
}

/// A named set of agents with its own panes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Workspace {
    /// What people call it.
    pub name: String,
    /// Agents that were put into it; those bound to them come with them.
    #[serde(default)]
    pub agents: BTreeSet<AgentId>,
    /// How its panes lie.
    #[serde(default)]
    pub layout: Layout,
    /// Who is shown in which pane.
    #[serde(default)]
    pub panes: Vec<Option<AgentId>>,
    /// The pane that has the keyboard.
    #[serde(default)]
    pub focus: usize,
    /// Whether an owner is shown without its companions.
    #[serde(default)]
    pub alone: bool,
}

impl Workspace {
    fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            agents: BTreeSet::new(),
            layout: Layout::Single,
            panes: vec![None],
            focus: 0,
            alone: false,
        }
    }
}

/// All workspaces. The first one holds every agent that was put into no other.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Desk {
    /// The workspaces; never empty.
    pub workspaces: Vec<Workspace>,
    /// Which one is on the screen.
    pub current: usize,
}

impl Default for Desk {
    fn default() -> Self {
        Self { workspaces: vec![Workspace::new("main")], current: 0 }
    }
}

/// What is on the screen.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Arrangement {
    /// How the panes lie.
    pub layout: Layout,
    /// Who is in which.
    pub panes: Vec<Option<AgentId>>,
    /// The one that has the keyboard.
    pub focus: usize,
}

impl Arrangement {
    /// The agent that has the keyboard.
    pub fn focused(&self) -> Option<AgentId> {
        self.panes.get(self.focus).copied().flatten()
    }

    /// Everyone on the screen.
    pub fn agents(&self) -> impl Iterator<Item = AgentId> + '_ {
        self.panes.iter().copied().flatten()
    }
}

/// The open companions of an agent, oldest first.
pub fn companions(state: &State, owner: AgentId) -> Vec<AgentId> {
    let bound =
        state.agents.values().filter(|agent| agent.relation.owner() == Some(owner) && !agent.is_closed());
    bound.map(|agent| agent.id).collect()
}

/// The agent that this one is bound to in the end.
pub fn root(state: &State, agent: AgentId) -> AgentId {
    let mut at = agent;
    for _ in 0..16 {
        match state.agents.get(&at).and_then(|agent| agent.relation.bound_to()) {
            Some(above) => at = above,
            None => break,
        }
    }
    at
}

impl Desk {
    /// As it was kept, made whole where it is not.
    pub fn mended(mut self) -> Self {
        if self.workspaces.is_empty() {
            return Self::default();
        }
        self.current = self.current.min(self.workspaces.len() - 1);
        for workspace in &mut self.workspaces {
            workspace.panes.resize(workspace.layout.panes(), None);
            workspace.focus = workspace.focus.min(3);
        }
        self
    }

    /// The workspace on the screen.
    pub fn workspace(&self) -> &Workspace {
        &self.workspaces[self.current.min(self.workspaces.len() - 1)]
    }

    /// The same, to change it.
    pub fn workspace_mut(&mut self) -> &mut Workspace {
        let at = self.current.min(self.workspaces.len() - 1);
        &mut self.workspaces[at]
    }

    /// The workspace that an agent is in.
    pub fn home_of(&self, state: &State, agent: AgentId) -> usize {
        let root = root(state, agent);
        self.workspaces.iter().position(|workspace| workspace.agents.contains(&root)).unwrap_or(0)
    }

    /// What is on the screen.
    pub fn arranged(&self, state: &State) -> Arrangement {
        let workspace = self.workspace();
        let exists = |agent: &AgentId| state.agents.contains_key(agent);
        let mut panes: Vec<Option<AgentId>> = (0..workspace.layout.panes())
            .map(|at| workspace.panes.get(at).copied().flatten().filter(exists))
            .collect();
        let mut layout = workspace.layout;
        if !workspace.alone {
            match (layout, panes.first().copied().flatten()) {
                (Layout::Single, Some(owner)) => {
                    panes.extend(companions(state, owner).into_iter().take(3).map(Some));
                    layout = Layout::for_companions(panes.len() - 1);
                }
                _ => fill_with_companions(state, &mut panes),
            }
        }
        let focus = workspace.focus.min(panes.len().saturating_sub(1));
        Arrangement { layout, panes, focus }
    }

    /// Shows an agent: where it is already, or else in the pane that has the keyboard. `alone` leaves its companions out.
    pub fn show(&mut self, state: &State, agent: AgentId, alone: bool) {
        self.current = self.home_of(state, agent);
        let owner = state.agents.get(&agent).and_then(|agent| agent.relation.owner());
        let arranged = self.arranged(state);
        let workspace = self.workspace_mut();
        if !alone && let Some(at) = arranged.panes.iter().position(|pane| *pane == Some(agent)) {
            workspace.focus = at;
            return;
        }
        if workspace.layout == Layout::Single {
            // A companion is shown beside its owner.
            workspace.panes = vec![Some(if alone { agent } else { owner.unwrap_or(agent) })];
            workspace.focus = 0;
            workspace.alone = alone;
            let arranged = self.arranged(state);
            let at = arranged.panes.iter().position(|pane| *pane == Some(agent)).unwrap_or(0);
            self.workspace_mut().focus = at;
            return;
        }
        workspace.panes.resize(workspace.layout.panes(), None);
        let at = workspace.focus.min(workspace.panes.len() - 1);
        workspace.panes[at] = Some(agent);
        workspace.alone = alone;
    }

    /// Shows an agent in a pane of its own, beside what is there.
    pub fn show_beside(&mut self, state: &State, agent: AgentId) {
        let arranged = self.arranged(state);
        let workspace = self.workspace_mut();
        let mut panes = arranged.panes;
        panes.retain(|pane| pane.is_some_and(|shown| shown != agent));
        panes.truncate(3);
        panes.push(Some(agent));
        workspace.layout = Layout::for_companions(panes.len() - 1);
        workspace.focus = panes.len() - 1;
        workspace.panes = panes;
    }

    /// Takes another layout and keeps whom it has room for.
    pub fn set_layout(&mut self, state: &State, layout: Layout) {
        let arranged = self.arranged(state);
        let workspace = self.workspace_mut();
        let mut panes: Vec<Option<AgentId>> = arranged.panes;
        if layout == Layout::Single {
            panes = vec![panes.get(arranged.focus).copied().flatten()];
        }
        panes.resize(layout.panes(), None);
        workspace.panes = panes;
        workspace.layout = layout;
        workspace.focus = workspace.focus.min(layout.panes() - 1);
        workspace.alone = layout == Layout::Single;
    }

    /// Moves the keyboard to another pane.
    pub fn step_pane(&mut self, state: &State, back: bool) {
        let arranged = self.arranged(state);
        let count = arranged.panes.len().max(1);
        self.workspace_mut().focus = (arranged.focus + if back { count - 1 } else { 1 }) % count;
    }

    /// Puts an agent, with all that is bound to it, into another workspace.
    pub fn move_agent(&mut self, state: &State, agent: AgentId, to: usize) {
        let root = root(state, agent);
        for workspace in &mut self.workspaces {
            workspace.agents.remove(&root);
            for pane in &mut workspace.panes {
                if pane.is_some_and(|shown| self::root(state, shown) == root) {
                    *pane = None;
                }
            }
        }
        if to > 0
            && let Some(workspace) = self.workspaces.get_mut(to)
        {
            workspace.agents.insert(root);
        }
    }

    /// A new workspace; its place.
    pub fn add(&mut self, name: &str) -> usize {
        self.workspaces.push(Workspace::new(name));
        self.workspaces.len() - 1
    }
}

/// Puts the companions of those who are shown into panes that are free.
fn fill_with_companions(state: &State, panes: &mut [Option<AgentId>]) {
    let shown: Vec<AgentId> = panes.iter().copied().flatten().collect();
    let mut waiting = shown
        .iter()
        .flat_map(|owner| companions(state, *owner))
        .filter(|companion| !shown.contains(companion));
    for pane in panes.iter_mut().filter(|pane| pane.is_none()) {
        *pane = waiting.next();
    }
}

#[cfg(test)]
mod tests;
