//! How service time passes: with the leader's monotonic clock, a little faster or slower until it
//! has come as near to the wall clock as it was to come.

use super::SLEW_MILLIONTHS;
use crate::units::{LocalTime, ServiceTime, Span};

const MILLION: u64 = 1_000_000;

/// Service time was `service` at `local`; since then it gains `slew` nanoseconds (loses them if
/// negative), [`SLEW_MILLIONTHS`] of the time that passes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Line {
    pub(super) local: LocalTime,
    pub(super) service: ServiceTime,
    pub(super) slew: i64,
}

impl Line {
    pub(super) const fn at(&self, local: LocalTime) -> ServiceTime {
        let passed = local.since(self.local);
        let gained = self.gained(passed);
        let service = self.service.plus(passed);
        let by = Span::new(gained.unsigned_abs());
        if gained < 0 {
            service.minus(by)
        } else {
            service.plus(by)
        }
    }

    /// What is left to gain or lose then.
    pub(super) const fn left(&self, local: LocalTime) -> i64 {
        let gained = self.gained(local.since(self.local));
        self.slew.saturating_sub(gained)
    }

    const fn gained(&self, passed: Span) -> i64 {
        // Dividing first would lose less than it spares: no span that a process sees overflows.
        let most = passed.get().saturating_mul(SLEW_MILLIONTHS) / MILLION;
        let slew = self.slew.unsigned_abs();
        let gained = if most < slew { most } else { slew };
        if self.slew < 0 {
            0_i64.saturating_sub_unsigned(gained)
        } else {
            0_i64.saturating_add_unsigned(gained)
        }
    }

    /// The first instant at which it shows `at` or more.
    pub(super) fn local_at(&self, at: ServiceTime) -> LocalTime {
        let ahead = at.since(self.service).get();
        // The slowest and the fastest it can have gone bound it; between them it only rises.
        let part = ahead.div_ceil(MILLION).saturating_mul(2 * SLEW_MILLIONTHS);
        let (mut early, mut late) = (ahead.saturating_sub(part), ahead.saturating_add(part));
        while early < late {
            let middle = early.midpoint(late);
            if self.at(self.local.plus(Span::new(middle))) < at {
                early = middle.saturating_add(1);
            } else {
                late = middle;
            }
        }
        self.local.plus(Span::new(early))
    }
}
