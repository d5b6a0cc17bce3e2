//! Random choices that a seed repeats.

use std::time::Duration;

/// A small generator (splitmix64): good enough to choose with, and the same everywhere.
pub struct Random {
    state: u64,
}

impl Random {
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `limit`, which is not zero.
    pub fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    /// Whether something happens that does so in `percent` of a hundred cases.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// One of these.
    pub fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.below(choices.len())]
    }

    /// Another generator with its own choices.
    pub fn fork(&mut self) -> Self {
        Self::new(self.next())
    }

    /// Lets a random time pass. Chaos needs random moments; nothing is waited for by this.
    pub fn pause(&mut self, longest: Duration) {
        let microseconds = longest.as_micros() as usize;
        std::thread::sleep(Duration::from_micros(self.below(microseconds.max(1)) as u64));
    }
}
