//! A bucket: all places where a key may live, in one value of shared memory, so that finding,
//! claiming and marking are one compare-and-swap. Two values would let two workers claim two cells
//! for one key, each with a share of its own.
//!
//! Every operation here is a pure change of one decoded bucket; [`super::table`] makes it atomic.

use crate::clock::TimeBounds;
use crate::key::KeyHash;
use crate::message::{LeaseAmounts, Return};
use crate::replica::cell::{CELL_WORDS, Cell, HeldProof, Tenant};
use crate::trap::{self, Trap};
use crate::units::{Generation, LocalTime, ServiceTime, Span, Tokens};
use crate::window::Window;
use crate::words::{WordReader, WordWriter};

mod ahead;
mod idle;
mod recall;

pub use idle::Idle;

use ahead::mark_ask_ahead;
use recall::return_owed;

/// Places in one bucket. More make a value dearer to copy at every request, fewer turn keys away
/// while the table has room; four leave under 1 % turned away at half load.
pub const CELLS_PER_BUCKET: usize = 4;

/// Words of one bucket: the two marks, then the cells.
pub const BUCKET_WORDS: usize = 2 + CELLS_PER_BUCKET * CELL_WORDS;

/// How long a reservation may be open before it counts as spent: longer than any request may wait
/// for its other rules.
pub const RESERVATION_MAX: Span = Span::from_secs(12);

/// The present, on both clocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Moment {
    /// This machine's clock.
    pub local: LocalTime,
    /// Bounds on service time.
    pub service: TimeBounds,
}

/// A key in one window, as its holder.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Claim {
    /// The key.
    pub key: KeyHash,
    /// The window that certainly holds the present.
    pub window: Window,
    /// The tenancy and epoch of the claim.
    pub tenant: Tenant,
}

/// How to take tokens from a lease.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Take {
    /// At once: U grows.
    Spend,
    /// Until the other rules of the request have answered: R grows.
    Reserve,
}

/// What came of an attempt to take tokens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Taken {
    /// They were free and are taken.
    Admitted {
        /// The lease runs low: ask for more. Said once.
        ask_ahead: bool,
    },
    /// A proof says that this cost cannot be served in this window.
    Refused,
    /// The standing share has not been looked for: see [`Bucket::stand`].
    Unclaimed,
    /// Nobody here can say: ask.
    Edge {
        /// The key has a cell, hence may be granted a lease.
        has_cell: bool,
    },
}

/// Up to [`CELLS_PER_BUCKET`] cells and the mark of keys that found none free.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Bucket {
    /// Until then a claim starts renounced: its key may have been turned away before.
    turned_away_until: ServiceTime,
    /// The generation such a claim starts with.
    turned_away_generation: Generation,
    cells: [Option<Cell>; CELLS_PER_BUCKET],
}

