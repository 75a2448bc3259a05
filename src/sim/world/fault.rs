//! What goes wrong, beyond single messages.

use headgate_core::owner::record::RecordError;
use headgate_core::units::{ServiceTime, Span};

use super::{Event, Slot, TICK, World};
use crate::replica::{Replica, Setup};
use crate::sabotage::Sabotage;
use crate::time::Truth;

/// Something that goes wrong, or comes back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// A replica's process dies.
    CrashReplica(usize),
    /// Its plugin is removed: it leaves in an orderly way, then its process ends.
    LeaveReplica(usize),
    /// It starts anew: another replica, with an empty memory. Nothing if it is there.
    StartReplica(usize),
    /// One more replica.
    AddReplica,
    /// One worker's instance of the plugin dies and starts anew.
    CrashWorker(usize, usize),
    /// A replica's process is stopped for so long, and goes on then.
    HaltReplica(usize, Span),
    /// Nothing reaches a replica and nothing comes from it for so long.
    CutOff(usize, Span),
    /// What the service answers to a replica for so long is lost: connections break after the work
    /// was done.
    LoseAnswers(usize, Span),
    /// For so long, calls of a replica take this much longer to reach the service.
    SlowCalls(usize, Span, Span),
    /// For so long, answers to a replica take this much longer; those sent later overtake them.
    SlowAnswers(usize, Span, Span),
    /// The service's process dies.
    CrashService,
    /// It starts anew, maybe elsewhere. Nothing if it is there.
    StartService,
    /// It starts anew on another machine, whose wall clock is ahead of the first one's by so many
    /// milliseconds, behind if negative.
    StartServiceElsewhere(i64),
    /// Another process leads from now on. The old one does not know it and goes on talking for so
    /// long, or until it has something to write.
    Depose(Span),
    /// It is stopped for so long, and goes on then.
    HaltService(Span),
    /// The wall clock of the service's machine is set forward by so many milliseconds, back if
    /// negative.
    StepWall(i64),
}

impl Fault {
    /// Whether a replica may not be heard because of it.
    pub(super) const fn silences(self) -> bool {
        match self {
            Self::CrashReplica(_)
            | Self::LeaveReplica(_)
            | Self::HaltReplica(..)
            | Self::CutOff(..)
            | Self::LoseAnswers(..)
            | Self::SlowCalls(..)
            | Self::SlowAnswers(..)
            | Self::CrashService
            | Self::Depose(_)
            | Self::HaltService(_) => true,
            Self::StartReplica(_)
            | Self::AddReplica
            | Self::CrashWorker(..)
            | Self::StartService
            | Self::StartServiceElsewhere(_)
            | Self::StepWall(_) => false,
        }
    }
}

impl World {
    pub(super) fn add_replica(&mut self) {
        let clock = self.plan.clock(&mut self.random);
        self.slots.push(Slot {
            process: None,
            clock,
            life: 0,
            halted_until: Truth::ZERO,
            cut_off_until: Truth::ZERO,
            answers_lost_until: Truth::ZERO,
            slow_to: (Truth::ZERO, Span::ZERO),
            slow_from: (Truth::ZERO, Span::ZERO),
        });
        self.start_replica(self.slots.len().saturating_sub(1));
    }

    fn start_replica(&mut self, replica: usize) {
        let workers = self.plan.workers;
        let Some(slot) = self.slots.get_mut(replica) else {
            return;
        };
        if slot.process.is_some() {
            return;
        }
        let rules = self.rules.clone();
        let setup = Setup {
            buckets: self.plan.buckets,
            idle_after: self.plan.idle_after,
        };
        let mut process = Replica::new(&mut self.random, workers, rules, setup);
        process.memory.is_blind = self.plan.sabotage == Some(Sabotage::BlindWrites);
        slot.process = Some(process);
        slot.life = slot.life.saturating_add(1);
        let life = slot.life;
        for worker in 0..workers {
            let after = self.random.span(TICK);
            self.schedule(after, Event::Tick(replica, life, worker));
        }
    }

