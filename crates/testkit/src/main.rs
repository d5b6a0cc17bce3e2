//! `consort-testkit`: the testkit's programs as one binary.

use std::fs::File;
use std::os::fd::AsFd;

use consort_testkit::{clis, model, scripted};

fn main() {
    let mut args = std::env::args().skip(1);
    let code = match args.next().as_deref() {
        Some("agent") => match std::io::stdout().as_fd().try_clone_to_owned() {
            // Past the line buffer of `Stdout`: the agent hands over whole frames, each is to be one write.
            Ok(stdout) => scripted::main(args, std::io::stdin(), File::from(stdout)),
            Err(error) => {
                eprintln!("consort-testkit: cannot duplicate standard output: {error}");
                1
            }
        },
        Some("model") => model::main(args, std::io::stdout()),
        Some("profile") => clis::main(args, std::io::stdout()),
        other => {
            eprintln!(
                "consort-testkit: unknown command {other:?}; try `consort-testkit agent --help` or `consort-testkit model --help`"
            );
            2
        }
    };
    std::process::exit(code);
}
