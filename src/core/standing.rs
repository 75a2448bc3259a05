//! Standing shares: what a seat holds of every key at the start of every window, without asking, so
//! that a cold key needs no network. Nothing of them is stored or sent: replica and owner compute
//! the same numbers from a **table revision** (how many seats share) and a **limit in force**.
//!
//! Both hold from an instant of service time on, [`PUBLISHED_AHEAD`] after they were published; no
//! message tells of them before they are durable. A message that the owner received at an instant t
//! is answered with all that was published until t, hence all that comes into force until
//! t + [`PUBLISHED_AHEAD`]: a replica computes shares only for windows that begin until then.
//! Invariant: the shares of all seats of a table sum up to the standing part of the limit, exactly.

use crate::key::KeyHash;
use crate::units::{Seat, ServiceTime, Span, Tokens};
use crate::window::{Period, Window};

/// How long before its first use a table revision or a limit is published. As long as the default
/// time-to-live of a seat: a replica that has heard nothing for so long decides nothing anyway.
pub const PUBLISHED_AHEAD: Span = Span::from_secs(5);

/// Longest window of which seats hold standing shares. In a longer one a seat whose replica crashed
/// would keep its share from the others for hours.
pub const STANDING_PERIOD_MAX: Span = Span::from_secs(3_600);

/// Longest window that counts as short: half of its limit stands by default.
const SHORT_PERIOD_MAX: Span = Span::from_secs(60);

/// Part of the limit of a short window that stands, in millionths: a of the protocol's section 10.
pub const SHORT_PART: u32 = 500_000;

/// Part of the limit of a longer window that stands, in millionths. Smaller, because the share of a
/// crashed replica is lost for the rest of the window.
pub const LONG_PART: u32 = 100_000;

/// What the parts are parts of.
pub const MILLION: u64 = 1_000_000;

/// Most table revisions that a directory has: those that running windows may have begun under. A
/// fleet that changes its size more often waits with the next one, and joiners without a standing
/// share.
pub const TABLES_MAX: usize = 32;

/// Most limits of one rule in a directory: those that running windows may have begun under. A rule
/// that is changed more often waits with the next one.
pub const LIMITS_PER_RULE_MAX: usize = 8;

/// Something that holds from an instant on, until the next of its kind.
pub trait Effective {
    /// From when on.
    fn effective(&self) -> ServiceTime;
}

/// How many seats share what stands, from an instant on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Table {
    /// Windows that begin from here on are shared by this table.
    pub effective: ServiceTime,
    /// Seats 0 to `seats` - 1 have a share.
    pub seats: u32,
    /// Part of the limit of a window of up to a minute that stands, in millionths.
    pub short_part: u32,
    /// The same of a window of up to [`STANDING_PERIOD_MAX`].
    pub long_part: u32,
}

/// A limit, from an instant on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Limit {
    /// Windows that begin from here on have it.
    pub effective: ServiceTime,
    /// Tokens per window.
    pub amount: Tokens,
}

impl Effective for Table {
    fn effective(&self) -> ServiceTime {
        self.effective
    }
}

impl Effective for Limit {
    fn effective(&self) -> ServiceTime {
        self.effective
    }
}

/// The one that holds for a window that begins at an instant; they are in the order in which they
/// were published.
#[must_use]
pub fn in_force<T: Effective>(published: &[T], at: ServiceTime) -> Option<&T> {
    published.iter().rev().find(|entry| entry.effective() <= at)
}

/// Whether all that is in force at the start of a window is known to who heard at `heard`.
#[must_use]
pub fn is_known(window: Window, heard: ServiceTime) -> bool {
    window.start() <= heard.plus(PUBLISHED_AHEAD)
}

impl Table {
    /// Tokens of a limit that stand in windows of this length.
    #[must_use]
    pub fn standing(&self, limit: Tokens, period: Period) -> Tokens {
        let part = if period.length() <= SHORT_PERIOD_MAX {
            self.short_part
        } else if period.length() <= STANDING_PERIOD_MAX {
            self.long_part
        } else {
            0
        };
        limit.scaled(u64::from(part), MILLION)
    }

    /// The share of one seat of one key in one window: an even part of what stands, and of the rest
    /// one token for some of the seats, which take turns from key to key and window to window.
    #[must_use]
    pub fn share(
        &self,
        limit: Tokens,
        period: Period,
        holder: Seat,
        of: (KeyHash, Window),
    ) -> Tokens {
        let seats = u64::from(self.seats);
        if holder.get() >= self.seats {
            return Tokens::ZERO;
        }
        let standing = self.standing(limit, period);
        let even = standing.scaled(1, seats);
        let rest = standing.get().checked_rem(seats).unwrap_or(0);
        let turned = u64::from(holder.get()).wrapping_add(turn(of).checked_rem(seats).unwrap_or(0));
        let place = turned.checked_rem(seats).unwrap_or(0);
        even.plus(Tokens::new(u64::from(place < rest)))
    }
}

/// Which seat is first in turn: the finalizer of splitmix64 (Steele, Lea and Flood 2014) over the
/// key, which is a keyed hash itself, and the window.
fn turn((key, window): (KeyHash, Window)) -> u64 {
    let high = u64::try_from(key.get() >> 64).unwrap_or(0);
    let low = u64::try_from(key.get() & u128::from(u64::MAX)).unwrap_or(0);
    let mut mixed = high ^ low.rotate_left(32) ^ window.start().get();
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests;
