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

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn reason(availability: Availability) -> String {
        match availability {
            Availability::Unavailable { reason } => reason,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn programs_are_found_as_a_shell_would() {
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str, mode: u32| {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, "#!/bin/sh\n").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            path
        };
        file("first/agent", 0o600);
        let second = file("second/agent", 0o700);
        fs::create_dir_all(dir.path().join("first/folder")).unwrap();
        let path_env = format!("{0}/missing:{0}/first:{0}/second", dir.path().display());
        let found = Availability::Available { path: second.display().to_string() };
        assert_eq!(look_up("agent", &path_env, dir.path()), found);
        assert_eq!(look_up(second.to_str().unwrap(), "", dir.path()), found);
        assert_eq!(look_up("second/agent", "", dir.path()), found);
        let facts = [
            ("gemini", "`gemini` is not on PATH; install it or set `command`"),
            ("", "no program is named; set `command`"),
            ("./nothing", "`./nothing` does not exist; install it or set `command`"),
            ("first/agent", "`first/agent` is not executable; correct it or set another `command`"),
            ("first/folder", "`first/folder` is not a file; correct it or set another `command`"),
        ];
        for (program, expected) in facts {
            assert_eq!(reason(look_up(program, &path_env, dir.path())), expected);
        }
        let only_first = format!("{}/first", dir.path().display());
        assert!(reason(look_up("agent", &only_first, dir.path())).contains("is not executable"));
        assert!(reason(look_up("folder", &only_first, dir.path())).contains("is not a file"));
    }

    #[test]
    fn a_profile_is_looked_up_in_its_own_environment() {
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("claude");
        fs::write(&program, "").unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o700)).unwrap();
        let text = format!(
            "[profiles.a]\ndriver = \"claude\"\nenvironment = [\"PATH={}\"]\n[profiles.b]\ndriver = \"acp\"\n",
            dir.path().display()
        );
        let config = crate::config::Config::parse(&text, Path::new("config.toml")).unwrap();
        let of = |profile| of_profile(profile, [("PATH".to_owned(), "/nowhere".to_owned())], dir.path());
        let path = program.display().to_string();
        assert_eq!(of(&config.profiles[0]), Availability::Available { path });
        assert_eq!(
            reason(of(&config.profiles[1])),
            "the driver `acp` has no program of its own; set `command`"
        );
    }
}
