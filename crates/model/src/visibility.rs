//! Which agents know of each other.
//!
//! One predicate for lists, look-ups and messages, so that what cannot be seen cannot be reached either. People see
//! everything; this is about agents only.

use crate::agent::Agent;
use crate::ids::AgentId;
use crate::state::State;

/// Whether `asker` knows of `other` and may write to it. A companion and its owner know each other; besides its owner
/// nobody knows of a companion, and it knows of nobody else.
pub fn knows(asker: &Agent, other: &Agent) -> bool {
    if asker.id == other.id {
        return true;
    }
    match (asker.relation.owner(), other.relation.owner()) {
        (Some(owner), _) => owner == other.id,
        (None, Some(owner)) => owner == asker.id,
        (None, None) => true,
    }
}

/// The agents that `asker` knows of, in the order of their creation, without itself.
pub fn known_to(state: &State, asker: AgentId) -> impl Iterator<Item = &Agent> {
    let asker = state.agents.get(&asker);
    state
        .agents
        .values()
        .filter(move |other| asker.is_some_and(|asker| asker.id != other.id && knows(asker, other)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::testing::{agent, companion_of, id, sub_agent_of};
    use crate::relation::Relation;

    #[test]
    fn a_companion_and_its_owner_know_each_other_and_nobody_else_knows_of_it() {
        let agents = [
            (1, Relation::Primary),
            (2, companion_of(id(1))),
            (3, companion_of(id(1))),
            (4, sub_agent_of(id(1))),
            (5, Relation::Primary),
        ];
        let agents = agents.map(|(n, relation)| (id(n), Agent { relation, ..agent(n) }));
        let state = State { agents: agents.into(), ..State::default() };
        let known = |asker: u128| known_to(&state, id(asker)).map(|agent| agent.id).collect::<Vec<_>>();
        for (asker, expected) in
            [(1, vec![2, 3, 4, 5]), (2, vec![1]), (3, vec![1]), (4, vec![1, 5]), (5, vec![1, 4]), (9, vec![])]
        {
            assert_eq!(known(asker), expected.into_iter().map(id).collect::<Vec<_>>(), "as {asker}");
        }
    }
}
