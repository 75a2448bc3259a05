//! Requests: how they reach their worker, and how they end.

use std::rc::Rc;

use headgate_core::key::Value;
use headgate_core::replica::worker::{Charge, Request, RequestId, Settled, Verdict};

use super::{Event, LATE, Waiting, World};
use crate::load::Arrival;
use crate::oracle::Counter;
use crate::replica::{Action, Task};

/// The value that stands for a key.
pub(super) fn value(key: u64) -> Value {
    Some(Rc::from(format!("key-{key}").into_bytes()))
}

impl World {
    /// A request comes, if its replica is there: as a task for its worker.
    pub(super) fn accept(&mut self, arrival: &Arrival) -> Option<Task> {
        let slot = self.slots.get(arrival.replica)?;
        slot.process.as_ref()?;
        let local = slot.clock.local(self.now);
        self.next_request = self.next_request.saturating_add(1);
        let id = RequestId::new(self.next_request);
        let counters: Vec<Counter> = arrival.keys.iter().copied().enumerate().collect();
        let charges = counters.iter().map(|(rule, key)| Charge {
            rule: *rule,
            values: vec![value(*key)],
            cost: arrival.cost,
        });
        let charges = charges.collect();
        let at = (self.now, self.service_time());
        self.trace(|| format!("{}/{} {id:?} {arrival:?}", arrival.replica, arrival.worker));
        self.oracle.arrives(id, counters, arrival.cost, at);
        let waiting = Waiting {
            replica: arrival.replica,
            worker: arrival.worker,
            by: self.now.plus(self.plan.deadline).plus(LATE),
        };
        self.waiting.insert(id, waiting);
        if let Some(patience) = arrival.patience {
            self.schedule(patience, Event::Forget(arrival.replica, id));
        }
        if let Some(verdict) = self.saboteur.steals(&mut self.random) {
            self.settle(id, verdict);
            return None;
        }
        let deadline = local.plus(self.plan.deadline);
        let request = Request {
            id,
            charges,
            deadline,
        };
        Some(Task {
            worker: arrival.worker,
            action: Action::Arrive(request),
        })
    }

    pub(super) fn take_settled(&mut self, settled: Settled) {
        self.settle(settled.request, settled.verdict);
    }

    fn settle(&mut self, id: RequestId, verdict: Verdict) {
        self.trace(|| format!("{id:?} {verdict:?}"));
        let at = (self.now, self.service_time());
        let waiting = self.waiting.remove(&id);
        let known = self.oracle.answered(id, verdict, at).is_some();
        if !known && !self.gone.contains(&id) {
            // Answered twice, or never asked.
            self.broken = self.broken.saturating_add(1);
        }
        if waiting.is_some_and(|waiting| waiting.by < self.now) {
            self.late = self.late.saturating_add(1);
        }
    }

    /// These requests will have no answer; they may be charged until their deadline.
    pub(super) fn forget_requests(&mut self, gone: impl Fn(&Waiting) -> bool) {
        let ids: Vec<RequestId> = self
            .waiting
            .iter()
            .filter(|(_, waiting)| gone(waiting))
            .map(|(id, _)| *id)
            .collect();
        ids.into_iter().for_each(|id| self.forget_request(id));
    }

    fn forget_request(&mut self, id: RequestId) {
        if self.waiting.remove(&id).is_some() {
            let deadline = self.plan.deadline;
            let until = self.service_time().plus(deadline);
            self.oracle.gone(id, (self.now.plus(deadline), until));
            self.gone.insert(id);
        }
    }

    /// A client goes away; nothing if it has its answer.
    pub(super) fn abandon(&mut self, replica: usize, id: RequestId) -> Option<Task> {
        let waiting = self.waiting.get(&id).filter(|it| it.replica == replica)?;
        let worker = waiting.worker;
        self.forget_request(id);
        Some(Task {
            worker,
            action: Action::Forget(id),
        })
    }
}
