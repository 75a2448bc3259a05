//! True time, which nobody in the world can read, and the machines' clocks that are made of it.

use headgate_core::units::{LocalTime, Span};

/// An instant of true time: nanoseconds since the world began.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Truth(u64);

impl Truth {
    /// The beginning.
    pub const ZERO: Self = Self(0);

    /// So many nanoseconds after the beginning.
    #[must_use]
    pub const fn new(nanoseconds: u64) -> Self {
        Self(nanoseconds)
    }

    /// Nanoseconds since the beginning.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// This much later.
    #[must_use]
    pub const fn plus(self, span: Span) -> Self {
        Self(self.0.saturating_add(span.get()))
    }

    /// Time since an earlier instant; zero if it is not earlier.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Span {
        Span::new(self.0.saturating_sub(earlier.0))
    }
}

/// What a drift is counted in.
const MILLION: i128 = 1_000_000;

/// One machine's monotonic clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Clock {
    /// What it showed when the world began.
    pub offset: Span,
    /// How much it gains, in millionths of the time that passes; negative if it loses.
    pub drift: i64,
}

impl Clock {
    /// What it shows.
    #[must_use]
    pub fn local(self, now: Truth) -> LocalTime {
        let now = i128::from(now.get());
        let gained = now * i128::from(self.drift) / MILLION;
        let shown = i128::from(self.offset.get()) + now + gained;
        LocalTime::new(u64::try_from(shown).unwrap_or(0))
    }

    /// The first instant at which it shows `at` or more.
    #[must_use]
    pub fn truth(self, at: LocalTime) -> Truth {
        let since = i128::from(at.get()) - i128::from(self.offset.get());
        let rough = since * MILLION / (MILLION + i128::from(self.drift));
        // Rounding is off by a nanosecond or two.
        let mut truth = Truth(u64::try_from(rough - 2).unwrap_or(0));
        while self.local(truth) < at {
            truth = truth.plus(Span::new(1));
        }
        truth
    }
}

#[cfg(test)]
mod tests;
