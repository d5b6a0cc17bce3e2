//! The short form of the chaos test; `cargo xtask chaos --minutes N` is the long one.

use std::time::Duration;

use consort_testkit::chaos::{Plan, run};

#[test]
fn chaos_loses_nothing_and_does_nothing_twice() {
    let seed = std::env::var("CONSORT_CHAOS_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    match run(Plan { seed, agents: 20, kills: 50, time: Duration::ZERO }) {
        Ok(report) => {
            println!("{report:?}");
            assert!(report.sub_agents > 0, "no agent had a team");
        }
        Err(failure) => panic!("{failure}"),
    }
}
