//! Answers to a worker's calls: decisions first, to exactly the requests of that ask; then the
//! lease and the proofs; then whatever still waits tries its luck again.

use super::call::{CallId, InFlight};
use super::queue::Outstanding;
use super::{Settled, Worker};
use crate::message::call::AskAnswer;
use crate::message::{Answer, AnswerKind, Ask, AskId, Decision, SeatState};
use crate::replica::bucket::{Claim, Moment};
use crate::replica::cell::{HeldProof, Tenant};
use crate::replica::seat::SeatRecord;
use crate::replica::shared::{Shared, SharedError};
use crate::replica::table::Table;
use crate::trap::{self, Trap};
use crate::units::{LocalTime, Tokens};
use crate::window::Window;

/// What every part of one call's answer shares.
#[derive(Clone, Copy)]
struct Reply {
    sent: LocalTime,
    tenant: Tenant,
    moment: Moment,
}

impl Worker {
    /// Takes in the answer to a call; `None` if there was none.
    pub fn answered(
        &mut self,
        shared: &impl Shared,
        now: LocalTime,
        call: CallId,
        answer: Option<AskAnswer>,
    ) -> Vec<Settled> {
        let mut settled = Vec::new();
        let Some(place) = self.calls.iter().position(|out| out.id == call) else {
            return settled;
        };
        let in_flight = self.calls.swap_remove(place);
        let Some(answer) = answer else {
            self.call_failed(shared, now, in_flight);
            return settled;
        };
        self.hear(shared, now, &in_flight, &answer);
        let Some(seated) = self.seat.and_then(|seat| seat.seated) else {
            self.call_failed(shared, now, in_flight);
            return settled;
        };
        let reply = Reply {
            sent: in_flight.sent,
            tenant: Tenant {
                incarnation: in_flight.incarnation,
                epoch: answer.epoch,
            },
            moment: seated.moment(now),
        };
        if answer.seat_state == SeatState::Ok {
            self.answer_recalls(shared, &reply, &answer);
        }
        for answer in answer.answers {
            self.take_answer(shared, &reply, answer, &mut settled);
        }
        for key in in_flight.keys {
            let Some(queue) = self.queues.get_mut(&key) else {
                continue;
            };
            let left_out = |ask: &Outstanding| ask.call == Some(call);
            if queue.outstanding.as_ref().is_some_and(left_out) {
                queue.still_waits(now);
                self.ready.insert(key);
            }
        }
        settled
    }

    fn call_failed(&mut self, shared: &impl Shared, now: LocalTime, in_flight: InFlight) {
        match SeatRecord::call_failed(shared, in_flight.incarnation, now) {
            Ok(record) => self.seat = Some(record),
            // A worker calls only once there is a record.
            Err(error) => self.counts.shared_failed(error),
        }
        self.counts.calls_failed = self.counts.calls_failed.saturating_add(1);
        self.outbox
            .repeat_resolutions(in_flight.resolutions, &mut self.counts);
        for key in in_flight.keys {
            if let Some(queue) = self.queues.get_mut(&key) {
                queue.call_failed(now);
                if queue.is_idle() {
                    self.queues.remove(&key);
                } else if queue.wants_ask() {
                    self.ready.insert(key);
                }
            }
        }
    }

    /// Every answered message extends the seat's life from its sending, and narrows the estimate.
    fn hear(
        &mut self,
        shared: &impl Shared,
        now: LocalTime,
        in_flight: &InFlight,
        answer: &AskAnswer,
    ) {
        if answer.seat_state != SeatState::Ok {
            return;
        }
        let times = (in_flight.sent, now);
        let said = (answer.epoch, answer.stamps);
        match SeatRecord::heard(shared, in_flight.incarnation, times, said) {
            Ok(record) => self.seat = Some(record),
            Err(error) => self.counts.shared_failed(error),
        }
    }

    fn answer_recalls(&mut self, shared: &impl Shared, reply: &Reply, answer: &AskAnswer) {
        let table = Table::new(shared, self.buckets);
        for recall in &answer.recalls {
            match table.recall(*recall, reply.tenant, reply.moment) {
                Ok(Some(returned)) => self.outbox.push_return(returned, &mut self.counts),
                Ok(None) => {}
                Err(error) => self.counts.shared_failed(error),
            }
        }
    }

    fn take_answer(
        &mut self,
        shared: &impl Shared,
        reply: &Reply,
        answer: Answer,
        settled: &mut Vec<Settled>,
    ) {
        let key = answer.id.key;
        let Some(queue) = self.queues.get_mut(&key) else {
            return;
        };
        let matches = |ask: &mut Outstanding| ask.ask.id == answer.id;
        let Some(outstanding) = queue.outstanding.take_if(matches) else {
            return;
        };
        queue.describe = answer.kind == AnswerKind::UnknownKey;
        let named = outstanding.ask.window;
        let rest = if answer.kind == AnswerKind::Judged {
            self.apply_decisions(shared, reply, &answer, outstanding, settled)
        } else {
            outstanding.requests
        };
        self.take_lease(shared, reply, &answer, named);
        if let Some(queue) = self.queues.get_mut(&key) {
            queue.put_back(rest.into_iter().flatten());
        }
        self.try_again(shared, reply.moment.local, key, settled);
    }

