//! Lists and forms over everything else: what can be chosen, what is asked first, and where one comes back to.

use super::*;
use crate::testing::agent;

fn one() -> Scene {
    Scene::new(120, 40, team(vec![named("one", agent(1))]), talked())
}

#[test]
fn the_form_of_a_profile_says_that_acp_has_no_program_of_its_own() {
    let mut scene = one();
    scene.press("alt-s a tab tab");
    scene.sees("acp has none");
}
