//! One worker's part in the replica: core decides, this carries out. It gives core the replica's
//! shared memory and the time, sends the calls that core wants made, and turns what comes back into
//! checked messages.
//!
//! Invariants: every call that core was given is answered to core exactly once, by its answer, by
//! its failure or by its being overdue; and nothing is sent or written before the first tick, since
//! Envoy also configures roots in a trial VM that never ticks.

mod calls;
mod census;
mod ending;
mod link;
#[cfg(test)]
mod tests;

use headgate_core::message::call::{AskAnswer, WatchAnswer, Welcome};
use headgate_core::replica::departure::Presence;
use headgate_core::replica::leader::{Leader, LeaderCall, Ticket};
use headgate_core::replica::shared::SharedError;
use headgate_core::replica::table::BUCKETS_DEFAULT;
use headgate_core::replica::worker::{
    CALLS_IN_FLIGHT_MAX, Call, CallId, Charge, Counts, Request, Rule, Settled, Worker as Core,
};
use headgate_core::rule::Policy;
use headgate_core::units::{Asker, LocalTime, ReplicaId};
use headgate_core::wire as pb;
use prost::Message;

use crate::decide::{Decider, Env, request_id};
use crate::host_api::{CallFailure, CallToken, HostError, Method, StreamId};
use crate::metrics::{Count, Metrics};
use crate::shared::SharedData;

use calls::{Calls, Purpose};
use census::Census;
use ending::Ending;

/// What needs random numbers to be made.
#[derive(Debug)]
struct Part {
    worker: Core,
    leader: Leader,
    /// The replica's identity, if this is its first worker.
    fresh: ReplicaId,
    /// This root has claimed the watch, to state its rules.
    has_claimed: bool,
    presence: Presence,
}

/// The decisions of one root in one worker.
#[derive(Debug)]
pub struct Worker {
    env: Env,
    shared: SharedData,
    part: Option<Part>,
    calls: Calls,
    census: Census,
    ending: Ending,
}

impl Part {
    fn new(env: &Env) -> Result<Self, HostError> {
        let passes = |rule: &headgate_core::rule::Rule| rule.when_undecided() == Policy::Allow;
        let rules = (env.config.specs().zip(env.config.rules())).map(|(spec, rule)| Rule {
            spec,
            undecided_passes: passes(rule),
        });
        let (asker, holder) = halves(env.host.random()?);
        let patience = env.config.counter().timeout();
        let specs = env.config.specs().collect();
        Ok(Self {
            worker: Core::new(
                Asker::new(asker),
                rules.collect(),
                BUCKETS_DEFAULT,
                patience,
            ),
            leader: Leader::new(holder, specs, BUCKETS_DEFAULT),
            fresh: ReplicaId::new(u128::from_le_bytes(env.host.random()?)),
            has_claimed: false,
            presence: Presence::new(holder),
        })
    }

    /// Once for each root, it takes the watch from whoever holds it: the holder may be the root of
    /// an older configuration, and only the holder's rules are stated.
    fn claim_watch(&mut self, shared: &SharedData, now: LocalTime) -> Result<(), SharedError> {
        if !self.has_claimed {
            self.has_claimed = self.leader.holds_watch(shared, now, true)?;
        }
        Ok(())
    }
}

fn halves(bytes: [u8; 16]) -> (u64, u64) {
    let whole = u128::from_le_bytes(bytes);
    let low = u64::MAX;
    let half = |bits: u128| u64::try_from(bits & u128::from(low)).unwrap_or(low);
    (half(whole), half(whole >> 64))
}

impl Worker {
    /// A worker that has done nothing yet.
    #[must_use]
    pub fn new(env: Env) -> Self {
        let cluster = env.config.counter().cluster();
        Self {
            shared: SharedData::new(env.host.clone(), cluster, BUCKETS_DEFAULT),
            part: None,
            calls: Calls::new(env.clone()),
            census: Census::default(),
            ending: Ending::default(),
            env,
        }
    }

    /// Makes the part where it is missing: at the first need, and again if the host refused.
    fn ready(&mut self) -> Result<(), HostError> {
        if self.part.is_none() {
            self.part = Some(Part::new(&self.env)?);
        }
        Ok(())
    }

