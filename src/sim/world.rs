//! The world: true time, all that happens in its order, and who knows of it.
//!
//! Everything follows from the plan and its seed. Events of one instant happen in the order in
//! which they were scheduled.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use headgate_core::key::KeyParts;
use headgate_core::owner::effect::{Outcome, Reply};
use headgate_core::owner::record::RecordError;
use headgate_core::owner::shard::ShardCounts;
use headgate_core::replica::leader;
use headgate_core::replica::worker::{CallId, RequestId, Rule};
use headgate_core::trap;
use headgate_core::units::{ServiceTime, Span};
use headgate_core::window::Window;

mod act;
mod fault;
mod plan;
mod requests;
#[cfg(test)]
mod tests;
mod wire;

pub use fault::Fault;
pub use plan::Plan;

use crate::load::{Arrival, Clients};
use crate::oracle::{Counter, Counts, Delays, Limit, Oracle, Verdicts};
use crate::random::Random;
use crate::replica::Replica;
use crate::sabotage::{Sabotage, Saboteur};
use crate::service::{Body, HASH_KEY, Service, Ticket};
use crate::time::{Clock, Truth};

/// How often a worker's timer fires.
const TICK: Span = Span::from_millis(10);

/// How far ahead the clients' requests are drawn.
const LOAD_AHEAD: Span = Span::from_millis(10);

/// How much later than its deadline a request may have its answer: a tick, and rounding.
const LATE: Span = Span::from_millis(11);

/// After the load ends the world goes on for so long, so that everything finds its end.
const AFTER: Span = Span::from_millis(1_500);

/// A replica's place in the world: one process after the other.
#[derive(Debug)]
struct Slot {
    process: Option<Replica>,
    clock: Clock,
    /// Counts its processes, so that what was meant for one does not reach the next.
    life: u32,
    /// It does nothing until then.
    halted_until: Truth,
    /// Nothing goes to it or comes from it until then.
    cut_off_until: Truth,
    /// Answers to it are lost until then.
    answers_lost_until: Truth,
    /// Until when how much longer messages take, to the service and from it.
    slow_to: (Truth, Span),
    slow_from: (Truth, Span),
}

/// What a call was for.
#[derive(Clone, Copy, Debug)]
enum Purpose {
    Ask(CallId),
    Join(leader::Ticket),
    Watch(leader::Ticket),
    Leave,
}

/// A call that has not ended.
#[derive(Clone, Copy, Debug)]
struct Call {
    replica: usize,
    life: u32,
    worker: usize,
    purpose: Purpose,
}

#[derive(Debug)]
enum Event {
    /// The clients are asked for their next requests.
    Load,
    Arrive(Arrival),
    Forget(usize, RequestId),
    /// A request reaches the service, on a connection to the leader of this epoch.
    Request(Ticket, u64, Body),
    /// An answer reaches its replica, or the news that there is none.
    Answer(Ticket, Option<Reply>),
    Tick(usize, u32, usize),
    /// Something has become durable at the leader of this epoch.
    Durable(u64),
    Fault(Fault),
}

/// A request that has not been answered: where it waits.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    replica: usize,
    worker: usize,
    /// It has to be answered by then, unless its replica was halted.
    by: Truth,
}

/// What came of a run.
#[derive(Clone, Debug)]
pub struct Report {
    /// What the judge says.
    pub verdicts: Verdicts,
    /// Totals of the requests.
    pub counts: Counts,
    /// How long they waited.
    pub delays: Delays,
    /// Messages, requests and answers, heartbeats included.
    pub messages: u64,
    /// How long the clients sent requests.
    pub loaded: Span,
    /// Requests that were answered after their deadline, or not at all.
    pub late: u64,
    /// Steps of the owner that broke an invariant, and failures of shared memory.
    pub broken: u64,
    /// Writes to shared memory that lost a race.
    pub races_lost: u64,
    /// The owner's figures.
    pub shard: ShardCounts,
}

