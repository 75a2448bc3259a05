//! What to do when the pool has too little: call tokens back in two rounds, wait for what is on its
//! way, and only when nothing can come any more, refuse.

use super::{KeyState, Surroundings};
use crate::owner::effect::KeyEffect;
use crate::owner::ledger::Holder;
use crate::owner::size;
use crate::trap::{self, Trap};
use crate::units::{Tenancy, Tokens};

/// How far the recalls for the ask at the front have gone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Round {
    /// None yet.
    None,
    /// The richest were asked for what is above their fair share.
    First,
    /// All were asked for everything.
    Second,
}

/// Why the pool does not suffice.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Shortage {
    /// Something may still come back.
    Waits,
    /// A replica that holds tokens does not answer.
    NobodyKnows,
    /// Nothing is left anywhere: the moment of a refusal.
    NothingLeft,
}

impl KeyState {
    /// Calls back what can be called back, and says what a cost that the pool cannot serve is to
    /// do. Invariant C: nothing is refused while the last word of any holder is G > U, or a
    /// reservation may still go back.
    pub(super) fn shortage(&mut self, around: &Surroundings, out: &mut Vec<KeyEffect>) -> Shortage {
        let open = |holder: &&Holder| holder.recall.is_some();
        let failed = |holder: &Holder| {
            let since = holder.recall.map(|recall| recall.since);
            since.is_some_and(|since| since.plus(around.recall_timeout) <= around.now)
        };
        let holders = self.ledger.holders();
        let some_failed = holders.values().any(failed);
        if holders.values().filter(open).any(|holder| !failed(holder)) {
            return Shortage::Waits;
        }
        if self.start_round(around, out) {
            return Shortage::Waits;
        }
        if some_failed {
            return Shortage::NobodyKnows;
        }
        let owed = self
            .ledger
            .holders()
            .values()
            .any(|holder| holder.owes_return);
        let charged = !self.ledger.provisional().is_empty();
        if owed || charged && !trap::is_off(Trap::ProvisionalIgnored) {
            return Shortage::Waits;
        }
        Shortage::NothingLeft
    }

    /// Starts the next round, if some holder has unused tokens that nobody has called for.
    fn start_round(&mut self, around: &Surroundings, out: &mut Vec<KeyEffect>) -> bool {
        let mut rich: Vec<(Tenancy, Tokens)> = self
            .ledger
            .holders()
            .iter()
            .filter(|(_, holder)| holder.recall.is_none() && !holder.owes_return)
            .map(|(tenancy, holder)| (*tenancy, holder.free()))
            .filter(|(_, free)| *free > Tokens::ZERO)
            .collect();
        let fair = size::fair_share(self.ledger.free_outside(), around.replicas);
        let mut keep = Tokens::ZERO;
        if self.round == Round::None && rich.iter().any(|(_, free)| *free > fair) {
            rich.retain(|(_, free)| *free > fair);
            rich.sort_by_key(|(_, free)| std::cmp::Reverse(*free));
            rich.truncate(size::first_round_width(around.replicas));
            keep = size::first_round_keeps(fair);
            self.round = Round::First;
        } else {
            self.round = Round::Second;
        }
        for (tenancy, _) in &rich {
            self.call_back(around, *tenancy, keep, out);
        }
        !rich.is_empty()
    }
}
