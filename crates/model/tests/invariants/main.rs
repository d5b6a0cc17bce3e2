//! Random commands over a small team, checked against what must stay true whatever people and agents do:
//! cascades, interrupts, refusals, slots and wakes, limits, names, asks, and that the events tell everything.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod checks;
mod world;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, TestRunner};

use crate::world::{Kind, Reply, Step, World};

/// One of the agents that are there, or sometimes nobody.
fn pick() -> impl Strategy<Value = u8> {
    0..=world::NOBODY
}

/// A person, or an agent.
fn by() -> impl Strategy<Value = Option<u8>> {
    prop_oneof![2 => Just(None), 1 => pick().prop_map(Some)]
}

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![
        2 => Just(Kind::Primary),
        2 => pick().prop_map(Kind::Companion),
        4 => pick().prop_map(Kind::SubAgent),
    ]
}

fn reply() -> impl Strategy<Value = Reply> {
    prop_oneof![
        Just(Reply::Once),
        Just(Reply::Session),
        Just(Reply::Always),
        Just(Reply::Text),
        Just(Reply::Stop)
    ]
}

/// Mostly an agent creates for itself, since only that is allowed.
fn create() -> impl Strategy<Value = Step> {
    (kind(), by(), prop::bool::weighted(0.8), prop::option::of(0..3u8), any::<bool>()).prop_map(
        |(kind, by, for_itself, name, prompted)| {
            let by = match kind {
                Kind::Companion(of) | Kind::SubAgent(of) if for_itself => Some(of),
                _ => by,
            };
            Step::Create { kind, by, name, prompted }
        },
    )
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => create(),
        2 => (pick(), by()).prop_map(|(to, from)| Step::Send { to, from }),
        1 => pick().prop_map(|to| Step::SendAgain { to }),
        1 => (pick(), any::<bool>()).prop_map(|(of, drop)| Step::EditQueued { of, drop }),
        12 => pick().prop_map(Step::Work),
        2 => pick().prop_map(Step::EndTurn),
        4 => (pick(), any::<bool>()).prop_map(|(of, question)| Step::Ask { of, question }),
        4 => (pick(), reply()).prop_map(|(of, reply)| Step::Answer { of, reply }),
        3 => pick().prop_map(Step::Interrupt),
        2 => (pick(), by()).prop_map(|(of, by)| Step::Close { of, by }),
        3 => pick().prop_map(Step::Reopen),
        1 => pick().prop_map(Step::Fail),
        1 => pick().prop_map(Step::Rest),
        2 => pick().prop_map(Step::SettleTask),
        6 => (pick(), pick()).prop_map(|(of, on)| Step::Wait { of, on }),
        1 => pick().prop_map(Step::EndWait),
        3 => (pick(), any::<bool>()).prop_map(|(of, seen)| Step::HandOut { of, seen }),
        4 => (pick(), any::<Option<bool>>()).prop_map(|(of, joins)| Step::Steer { of, joins }),
        1 => Just(Step::DaemonRestarts),
        1 => (pick(), 0..3u8).prop_map(|(of, name)| Step::Rename { of, name }),
    ]
}

/// An agent that spawns and waits, as it hardly ever happens by chance.
fn story() -> impl Strategy<Value = Vec<Step>> {
    (0..3u8, any::<bool>(), any::<bool>(), any::<bool>()).prop_map(|(n, settles, restarts, seen)| {
        let spawn = Step::Create { kind: Kind::SubAgent(n), by: Some(n), name: None, prompted: true };
        let mut steps = vec![Step::Work(n), Step::Work(n), Step::Work(n), spawn, Step::Wait { of: n, on: n }];
        steps.extend(settles.then_some(Step::HandOut { of: n, seen: true }));
        steps.push(Step::HandOut { of: n, seen });
        steps.extend(restarts.then_some(Step::DaemonRestarts));
        steps
    })
}

/// An agent that is steered while it works.
fn steering() -> impl Strategy<Value = Vec<Step>> {
    (0..3u8, prop::collection::vec(any::<Option<bool>>(), 1..6), any::<bool>()).prop_map(|(n, says, ends)| {
        let send = Step::Send { to: n, from: None };
        let mut steps = vec![Step::Work(n), Step::Work(n), Step::Work(n), send.clone(), send];
        steps.extend(
            says.into_iter()
                .flat_map(|joins| [Step::Steer { of: n, joins: None }, Step::Steer { of: n, joins }]),
        );
        steps.extend(ends.then_some(Step::EndTurn(n)));
        steps
    })
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let one = prop_oneof![20 => step().prop_map(|step| vec![step]), 1 => story(), 1 => steering()];
    prop::collection::vec(one, 1..80).prop_map(|steps| steps.concat())
}

/// Runs the steps, checking after each.
fn run(steps: Vec<Step>) -> World {
    let mut world = World::new();
    for step in steps {
        let before = world.state.clone();
        let step = step.among(before.agents.len());
        let outcome = world.run(&step);
        checks::after(&before, &mut world, &step, &outcome);
    }
    checks::replay(&world);
    world
}

proptest! {
    #![proptest_config(Config { cases: 192, failure_persistence: None, ..Config::default() })]

    #[test]
    fn nothing_that_people_and_agents_do_breaks_an_invariant(steps in steps()) {
        run(steps);
    }
}

#[test]
fn the_random_steps_reach_what_they_are_to_prove() {
    let mut runner = TestRunner::deterministic();
    let mut seen = world::Seen::default();
    for _ in 0..192 {
        seen.add(&run(steps().new_tree(&mut runner).unwrap().current()).seen);
    }
    assert!(seen.cascades > 0, "no owner was closed with its companions: {seen:?}");
    assert!(seen.lone_companions > 0, "no companion was closed alone: {seen:?}");
    assert!(seen.deep_interrupts > 0, "no interrupt reached a grandchild: {seen:?}");
    assert!(seen.starting_interrupts > 0, "no interrupt reached a starting sub-agent: {seen:?}");
    assert!(seen.refused > 0 && seen.limits > 0, "nothing was refused: {seen:?}");
    assert!(seen.woken > 0, "no parent was woken: {seen:?}");
    assert!(seen.answered > 0, "nothing was answered: {seen:?}");
    assert!(seen.queued > 0, "no sub-agent waited for a slot: {seen:?}");
    assert!(seen.handed_out > 0, "no result went into a call: {seen:?}");
    assert!(seen.uncertain > 0, "no restart left an answer uncertain: {seen:?}");
    assert!(seen.joined > 0 && seen.returned > 0, "no turn was steered: {seen:?}");
}
