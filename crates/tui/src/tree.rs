//! The rows of the sidebar: workspaces, agents under their parents, companions inside their owner's row.

use consort_model::{Agent, AgentId, Relation, State};

use crate::desk::{self, Desk};

/// A row of the sidebar.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Row {
    /// A workspace.
    Workspace(usize),
    /// An agent, so deep under others.
    Agent {
        /// Which one.
        id: AgentId,
        /// How deep.
        depth: usize,
    },
    /// A companion, as a small line of its owner.
    Companion {
        /// Which one.
        id: AgentId,
        /// How deep its owner is.
        depth: usize,
    },
}

impl Row {
    /// The agent, if it is one.
    pub fn agent(self) -> Option<AgentId> {
        match self {
            Self::Workspace(_) => None,
            Self::Agent { id, .. } | Self::Companion { id, .. } => Some(id),
        }
    }
}

/// Whether a sub-agent's task is over.
pub fn is_finished(agent: &Agent) -> bool {
    matches!(&agent.relation, Relation::SubAgent { result: Some(_), .. })
}

/// All rows. Workspaces have rows of their own where there is more than one.
pub fn rows(state: &State, desk: &Desk) -> Vec<Row> {
    let mut rows = Vec::new();
    let many = desk.workspaces.len() > 1;
    let homes: Vec<(usize, &Agent)> = state
        .agents
        .values()
        .filter(|agent| !agent.is_closed() && is_top(state, agent))
        .map(|agent| (desk.home_of(state, agent.id), agent))
        .collect();
    for at in 0..desk.workspaces.len() {
        if many {
            rows.push(Row::Workspace(at));
        }
        for (_, agent) in homes.iter().filter(|(home, _)| *home == at) {
            push(state, agent, 0, &mut rows);
        }
    }
    rows
}

/// Whether it stands by itself, or what it is bound to is not listed.
fn is_top(state: &State, agent: &Agent) -> bool {
    let above = agent.relation.bound_to().and_then(|above| state.agents.get(&above));
    above.is_none_or(Agent::is_closed)
}

fn push(state: &State, agent: &Agent, depth: usize, rows: &mut Vec<Row>) {
    rows.push(Row::Agent { id: agent.id, depth });
    rows.extend(desk::companions(state, agent.id).into_iter().map(|id| Row::Companion { id, depth }));
    if depth > 16 {
        return;
    }
    let children =
        state.agents.values().filter(|child| child.relation.parent() == Some(agent.id) && !child.is_closed());
    for child in children {
        push(state, child, depth + 1, rows);
    }
}

/// The agents in the order of the sidebar, without companions.
pub fn order(state: &State, desk: &Desk) -> Vec<AgentId> {
    let agents = rows(state, desk).into_iter().filter_map(|row| match row {
        Row::Agent { id, .. } => Some(id),
        _ => None,
    });
    agents.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{agent, agent_id, companion, state_of, sub_agent};

    #[test]
    fn sub_agents_stand_under_their_parent_and_companions_in_their_owners_row() {
        let state = state_of(vec![agent(1), agent(2), companion(3, 1), sub_agent(4, 1)]);
        let rows = rows(&state, &Desk::default());
        let wanted = [
            Row::Agent { id: agent_id(1), depth: 0 },
            Row::Companion { id: agent_id(3), depth: 0 },
            Row::Agent { id: agent_id(4), depth: 1 },
            Row::Agent { id: agent_id(2), depth: 0 },
        ];
        assert_eq!(rows, wanted);
    }

    #[test]
    fn next_and_previous_skip_companions() {
        let state = state_of(vec![agent(1), agent(2), companion(3, 1), sub_agent(4, 1)]);
        assert_eq!(order(&state, &Desk::default()), [agent_id(1), agent_id(4), agent_id(2)]);
    }
}
