//! Leases and proofs: what goes along with decisions.

use super::{KeyState, PROOF_SLACK, Surroundings, Waiting};
use crate::message::{Ask, Proof};
use crate::owner::size;
use crate::units::{Generation, Span, Tenancy, Tokens};

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
        let length = window.end().since(window.start());
        let time_to_live = Span::new(length.get().saturating_add(PROOF_SLACK.get()));
        Proof { left, time_to_live }
    }

    pub(super) fn proof_if_exhausted(&self) -> Option<Proof> {
        self.exhausted_told.then(|| self.proof(Tokens::ZERO))
    }

    pub(super) fn ask_id_is_provisional(ask: &Ask, index: usize) -> bool {
        ask.costs.get(index).is_some_and(|cost| cost.provisional)
    }

    /// Tokens of the asker's next lease, moved from the pool; said only to who has a cell and is
    /// not being recalled from.
    pub(super) fn lease_to(&mut self, around: &Surroundings, waiting: &Waiting) -> bool {
        let Some(from) = waiting.from.filter(|_| waiting.ask.window.is_some()) else {
            return false;
        };
        let holders = self.ledger.holders();
        let may = holders
            .get(&from)
            .is_some_and(|holder| holder.has_cell && holder.recall.is_none());
        if !may || waiting.ask.lease.is_none() {
            return false;
        }
        let amount = size::lease(self.ledger.remaining(), around.replicas);
        let granted = self.ledger.grant(from, amount);
        self.changed |= granted > Tokens::ZERO;
        granted > Tokens::ZERO
    }
}