impl Bucket {
    /// From stored bytes; none at all is an empty bucket. `None` if they are not a bucket.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        if bytes.is_empty() {
            return Some(Self::default());
        }
        let mut words = WordReader::new(bytes);
        let mut bucket = Self {
            turned_away_until: ServiceTime::new(words.word()?),
            turned_away_generation: Generation::new(words.word()?),
            cells: Default::default(),
        };
        for cell in &mut bucket.cells {
            *cell = Cell::read(&mut words)?;
        }
        words.is_done().then_some(bucket)
    }

    /// To bytes for storing.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut words = WordWriter::with_words(BUCKET_WORDS);
        words.word(self.turned_away_until.get());
        words.word(self.turned_away_generation.get());
        for cell in &self.cells {
            Cell::write(cell.as_ref(), &mut words);
        }
        words.into_bytes()
    }

    /// Whether every cell holds G >= U + R.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.cells.iter().flatten().all(Cell::is_sound)
    }

    /// The cells whose window is not over.
    pub fn live_cells(&self, now: Moment) -> impl Iterator<Item = &Cell> {
        self.cells
            .iter()
            .flatten()
            .filter(move |cell| !cell.is_over(now.service.earliest))
    }

    /// The lease of a key, if it has a cell.
    #[must_use]
    pub fn lease(&self, key: KeyHash, window: Window) -> Option<LeaseAmounts> {
        self.peek(key, window).map(|cell| cell.amounts)
    }

    /// The cell of a key.
    #[must_use]
    pub fn peek(&self, key: KeyHash, window: Window) -> Option<&Cell> {
        let mut cells = self.cells.iter().flatten();
        cells.find(|cell| cell.key == key && cell.window == window)
    }

    fn cell(&mut self, key: KeyHash, window: Window) -> Option<&mut Cell> {
        self.cells
            .iter_mut()
            .flatten()
            .find(|cell| cell.key == key && cell.window == window)
    }

    /// Takes tokens for one request, or says what else to do. A key without a cell claims one.
    pub fn take(&mut self, claim: Claim, cost: Tokens, how: Take, now: Moment) -> Taken {
        if self.cell(claim.key, claim.window).is_none() || self.claims_twice(claim, now) {
            self.claim(claim, now);
        }
        let Some(cell) = self.cell(claim.key, claim.window) else {
            return Taken::Edge { has_cell: false };
        };
        if !cell.adopt(claim.tenant) {
            return Taken::Edge { has_cell: false };
        }
        cell.settle_expired(now.local);
        let judged = cost.max(Tokens::new(1));
        let free = cell.amounts.free();
        if judged <= free {
            cell.demand.note(judged, now.local, claim.window.length());
            match how {
                Take::Spend => cell.amounts.used = cell.amounts.used.plus(cost),
                Take::Reserve => {
                    cell.amounts.reserved = cell.amounts.reserved.plus(cost);
                    cell.reserved_until = now.local.plus(RESERVATION_MAX);
                }
            }
            return Taken::Admitted {
                ask_ahead: mark_ask_ahead(cell, now),
            };
        }
        match cell.total {
            Some(proof) if now.local < proof.until && proof.left < judged => Taken::Refused,
            _ if cell.may_stand() => Taken::Unclaimed,
            _ => {
                cell.demand.note(judged, now.local, claim.window.length());
                Taken::Edge { has_cell: true }
            }
        }
    }

    /// Claims a free place for a key; where there is none, marks the bucket, so that whoever claims
    /// later in this window starts renounced. Without the mark a delayed lease could meet that
    /// later claim, and one token would live twice.
    fn claim(&mut self, claim: Claim, now: Moment) -> bool {
        let earliest = now.service.earliest;
        let marked = earliest < self.turned_away_until && !trap::is_off(Trap::ShareComesBack);
        let generation = if marked {
            self.turned_away_generation
        } else {
            Generation::default()
        };
        let mut cell = Cell::claimed(claim.key, claim.window, claim.tenant, generation);
        let is_former = |cell: &Cell| cell.key == claim.key && cell.is_over(earliest);
        let mut places = self.cells.iter_mut();
        let former = places.find(|place| place.as_ref().is_some_and(is_former));
        let free = match former {
            Some(place) => {
                let former = place.as_ref();
                let demand = former.map(|former| former.demand_for_the_next(now.local, earliest));
                cell.demand = demand.unwrap_or_default();
                Some(place)
            }
            None => {
                let mut places = self.cells.iter_mut();
                places.find(|place| place.as_ref().is_none_or(|cell| cell.is_over(earliest)))
            }
        };
        if let Some(place) = free {
            *place = Some(cell);
            return true;
        }
        self.mark_turned_away(claim.window, Generation::new(1), earliest);
        false
    }

    /// Whether a claim that stops at the first free place misses the cell behind it (trap 8).
    fn claims_twice(&self, claim: Claim, now: Moment) -> bool {
        if !trap::is_off(Trap::TwoCells) {
            return false;
        }
        let is_free = |place: &Option<Cell>| {
            let cell = place.as_ref();
            cell.is_none_or(|cell| cell.is_over(now.service.earliest))
        };
        let is_ours = |place: &Option<Cell>| {
            let cell = place.as_ref();
            cell.is_some_and(|cell| cell.key == claim.key && cell.window == claim.window)
        };
        let free = self.cells.iter().position(is_free);
        free.is_some() && free < self.cells.iter().position(is_ours)
    }

    fn mark_turned_away(&mut self, window: Window, generation: Generation, now: ServiceTime) {
        if self.turned_away_until <= now {
            self.turned_away_generation = Generation::default();
        }
        self.turned_away_until = self.turned_away_until.max(window.end());
        self.turned_away_generation = self
            .turned_away_generation
            .max(generation)
            .max(Generation::new(1));
        if trap::is_off(Trap::MarkWithoutGeneration) {
            self.turned_away_generation = Generation::default();
        }
    }

    /// Takes in the standing share of a cell that was claimed before the share was looked for. A
    /// fence in between, or another tenancy, leaves the cell as it is.
    pub fn stand(&mut self, claim: Claim, share: Tokens) {
        if let Some(cell) = self.cell(claim.key, claim.window)
            && cell.tenant.incarnation == claim.tenant.incarnation
        {
            cell.stand(share);
        }
    }

    /// A reservation becomes spent. Matches key and window, not the generation: a recall in between
    /// left R alone. Says what to return if the recall waited for it.
    pub fn commit(&mut self, key: KeyHash, window: Window, cost: Tokens) -> Option<Return> {
        let cell = self.cell(key, window)?;
        // Less than the cost is left of R when it expired, or the seat was lost: already spent.
        let moved = cell.amounts.reserved.min(cost);
        cell.amounts.reserved = cell.amounts.reserved.minus(moved);
        cell.amounts.used = cell.amounts.used.plus(moved);
        return_owed(cell)
    }

    /// A reservation goes back to the lease.
    pub fn release(&mut self, key: KeyHash, window: Window, cost: Tokens) -> Option<Return> {
        let cell = self.cell(key, window)?;
        if trap::is_off(Trap::UsedFalls) {
            cell.amounts.used = cell.amounts.used.minus(cost);
        }
        cell.amounts.reserved = cell.amounts.reserved.minus(cost);
        return_owed(cell)
    }

    /// Takes a grant in, if the cell is still the one it was made for.
    pub fn grant(&mut self, claim: Claim, generation: Generation, granted: Tokens) -> bool {
        if trap::is_off(Trap::CellChangedHands) {
            return self.grant_unmatched(claim.key, granted);
        }
        let Some(cell) = self.cell(claim.key, claim.window) else {
            return false;
        };
        let same = cell.amounts.generation == generation
            && cell.tenant.incarnation == claim.tenant.incarnation
            && cell.tenant.epoch <= claim.tenant.epoch;
        if !same {
            return false;
        }
        cell.tenant.epoch = claim.tenant.epoch;
        if granted > cell.amounts.granted {
            cell.last_grant = granted.minus(cell.amounts.granted);
            cell.amounts.granted = granted;
            cell.ahead_until = LocalTime::ZERO;
        }
        true
    }

    /// Takes a grant in wherever the key has its latest cell (trap 16).
    fn grant_unmatched(&mut self, key: KeyHash, granted: Tokens) -> bool {
        let cells = self.cells.iter_mut().flatten();
        let latest = cells
            .filter(|cell| cell.key == key)
            .max_by_key(|cell| cell.window);
        if let Some(cell) = latest {
            cell.amounts.granted = cell.amounts.granted.max(granted);
        }
        true
    }

    /// Counts what the owner decided as spent from the lease (trap 10).
    pub fn merge_used(&mut self, key: KeyHash, window: Window, used: Tokens) {
        if let Some(cell) = self.cell(key, window) {
            let most = cell.amounts.granted.minus(cell.amounts.reserved);
            cell.amounts.used = cell.amounts.used.max(used).min(most);
        }
    }

    /// Stops asking ahead for a key until an instant: the owner has parked the wish.
    pub fn hold_ask_ahead(&mut self, key: KeyHash, window: Window, until: LocalTime) {
        if let Some(cell) = self.cell(key, window) {
            cell.ahead_until = cell.ahead_until.max(until);
        }
    }

    /// Keeps a proof. What is left of a fixed window only falls, so the smaller one counts.
    pub fn prove(&mut self, claim: Claim, proof: HeldProof, now: Moment) {
        let begun = claim.window.start() <= now.service.earliest;
        if begun && self.cell(claim.key, claim.window).is_none() && !self.claim(claim, now) {
            return;
        }
        let Some(cell) = self.cell(claim.key, claim.window) else {
            return;
        };
        if cell.tenant.epoch > claim.tenant.epoch {
            return;
        }
        let left = match cell.total {
            Some(held) if now.local < held.until => held.left.min(proof.left),
            _ => proof.left,
        };
        cell.total = Some(HeldProof {
            left,
            until: proof.until,
        });
    }
}

#[cfg(test)]
mod tests;
