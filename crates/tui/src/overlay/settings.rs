//! The settings: which part is open, which row is chosen, and what was found out about profiles.

use consort_daemon::protocol::ProfileCheck;
use consort_model::ProfileId;

/// A part of the settings.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Part {
    /// Configured ways to run an agent.
    #[default]
    Profiles,
    /// Standing answers.
    Rules,
    /// How many agents there may be.
    Limits,
    /// The looks, and what rings.
    Screen,
    /// Which key does what.
    Keys,
}

impl Part {
    /// All of them, in order.
    pub const ALL: [Self; 5] = [Self::Profiles, Self::Rules, Self::Limits, Self::Screen, Self::Keys];

    /// What people call it.
    pub fn title(self) -> &'static str {
        match self {
            Self::Profiles => "Profiles",
            Self::Rules => "Rules",
            Self::Limits => "Limits",
            Self::Screen => "Screen",
            Self::Keys => "Keys",
        }
    }
}

/// The settings.
#[derive(Default)]
pub struct Settings {
    /// Which part is open.
    pub part: Part,
    /// Which row is chosen.
    pub row: usize,
    /// The first row on the screen.
    pub top: usize,
    /// How many rows there are, when they were last drawn.
    pub count: usize,
    checks: Vec<ProfileCheck>,
    /// Whether profiles are being looked at.
    pub checking: bool,
}

impl Settings {
    /// What was found out about profiles.
    pub fn checked(&mut self, checks: Vec<ProfileCheck>) {
        self.checks = checks;
        self.checking = false;
    }

    /// What was found out about a profile.
    pub fn check(&self, profile: &ProfileId) -> Option<&ProfileCheck> {
        self.checks.iter().find(|check| check.profile.id == *profile)
    }

    /// Moves by so many rows.
    pub fn step(&mut self, by: isize) {
        self.row = self.row.saturating_add_signed(by).min(self.count.saturating_sub(1));
    }

    /// Goes to a part.
    pub fn go_to(&mut self, part: usize) {
        if let Some(part) = Part::ALL.get(part) {
            *self = Self {
                part: *part,
                row: 0,
                top: 0,
                count: 0,
                checks: std::mem::take(&mut self.checks),
                ..*self
            };
        }
    }

    /// Goes to the next part, or the one before.
    pub fn step_part(&mut self, back: bool) {
        let at = Part::ALL.iter().position(|part| *part == self.part).unwrap_or(0);
        let count = Part::ALL.len();
        self.go_to((at + if back { count - 1 } else { 1 }) % count);
    }
}
