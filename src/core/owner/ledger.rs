//! The amounts of one key in one window: every token is in exactly one place.
//!
//! Invariant A: pool + sum of G + spent + provisional + dead = limit, asserted after every change
//! ([`Ledger::is_sound`]). G of a holder falls only by the holder's own fenced word.

use std::collections::BTreeMap;

use crate::message::{AskId, LeaseAmounts};
use crate::units::{Generation, Rate, ServiceTime, Tenancy, Tokens};
use crate::window::Window;

/// A recall that has not been returned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OpenRecall {
    /// The generation that is recalled.
    pub generation: Generation,
    /// Unused tokens that may be kept.
    pub keep: Tokens,
    /// When it was decided on.
    pub since: ServiceTime,
}

/// What the owner knows of one replica's lease.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Holder {
    /// The last generation heard of.
    pub generation: Generation,
    /// Tokens granted (G).
    pub granted: Tokens,
    /// At least so many are spent (U).
    pub used: Tokens,
    /// The replica has a cell for the key, hence may be granted a lease.
    pub has_cell: bool,
    /// Its last fenced word said R > 0: another one follows when that has fallen to 0.
    pub owes_return: bool,
    /// Tokens are being called back.
    pub recall: Option<OpenRecall>,
    /// It asked ahead of need, and the pool had nothing: it is told when there is something.
    pub wishes: bool,
    /// Demand, as it was last heard of.
    pub demand: Rate,
}

impl Holder {
    /// At most so many are unused: G - U. It covers R.
    #[must_use]
    pub const fn free(&self) -> Tokens {
        self.granted.minus(self.used)
    }
}

/// A cost charged until its request has heard from its other rules.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Provisional {
    /// Tokens charged.
    pub amount: Tokens,
    /// When it counts as spent, if nothing was heard.
    pub expires: ServiceTime,
}

/// Names a provisional charge: the ask, and which of its costs.
pub type ChargeId = (AskId, u32);

/// The amounts of one key in one window.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ledger {
    window: Window,
    limit: Tokens,
    pool: Tokens,
    /// Costs that the owner decided itself.
    spent: Tokens,
    /// Tokens that died with a replica.
    dead: Tokens,
    holders: BTreeMap<Tenancy, Holder>,
    provisional: BTreeMap<ChargeId, Provisional>,
}

impl Ledger {
    /// A window in which nothing has happened.
    #[must_use]
    pub const fn new(window: Window, limit: Tokens) -> Self {
        Self {
            window,
            limit,
            pool: limit,
            spent: Tokens::ZERO,
            dead: Tokens::ZERO,
            holders: BTreeMap::new(),
            provisional: BTreeMap::new(),
        }
    }

    /// From stored parts; `None` if they exceed the limit.
    #[must_use]
    pub fn restore(
        window: Window,
        limit: Tokens,
        (spent, dead): (Tokens, Tokens),
        holders: BTreeMap<Tenancy, Holder>,
        provisional: BTreeMap<ChargeId, Provisional>,
    ) -> Option<Self> {
        let mut ledger = Self {
            spent,
            dead,
            holders,
            provisional,
            ..Self::new(window, limit)
        };
        let pool = u128::from(limit.get()).checked_sub(ledger.outside_pool())?;
        ledger.pool = Tokens::new(u64::try_from(pool).ok()?);
        Some(ledger)
    }

    fn outside_pool(&self) -> u128 {
        let granted = self
            .holders
            .values()
            .map(|holder| u128::from(holder.granted.get()));
        let charged = self
            .provisional
            .values()
            .map(|charge| u128::from(charge.amount.get()));
        let own = u128::from(self.spent.get()).saturating_add(u128::from(self.dead.get()));
        granted.chain(charged).fold(own, u128::saturating_add)
    }

