//! Where the programs under test are.

use std::path::{Path, PathBuf};

/// The built programs.
#[derive(Clone, Debug)]
pub struct Programs {
    /// `consort`: the command line, the daemon and the runner.
    pub consort: PathBuf,
    /// `consort-testkit`: the scripted agent.
    pub testkit: PathBuf,
}

impl Programs {
    /// Finds them beside the running test. `CONSORT_BIN` and `CONSORT_TESTKIT_BIN` name others.
    pub fn find() -> Self {
        Self {
            consort: find("CONSORT_BIN", "consort"),
            testkit: find("CONSORT_TESTKIT_BIN", "consort-testkit"),
        }
    }
}

fn find(variable: &str, name: &str) -> PathBuf {
    if let Some(named) = std::env::var_os(variable) {
        return named.into();
    }
    let own = std::env::current_exe().expect("a test knows its own program");
    // A test is `target/debug/deps/name-hash`; the programs are two folders up. `xtask` stands right beside them.
    let folders = own.ancestors().skip(1).take(2);
    let found = folders.map(|folder: &Path| folder.join(name)).find(|program| program.is_file());
    found.unwrap_or_else(|| {
        panic!("`{name}` is not built; run `cargo xtask test`, or name the program with {variable}")
    })
}
