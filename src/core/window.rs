//! Fixed windows: half-open intervals of service time. The start is a window's identity; the
//! counter owns the boundaries, and a replica computes them only for periods aligned to the epoch.

use crate::units::{ServiceTime, Span};

/// A half-open interval of service time, never empty.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Window {
    start: ServiceTime,
    end: ServiceTime,
}

impl Window {
    /// The window from `start` (included) to `end` (excluded); `None` if that is empty.
    #[must_use]
    pub fn new(start: ServiceTime, end: ServiceTime) -> Option<Self> {
        (start < end).then_some(Self { start, end })
    }

    /// First instant.
    #[must_use]
    pub const fn start(self) -> ServiceTime {
        self.start
    }

    /// First instant after the window.
    #[must_use]
    pub const fn end(self) -> ServiceTime {
        self.end
    }

    /// From start to end.
    #[must_use]
    pub const fn length(self) -> Span {
        self.end.since(self.start)
    }

    /// Whether `at` lies inside.
    #[must_use]
    pub fn contains(self, at: ServiceTime) -> bool {
        self.start <= at && at < self.end
    }
}

/// Length of a fixed window, never zero; windows are aligned to the Unix epoch.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Period(Span);

impl Period {
    /// A period of this length; `None` for zero.
    #[must_use]
    pub fn new(length: Span) -> Option<Self> {
        (length > Span::ZERO).then_some(Self(length))
    }

    /// Its length.
    #[must_use]
    pub const fn length(self) -> Span {
        self.0
    }

    /// The window that holds `at`.
    #[must_use]
    pub fn window_at(self, at: ServiceTime) -> Window {
        let length = self.0.get();
        let into = at.get().checked_rem(length).unwrap_or(0);
        let start = at.minus(Span::new(into));
        // At the very end of `u64` time the window would be empty; one nanosecond keeps the type.
        let end = start.plus(self.0).max(start.plus(Span::new(1)));
        Window { start, end }
    }
}

#[cfg(test)]
mod tests;
