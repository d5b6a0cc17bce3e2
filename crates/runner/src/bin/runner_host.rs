//! A runner by itself, for this crate's tests: `consort-runner-host runner --dir DIR`.

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip_while(|argument| argument != "--dir").skip(1);
    match arguments.next() {
        Some(dir) => consort_runner::serve::main(dir.into()),
        None => ExitCode::from(2),
    }
}
