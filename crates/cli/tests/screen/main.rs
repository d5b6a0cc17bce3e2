//! The terminal UI from outside: the real program in a real terminal, with a real daemon, scripted agents and real CLIs. Run by `cargo
//! xtask test`, which builds the programs that these tests start.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod clis;
mod pty;

use consort_testkit::harness::{Home, poll};
use pty::Pty;

/// A home whose UI is open at this size.
fn opened(home: &Home, columns: u16, rows: u16) -> Pty {
    let mut pty = Pty::open(home, columns, rows);
    pty.wait_for("say what");
    pty
}

#[test]
fn a_person_types_approves_and_reads_the_answer() {
    let home = Home::new();
    let mut screen = opened(&home, 100, 30);
    screen.write("[[ask execute make all]] [[say **All** made.]]\r");
    screen.wait_for("wants to run");
    screen.write("\t");
    screen.wait_for("once");
    screen.write("y");
    screen.wait_for("All made.");
    screen.wait_for("allowed once by you");
    screen.leave();
    home.finish();
}

#[test]
fn a_screen_on_which_nothing_happens_is_left_at_once() {
    let home = Home::started();
    let screen = opened(&home, 100, 30);
    // Once it is kept, no timer is left that would wake the screen.
    poll("what the screen remembers", || home.root().join("ui.json").exists().then_some(()));
    screen.leave();
    home.finish();
}

#[test]
fn closing_the_screen_stops_nothing_and_opening_it_again_shows_the_same() {
    let home = Home::started();
    let mut screen = opened(&home, 100, 30);
    screen.write("[[say before]] [[ask execute make]] [[say after]]\r");
    screen.wait_for("wants to run");
    screen.write("a draft");
    screen.wait_for("a draft");
    screen.leave();
    let mut screen = Pty::open(&home, 100, 30);
    screen.wait_for("a draft");
    screen.wait_for("before");
    screen.write("\x07");
    screen.wait_for("once");
    screen.write("y");
    screen.wait_for("after");
    screen.leave();
    home.finish();
}

#[test]
fn a_resize_lays_everything_out_anew() {
    let home = Home::started();
    let mut screen = opened(&home, 120, 30);
    screen.write("[[say one two three four five six seven eight nine ten]]\r");
    screen.wait_for("nine ten");
    screen.resize(60, 20);
    screen.wait_until("the list gives way", |text| !text.contains("consort  ") && text.contains("nine ten"));
    screen.resize(140, 40);
    screen.wait_for(" consort");
    screen.leave();
    home.finish();
}

#[test]
fn the_daemons_death_is_told_and_survived() {
    let home = Home::new();
    home.start_daemon();
    let mut screen = opened(&home, 120, 30);
    screen.write("[[say before]]\r");
    screen.wait_for("before");
    home.kill_daemon();
    screen.wait_for("the daemon is gone");
    screen.write("[[say while it was away]]\r");
    home.start_daemon();
    screen.wait_for("while it was away");
    screen.wait_until("it goes on", |text| !text.contains("the daemon is gone"));
    screen.leave();
    home.finish();
}

#[test]
fn panes_are_split_and_the_other_agent_is_put_beside() {
    let home = Home::started();
    let mut screen = opened(&home, 160, 40);
    screen.write("[[say left one]]\r");
    screen.wait_for("left one");
    screen.write("\x14");
    screen.wait_for("New agent in");
    screen.write("scripted\r");
    screen.wait_for("to scripted-2");
    screen.write("[[say right one]]\r");
    screen.wait_for("right one");
    screen.write("\x1bl");
    screen.wait_for("panes: side by side");
    screen.write("\x1bo");
    screen.write("\x1b[1;3A");
    screen.wait_until("both are seen", |text| text.contains("left one") && text.contains("right one"));
    screen.leave();
    home.finish();
}

#[test]
fn the_terminal_is_given_back_by_signals_too() {
    let home = Home::started();
    let screen = opened(&home, 100, 30);
    let left = screen.terminate();
    assert!(left.contains("\u{1b}[?1049l"), "the alternate screen was left");
    home.finish();
}