    /// Gives each request of the ask its decision; the rest of them ask again.
    fn apply_decisions(
        &mut self,
        shared: &impl Shared,
        reply: &Reply,
        answer: &Answer,
        outstanding: Outstanding,
        settled: &mut Vec<Settled>,
    ) -> Vec<Option<super::request::Pending>> {
        let now = reply.moment.local;
        if trap::is_off(Trap::ChargedToLease) {
            self.merge_charged(shared, reply, answer, &outstanding.ask);
        }
        let mut requests = outstanding.requests.into_iter();
        for (index, decision) in (0_u32..).zip(&answer.decisions) {
            let Some(place) = requests.next() else { break };
            let Some(mut pending) = place else {
                self.release_void(answer.id, index, &outstanding.ask, *decision);
                continue;
            };
            self.waiting = self.waiting.saturating_sub(1);
            match (decision, answer.window) {
                (Decision::Admit, _) => {
                    pending.admitted(answer.id, index);
                    self.proceed(shared, now, pending, true, settled);
                }
                (Decision::Refuse, Some(window)) => {
                    let verdict = self.refuse(shared, now, &mut pending, window);
                    settled.extend(verdict.map(|verdict| pending.settled(verdict, now)));
                }
                (Decision::Undecided, _) | (Decision::Refuse, None) => {
                    self.give_up_waiting(shared, now, pending, settled);
                }
            }
        }
        requests.collect()
    }

    /// Takes in what the owner has charged to the lease, as if nobody else had used any (trap 10).
    fn merge_charged(&mut self, shared: &impl Shared, reply: &Reply, answer: &Answer, ask: &Ask) {
        let decided = ask.costs.iter().zip(&answer.decisions);
        let admitted = decided.filter(|(_, decision)| **decision == Decision::Admit);
        let charged: Tokens = admitted.map(|(cost, _)| cost.amount).sum();
        let (Some(window), Some(lease)) = (ask.window, ask.lease) else {
            return;
        };
        self.take_lease(shared, reply, answer, ask.window);
        let table = Table::new(shared, self.buckets);
        let merged = table.merge_used(ask.id.key, window, lease.used.plus(charged));
        if let Err(error) = merged {
            self.counts.shared_failed(error);
        }
    }

    fn refuse(
        &mut self,
        shared: &impl Shared,
        now: LocalTime,
        pending: &mut super::request::Pending,
        window: Window,
    ) -> Option<super::Verdict> {
        let seat = self.seat?;
        Some(pending.refused(window, &mut self.context(shared, &seat, now)))
    }

    /// A provisional charge for a request that has gone goes back at once.
    fn release_void(&mut self, ask: AskId, cost: u32, sent: &Ask, decision: Decision) {
        let index = usize::try_from(cost).unwrap_or(usize::MAX);
        let provisional = sent.costs.get(index).is_some_and(|cost| cost.provisional);
        if decision == Decision::Admit && provisional {
            let release = crate::message::Resolution {
                ask,
                cost,
                commit: false,
            };
            self.outbox.push_resolution(release, &mut self.counts);
        }
    }

    /// Takes in the lease and the proofs, if they still fit the cell.
    fn take_lease(
        &mut self,
        shared: &impl Shared,
        reply: &Reply,
        answer: &Answer,
        named: Option<Window>,
    ) {
        let Some(window) = answer.window.filter(|_| answer.kind == AnswerKind::Judged) else {
            return;
        };
        if let Err(error) = self.change_cell(shared, reply, answer, window, named) {
            self.counts.shared_failed(error);
        }
    }

    fn change_cell(
        &self,
        shared: &impl Shared,
        reply: &Reply,
        answer: &Answer,
        window: Window,
        named: Option<Window>,
    ) -> Result<(), SharedError> {
        let table = Table::new(shared, self.buckets);
        let claim = Claim {
            key: answer.id.key,
            window,
            tenant: reply.tenant,
        };
        if let Some((generation, granted)) = answer.lease.filter(|_| named == Some(window)) {
            table.grant(claim, generation, granted)?;
        }
        if let Some(total) = answer.total {
            let until = reply.sent.plus(total.time_to_live);
            table.prove(
                claim,
                HeldProof {
                    left: total.left,
                    until,
                },
                reply.moment,
            )?;
        }
        if answer.parked {
            let left = window.end().since(reply.moment.service.earliest);
            table.hold_ask_ahead(claim.key, window, reply.moment.local.plus(left))?;
        }
        Ok(())
    }

    /// What still waits for the key may be served by the new lease, or refused by the proof.
    fn try_again(
        &mut self,
        shared: &impl Shared,
        now: LocalTime,
        key: crate::key::KeyHash,
        settled: &mut Vec<Settled>,
    ) {
        let Some(queue) = self.queues.get_mut(&key) else {
            return;
        };
        let waiting = queue.take_all_waiting();
        self.waiting = self.waiting.saturating_sub(waiting.len());
        for pending in waiting {
            self.proceed(shared, now, pending, true, settled);
        }
        let Some(queue) = self.queues.get(&key) else {
            return;
        };
        if queue.is_idle() {
            self.queues.remove(&key);
        } else if queue.wants_ask() {
            self.ready.insert(key);
        }
    }
}