    /// Sends what there is to send. A call that cannot be sent ends the turn: the others could
    /// not either, and what it carried is due again at a later tick.
    fn send_asks(&mut self, now: LocalTime, settled: &mut Vec<Settled>) {
        let Some(part) = &mut self.part else { return };
        for _ in 0..CALLS_IN_FLIGHT_MAX {
            let Some(Call { id, body, timeout }) = part.worker.next_call(&self.shared, now) else {
                return;
            };
            let message = pb::AskRequest::from(body).encode_to_vec();
            let purpose = Purpose::Ask(id);
            if !self
                .calls
                .send(now, Method::Ask, &message, timeout, purpose)
            {
                settled.extend(part.worker.answered(&self.shared, now, id, None));
                return;
            }
        }
    }

    /// Does what there is to do for the whole replica, if this worker holds the watch.
    fn lead(&mut self, now: LocalTime) {
        if self.ending.has_left() {
            return;
        }
        let Some(part) = &mut self.part else { return };
        let call = match part.leader.next_call(&self.shared, now, part.fresh) {
            Ok(Some(call)) => call,
            Ok(None) => return,
            Err(error) => return shared_failed(&self.env.metrics, error),
        };
        let timeout = call.timeout();
        match call {
            LeaderCall::Join(ticket, join) => {
                let message = pb::JoinRequest::from(join).encode_to_vec();
                let purpose = Purpose::Join(ticket);
                if !(self.calls).send(now, Method::Join, &message, timeout, purpose) {
                    self.joined(now, ticket, None);
                }
            }
            LeaderCall::Watch(ticket, sender) => {
                let request = pb::WatchRequest {
                    sender: Some(sender.into()),
                };
                let message = request.encode_to_vec();
                let purpose = Purpose::Watch(ticket);
                if !(self.calls).send(now, Method::Watch, &message, timeout, purpose) {
                    self.watched(now, ticket, None);
                }
            }
        }
    }

    fn asked(&mut self, now: LocalTime, call: CallId, answer: Option<AskAnswer>) -> Vec<Settled> {
        (self.part.as_mut()).map_or(Vec::new(), |part| {
            part.worker.answered(&self.shared, now, call, answer)
        })
    }

    fn joined(&mut self, now: LocalTime, ticket: Ticket, welcome: Option<Welcome>) {
        let Some(part) = &mut self.part else { return };
        if let Err(error) = part.leader.joined(&self.shared, now, ticket, welcome) {
            shared_failed(&self.env.metrics, error);
        }
    }

    fn watched(&mut self, now: LocalTime, ticket: Ticket, answer: Option<WatchAnswer>) {
        let Some(part) = &mut self.part else { return };
        match part.leader.watched(&self.shared, now, ticket, answer) {
            Ok(returns) => {
                for returned in returns {
                    part.worker.send_return(returned);
                }
            }
            Err(error) => shared_failed(&self.env.metrics, error),
        }
    }

    /// Gives core the end of one call; true if it brought an answer.
    fn take_end(
        &mut self,
        now: LocalTime,
        purpose: Purpose,
        answer: Result<&[u8], CallFailure>,
        settled: &mut Vec<Settled>,
    ) -> bool {
        match purpose {
            Purpose::Ask(id) => {
                let answer = self.calls.read::<pb::AskResponse, AskAnswer>(answer);
                let has_answer = answer.is_some();
                settled.extend(self.asked(now, id, answer));
                has_answer
            }
            Purpose::Join(ticket) => {
                let welcome = self.calls.read::<pb::JoinResponse, Welcome>(answer);
                let has_answer = welcome.is_some();
                self.joined(now, ticket, welcome);
                has_answer
            }
            Purpose::Watch(ticket) => {
                let answer = self.calls.read::<pb::WatchResponse, WatchAnswer>(answer);
                let has_answer = answer.is_some();
                self.watched(now, ticket, answer);
                has_answer
            }
            Purpose::Leave => {
                self.ending = Ending::Over;
                false
            }
        }
    }

