//! Whether the program of a profile can be run here.

use std::path::{Path, PathBuf};

use consort_model::{Availability, Profile};
use rustix::fs::{Access, access};

/// Looks for a program: one with a slash is that file (from `cwd`), any other is searched in `path_env`, which has the
/// form of PATH.
pub fn look_up(program: &str, path_env: &str, cwd: &Path) -> Availability {
    let unavailable = |reason: String| Availability::Unavailable { reason };
    if program.is_empty() {
        return unavailable("no program is named; set `command`".to_owned());
    }
    if program.contains('\0') {
        return unavailable("the program's name holds a NUL character; set another `command`".to_owned());
    }
    if program.contains('/') {
        let path = cwd.join(program);
        return match check(&path) {
            Found::Runnable => available(&path),
            Found::NotRunnable(why) => {
                unavailable(format!("`{program}` {why}; correct it or set another `command`"))
            }
            Found::Missing => unavailable(format!("`{program}` does not exist; install it or set `command`")),
        };
    }
    let mut unusable = None;
    for folder in std::env::split_paths(path_env) {
        // An empty entry of PATH stands for the working directory.
        let path = cwd.join(folder).join(program);
        match check(&path) {
            Found::Runnable => return available(&path),
            Found::NotRunnable(why) => unusable = unusable.or(Some((path, why))),
            Found::Missing => {}
        }
    }
    match unusable {
        Some((path, why)) => {
            unavailable(format!("`{}` {why}; correct it or set another `command`", path.display()))
        }
        None => unavailable(format!("`{program}` is not on PATH; install it or set `command`")),
    }
}

/// Whether a profile can be used: its program, or its driver's own, looked up in the environment it would be run with.
pub fn of_profile(
    profile: &Profile,
    inherited: impl IntoIterator<Item = (String, String)>,
    cwd: &Path,
) -> Availability {
    let Some(program) = profile.program() else {
        let reason = format!("the driver `{}` has no program of its own; set `command`", profile.driver);
        return Availability::Unavailable { reason };
    };
    let environment = profile.apply_environment(inherited);
    let path = environment.iter().find(|(key, _)| key == "PATH").map_or("", |(_, value)| value.as_str());
    look_up(program, path, cwd)
}

enum Found {
    Runnable,
    NotRunnable(&'static str),
    Missing,
}

fn check(path: &PathBuf) -> Found {
    match path.metadata() {
        Ok(metadata) if !metadata.is_file() => Found::NotRunnable("is not a file"),
        Ok(_) if access(path, Access::EXEC_OK).is_err() => Found::NotRunnable("is not executable"),
        Ok(_) => Found::Runnable,
        Err(_) => Found::Missing,
    }
}

fn available(path: &Path) -> Availability {
    Availability::Available { path: path.display().to_string() }
}
