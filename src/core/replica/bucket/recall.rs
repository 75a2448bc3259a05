//! Giving tokens back: recalls, and the fences of a new leader or a new tenancy. Every one raises
//! the generation, so that what was granted before it counts no more.

use super::{Bucket, Claim, Moment};
use crate::message::{Lease, LeaseAmounts, Recall, Return};
use crate::replica::cell::{Cell, Tenant};
use crate::trap::{self, Trap};
use crate::units::{Epoch, Generation, LocalTime, Rate, Tokens};

impl Bucket {
    /// Answers a recall; `None` if the window has not certainly begun here (the owner repeats).
    /// Nothing is returned that is not recorded: without a cell and without a free place, the mark
    /// of the bucket records it.
    pub fn recall(&mut self, recall: Recall, tenant: Tenant, now: Moment) -> Option<Return> {
        if now.service.earliest < recall.window.start() {
            return None;
        }
        let claim = Claim {
            key: recall.key,
            window: recall.window,
            tenant,
        };
        if self.cell(recall.key, recall.window).is_none() {
            return Some(self.recall_without_cell(claim, recall.generation.next(), now));
        }
        let cell = self.cell(recall.key, recall.window)?;
        if !cell.adopt(tenant) {
            return None;
        }
        cell.settle_expired(now.local);
        let owed = cell.owes_return && cell.amounts.reserved == Tokens::ZERO;
        if recall.generation >= cell.amounts.generation || owed {
            // A generation above the cell's own is one that it was never told; it is now passed.
            cell.amounts.generation = cell.amounts.generation.max(recall.generation);
            cell.fence(if owed { Tokens::ZERO } else { recall.keep });
            cell.owes_return = cell.amounts.reserved > Tokens::ZERO;
        }
        Some(returned(cell, now.local))
    }

    fn recall_without_cell(&mut self, claim: Claim, passed: Generation, now: Moment) -> Return {
        let marked = now.service.earliest < self.turned_away_until;
        let known = if marked {
            self.turned_away_generation
        } else {
            Generation::default()
        };
        let generation = passed.max(known);
        let unrecorded = trap::is_off(Trap::RecallUnrecorded);
        let has_cell = !unrecorded && self.claim(claim, now);
        if let Some(cell) = self.cell(claim.key, claim.window) {
            cell.amounts.generation = generation;
        } else if !unrecorded {
            self.mark_turned_away(claim.window, generation, now.service.earliest);
        }
        let amounts = LeaseAmounts {
            generation,
            ..LeaseAmounts::default()
        };
        Return {
            lease: Lease {
                key: claim.key,
                window: claim.window,
                amounts,
            },
            demand: Rate::ZERO,
            has_cell,
        }
    }

    /// Fences every live cell for a new leader, so that no grant of an older one counts any more.
    /// What is free stays free. Gives the leases to register.
    pub fn fence_all(&mut self, epoch: Epoch, now: Moment) -> Vec<Lease> {
        let earliest = now.service.earliest;
        let live = self
            .cells
            .iter_mut()
            .flatten()
            .filter(|cell| !cell.is_over(earliest));
        live.map(|cell| {
            cell.settle_expired(now.local);
            cell.tenant.epoch = cell.tenant.epoch.max(epoch);
            let free = cell.amounts.free();
            cell.fence(free);
            returned(cell, now.local).lease
        })
        .collect()
    }

    /// Fences every live cell of a tenancy that ends, and keeps nothing. Gives what was used.
    pub fn empty_all(&mut self, tenant: Tenant, now: Moment) -> Vec<Lease> {
        let live = |cell: &Cell| !cell.is_over(now.service.earliest);
        let mine = |cell: &Cell| cell.tenant.incarnation == tenant.incarnation;
        let cells = self.cells.iter_mut().flatten();
        let fenced = cells.filter(|cell| live(cell) && mine(cell)).map(|cell| {
            cell.settle_expired(now.local);
            cell.fence(Tokens::ZERO);
            returned(cell, now.local).lease
        });
        fenced.collect()
    }

    /// Empties every live cell for a new tenancy: what the old one held counts as spent. Proofs
    /// stay, since what is left of a window never grows.
    pub fn renounce_all(&mut self, tenant: Tenant, now: Moment) {
        let earliest = now.service.earliest;
        for cell in self
            .cells
            .iter_mut()
            .flatten()
            .filter(|cell| !cell.is_over(earliest))
        {
            cell.renounce(tenant);
        }
    }
}

/// What a recall waits for, once nothing is reserved any more.
pub(super) fn return_owed(cell: &mut Cell) -> Option<Return> {
    if !cell.owes_return || cell.amounts.reserved > Tokens::ZERO {
        return None;
    }
    cell.fence(Tokens::ZERO);
    cell.owes_return = false;
    Some(returned(cell, cell.demand.at))
}

pub(super) fn returned(cell: &Cell, now: LocalTime) -> Return {
    let lease = Lease {
        key: cell.key,
        window: cell.window,
        amounts: cell.amounts,
    };
    Return {
        lease,
        demand: cell.rate(now),
        has_cell: true,
    }
}
