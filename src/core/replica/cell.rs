//! One cell: the lease of one key in one window, with the proof and the marks that belong to it.
//!
//! Invariant: G >= U + R. A cell whose window is over is free; until then it is never given up,
//! because a claim made anew would start from nothing and mint tokens.

use crate::demand::Demand;
use crate::key::KeyHash;
use crate::message::LeaseAmounts;
use crate::units::{Epoch, Generation, Incarnation, LocalTime, Rate, ServiceTime, Tokens};
use crate::window::Window;
use crate::words::{WordReader, WordWriter};

/// Words of one cell in shared memory.
pub const CELL_WORDS: usize = 20;

/// Bits of a cell's flags.
const OWES_RETURN: u64 = 1;
const STANDING_SEEN: u64 = 2;

/// The seat incarnation and the epoch that a lease belongs to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Tenant {
    /// The replica's tenancy.
    pub incarnation: Incarnation,
    /// The leader's epoch.
    pub epoch: Epoch,
}

/// Every cost above `left` is refused until `until`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HeldProof {
    /// What is left anywhere.
    pub left: Tokens,
    /// End of the proof on this machine's clock.
    pub until: LocalTime,
}

/// One cell.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cell {
    /// Whose lease.
    pub key: KeyHash,
    /// For which window.
    pub window: Window,
    /// Under which tenancy and epoch.
    pub tenant: Tenant,
    /// G, U, R and the generation.
    pub amounts: LeaseAmounts,
    /// When R counts as spent: a worker that reserved may have died.
    pub reserved_until: LocalTime,
    /// A recall found R > 0: return again, fenced anew, when it has fallen to 0.
    pub owes_return: bool,
    /// The seat's standing share has been looked for: it is part of G, or there is none.
    pub standing_seen: bool,
    /// Tokens of the standing share, if it was part of G at first.
    pub standing: Tokens,
    /// Nothing beyond this is left.
    pub total: Option<HeldProof>,
    /// An ask ahead is out, or pointless, until then.
    pub ahead_until: LocalTime,
    /// Size of the last grant.
    pub last_grant: Tokens,
    /// What is asked for, and when last.
    pub demand: Demand,
}

impl Cell {
    /// A cell with nothing in it.
    #[must_use]
    pub fn claimed(key: KeyHash, window: Window, tenant: Tenant, generation: Generation) -> Self {
        Self {
            key,
            window,
            tenant,
            amounts: LeaseAmounts {
                generation,
                ..LeaseAmounts::default()
            },
            reserved_until: LocalTime::ZERO,
            owes_return: false,
            standing_seen: false,
            standing: Tokens::ZERO,
            total: None,
            ahead_until: LocalTime::ZERO,
            last_grant: Tokens::ZERO,
            demand: Demand::default(),
        }
    }

    /// Makes the cell this tenancy's. What a former tenancy held was counted as spent when that
    /// tenancy ended, so it is renounced. `false` if the cell already belongs to a later one: the
    /// caller's view of the seat is old.
    pub fn adopt(&mut self, tenant: Tenant) -> bool {
        if self.tenant.incarnation < tenant.incarnation {
            self.renounce(tenant);
        }
        self.tenant.incarnation == tenant.incarnation
    }

    /// Empties the lease for a new tenancy. A proof stays: what is left of a window never grows.
    pub fn renounce(&mut self, tenant: Tenant) {
        let generation = self.amounts.generation.next();
        self.amounts = LeaseAmounts {
            generation,
            ..LeaseAmounts::default()
        };
        self.tenant = tenant;
        self.owes_return = false;
        self.ahead_until = LocalTime::ZERO;
    }

    /// Takes in the seat's standing share, looked up after the cell was claimed. It counts only as
    /// long as nothing has fenced the cell since: a fence lets go of the share for good.
    pub fn stand(&mut self, share: Tokens) {
        if !self.may_stand() {
            return;
        }
        self.standing_seen = true;
        self.standing = share;
        if share > self.amounts.granted {
            self.last_grant = share.minus(self.amounts.granted);
            self.amounts.granted = share;
        }
    }

    /// Whether the standing share may still be looked for.
    #[must_use]
    pub fn may_stand(&self) -> bool {
        !self.standing_seen && self.amounts.generation == Generation::default()
    }

    /// The rate at which its tokens are asked for.
    #[must_use]
    pub fn rate(&self, now: LocalTime) -> Rate {
        self.demand.rate(now, self.window.length())
    }