    /// Turns what core has counted into metrics.
    fn report(&mut self) {
        let Some(part) = &mut self.part else { return };
        // How calls end is counted here, by cause.
        let Counts {
            asked_ahead,
            cells_missed,
            waiting_full,
            outbox_full,
            calls_failed: _,
            shared_failed,
            invariants_broken,
        } = part.worker.take_counts();
        let overload = waiting_full.saturating_add(outbox_full);
        for (count, number) in [
            (Count::AskedAhead, asked_ahead),
            (Count::CellsMissed, cells_missed),
            (Count::ErrorsOverload, overload),
            (Count::ErrorsSharedData, shared_failed),
            (Count::ErrorsInvariant, invariants_broken),
        ] {
            self.env.metrics.add(count, number);
        }
    }
}

fn shared_failed(metrics: &Metrics, error: SharedError) {
    let count = match error {
        SharedError::Corrupt => Count::ErrorsInvariant,
        SharedError::Host | SharedError::Contended => Count::ErrorsSharedData,
    };
    metrics.failed(count, &error);
}

impl Decider for Worker {
    fn request(
        &mut self,
        now: LocalTime,
        deadline: LocalTime,
        stream: StreamId,
        charges: Vec<Charge>,
    ) -> Result<Option<Settled>, HostError> {
        self.ready()?;
        let request = Request {
            id: request_id(stream),
            charges,
            deadline,
        };
        let part = self.part.as_mut();
        Ok(part.and_then(|part| part.worker.arrive(&self.shared, now, request)))
    }

    fn has_something_to_send(&self) -> bool {
        let part = self.part.as_ref();
        part.is_some_and(|part| part.worker.has_something_to_send())
    }

    fn wake(&mut self, now: LocalTime) -> Vec<Settled> {
        let mut settled = Vec::new();
        self.send_asks(now, &mut settled);
        self.report();
        settled
    }

    fn tick(&mut self, now: LocalTime) -> Vec<Settled> {
        let mut settled = Vec::new();
        if let Err(error) = self.ready() {
            self.env.metrics.failed(Count::ErrorsRequest, &error);
            return settled;
        }
        for purpose in self.calls.take_overdue(now) {
            let overdue = Err(CallFailure::Overdue);
            self.take_end(now, purpose, overdue, &mut settled);
        }
        if let Some(part) = &mut self.part {
            if let Err(error) = part.claim_watch(&self.shared, now) {
                shared_failed(&self.env.metrics, error);
            }
            let counts = self.ending.counts_as_alive();
            if counts && let Err(error) = part.presence.tick(&self.shared, now) {
                shared_failed(&self.env.metrics, error);
            }
            settled.extend(part.worker.tick(&self.shared, now));
        }
        self.return_idle(now);
        self.send_asks(now, &mut settled);
        self.lead(now);
        self.take_census(now);
        self.go_on_ending(now);
        self.calls.tick(now);
        self.report();
        settled
    }

    fn is_busy(&self) -> bool {
        self.part.as_ref().is_none_or(|part| {
            let seat = part.worker.seat().and_then(|seat| seat.seated);
            seat.is_none() || part.worker.is_waiting() || part.worker.has_something_to_send()
        })
    }

    fn answered(
        &mut self,
        now: LocalTime,
        token: CallToken,
        answer: Result<&[u8], CallFailure>,
    ) -> Vec<Settled> {
        let mut settled = Vec::new();
        // What was overdue has been given up.
        let Some(purpose) = self.calls.take(token) else {
            return settled;
        };
        let has_answer = self.take_end(now, purpose, answer, &mut settled);
        if let (Purpose::Join(_), Some(part)) = (purpose, &mut self.part) {
            // Requests that came before the seat are waiting for it.
            settled.extend(part.worker.tick(&self.shared, now));
        }
        // After a failure the next tick is soon enough: a service that refuses connections would
        // else be called again in the same millisecond.
        if has_answer {
            self.send_asks(now, &mut settled);
            if !matches!(purpose, Purpose::Ask(_)) {
                self.lead(now);
            }
        }
        self.report();
        settled
    }

    fn gone(&mut self, stream: StreamId) {
        if let Some(part) = &mut self.part {
            part.worker.forget(&self.shared, request_id(stream));
        }
    }

    fn close(&mut self, now: LocalTime) -> bool {
        self.env.metrics.cells_in_use(self.census.end());
        self.report();
        self.begin_ending(now)
    }

    fn is_over(&self) -> bool {
        self.ending == Ending::Over
    }
}
