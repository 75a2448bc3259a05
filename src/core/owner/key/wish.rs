//! Leases ahead of need: how large they are, and the wishes that the pool could not serve. A wish
//! is parked at its holder, and served when tokens come back: nobody polls.

use super::{KeyState, Surroundings};
use crate::message::{Lease, LeaseAmounts, Recall};
use crate::owner::effect::KeyEffect;
use crate::owner::ledger::Holder;
use crate::owner::size::{self, Needs};
use crate::units::{Rate, Tenancy, Tokens};

impl KeyState {
    /// What the size of a holder's lease follows from. It looks at every holder.
    pub(super) fn needs(&self, around: &Surroundings, rate: Rate) -> Needs {
        let holders = self.ledger.holders().values();
        Needs {
            remaining: self.ledger.remaining(),
            replicas: around.replicas,
            window: self.ledger.window().length(),
            rate,
            all: holders.map(|holder| holder.demand).sum(),
        }
    }

    /// Serves parked wishes while the pool lasts, who runs dry first before the others; then calls
    /// back in the background what a replica has far above its fair share.
    pub(super) fn serve_wishes(&mut self, around: &Surroundings, out: &mut Vec<KeyEffect>) {
        let mut wishes: Vec<(Tenancy, Holder)> = self
            .ledger
            .holders()
            .iter()
            .filter(|(_, holder)| holder.wishes && holder.has_cell && holder.recall.is_none())
            .map(|(tenancy, holder)| (*tenancy, *holder))
            .collect();
        if wishes.is_empty() {
            return;
        }
        wishes.sort_by_key(|(_, holder)| size::time_to_empty(holder.free(), holder.demand));
        // A grant moves tokens and leaves what remains as it is, so this holds for all of them.
        let of_all = self.needs(around, Rate::ZERO);
        let needs_of = |rate: Rate| Needs { rate, ..of_all };
        for (tenancy, holder) in &wishes {
            if self.ledger.pool() == Tokens::ZERO {
                break;
            }
            // Who asks for so little that nothing is leased to it does not stop the others.
            let size = size::lease(&needs_of(holder.demand));
            if size > Tokens::ZERO {
                self.grant_wish(*tenancy, size, out);
            }
        }
        let is_unserved = |(tenancy, _): &&(Tenancy, Holder)| {
            let holder = self.ledger.holders().get(tenancy);
            holder.is_some_and(|holder| holder.wishes)
        };
        let mut unserved = wishes.iter().filter(is_unserved);
        if self.ledger.pool() == Tokens::ZERO
            && unserved.any(|(_, holder)| size::fair(&needs_of(holder.demand)) >= Tokens::new(1))
        {
            self.call_back_the_richest(around, &of_all, out);
        }
    }

    fn grant_wish(&mut self, tenancy: Tenancy, size: Tokens, out: &mut Vec<KeyEffect>) {
        self.ledger.grant(tenancy, size);
        self.changed = true;
        let window = self.ledger.window();
        let holder = self.ledger.holder(tenancy);
        holder.wishes = false;
        let lease = Lease {
            key: self.key,
            window,
            amounts: LeaseAmounts {
                generation: holder.generation,
                granted: holder.granted,
                ..LeaseAmounts::default()
            },
        };
        out.push(KeyEffect::Granted(tenancy, lease));
    }

    /// One at a time: what it gives back may suffice.
    fn call_back_the_richest(
        &mut self,
        around: &Surroundings,
        of_all: &Needs,
        out: &mut Vec<KeyEffect>,
    ) {
        let holders = self.ledger.holders();
        let running = |holder: &Holder| holder.recall.is_some() || holder.owes_return;
        if holders.values().any(running) {
            return;
        }
        let excess = |holder: &Holder| {
            let rate = holder.demand;
            let fair = size::fair(&Needs { rate, ..*of_all });
            (size::far_above(holder.free(), fair)).then(|| (holder.free().minus(fair), fair))
        };
        let richest = holders
            .iter()
            .filter_map(|(tenancy, holder)| Some((excess(holder)?, *tenancy)))
            .max();
        if let Some(((_, fair), tenancy)) = richest {
            self.call_back(around, tenancy, size::background_keeps(fair), out);
        }
    }

    /// Calls tokens back from a holder.
    pub(super) fn call_back(
        &mut self,
        around: &Surroundings,
        from: Tenancy,
        keep: Tokens,
        out: &mut Vec<KeyEffect>,
    ) {
        let generation = self.ledger.call_back(from, keep, around.now);
        let recall = Recall {
            key: self.key,
            window: self.ledger.window(),
            generation,
            keep,
        };
        out.push(KeyEffect::Recall(from, recall));
    }
}
