//! One replica: workers over one shared memory, interleaved inside their operations.
//!
//! Core's operations run on one thread, so nothing would ever come between reading a value and
//! writing it. Here, at the moment of a write, another worker of the same replica may take a whole
//! turn of its own first ([`Turn::set`]), and so win the race; others may do the same inside that
//! turn. A turn that has been interrupted ends after those that interrupted it.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

use headgate_core::message::call::{AskAnswer, Leave, WatchAnswer, Welcome};
use headgate_core::replica::leader::{Leader, LeaderCall, Ticket};
use headgate_core::replica::shared::{Expected, Place, Shared, SharedError, Stored};
use headgate_core::replica::worker::{Call, CallId, Request, RequestId, Rule, Settled, Worker};
use headgate_core::units::{Asker, LocalTime, ReplicaId, Span};

use crate::memory::Memory;
use crate::random::Random;

/// How many turns may lie inside each other.
const DEPTH_MAX: u32 = 3;

/// How often a write is preceded by another worker's turn while there is one, in thousandths.
const INTERRUPTED: u64 = 500;

/// One worker thread's instance of the plugin.
#[derive(Debug)]
struct Instance {
    worker: Worker,
    leader: Leader,
    /// It has taken the watch once, to state its rules.
    has_claimed: bool,
}

/// How a replica is set up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup {
    pub(crate) buckets: u32,
    /// What is idle for so long goes back.
    pub(crate) idle_after: Span,
}

/// A process with its memory.
#[derive(Debug)]
pub(crate) struct Replica {
    pub(crate) memory: Memory,
    id: ReplicaId,
    instances: Vec<RefCell<Instance>>,
    rules: Vec<Rule>,
    setup: Setup,
}

/// What a worker is given to do.
#[derive(Debug)]
pub(crate) enum Action {
    Arrive(Request),
    /// The client has gone.
    Forget(RequestId),
    Answer(CallId, Option<AskAnswer>),
    Joined(Ticket, Option<Welcome>),
    Watched(Ticket, Option<WatchAnswer>),
    Tick,
    /// The plugin is removed.
    Leave,
}

/// An action and who is to do it.
#[derive(Debug)]
pub(crate) struct Task {
    pub(crate) worker: usize,
    pub(crate) action: Action,
}

/// What comes of it.
#[derive(Debug)]
pub(crate) enum Output {
    Settled(Settled),
    /// This request came so near a boundary that nobody could say in which window.
    NearBoundary(RequestId),
    Ask(usize, Call),
    Lead(usize, LeaderCall),
    Leave(Leave),
    /// The leader's work failed in shared memory.
    Failed(SharedError),
}

impl Replica {
    /// A process that has just started: its memory is empty.
    pub(crate) fn new(random: &mut Random, workers: usize, rules: Vec<Rule>, setup: Setup) -> Self {
        let high = u128::from(random.next()) << 64;
        let id = ReplicaId::new(high | u128::from(random.next()));
        let instances = (0..workers)
            .map(|_| RefCell::new(instance(random, &rules, setup)))
            .collect();
        Self {
            memory: Memory::default(),
            id,
            instances,
            rules,
            setup,
        }
    }

    /// One worker's instance of the plugin dies and starts anew; the memory lives on.
    pub(crate) fn restart_worker(&mut self, random: &mut Random, worker: usize) {
        let fresh = instance(random, &self.rules, self.setup);
        if let Some(place) = self.instances.get_mut(worker) {
            *place = RefCell::new(fresh);
        }
    }
}

fn instance(random: &mut Random, rules: &[Rule], setup: Setup) -> Instance {
    let specs = rules.iter().map(|rule| rule.spec.clone()).collect();
    let asker = Asker::new(random.next());
    // For calls without a waiting request.
    let patience = Span::from_millis(100);
    Instance {
        worker: Worker::new(asker, rules.to_vec(), setup.buckets, patience),
        leader: Leader::new(random.next(), specs, setup.buckets).idle_after(setup.idle_after),
        has_claimed: false,
    }
}

/// One instant of a replica: the task that is due, and others of other workers that may come in
/// between.
#[derive(Debug)]
pub(crate) struct Turn<'a> {
    replica: &'a Replica,
    now: LocalTime,
    fellows: RefCell<VecDeque<Task>>,
    random: RefCell<Random>,
    outputs: RefCell<Vec<Output>>,
    depth: Cell<u32>,
}

impl<'a> Turn<'a> {
    /// `random` decides where the fellows come in.
    pub(crate) fn new(
        replica: &'a Replica,
        now: LocalTime,
        fellows: VecDeque<Task>,
        random: Random,
    ) -> Self {
        Self {
            replica,
            now,
            fellows: RefCell::new(fellows),
            random: RefCell::new(random),
            outputs: RefCell::new(Vec::new()),
            depth: Cell::new(0),
        }
    }

