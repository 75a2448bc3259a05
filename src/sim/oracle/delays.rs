//! How long requests waited for their answers, exactly: most did not wait at all.

use headgate_core::units::Span;

/// Delays of all requests of a run.
#[derive(Clone, Debug, Default)]
pub struct Delays {
    none: usize,
    /// Microseconds.
    some: Vec<u32>,
}

impl Delays {
    pub(super) fn add(&mut self, delay: Span) {
        match u32::try_from(delay.get().div_ceil(1_000)) {
            Ok(0) => self.none += 1,
            Ok(micros) => self.some.push(micros),
            Err(_) => self.some.push(u32::MAX),
        }
    }

    /// Microseconds within which so many thousandths of all requests had their answer.
    #[must_use]
    pub fn percentile(&self, per_mille: usize) -> u32 {
        let total = self.none.saturating_add(self.some.len());
        let rank = total.saturating_mul(per_mille).div_ceil(1_000);
        let Some(place) = rank.checked_sub(self.none.saturating_add(1)) else {
            return 0;
        };
        let mut sorted = self.some.clone();
        sorted.sort_unstable();
        sorted.get(place).copied().unwrap_or(0)
    }
}
