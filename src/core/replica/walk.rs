//! A walk over the table, a few buckets at a time: all at once would take milliseconds, and
//! requests wait for the thread that walks. It begins anew when it has ended.

use std::ops::Range;

use crate::units::{LocalTime, Span};

/// Buckets of one step; each takes about a microsecond.
const SLICE: u32 = 64;

/// Time between two steps: the default table takes 6.4 seconds, and less than a thousandth of one
/// thread.
pub const STEP: Span = Span::from_millis(100);

/// Where a walk is.
#[derive(Clone, Debug, Default)]
pub struct Walk {
    due: LocalTime,
    next: u32,
}

impl Walk {
    /// At the first bucket, due at once.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            due: LocalTime::ZERO,
            next: 0,
        }
    }

    /// Whether the next step is due; asked again within [`STEP`], it is not.
    pub fn take_turn(&mut self, now: LocalTime) -> bool {
        let is_due = self.due <= now;
        if is_due {
            self.due = now.plus(STEP);
        }
        is_due
    }

    /// The buckets of the next step, of a table of so many.
    #[must_use]
    pub fn next_buckets(&self, buckets: u32) -> Range<u32> {
        self.next..self.next.saturating_add(SLICE).min(buckets)
    }

    /// They have been looked at; whether the walk has ended.
    pub fn advance(&mut self, buckets: u32) -> bool {
        self.next = self.next_buckets(buckets).end;
        let ended = self.next >= buckets;
        if ended {
            self.next = 0;
        }
        ended
    }

    /// Begins anew.
    pub const fn restart(&mut self) {
        self.next = 0;
    }
}
