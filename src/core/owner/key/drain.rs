//! Decides waiting costs in order. Each is charged to the owner's own account, never to a lease:
//! so no worker can spend what another's decision consumed.

use super::recall::Shortage;
use super::{KeyState, Surroundings, Waiting};
use crate::message::{Answer, AnswerKind, Cost, Decision, Exhausted};
use crate::owner::effect::KeyEffect;
use crate::owner::ledger::Provisional;
use crate::replica::bucket::RESERVATION_MAX;
use crate::trap::{self, Trap};
use crate::units::{Tenancy, Tokens};

/// What can be said of a cost now.
enum Judgement {
    Decided(Decision),
    /// Not before a recall or a reservation has ended.
    Waits,
}

impl KeyState {
    /// Decides what can be decided, and answers it.
    pub(super) fn drain(&mut self, around: &Surroundings, out: &mut Vec<KeyEffect>) {
        while let Some(mut waiting) = self.waiting.pop_front() {
            let complete = self.judge_all(around, &mut waiting, out);
            let is_kept = waiting.decisions.is_empty() || trap::is_off(Trap::WaitsForItself);
            if !complete && is_kept {
                self.waiting.push_front(waiting);
                return;
            }
            // Before an ask waits on a reservation or a recall it is answered with what is decided:
            // the reservation might be its own.
            self.answer(around, &waiting, complete, out);
        }
        self.round = super::Round::None;
        self.serve_wishes(around, out);
    }

    /// Decides the costs of one ask; whether all are decided.
    fn judge_all(
        &mut self,
        around: &Surroundings,
        waiting: &mut Waiting,
        out: &mut Vec<KeyEffect>,
    ) -> bool {
        let undecided = waiting
            .ask
            .costs
            .iter()
            .enumerate()
            .skip(waiting.decisions.len());
        for (index, cost) in undecided {
            match self.judge(around, waiting, index, cost, out) {
                Judgement::Decided(decision) => {
                    if decision == Decision::Refuse {
                        // Taken at the moment of the refusal, before any lease of the same answer.
                        waiting.total = Some(self.ledger.left());
                    }
                    waiting.decisions.push(decision);
                }
                Judgement::Waits => return false,
            }
        }
        true
    }

    fn judge(
        &mut self,
        around: &Surroundings,
        waiting: &Waiting,
        index: usize,
        cost: &Cost,
        out: &mut Vec<KeyEffect>,
    ) -> Judgement {
        if cost.decide_by <= around.now && !trap::is_off(Trap::DecidedLate) {
            return Judgement::Decided(Decision::Undecided);
        }
        if self.charge(around, waiting, index, cost) {
            self.changed = true;
            return Judgement::Decided(Decision::Admit);
        }
        match self.shortage(around, out) {
            Shortage::Waits => Judgement::Waits,
            Shortage::NobodyKnows => Judgement::Decided(Decision::Undecided),
            Shortage::NothingLeft => Judgement::Decided(Decision::Refuse),
        }
    }

    fn charge(
        &mut self,
        around: &Surroundings,
        waiting: &Waiting,
        index: usize,
        cost: &Cost,
    ) -> bool {
        if let Some(from) = charged_to_lease(waiting) {
            return self
                .ledger
                .charge_to_lease(from, cost.amount, cost.judged());
        }
        if !Self::ask_id_is_provisional(&waiting.ask, index) {
            return self.ledger.charge(cost.amount, cost.judged());
        }
        let id = (waiting.ask.id, u32::try_from(index).unwrap_or(u32::MAX));
        let expires = around.now.plus(RESERVATION_MAX);
        let charge = Provisional {
            amount: cost.amount,
            expires,
        };
        self.ledger.charge_provisionally(id, charge, cost.judged())
    }

    pub(super) fn answer(
        &mut self,
        around: &Surroundings,
        waiting: &Waiting,
        complete: bool,
        out: &mut Vec<KeyEffect>,
    ) {
        let ask = &waiting.ask;
        if !ask.costs.is_empty() {
            self.remember(ask.id, &waiting.decisions);
        }
        // Whoever waits behind comes before a lease for requests still to come.
        let lease = self.lease_to(around, waiting, complete && self.waiting.is_empty());
        let pool = self.ledger.pool();
        let late = waiting.total.filter(|_| trap::is_off(Trap::TotalTakenLate));
        let total = late.map_or(waiting.total, |_| Some(pool));
        if total == Some(Tokens::ZERO) {
            self.tell_exhausted(out);
        }
        let answer = Answer {
            id: ask.id,
            kind: AnswerKind::Judged,
            window: Some(self.ledger.window()),
            decisions: waiting.decisions.clone(),
            lease: waiting.from.and_then(|from| self.lease_of(from, ask)),
            total: total.map(|left| self.proof(left)),
            parked: lease == Some(false),
        };
        out.push(KeyEffect::Answer(waiting.reply, answer));
    }

    /// Says to all who know the key, once a window, that nothing is left.
    fn tell_exhausted(&mut self, out: &mut Vec<KeyEffect>) {
        if std::mem::replace(&mut self.exhausted_told, true) {
            return;
        }
        let total = self.proof(Tokens::ZERO);
        let exhausted = Exhausted {
            key: self.key,
            window: self.ledger.window(),
            total,
        };
        for tenancy in self.ledger.holders().keys() {
            out.push(KeyEffect::Exhausted(*tenancy, exhausted));
        }
    }
}

/// Whose lease the costs of an ask are charged to: nobody's (trap 10).
fn charged_to_lease(waiting: &Waiting) -> Option<Tenancy> {
    let ask = &waiting.ask;
    let has_lease = ask.lease.is_some() && ask.window.is_some();
    let is_charged = has_lease && ask.costs.iter().all(|cost| !cost.provisional);
    let from = waiting.from.filter(|_| is_charged);
    from.filter(|_| trap::is_off(Trap::ChargedToLease))
}
