use super::*;
use crate::testing::{agent, agent_id, companion, state_of, sub_agent};

#[test]
fn an_owner_brings_its_companions_and_keeps_the_keyboard() {
    let mut state = state_of(vec![agent(1)]);
    let mut desk = Desk::default();
    desk.show(&state, agent_id(1), false);
    let wanted = [(0, Layout::Single), (1, Layout::Columns), (2, Layout::Three), (3, Layout::Grid)];
    for (count, layout) in wanted {
        for companion in 0..count {
            let companion = self::companion(10 + companion, 1);
            state.agents.insert(companion.id, companion);
        }
        let arranged = desk.arranged(&state);
        assert_eq!((arranged.layout, arranged.panes.len()), (layout, layout.panes()));
        assert_eq!(arranged.focused(), Some(agent_id(1)));
    }
    state.agents.remove(&agent_id(11));
    assert_eq!(desk.arranged(&state).layout, Layout::Three, "the layout steps down");
}

#[test]
fn an_owner_can_be_shown_alone() {
    let state = state_of(vec![agent(1), companion(2, 1)]);
    let mut desk = Desk::default();
    desk.show(&state, agent_id(1), true);
    assert_eq!(desk.arranged(&state).layout, Layout::Single);
    desk.show(&state, agent_id(1), false);
    assert_eq!(desk.arranged(&state).panes, [Some(agent_id(1))], "it is there already");
    desk.workspace_mut().alone = false;
    assert_eq!(desk.arranged(&state).layout, Layout::Columns);
}

#[test]
fn showing_a_companion_shows_it_beside_its_owner() {
    let state = state_of(vec![agent(1), companion(2, 1), agent(3)]);
    let mut desk = Desk::default();
    desk.show(&state, agent_id(3), false);
    desk.show(&state, agent_id(2), false);
    let arranged = desk.arranged(&state);
    assert_eq!(arranged.panes, [Some(agent_id(1)), Some(agent_id(2))]);
    assert_eq!(arranged.focused(), Some(agent_id(2)));
}

#[test]
fn in_a_layout_that_a_person_chose_an_agent_takes_the_pane_with_the_keyboard() {
    let state = state_of(vec![agent(1), agent(2), agent(3)]);
    let mut desk = Desk::default();
    desk.show(&state, agent_id(1), false);
    desk.set_layout(&state, Layout::Columns);
    desk.step_pane(&state, false);
    desk.show(&state, agent_id(2), false);
    desk.show(&state, agent_id(3), false);
    assert_eq!(desk.arranged(&state).panes, [Some(agent_id(1)), Some(agent_id(3))]);
    desk.show(&state, agent_id(1), false);
    assert_eq!(desk.arranged(&state).focus, 0, "it has the keyboard where it is");
}

#[test]
fn moving_an_agent_moves_all_that_is_bound_to_it() {
    let state = state_of(vec![agent(1), companion(2, 1), sub_agent(3, 1), agent(4)]);
    let mut desk = Desk::default();
    desk.show(&state, agent_id(1), false);
    let other = desk.add("other");
    desk.move_agent(&state, agent_id(3), other);
    for id in [1, 2, 3] {
        assert_eq!(desk.home_of(&state, agent_id(id)), other);
    }
    assert_eq!(desk.home_of(&state, agent_id(4)), 0);
    assert_eq!(desk.arranged(&state).agents().count(), 0);
    desk.show(&state, agent_id(2), false);
    assert_eq!(desk.current, other);
}

#[test]
fn panes_cover_their_area_without_overlapping() {
    for layout in Layout::ALL {
        for (width, height) in [(80, 20), (41, 7), (3, 2)] {
            let area = Rect::new(2, 1, width, height);
            let areas = layout.areas(area);
            assert_eq!(areas.len(), layout.panes());
            for (at, one) in areas.iter().enumerate() {
                assert_eq!(one.intersection(area), *one, "{layout:?} {width}x{height}");
                for other in &areas[at + 1..] {
                    assert!(one.intersection(*other).is_empty(), "{layout:?} {width}x{height}");
                }
            }
        }
    }
}