    /// Invariant A, and G >= U for every holder.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        let total = self
            .outside_pool()
            .saturating_add(u128::from(self.pool.get()));
        let holders = self
            .holders
            .values()
            .all(|holder| holder.used <= holder.granted);
        total == u128::from(self.limit.get()) && holders
    }

    /// The window.
    #[must_use]
    pub const fn window(&self) -> Window {
        self.window
    }

    /// Tokens of the window.
    #[must_use]
    pub const fn limit(&self) -> Tokens {
        self.limit
    }

    /// Tokens that nobody holds.
    #[must_use]
    pub const fn pool(&self) -> Tokens {
        self.pool
    }

    /// Costs that the owner decided itself.
    #[must_use]
    pub const fn spent(&self) -> Tokens {
        self.spent
    }

    /// Tokens that died with a replica.
    #[must_use]
    pub const fn dead(&self) -> Tokens {
        self.dead
    }

    /// All who know the key.
    #[must_use]
    pub const fn holders(&self) -> &BTreeMap<Tenancy, Holder> {
        &self.holders
    }

    /// Charges that await their resolution.
    #[must_use]
    pub const fn provisional(&self) -> &BTreeMap<ChargeId, Provisional> {
        &self.provisional
    }

    /// Tokens that may still be unused: the pool and an upper bound of what is out.
    #[must_use]
    pub fn remaining(&self) -> Tokens {
        self.pool.plus(self.free_outside())
    }

    /// An upper bound of what holders have unused.
    #[must_use]
    pub fn free_outside(&self) -> Tokens {
        self.holders.values().map(Holder::free).sum()
    }

    /// What a refusal may state as left, at this instant: provisional charges may come back.
    #[must_use]
    pub fn left(&self) -> Tokens {
        self.pool
            .plus(self.provisional.values().map(|charge| charge.amount).sum())
    }

    /// A replica's lease, known from now on.
    pub fn holder(&mut self, tenancy: Tenancy) -> &mut Holder {
        self.holders.entry(tenancy).or_default()
    }

    /// A seat's standing share of a window that begins: granted without a word.
    pub fn stand(&mut self, tenancy: Tenancy, share: Tokens) {
        self.grant(tenancy, share);
    }

    /// The standing share of a seat whose replica is gone: spent, for all that is known.
    pub fn soil(&mut self, share: Tokens) {
        let dead = share.min(self.pool);
        self.pool = self.pool.minus(dead);
        self.dead = self.dead.plus(dead);
    }

    /// Charges a cost for good; `false` if the pool has less than has to be left for it.
    pub fn charge(&mut self, amount: Tokens, judged: Tokens) -> bool {
        let enough = judged <= self.pool;
        if enough {
            self.pool = self.pool.minus(amount);
            self.spent = self.spent.plus(amount);
        }
        enough
    }

    /// Charges a cost to a lease (trap 10); `false` as for [`Self::charge`].
    pub fn charge_to_lease(&mut self, tenancy: Tenancy, amount: Tokens, judged: Tokens) -> bool {
        let enough = judged <= self.pool;
        if enough {
            self.pool = self.pool.minus(amount);
            let holder = self.holder(tenancy);
            holder.granted = holder.granted.plus(amount);
            holder.used = holder.used.plus(amount);
        }
        enough
    }

    /// Charges a cost until its resolution; `false` as for [`Self::charge`].
    pub fn charge_provisionally(
        &mut self,
        id: ChargeId,
        charge: Provisional,
        judged: Tokens,
    ) -> bool {
        let enough = judged <= self.pool && !self.provisional.contains_key(&id);
        if enough {
            self.pool = self.pool.minus(charge.amount);
            self.provisional.insert(id, charge);
        }
        enough
    }

    /// Ends a provisional charge; `false` if there is none (any more).
    pub fn resolve(&mut self, id: ChargeId, commit: bool) -> bool {
        let Some(charge) = self.provisional.remove(&id) else {
            return false;
        };
        let place = if commit {
            &mut self.spent
        } else {
            &mut self.pool
        };
        *place = place.plus(charge.amount);
        true
    }

    /// Counts expired provisional charges as spent; whether there were any.
    pub fn expire_provisional(&mut self, now: ServiceTime) -> bool {
        let expired: Vec<ChargeId> = self
            .provisional
            .iter()
            .filter(|(_, charge)| charge.expires <= now)
            .map(|(id, _)| *id)
            .collect();
        for id in &expired {
            self.resolve(*id, true);
        }
        !expired.is_empty()
    }

    /// Moves tokens from the pool to a lease, at most what the pool has.
    pub fn grant(&mut self, tenancy: Tenancy, amount: Tokens) -> Tokens {
        let granted = amount.min(self.pool);
        self.pool = self.pool.minus(granted);
        let holder = self.holder(tenancy);
        holder.granted = holder.granted.plus(granted);
        granted
    }

    /// Takes in what a replica says of its lease. A higher generation is always a fenced return:
    /// what it no longer has joins the pool. `None` if the word cannot be true (more granted than
    /// the owner ever did); nothing is changed then.
    pub fn report(&mut self, tenancy: Tenancy, said: LeaseAmounts, fenced: bool) -> Option<bool> {
        let holder = self.holders.entry(tenancy).or_default();
        if said.generation < holder.generation {
            return Some(false);
        }
        if said.granted > holder.granted {
            return None;
        }
        let before = *holder;
        if said.generation > holder.generation {
            let back = holder.granted.minus(said.granted);
            holder.generation = said.generation;
            holder.granted = said.granted;
            holder.used = said.used;
            holder.recall = None;
            holder.owes_return = fenced && said.reserved > Tokens::ZERO;
            self.pool = self.pool.plus(back);
        } else {
            // Reports of one generation may overtake each other; U only grows. A recall's own
            // generation still open means that the word was said before the recall was heard.
            holder.used = holder.used.max(said.used);
        }
        Some(*holder != before)
    }

    /// Tokens above `keep` are called back from a holder; of which generation.
    pub fn call_back(&mut self, from: Tenancy, keep: Tokens, since: ServiceTime) -> Generation {
        let holder = self.holder(from);
        let generation = holder.generation;
        holder.recall = Some(OpenRecall {
            generation,
            keep,
            since,
        });
        generation
    }

    /// Takes over from the window before what was heard of demand.
    pub fn take_demand(&mut self, before: &Self) {
        for (tenancy, holder) in &mut self.holders {
            let known = before.holders.get(tenancy);
            holder.demand = known.map_or(Rate::ZERO, |known| known.demand);
        }
    }

    /// A replica is gone: what it held counts as spent.
    pub fn bury(&mut self, tenancy: Tenancy) -> bool {
        let Some(holder) = self.holders.remove(&tenancy) else {
            return false;
        };
        self.spent = self.spent.plus(holder.used);
        self.dead = self.dead.plus(holder.free());
        true
    }
}

#[cfg(test)]
mod tests;
