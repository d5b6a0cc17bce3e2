//! Reading a conversation: searching it, and what does not fit into it.

use super::*;
use crate::testing::{agent, said};

fn reading(items: Vec<Item>) -> Scene {
    Scene::new(100, 30, team(vec![named("one", agent(1))]), BTreeMap::from([(agent_id(1), items)]))
}

#[test]
fn a_search_that_finds_nothing_further_says_which_key_goes_back_and_is_quiet_once_it_found() {
    let mut scene = reading((0..40).map(|n| said(n, &format!("item {n} of them"))).collect());
    scene.press("ctrl-f");
    scene.write("of them");
    scene.press("enter n");
    scene.sees("no later place has `of them`; N goes up");
    scene.press("N");
    scene.does_not_see("no later place");
    scene.press("g k n");
    scene.does_not_see("no earlier place");
    scene.app.complain("something else");
    scene.press("n");
    scene.sees("something else");
}