    pub(super) fn strike(&mut self, fault: Fault) -> Result<(), RecordError> {
        self.trace(|| format!("{fault:?}"));
        let now = self.now;
        match fault {
            Fault::LeaveReplica(replica) => {
                self.leave(replica);
                self.end_replica(replica);
            }
            Fault::CrashReplica(replica) => self.end_replica(replica),
            Fault::StartReplica(replica) => self.start_replica(replica),
            Fault::AddReplica => self.add_replica(),
            Fault::CrashWorker(replica, worker) => self.crash_worker(replica, worker),
            Fault::HaltReplica(replica, span) => self.halt_replica(replica, now.plus(span)),
            Fault::CutOff(replica, span) => {
                if let Some(slot) = self.slots.get_mut(replica) {
                    slot.cut_off_until = slot.cut_off_until.max(now.plus(span));
                }
            }
            Fault::LoseAnswers(replica, span) => {
                if let Some(slot) = self.slots.get_mut(replica) {
                    slot.answers_lost_until = slot.answers_lost_until.max(now.plus(span));
                }
            }
            Fault::SlowCalls(replica, span, by) => {
                if let Some(slot) = self.slots.get_mut(replica) {
                    slot.slow_to = (now.plus(span), by);
                }
            }
            Fault::SlowAnswers(replica, span, by) => {
                if let Some(slot) = self.slots.get_mut(replica) {
                    slot.slow_from = (now.plus(span), by);
                }
            }
            Fault::CrashService => self.crash_service(),
            Fault::StartService => {
                if !self.service.is_up() && self.random.chance(500) {
                    self.move_service(0);
                }
                self.start_service()?;
            }
            Fault::StartServiceElsewhere(millis) => {
                if !self.service.is_up() {
                    self.move_service(millis);
                }
                self.start_service()?;
            }
            Fault::Depose(span) => {
                self.service.depose(now, now.plus(span), &mut self.random);
                if self.random.chance(500) {
                    self.move_service(0);
                }
                self.start_service()?;
            }
            Fault::HaltService(span) => {
                self.service_halted_until = self.service_halted_until.max(now.plus(span));
            }
            Fault::StepWall(millis) => self.service.wall = stepped(self.service.wall, millis),
        }
        Ok(())
    }

    fn end_replica(&mut self, replica: usize) {
        self.forget_requests(|waiting| waiting.replica == replica);
        if let Some(slot) = self.slots.get_mut(replica)
            && let Some(process) = slot.process.take()
        {
            let lost = process.memory.races_lost.get();
            self.races_lost = self.races_lost.saturating_add(lost);
            slot.halted_until = self.now;
        }
    }

    fn crash_worker(&mut self, replica: usize, worker: usize) {
        self.forget_requests(|waiting| waiting.replica == replica && waiting.worker == worker);
        self.calls
            .retain(|_, call| (call.replica, call.worker) != (replica, worker));
        if let Some(process) = self
            .slots
            .get_mut(replica)
            .and_then(|slot| slot.process.as_mut())
        {
            process.restart_worker(&mut self.random, worker);
        }
    }

    fn halt_replica(&mut self, replica: usize, until: Truth) {
        if let Some(slot) = self.slots.get_mut(replica) {
            slot.halted_until = slot.halted_until.max(until);
            let ours = self
                .waiting
                .values_mut()
                .filter(|waiting| waiting.replica == replica);
            ours.for_each(|waiting| waiting.by = waiting.by.max(until.plus(super::LATE)));
        }
    }

    fn crash_service(&mut self) {
        if !self.service.is_up() {
            return;
        }
        self.service_halted_until = self.now;
        for ticket in self.service.crash(self.now, &mut self.random) {
            self.break_off(ticket);
        }
    }

    /// The next process of the service is on another machine.
    fn move_service(&mut self, ahead_millis: i64) {
        self.service.clock = self.plan.clock(&mut self.random);
        self.service.machine = self.service.machine.saturating_add(1);
        let shown = self.plan.wall.plus(self.now.since(Truth::ZERO));
        self.service
            .wall_reads(self.now, stepped(shown, ahead_millis));
    }

    fn start_service(&mut self) -> Result<(), RecordError> {
        if self.service.is_up() {
            return Ok(());
        }
        self.service.start(self.now)
    }
}

fn stepped(wall: ServiceTime, millis: i64) -> ServiceTime {
    let span = Span::from_millis(millis.unsigned_abs());
    if millis < 0 {
        wall.minus(span)
    } else {
        wall.plus(span)
    }
}
