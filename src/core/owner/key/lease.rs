//! Leases and proofs: what goes along with decisions.

use super::{KeyState, Surroundings, Waiting};
use crate::message::{Ask, Proof};
use crate::owner::size;
use crate::units::{Generation, Span, Tenancy, Tokens};

/// How much longer than its window a proof may be kept: it is matched with the window wherever it
/// is used, so this only has to cover a poll that was sent before the window began.
const PROOF_SLACK: Span = Span::from_secs(2);

impl KeyState {
    /// The lease of an asker that named the running window and has a cell.
    pub(super) fn lease_of(&self, from: Tenancy, ask: &Ask) -> Option<(Generation, Tokens)> {
        ask.window?;
        let holder = self
            .ledger
            .holders()
            .get(&from)
            .filter(|holder| holder.has_cell)?;
        let some = holder.granted > Tokens::ZERO && ask.lease.is_some();
        some.then_some((holder.generation, holder.granted))
    }

    pub(super) fn proof(&self, left: Tokens) -> Proof {
        let window = self.ledger.window();
        let length = window.length();
        let time_to_live = Span::new(length.get().saturating_add(PROOF_SLACK.get()));
        Proof { left, time_to_live }
    }

    pub(super) fn proof_if_exhausted(&self) -> Option<Proof> {
        self.exhausted_told.then(|| self.proof(Tokens::ZERO))
    }

    pub(super) fn ask_id_is_provisional(ask: &Ask, index: usize) -> bool {
        ask.costs.get(index).is_some_and(|cost| cost.provisional)
    }

    /// Tokens of the asker's next lease, moved from the pool, if they may be now; whether there
    /// were any, else its wish is parked. `None` for who may have none: a lease is for who has a
    /// cell.
    pub(super) fn lease_to(
        &mut self,
        around: &Surroundings,
        waiting: &Waiting,
        now: bool,
    ) -> Option<bool> {
        let from = waiting.from.filter(|_| waiting.ask.window.is_some())?;
        let holders = self.ledger.holders();
        let holder = holders.get(&from).filter(|holder| holder.has_cell)?;
        let _named = waiting.ask.lease?;
        let grows = if now && holder.recall.is_none() {
            let amount = size::lease(&self.needs(around, holder.demand));
            self.ledger.grant(from, amount) > Tokens::ZERO
        } else {
            false
        };
        self.changed |= grows;
        self.ledger.holder(from).wishes = !grows;
        Some(grows)
    }
}