    /// What a claim of the same key in a later window starts with. Over the time in which this cell
    /// refused by its proof, demand went on uncounted.
    #[must_use]
    pub fn demand_for_the_next(&self, now: LocalTime, earliest: ServiceTime) -> Demand {
        let mut demand = self.demand;
        if self.total.is_some() {
            demand.resume(now, earliest.since(self.window.end()));
        }
        demand
    }

    /// Whether its window is certainly over, so that the place is free.
    #[must_use]
    pub fn is_over(&self, earliest: ServiceTime) -> bool {
        self.window.end() <= earliest
    }

    /// Counts an expired reservation as spent.
    pub fn settle_expired(&mut self, now: LocalTime) {
        if self.amounts.reserved > Tokens::ZERO && self.reserved_until <= now {
            self.amounts.used = self.amounts.used.plus(self.amounts.reserved);
            self.amounts.reserved = Tokens::ZERO;
        }
    }

    /// Raises the generation, keeps at most `keep` of the free tokens, and drops what older
    /// generations were told.
    pub fn fence(&mut self, keep: Tokens) {
        let kept = self.amounts.free().min(keep);
        self.amounts.generation = self.amounts.generation.next();
        self.amounts.granted = self.amounts.used.plus(self.amounts.reserved).plus(kept);
    }

    /// Whether G >= U + R.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.amounts
            .used
            .get()
            .checked_add(self.amounts.reserved.get())
            .is_some_and(|taken| taken <= self.amounts.granted.get())
    }

    pub(super) fn read(words: &mut WordReader<'_>) -> Option<Option<Self>> {
        let key = KeyHash::new(words.double()?);
        let start = ServiceTime::new(words.word()?);
        let end = ServiceTime::new(words.word()?);
        let tenant = Tenant {
            incarnation: Incarnation::new(words.word()?),
            epoch: Epoch::new(words.word()?),
        };
        let amounts = LeaseAmounts {
            generation: Generation::new(words.word()?),
            granted: Tokens::new(words.word()?),
            used: Tokens::new(words.word()?),
            reserved: Tokens::new(words.word()?),
        };
        let reserved_until = LocalTime::new(words.word()?);
        let flags = words.word()?;
        let standing = Tokens::new(words.word()?);
        let left = Tokens::new(words.word()?);
        let until = LocalTime::new(words.word()?);
        let ahead_until = LocalTime::new(words.word()?);
        let last_grant = Tokens::new(words.word()?);
        let demand = Demand {
            fast: words.word()?,
            slow: words.word()?,
            at: LocalTime::new(words.word()?),
        };
        // An empty window marks an empty place.
        Some(Window::new(start, end).map(|window| Self {
            key,
            window,
            tenant,
            amounts,
            reserved_until,
            owes_return: flags & OWES_RETURN != 0,
            standing_seen: flags & STANDING_SEEN != 0,
            standing,
            total: (until > LocalTime::ZERO).then_some(HeldProof { left, until }),
            ahead_until,
            last_grant,
            demand,
        }))
    }

    pub(super) fn write(cell: Option<&Self>, words: &mut WordWriter) {
        let Some(cell) = cell else {
            (0..CELL_WORDS).for_each(|_| words.word(0));
            return;
        };
        words.double(cell.key.get());
        words.word(cell.window.start().get());
        words.word(cell.window.end().get());
        words.word(cell.tenant.incarnation.get());
        words.word(cell.tenant.epoch.get());
        words.word(cell.amounts.generation.get());
        words.word(cell.amounts.granted.get());
        words.word(cell.amounts.used.get());
        words.word(cell.amounts.reserved.get());
        words.word(cell.reserved_until.get());
        let flag = |set: bool, bit: u64| if set { bit } else { 0 };
        words.word(flag(cell.owes_return, OWES_RETURN) | flag(cell.standing_seen, STANDING_SEEN));
        words.word(cell.standing.get());
        let total = cell.total.unwrap_or(HeldProof {
            left: Tokens::ZERO,
            until: LocalTime::ZERO,
        });
        words.word(total.left.get());
        words.word(total.until.get());
        words.word(cell.ahead_until.get());
        words.word(cell.last_grant.get());
        words.word(cell.demand.fast);
        words.word(cell.demand.slow);
        words.word(cell.demand.at.get());
    }
}
