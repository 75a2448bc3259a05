//! Calls between replicas and the service.

use headgate_core::message::call::Leave;
use headgate_core::owner::effect::Reply;
use headgate_core::replica::leader::LeaderCall;
use headgate_core::replica::worker;
use headgate_core::units::Span;

use super::{Call, Event, Purpose, World};
use crate::service::{Body, Said, Ticket};
use crate::time::Truth;

/// How long it takes until a refused or broken connection is known.
const BROKEN_AFTER: Span = Span::from_millis(1);

/// How many broken connections in a thousand go unnoticed: the caller waits for its timeout.
const UNNOTICED: u64 = 300;

/// How many calls in a thousand go to a deposed leader while there is one.
const TO_THE_DEPOSED: u64 = 500;

impl World {
    pub(super) fn send_ask(&mut self, replica: usize, worker: usize, call: worker::Call) {
        let worker::Call { id, body, timeout } = call;
        self.send(replica, worker, Purpose::Ask(id), Body::Ask(body), timeout);
    }

    pub(super) fn send_leaders(&mut self, replica: usize, worker: usize, call: LeaderCall) {
        let timeout = call.timeout();
        let (purpose, body) = match call {
            LeaderCall::Join(ticket, join) => (Purpose::Join(ticket), Body::Join(join)),
            LeaderCall::Watch(ticket, sender) => (Purpose::Watch(ticket), Body::Watch(sender)),
        };
        self.send(replica, worker, purpose, body, timeout);
    }

    /// Said once; if it is lost, the seat's time-to-live ends it.
    pub(super) fn send_leave(&mut self, replica: usize, leave: Leave) {
        let timeout = Span::from_millis(1_000);
        self.send(replica, 0, Purpose::Leave, Body::Leave(leave), timeout);
    }

    fn send(&mut self, replica: usize, worker: usize, purpose: Purpose, body: Body, timeout: Span) {
        let Some(slot) = self.slots.get(replica) else {
            return;
        };
        let (life, cut_off) = (slot.life, self.now < slot.cut_off_until);
        let slow = slow(slot.slow_to, self.now);
        let ticket = Ticket(self.next_ticket);
        self.next_ticket = self.next_ticket.saturating_add(1);
        let call = Call {
            replica,
            life,
            worker,
            purpose,
        };
        self.calls.insert(ticket, call);
        self.trace(|| format!("{replica}/{worker} sends {ticket:?} {body:?}"));
        self.schedule(timeout, Event::Answer(ticket, None));
        self.messages = self.messages.saturating_add(1);
        if cut_off {
            return;
        }
        // Some connections still lead to a deposed leader.
        let deposed = self.service.deposed.as_ref().map(|old| old.epoch);
        let epoch = match deposed {
            Some(old) if self.random.chance(TO_THE_DEPOSED) => old,
            _ => self.service.epoch,
        };
        for _ in 0..self.plan.network.copies(&mut self.random) {
            let after = longer(self.plan.network.travel(&mut self.random), slow);
            self.schedule(after, Event::Request(ticket, epoch, body.clone()));
        }
    }

    pub(super) fn reach_service(&mut self, ticket: Ticket, epoch: u64, body: Body) {
        if self.now < self.service_halted_until {
            let at = self.service_halted_until;
            return self.schedule_at(at, Event::Request(ticket, epoch, body));
        }
        if self.service.deposed.as_ref().map(|old| old.epoch) == Some(epoch) {
            return self.reach_deposed(ticket, body);
        }
        // A connection ends with the process that it was made to.
        if epoch != self.service.epoch || !self.service.is_up() {
            return self.break_off(ticket);
        }
        self.trace(|| format!("service takes {ticket:?}"));
        if let Some(outcome) = self.service.take(self.now, ticket, body) {
            self.store(outcome);
        }
    }

    fn reach_deposed(&mut self, ticket: Ticket, body: Body) {
        self.trace(|| format!("the deposed leader takes {ticket:?}"));
        match self.service.take_deposed(self.now, ticket, body) {
            Said::Answers(answers) => {
                for (ticket, reply) in answers {
                    self.send_answer(ticket, reply);
                }
            }
            Said::Ends(tickets) => tickets.into_iter().for_each(|it| self.break_off(it)),
        }
    }

    /// The connection of a call breaks.
    pub(super) fn break_off(&mut self, ticket: Ticket) {
        if !self.random.chance(UNNOTICED) {
            self.schedule(BROKEN_AFTER, Event::Answer(ticket, None));
        }
    }

    pub(super) fn send_answer(&mut self, ticket: Ticket, mut reply: Reply) {
        self.messages = self.messages.saturating_add(1);
        let call = self.calls.get(&ticket).copied();
        let slot = call.and_then(|call| self.slots.get(call.replica));
        let cut_off = slot.is_some_and(|slot| self.now < slot.cut_off_until);
        let broken = slot.is_some_and(|slot| self.now < slot.answers_lost_until);
        let slow = slot.map_or(Span::ZERO, |slot| slow(slot.slow_from, self.now));
        if cut_off {
            return;
        }
        if broken {
            return self.schedule(BROKEN_AFTER, Event::Answer(ticket, None));
        }
        if self.random.chance(self.plan.network.lost) {
            return self.break_off(ticket);
        }
        if let Some(call) = call {
            self.saboteur.alter(call.replica, &mut reply);
        }
        self.trace(|| format!("service answers {ticket:?} {reply:?}"));
        let after = longer(self.plan.network.travel(&mut self.random), slow);
        self.schedule(after, Event::Answer(ticket, Some(reply)));
    }
}

fn longer(one: Span, other: Span) -> Span {
    Span::new(one.get().saturating_add(other.get()))
}

fn slow((until, by): (Truth, Span), now: Truth) -> Span {
    if now < until { by } else { Span::ZERO }
}
