//! Turns of the replicas: which tasks come, which of them come in between, what comes of them.

use headgate_core::owner::effect::Reply;

use super::{Event, Fellows, Purpose, TICK, World};
use crate::random::Random;
use crate::replica::{Action, Output, Task, Turn};
use crate::service::Ticket;
use crate::time::Truth;
use headgate_core::units::Span;

/// Events that come within this time may as well come in between.
const NEARLY_NOW: Span = Span::from_millis(3);

/// How many turns may come in between at most.
const FELLOWS_MAX: usize = 4;

/// How many of the next events are looked at for them.
const LOOKED_AT: usize = 48;

impl World {
    /// Whose event it is.
    fn replica_of(&self, event: &Event) -> Option<usize> {
        match event {
            Event::Arrive(arrival) => Some(arrival.replica),
            Event::Forget(replica, _) | Event::Tick(replica, ..) => Some(*replica),
            Event::Answer(ticket, _) => self.calls.get(ticket).map(|call| call.replica),
            Event::Load | Event::Request(..) | Event::Durable(_) | Event::Fault(_) => None,
        }
    }

    pub(super) fn take_turn(&mut self, event: Event) {
        let Some(replica) = self.replica_of(&event) else {
            return;
        };
        let halted = self.slots.get(replica).map(|slot| slot.halted_until);
        if let Some(until) = halted.filter(|until| self.now < *until) {
            return self.put_off(until, event);
        }
        let Some(task) = self.task(event) else {
            return;
        };
        let interleaved = self.random.chance(self.plan.interleaved);
        let fellows = if interleaved {
            self.fellows(replica)
        } else {
            Fellows::new()
        };
        self.run_turn(replica, fellows, task);
    }

    /// A stopped process finds what has come when it goes on. Clients do not wait for it.
    fn put_off(&mut self, until: Truth, event: Event) {
        if !matches!(event, Event::Arrive(_)) {
            self.schedule_at(until, event);
        }
    }

    /// A replica's plugin is removed in an orderly way. What its workers do in that moment comes
    /// before, in between or after.
    pub(super) fn leave(&mut self, replica: usize) {
        let (worker, action) = (0, Action::Leave);
        let fellows = self.fellows(replica);
        self.run_turn(replica, fellows, Task { worker, action });
    }

    fn run_turn(&mut self, replica: usize, fellows: Fellows, task: Task) {
        let random = Random::new(self.random.next());
        let Some(slot) = self.slots.get(replica) else {
            return;
        };
        let Some(process) = &slot.process else { return };
        let now = slot.clock.local(self.now);
        let outputs = Turn::new(process, now, fellows, random).run(task);
        for output in outputs {
            match output {
                Output::Settled(settled) => self.take_settled(settled),
                Output::NearBoundary(id) => self.oracle.is_near_boundary(id),
                Output::Ask(worker, call) => self.send_ask(replica, worker, call),
                Output::Lead(worker, call) => self.send_leaders(replica, worker, call),
                Output::Leave(leave) => self.send_leave(replica, leave),
                Output::Failed(error) => {
                    self.trace(|| format!("{replica}: {error}"));
                    self.broken = self.broken.saturating_add(1);
                }
            }
        }
    }

    /// Takes events of this replica that come soon out of their order.
    fn fellows(&mut self, replica: usize) -> Fellows {
        let end = self.now.plus(NEARLY_NOW);
        let soon = self.events.iter().take(LOOKED_AT);
        let soon = soon.take_while(|((at, _), _)| *at <= end);
        let ours = soon.filter(|(_, event)| self.replica_of(event) == Some(replica));
        let places: Vec<(Truth, u64)> = ours.map(|(place, _)| *place).take(FELLOWS_MAX).collect();
        let mut fellows = Fellows::new();
        for place in places {
            let event = self.events.remove(&place);
            fellows.extend(event.and_then(|event| self.task(event)));
        }
        fellows
    }

    /// What a worker is given to do by an event; nothing if it is no longer there.
    fn task(&mut self, event: Event) -> Option<Task> {
        match event {
            Event::Arrive(arrival) => self.accept(&arrival),
            Event::Forget(replica, id) => self.abandon(replica, id),
            Event::Answer(ticket, reply) => self.end_call(ticket, reply),
            Event::Tick(replica, life, worker) => {
                let slot = self.slots.get(replica)?;
                if slot.life != life || slot.process.is_none() {
                    return None;
                }
                self.schedule(TICK, event);
                let action = Action::Tick;
                Some(Task { worker, action })
            }
            Event::Load | Event::Request(..) | Event::Durable(_) | Event::Fault(_) => None,
        }
    }

    /// The first answer to a call ends it, or its timeout.
    fn end_call(&mut self, ticket: Ticket, reply: Option<Reply>) -> Option<Task> {
        let call = self.calls.remove(&ticket)?;
        let slot = self.slots.get(call.replica)?;
        if slot.life != call.life || slot.process.is_none() {
            return None;
        }
        let got = reply.is_some();
        self.trace(|| format!("{}/{} ends {ticket:?} {got}", call.replica, call.worker));
        let action = match (call.purpose, reply) {
            (Purpose::Ask(id), Some(Reply::Ask(answer))) => Action::Answer(id, Some(answer)),
            (Purpose::Ask(id), _) => Action::Answer(id, None),
            (Purpose::Join(ticket), Some(Reply::Welcome(welcome))) => {
                Action::Joined(ticket, Some(welcome))
            }
            (Purpose::Join(ticket), _) => Action::Joined(ticket, None),
            (Purpose::Watch(ticket), Some(Reply::Watch(answer))) => {
                Action::Watched(ticket, Some(answer))
            }
            (Purpose::Watch(ticket), _) => Action::Watched(ticket, None),
            (Purpose::Leave, _) => return None,
        };
        let worker = call.worker;
        Some(Task { worker, action })
    }
}
