//! A random number generator with a seed.

use polis_domain::mix;

/// Draws the same numbers for the same seed, for ever.
#[derive(Debug, Clone)]
pub(super) struct SeededRng(u64);

impl SeededRng {
    /// Dice for a seed.
    pub(super) fn new(seed: u64) -> Self {
        Self(mix(seed))
    }

    /// The next number.
    pub(super) fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(1);
        mix(self.0)
    }

    /// A number below `limit`; 0 when that is 0.
    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.draw() % limit.max(1)
    }

    /// True this many times in a hundred.
    pub(super) fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}