impl Report {
    /// Nothing was over, false, late or broken.
    #[must_use]
    pub fn is_right(&self) -> bool {
        let clean = self.late == 0 && self.broken == 0;
        clean && self.verdicts.convictions.is_empty()
    }
}

/// Everything there is.
#[derive(Debug)]
pub struct World {
    plan: Plan,
    random: Random,
    now: Truth,
    events: BTreeMap<(Truth, u64), Event>,
    scheduled: u64,
    slots: Vec<Slot>,
    rules: Vec<Rule>,
    service: Service,
    service_halted_until: Truth,
    clients: Clients,
    oracle: Oracle,
    waiting: BTreeMap<RequestId, Waiting>,
    /// Requests whose client or worker went away; their worker may still answer, to nobody.
    gone: BTreeSet<RequestId>,
    next_request: u32,
    calls: BTreeMap<Ticket, Call>,
    next_ticket: u64,
    saboteur: Saboteur,
    messages: u64,
    late: u64,
    broken: u64,
    races_lost: u64,
}

impl World {
    /// A world at its beginning.
    ///
    /// # Errors
    /// Core refuses its own records.
    pub fn new(plan: Plan) -> Result<Self, RecordError> {
        let mut random = Random::new(plan.seed);
        let clock = plan.clock(&mut random);
        let service = Service::new(plan.shard, clock, plan.wall);
        let rules = plan.rules();
        let limits = plan.limits.iter().map(|(amount, period)| Limit {
            amount: *amount,
            period: *period,
        });
        let (load, start) = (plan.load.clone(), Truth::ZERO.plus(plan.quiet));
        let clients = Clients::new(load, Random::new(random.next()), start, plan.workers);
        let mut world = Self {
            oracle: Oracle::new(limits.collect(), plan.decided),
            saboteur: Saboteur::new(plan.sabotage),
            random,
            now: Truth::ZERO,
            events: BTreeMap::new(),
            scheduled: 0,
            slots: Vec::new(),
            rules,
            service,
            service_halted_until: Truth::ZERO,
            clients,
            waiting: BTreeMap::new(),
            gone: BTreeSet::new(),
            next_request: 0,
            calls: BTreeMap::new(),
            next_ticket: 0,
            messages: 0,
            late: 0,
            broken: 0,
            races_lost: 0,
            plan,
        };
        world.service.start(world.now)?;
        for _ in 0..world.plan.replicas {
            world.add_replica();
        }
        for (at, fault) in world.plan.faults.clone() {
            world.schedule_at(at, Event::Fault(fault));
        }
        for arrival in world.plan.script.clone() {
            world.schedule_at(arrival.at, Event::Arrive(arrival));
        }
        world.schedule_at(start, Event::Load);
        Ok(world)
    }

    /// Runs it to its end.
    ///
    /// # Errors
    /// Core refuses its own records.
    pub fn run(mut self) -> Result<Report, RecordError> {
        let _off = trap::turn_off(self.plan.sabotage.and_then(Sabotage::rule));
        let end = self.plan.load_end().plus(AFTER);
        loop {
            let halted = self.now < self.service_halted_until;
            let wake = self.service.next_wake().filter(|_| !halted);
            let next = self.events.first_key_value().map(|((at, _), _)| *at);
            let Some(at) = wake.into_iter().chain(next).min().filter(|at| *at <= end) else {
                break;
            };
            self.now = self.now.max(at);
            if next.is_some_and(|next| next <= self.now) {
                let Some((_, event)) = self.events.pop_first() else {
                    break;
                };
                self.handle(event)?;
            } else if let Some(outcome) = self.service.wake(self.now) {
                self.store(outcome);
            }
        }
        self.now = end;
        Ok(self.report())
    }

