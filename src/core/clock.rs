//! A replica's estimate of service time: an interval for the offset between its monotonic clock and
//! the service's time, narrowed by every echo and widened as it ages. The true offset is always
//! inside as long as the clocks drift by no more than [`DRIFT_MILLIONTHS`] against each other.

use crate::trap::{self, Trap};
use crate::units::{LocalTime, ServiceTime, Span};
use crate::window::{Period, Window};

/// How far service time and a monotonic clock may drift apart, in millionths of the elapsed time.
/// Crystals are good to 100; 500 is what NTP allows itself to slew, and the service slews by
/// [`SLEW_MILLIONTHS`](crate::owner::clock::SLEW_MILLIONTHS) towards its wall clock on top of it.
pub const DRIFT_MILLIONTHS: u64 = 500 + crate::owner::clock::SLEW_MILLIONTHS;

/// When the service received a request and sent its answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stamps {
    /// Receipt of the request.
    pub received: ServiceTime,
    /// Sending of the answer.
    pub sent: ServiceTime,
}

/// Service time lies between these, ends included.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TimeBounds {
    /// At least this.
    pub earliest: ServiceTime,
    /// At most this.
    pub latest: ServiceTime,
}

/// Bounds for (service time - local time), as of one local instant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OffsetEstimate {
    /// Lower bound, nanoseconds.
    lowest: i64,
    /// Upper bound, nanoseconds.
    highest: i64,
    /// When the bounds were taken.
    taken: LocalTime,
}

impl OffsetEstimate {
    /// From one echo: the request left at `sent` and its answer came at `received`. `None` if the
    /// stamps cannot be: the answer left before the request came, or took less than no time.
    #[must_use]
    pub fn from_echo(sent: LocalTime, received: LocalTime, stamps: Stamps) -> Option<Self> {
        // During a long poll the clocks drift too, so its bounds are widened by its own length.
        let widening = drift_over(received.since(sent));
        let highest = difference(stamps.received, sent).saturating_add(widening);
        let lowest = difference(stamps.sent, received).saturating_sub(widening);
        let possible = stamps.received <= stamps.sent && sent <= received && lowest <= highest;
        possible.then_some(Self {
            lowest,
            highest,
            taken: received,
        })
    }

    /// From stored parts.
    #[must_use]
    pub const fn from_parts(lowest: i64, highest: i64, taken: LocalTime) -> Self {
        Self {
            lowest,
            highest,
            taken,
        }
    }

    /// The parts, for storing: lowest, highest, taken.
    #[must_use]
    pub const fn parts(self) -> (i64, i64, LocalTime) {
        (self.lowest, self.highest, self.taken)
    }

    /// When the last echo came.
    #[must_use]
    pub const fn taken(self) -> LocalTime {
        self.taken
    }

    /// What both estimates allow. Where they contradict each other (a clock was suspended or
    /// stepped), the newer one alone.
    #[must_use]
    pub fn narrowed_by(self, newer: Self) -> Self {
        let old = self.aged_to(newer.taken);
        let lowest = old.lowest.max(newer.lowest);
        let highest = old.highest.min(newer.highest);
        if lowest <= highest {
            Self {
                lowest,
                highest,
                taken: newer.taken,
            }
        } else {
            newer
        }
    }

    /// Whether a newer echo puts service time before all that this estimate allows: time has gone
    /// back, so that windows that were over are not.
    #[must_use]
    pub fn is_ahead_of(self, newer: Self) -> bool {
        newer.highest < self.aged_to(newer.taken).lowest
    }

    /// Bounds on service time at a local instant.
    #[must_use]
    pub fn at(self, now: LocalTime) -> TimeBounds {
        let aged = self.aged_to(now);
        TimeBounds {
            earliest: shifted(now, aged.lowest),
            latest: shifted(now, aged.highest),
        }
    }

    fn aged_to(self, now: LocalTime) -> Self {
        let widening = drift_over(now.since(self.taken));
        Self {
            lowest: self.lowest.saturating_sub(widening),
            highest: self.highest.saturating_add(widening),
            taken: self.taken.max(now),
        }
    }
}

impl TimeBounds {
    /// The window that certainly holds the present; `None` in the zone around a boundary.
    #[must_use]
    pub fn window(self, period: Period) -> Option<Window> {
        let window = period.window_at(self.earliest);
        let is_certain = window.contains(self.latest) || trap::is_off(Trap::SpentNearBoundary);
        is_certain.then_some(window)
    }
}

/// Nanoseconds that two clocks may part in this time, rounded up.
fn drift_over(elapsed: Span) -> i64 {
    // Dividing first keeps an age of years from overflowing; the remainder is rounded up.
    let millions = elapsed.get().div_ceil(1_000_000);
    i64::try_from(millions.saturating_mul(DRIFT_MILLIONTHS)).unwrap_or(i64::MAX)
}

fn difference(service: ServiceTime, local: LocalTime) -> i64 {
    let difference = i128::from(service.get()) - i128::from(local.get());
    i64::try_from(difference).unwrap_or(if difference < 0 { i64::MIN } else { i64::MAX })
}

fn shifted(local: LocalTime, offset: i64) -> ServiceTime {
    ServiceTime::new(local.get().saturating_add_signed(offset))
}

#[cfg(test)]
mod tests;
