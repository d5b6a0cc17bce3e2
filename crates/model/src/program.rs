//! The programs that Consort is tested with, and how a version of one compares with the tested one.
//!
//! Owns the table; the conformance suite installs exactly these versions, and a test holds the two together. Whether a
//! program is there, and what it says, is found out by others.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::DriverKind;

/// A program that Consort is tested with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Program {
    /// Claude Code.
    Claude,
    /// Codex.
    Codex,
    /// Gemini CLI.
    Gemini,
    /// OpenCode.
    OpenCode,
}

/// How a program's version compares with the one that Consort was tested with.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Support {
    /// It is the one.
    Tested,
    /// It came later: most likely it works.
    Newer,
    /// It came earlier: something may be missing.
    Older,
}

/// Whether a program can reach its model, as far as files and variables tell.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Login {
    /// There is a login or a key. Whether the service takes it is known only when it is asked.
    LoggedIn {
        /// The variable or file that holds it; never what is in it.
        by: String,
    },
    /// There is none.
    LoggedOut {
        /// What to do.
        advice: String,
    },
}

impl Program {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Claude, Self::Codex, Self::Gemini, Self::OpenCode];

    /// The program that a profile runs, if it is one of these.
    pub fn of(driver: DriverKind, command: &str) -> Option<Self> {
        match driver {
            DriverKind::Claude => Some(Self::Claude),
            DriverKind::Codex => Some(Self::Codex),
            DriverKind::Acp => match command.rsplit('/').next() {
                Some("gemini") => Some(Self::Gemini),
                Some("opencode") => Some(Self::OpenCode),
                _ => None,
            },
            DriverKind::Native | DriverKind::Terminal => None,
        }
    }

    /// Its name in npm's registry.
    pub fn package(self) -> &'static str {
        match self {
            Self::Claude => "@anthropic-ai/claude-code",
            Self::Codex => "@openai/codex",
            Self::Gemini => "@google/gemini-cli",
            Self::OpenCode => "opencode-ai",
        }
    }

    /// The version that Consort is tested with.
    pub fn tested_version(self) -> &'static str {
        match self {
            Self::Claude => "2.1.197",
            Self::Codex => "0.166.0",
            Self::Gemini => "0.61.0",
            Self::OpenCode => "1.18.33",
        }
    }

    /// How what it said to `--version` compares with that; none: there is no version in it.
    pub fn support(self, said: &str) -> Option<Support> {
        let (found, tested) = (numbers(said)?, numbers(self.tested_version())?);
        Some(match found.cmp(&tested) {
            std::cmp::Ordering::Less => Support::Older,
            std::cmp::Ordering::Equal => Support::Tested,
            std::cmp::Ordering::Greater => Support::Newer,
        })
    }
}

/// The first version in a text: three numbers with points between them.
fn numbers(text: &str) -> Option<[u64; 3]> {
    text.split(|letter: char| !letter.is_ascii_digit() && letter != '.').find_map(|word| {
        let mut parts = word.split('.').map(str::parse);
        match (parts.next(), parts.next(), parts.next()) {
            (Some(Ok(major)), Some(Ok(minor)), Some(Ok(patch))) => Some([major, minor, patch]),
            _ => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tested_versions_are_those_that_the_conformance_suite_installs() {
        let packages: serde_json::Value =
            serde_json::from_str(include_str!("../../../xtask/clis/package.json")).unwrap();
        let packages = packages["dependencies"].as_object().unwrap();
        assert_eq!(packages.len(), Program::ALL.len());
        for program in Program::ALL {
            assert_eq!(packages[program.package()], program.tested_version(), "{program:?}");
        }
    }

    #[test]
    fn versions_compare_by_their_numbers() {
        let facts = [
            ("2.1.197 (Claude Code)", Some(Support::Tested)),
            ("2.1.198", Some(Support::Newer)),
            ("claude v3.0.0-beta.1", Some(Support::Newer)),
            ("2.1.20", Some(Support::Older)),
            ("1.99.999", Some(Support::Older)),
            ("2.1", None),
            ("99999999999999999999.1.1", None),
            ("", None),
        ];
        for (said, expected) in facts {
            assert_eq!(Program::Claude.support(said), expected, "{said:?}");
        }
        assert_eq!(Program::Codex.support("codex-cli 0.166.0"), Some(Support::Tested));
    }

    #[test]
    fn a_profile_runs_one_of_them_by_its_driver_or_by_its_programs_name() {
        let facts = [
            (DriverKind::Claude, "/opt/wrapped-claude", Some(Program::Claude)),
            (DriverKind::Codex, "codex", Some(Program::Codex)),
            (DriverKind::Acp, "/usr/bin/gemini", Some(Program::Gemini)),
            (DriverKind::Acp, "opencode", Some(Program::OpenCode)),
            (DriverKind::Acp, "gemini-wrapper", None),
            (DriverKind::Terminal, "claude", None),
        ];
        for (driver, command, expected) in facts {
            assert_eq!(Program::of(driver, command), expected, "{command}");
        }
    }
}
