//! What stands around the conversations: the bar at the bottom, the borders, and hints.

use super::*;
use crate::testing::agent;

#[test]
fn the_hint_of_an_empty_pane_is_shown_whole() {
    let mut scene = Scene::new(80, 24, team(vec![named("one", agent(1))]), talked());
    scene.press("alt-l");
    scene.sees("empty: alt-right goes");
    scene.sees("an agent");
}