    /// Does the task, and all fellows at the latest after it.
    pub(crate) fn run(self, task: Task) -> Vec<Output> {
        self.fellows.borrow_mut().push_front(task);
        // Nothing is under way here, so no worker is busy and each gets its turn.
        while let Some(task) = self.next_fellow() {
            self.perform(task);
        }
        self.outputs.into_inner()
    }

    fn next_fellow(&self) -> Option<Task> {
        self.fellows.borrow_mut().pop_front()
    }

    /// Does a task unless its worker is in the middle of another one.
    fn perform(&self, task: Task) {
        let Some(instance) = self.replica.instances.get(task.worker) else {
            return;
        };
        match instance.try_borrow_mut() {
            Ok(mut instance) => self.act(&mut instance, task),
            Err(_) => self.fellows.borrow_mut().push_back(task),
        }
    }

    fn act(&self, instance: &mut Instance, task: Task) {
        let Task { worker, action } = task;
        let now = self.now;
        match action {
            Action::Arrive(request) => {
                self.note_boundary(instance, &request);
                self.settle(instance.worker.arrive(self, now, request));
            }
            Action::Forget(request) => instance.worker.forget(self, request),
            Action::Answer(call, answer) => {
                let has_answer = answer.is_some();
                self.settle(instance.worker.answered(self, now, call, answer));
                // After a failure the next tick is soon enough.
                if !has_answer {
                    return;
                }
            }
            Action::Joined(ticket, welcome) => {
                self.check(instance.leader.joined(self, now, ticket, welcome));
                self.settle(instance.worker.tick(self, now));
                self.lead(instance, worker);
            }
            Action::Watched(ticket, answer) => {
                let returns = self.check(instance.leader.watched(self, now, ticket, answer));
                for returned in returns.unwrap_or_default() {
                    instance.worker.send_return(returned);
                }
                self.lead(instance, worker);
            }
            Action::Tick => self.tick(instance, worker),
            Action::Leave => {
                let leave = self.check(instance.leader.leave(self, now));
                if let Some(Some(leave)) = leave {
                    self.push(Output::Leave(leave));
                }
                return;
            }
        }
        self.send_asks(instance, worker);
    }

    fn tick(&self, instance: &mut Instance, worker: usize) {
        if !instance.has_claimed {
            let claimed = instance.leader.holds_watch(self, self.now, true);
            instance.has_claimed = self.check(claimed).unwrap_or(false);
        }
        self.settle(instance.worker.tick(self, self.now));
        let returns = self.check(instance.leader.return_idle(self, self.now));
        for returned in returns.unwrap_or_default() {
            instance.worker.send_return(returned);
        }
        self.lead(instance, worker);
    }

    fn lead(&self, instance: &mut Instance, worker: usize) {
        let call = instance.leader.next_call(self, self.now, self.replica.id);
        if let Some(Some(call)) = self.check(call) {
            self.push(Output::Lead(worker, call));
        }
    }

    fn send_asks(&self, instance: &mut Instance, worker: usize) {
        while let Some(call) = instance.worker.next_call(self, self.now) {
            self.push(Output::Ask(worker, call));
        }
    }

    fn note_boundary(&self, instance: &Instance, request: &Request) {
        let seated = instance.worker.seat().and_then(|seat| seat.seated);
        let Some(seated) = seated.filter(|seated| seated.is_alive(self.now)) else {
            return;
        };
        let service = seated.moment(self.now).service;
        let rules = &self.replica.rules;
        let near = request.charges.iter().any(|charge| {
            let rule = rules.get(charge.rule);
            rule.is_some_and(|rule| service.window(rule.spec.period).is_none())
        });
        if near {
            self.push(Output::NearBoundary(request.id));
        }
    }

    fn settle(&self, settled: impl IntoIterator<Item = Settled>) {
        let settled = settled.into_iter().map(Output::Settled);
        self.outputs.borrow_mut().extend(settled);
    }

    fn push(&self, output: Output) {
        self.outputs.borrow_mut().push(output);
    }

    fn check<T>(&self, result: Result<T, SharedError>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                self.push(Output::Failed(error));
                None
            }
        }
    }

    /// Before a write, another worker may take its turn.
    fn interrupt(&self) {
        while self.depth.get() < DEPTH_MAX && self.random.borrow_mut().chance(INTERRUPTED) {
            let Some(task) = self.next_fellow() else {
                return;
            };
            self.depth.set(self.depth.get().saturating_add(1));
            self.perform(task);
            self.depth.set(self.depth.get().saturating_sub(1));
        }
    }
}

impl Shared for Turn<'_> {
    fn get(&self, place: Place) -> Result<Stored, SharedError> {
        Ok(self.replica.memory.get(place))
    }

    fn set(&self, place: Place, value: &[u8], expected: Expected) -> Result<bool, SharedError> {
        self.interrupt();
        Ok(self.replica.memory.set(place, value, expected))
    }
}
