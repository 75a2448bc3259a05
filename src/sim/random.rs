//! Numbers that follow from a seed (SplitMix64: Steele, Lea, Flood, 2014). The same seed gives the
//! same numbers on every machine, which is what makes a run repeatable.

use headgate_core::units::Span;

/// What a chance is counted in.
pub const PER_MILLE: u64 = 1_000;

/// A source of numbers.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// From a seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Any number.
    pub const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// At least 0, less than `bound` (0 for a bound of 0). The bias is far below what is measured.
    pub const fn below(&mut self, bound: u64) -> u64 {
        match self.next().checked_rem(bound) {
            Some(value) => value,
            None => 0,
        }
    }

    /// Both ends included; `from` if the end lies before it.
    pub const fn between(&mut self, from: u64, to: u64) -> u64 {
        let width = to.saturating_sub(from).saturating_add(1);
        from.saturating_add(self.below(width))
    }

    /// Something that happens so often in a thousand.
    pub const fn chance(&mut self, per_mille: u64) -> bool {
        self.below(PER_MILLE) < per_mille
    }

    /// Less than a length of time.
    pub const fn span(&mut self, below: Span) -> Span {
        Span::new(self.below(below.get()))
    }

    /// A place of a list of this length; `None` if it is empty.
    pub fn place(&mut self, length: usize) -> Option<usize> {
        let bound = u64::try_from(length).ok().filter(|bound| *bound > 0)?;
        usize::try_from(self.below(bound)).ok()
    }

    /// One of some values; the first type's default if there are none.
    pub fn one_of<T: Copy + Default>(&mut self, values: &[T]) -> T {
        let place = self.place(values.len());
        place
            .and_then(|place| values.get(place))
            .copied()
            .unwrap_or_default()
    }

    /// The time to the next of events that come at random, this far apart on average.
    #[allow(
        clippy::float_arithmetic,
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a distribution of durations, not a count"
    )]
    pub fn exponential(&mut self, mean: Span) -> Span {
        // 53 random bits, above 0 and at most 1.
        let uniform = ((self.next() >> 11) + 1) as f64 / (1_u64 << 53) as f64;
        Span::new((-uniform.ln() * mean.get() as f64) as u64)
    }
}

#[cfg(test)]
mod tests;