    fn report(mut self) -> Report {
        let now = self.now;
        let overdue = |waiting: &&Waiting| waiting.by < now;
        let open = self.waiting.values().filter(overdue).count();
        let late = self
            .late
            .saturating_add(u64::try_from(open).unwrap_or(u64::MAX));
        // Whoever still waits, at a replica that is halted, may have been charged.
        self.forget_requests(|_| true);
        for slot in &self.slots {
            let lost = slot
                .process
                .as_ref()
                .map_or(0, |it| it.memory.races_lost.get());
            self.races_lost = self.races_lost.saturating_add(lost);
        }
        let shard = self.service.counts();
        Report {
            verdicts: self
                .oracle
                .judge(|counter, window| self.died(counter, window)),
            counts: self.oracle.counts.clone(),
            delays: self.oracle.delays.clone(),
            messages: self.messages,
            loaded: self.plan.loaded,
            late,
            broken: self.broken.saturating_add(shard.invariants_broken),
            races_lost: self.races_lost,
            shard,
        }
    }

    /// Tokens of a counter that died with replicas in a window, as the ledgers have it.
    fn died(&self, (rule, key): Counter, window: Window) -> u64 {
        let spec = self.rules.get(rule).map(|rule| &rule.spec);
        let Some(spec) = spec.filter(|_| self.plan.silences()) else {
            return 0;
        };
        let hash = KeyParts {
            domain: &spec.id.domain,
            rule: &spec.id.name,
            algorithm: spec.algorithm.number(),
            period: spec.period.length(),
            values: &[requests::value(key)],
        }
        .hash(HASH_KEY);
        self.service.dead.get(&(hash, window)).copied().unwrap_or(0)
    }

    fn schedule_at(&mut self, at: Truth, event: Event) {
        self.scheduled = self.scheduled.saturating_add(1);
        self.events.insert((at, self.scheduled), event);
    }

    fn schedule(&mut self, after: Span, event: Event) {
        self.schedule_at(self.now.plus(after), event);
    }

    /// The truth of service time.
    fn service_time(&self) -> ServiceTime {
        self.service.time(self.now)
    }

    fn handle(&mut self, event: Event) -> Result<(), RecordError> {
        match event {
            Event::Load => self.draw_load(),
            Event::Request(ticket, epoch, body) => self.reach_service(ticket, epoch, body),
            Event::Durable(epoch) => self.let_out(epoch),
            Event::Fault(fault) => self.strike(fault)?,
            Event::Arrive(_) | Event::Forget(..) | Event::Answer(..) | Event::Tick(..) => {
                self.take_turn(event);
            }
        }
        Ok(())
    }

    /// What a step of the service brought about becomes durable, then its replies leave.
    fn store(&mut self, outcome: Outcome) {
        if outcome.changes.is_empty() && outcome.replies.is_empty() {
            return;
        }
        let sync = self.random.span(self.plan.sync);
        let done = self.service.store.write(self.now, outcome, sync);
        if done <= self.now {
            self.let_out(self.service.epoch);
        } else {
            self.schedule_at(done, Event::Durable(self.service.epoch));
        }
    }

    fn let_out(&mut self, epoch: u64) {
        if epoch != self.service.epoch {
            return;
        }
        if self.plan.sabotage == Some(Sabotage::ForgetsWrites) {
            self.service.store.forget_later_writes();
        }
        for (to, reply) in self.service.store.take_durable(self.now) {
            if let Some((ticket, reply)) = self.service.release(self.now, to, reply) {
                self.send_answer(ticket, reply);
            }
        }
    }

    fn trace(&self, what: impl FnOnce() -> String) {
        if self.plan.trace {
            let millis = self.now.get() / 1_000_000;
            let micros = self.now.get() / 1_000 % 1_000;
            eprintln!("{millis:6}.{micros:03} {}", what());
        }
    }

    fn draw_load(&mut self) {
        let end = self.now.plus(LOAD_AHEAD).min(self.plan.load_end());
        for arrival in self.clients.until(end, self.slots.len()) {
            self.schedule_at(arrival.at, Event::Arrive(arrival));
        }
        if end < self.plan.load_end() {
            self.schedule_at(end, Event::Load);
        }
    }
}

/// Tasks that come in between.
type Fellows = VecDeque<crate::replica::Task>;
