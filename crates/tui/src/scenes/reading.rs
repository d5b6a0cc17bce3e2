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

/// A tool call with more output than is shown, and an answer.
fn a_long_log() -> Vec<Item> {
    let mut ran = tool(ToolKind::Execute, "make");
    ran.output = (0..20_000).map(|n| format!("line {n} of the log\n")).collect();
    vec![item(0, ItemBody::Tool(ran)), said(1, "done")]
}

#[test]
fn an_item_with_more_lines_than_are_shown_is_opened_whole_by_a_key_that_it_names() {
    let mut scene = reading(a_long_log());
    scene.press("esc o");
    scene.sees("choose an item first");
    scene.press("up up enter pagedown");
    scene.press(&"pagedown ".repeat(200));
    scene.sees("more lines; o opens the item whole");
    scene.press("g j k o");
    scene.sees("run make");
    scene.sees("line 0 of the log");
    scene.press("G");
    scene.sees("line 19999 of the log");
    scene.press("u k");
    scene.does_not_see("line 19999 of the log");
    scene.press("g");
    scene.sees("line 0 of the log");
    scene.press("esc");
    assert!(scene.app.overlays.is_empty());
}

#[test]
fn what_is_found_where_it_is_not_shown_is_told_and_shown_by_opening_the_item() {
    let mut scene = reading(a_long_log());
    scene.press("ctrl-f");
    scene.write("line 15432 of");
    scene.press("enter");
    scene.sees("`line 15432 of` is in the part that is not shown; o opens the item whole");
    scene.press("o");
    scene.sees("line 15432 of the log");
    // The same where the item is not loaded yet.
    let mut items = a_long_log();
    items.extend((2..200).map(|n| said(n, "and more")));
    let mut scene = reading(items);
    scene.press("ctrl-f");
    scene.write("line 15432 of");
    scene.press("enter");
    scene.sees("is in the part that is not shown");
    scene.press("o");
    scene.sees("line 15432 of the log");
}
