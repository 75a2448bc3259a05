//! How a model begins, and what its steps rest on.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use headgate_core::key::{KeyHash, KeyParts, Value};
use headgate_core::message::{Algorithm, RuleId, RuleSpec};
use headgate_core::owner::clock::Readings;
use headgate_core::owner::shard::{Shard, ShardConfig, Start};
use headgate_core::replica::seat::SeatRecord;
use headgate_core::replica::worker::{Charge, Request, RequestId, Rule};
use headgate_core::units::{Epoch, LocalTime, ReplicaId, ServiceTime, Span, Tokens};
use headgate_core::window::{Period, Window};

use super::instance::{Instance, Task};
use super::judge::{Book, WindowNumber};
use super::memory::{Defects, Grain, Memory, Values, View};
use super::plan::{Before, Budget, Model, Seen, Visit};
use super::state::{InstanceState, Pools, ReplicaState, State, Step};
use super::wrong::Wrong;
use crate::service::HASH_KEY;
use crate::store::Records;

/// Service time when a model begins: the middle of a window of a minute.
const START: ServiceTime = ServiceTime::new(1_800_000_030_000_000_000);

/// What the machine's clock shows then.
const LOCAL: LocalTime = LocalTime::new(1_000_000_000);

/// A replica's clock is ahead of the one before it by so much.
const CLOCKS_APART: Span = Span::from_secs(1_000);

/// Time before the search goes on in such steps: short enough for the polls that keep a seat.
const STEP_BEFORE: Span = Span::from_secs(1);

/// Most steps before the search begins.
const BEFORE_MAX: usize = 10_000;

/// A model that can be run.
#[derive(Debug)]
pub(super) struct Machine {
    pub(super) model: Model,
    pub(super) pools: Pools,
    pub(super) values: RefCell<Values>,
    pub(super) rules: Vec<Rule>,
    /// The key of each rule.
    pub(super) keys: Vec<KeyHash>,
    /// All requests: those before the search begins come first.
    pub(super) visits: Vec<Visit>,
    pub(super) first_visit: usize,
    /// How far time had gone when the search began, and with every pass since.
    elapsed: Vec<Span>,
    pub(super) seen: BTreeMap<Seen, u64>,
    is_searching: bool,
}

/// Names a replica.
pub(super) fn replica_id(replica: usize) -> ReplicaId {
    ReplicaId::new(u128::try_from(replica).unwrap_or(0).saturating_add(1))
}

fn value(text: &str) -> Value {
    Some(Rc::from(text.as_bytes()))
}

fn rule(name: &str, amount: u64, period: Period) -> Rule {
    let id = RuleId {
        domain: "model".to_owned(),
        name: name.to_owned(),
    };
    let spec = RuleSpec {
        id,
        algorithm: Algorithm::FixedWindow,
        amount: Tokens::new(amount),
        period,
        revision: 0,
    };
    Rule {
        spec,
        undecided_passes: false,
    }
}

impl Machine {
    /// # Errors
    /// The model makes no sense.
    pub(super) fn new(model: Model) -> Result<Self, Wrong> {
        let period = Period::new(model.period).ok_or_else(|| Wrong::model("no period"))?;
        let limits = model.limits.iter();
        let rules: Vec<Rule> = limits
            .map(|limit| rule(limit.name, limit.amount, period))
            .collect();
        let key = |rule: &Rule| {
            let parts = KeyParts {
                domain: &rule.spec.id.domain,
                rule: &rule.spec.id.name,
                algorithm: rule.spec.algorithm.number(),
                period: rule.spec.period.length(),
                values: &[value("all")],
            };
            parts.hash(HASH_KEY)
        };
        let keys = rules.iter().map(key).collect();
        let mut visits: Vec<Visit> = Vec::new();
        for before in &model.before {
            if let Before::Visit(visit) = before {
                visits.push(*visit);
            }
        }
        let first_visit = visits.len();
        visits.extend(&model.visits);
        Ok(Self {
            model,
            pools: Pools::default(),
            values: RefCell::new(Values::default()),
            rules,
            keys,
            visits,
            first_visit,
            elapsed: vec![Span::ZERO],
            seen: BTreeMap::new(),
            is_searching: false,
        })
    }

    /// The state in which the search begins.
    ///
    /// # Errors
    /// Something is wrong before it.
    pub(super) fn begin(&mut self) -> Result<State, Wrong> {
        let mut state = self.first()?;
        for index in 0..self.model.before.len() {
            let before = self.model.before.get(index).copied();
            match before {
                Some(Before::Visit(visit)) => {
                    let earlier = self.model.before.iter().take(index);
                    let request = earlier.filter(|it| matches!(it, Before::Visit(_))).count();
                    self.visit(&mut state, request, visit)?;
                }
                Some(Before::NextWindow) => self.next_window(&mut state)?,
                None => {}
            }
            self.settle(&mut state)?;
        }
        let mut at = self.elapsed(&state);
        for pass in self.model.passes.iter().chain(&self.model.rests) {
            at = sum(at, *pass);
            self.elapsed.push(at);
        }
        state.passed = 0;
        state.left = self.model.budget;
        self.seen.clear();
        self.is_searching = true;
        Ok(state)
    }

    fn first(&mut self) -> Result<State, Wrong> {
        let shard = self.start_shard(
            1,
            Readings {
                local: LOCAL,
                wall: START,
                boot: None,
            },
            &Records::new(),
        )?;
        let owner = Some(self.pools.owners.put(shard));
        let records = self.pools.records.put(Records::new());
        let costs = self.visits.iter().map(|visit| self.costs(visit)).collect();
        let limits = self.model.limits.iter().map(|limit| limit.amount).collect();
        let book = self.pools.books.put(Book::new(limits, costs));
        let mut instances = Vec::new();
        let count: usize = self.model.workers.iter().sum();
        for index in 0..count {
            let number = u64::try_from(index).unwrap_or(0).saturating_add(1);
            let instance = Instance::new(number, self.model.is_first(index), &self.rules);
            instances.push(InstanceState {
                part: self.pools.instances.put(instance),
                under_way: None,
                calls: 0,
            });
        }
        let mut state = State {
            passed: 0,
            left: Budget::default(),
            epoch: 1,
            owner,
            records,
            unwritten: Vec::new(),
            replicas: vec![ReplicaState::default(); self.model.workers.len()],
            instances,
            network: Vec::new(),
            open: Vec::new(),
            book,
        };
        // The first tick makes each replica join, the second tells the other workers of the seat.
        for _ in 0..2 {
            self.tick_all(&mut state)?;
        }
        Ok(state)
    }

    /// Time goes on until a window has begun, and a step more, so that no clock is near its
    /// boundary.
    fn next_window(&mut self, state: &mut State) -> Result<(), Wrong> {
        let window = self.window(state);
        let mut is_there = false;
        while !is_there {
            is_there = self.window(state) > window;
            let at = sum(self.elapsed(state), STEP_BEFORE);
            self.elapsed = vec![at];
            self.settle(state)?;
            self.tick_all(state)?;
        }
        Ok(())
    }

    fn costs(&self, visit: &Visit) -> Vec<u64> {
        let mut costs = vec![0; self.model.limits.len()];
        for want in visit.wants {
            if let Some(cost) = costs.get_mut(want.rule) {
                *cost = want.cost;
            }
        }
        costs
    }

    pub(super) fn start_shard(
        &self,
        epoch: u64,
        at: Readings,
        records: &Records,
    ) -> Result<Shard, Wrong> {
        let start = Start {
            epoch: Epoch::new(epoch),
            at,
            fresh_hash_key: HASH_KEY,
        };
        let records = records.iter();
        let records = records.map(|(key, value)| (key.as_slice(), value.as_slice()));
        let shard = Shard::load(ShardConfig::default(), &start, records);
        shard.map_err(|error| Wrong::model(&error.to_string()))
    }

    fn tick_all(&mut self, state: &mut State) -> Result<(), Wrong> {
        for instance in 0..state.instances.len() {
            self.begin_task(state, instance, Task::Tick)?;
            self.settle(state)?;
        }
        Ok(())
    }

    /// The task of a request that comes to its instance.
    pub(super) fn visit(
        &mut self,
        state: &mut State,
        request: usize,
        visit: Visit,
    ) -> Result<(), Wrong> {
        let window = self.window(state);
        self.change_book(state, |book| {
            book.arrives(request, window);
            Ok(())
        })?;
        let charge = |want: &super::plan::Want| Charge {
            rule: want.rule,
            values: vec![value("all")],
            cost: Tokens::new(want.cost),
        };
        let charges = visit.wants.iter().map(charge).collect();
        let task = Task::Arrive(self.request(state, visit.instance, (request, charges)));
        self.begin_task(state, visit.instance, task)
    }

    fn request(
        &self,
        state: &State,
        instance: usize,
        (id, charges): (usize, Vec<Charge>),
    ) -> Request {
        let now = self.local(state, self.model.replica_of(instance));
        Request {
            id: RequestId::new(u32::try_from(id).unwrap_or(u32::MAX)),
            charges,
            deadline: now.plus(self.model.deadline),
        }
    }

    /// Does what has to come next, in a fixed order, until nothing has to.
    fn settle(&mut self, state: &mut State) -> Result<(), Wrong> {
        for _ in 0..BEFORE_MAX {
            let next = self.enabled(state).into_iter().find(Step::comes_by_itself);
            let Some(next) = next else { return Ok(()) };
            let before = state.clone();
            self.step(state, next)?;
            if *state == before {
                return Err(Wrong::model("nothing comes of a step before the search"));
            }
            self.look(state)?;
        }
        Err(Wrong::model("too many steps before the search"))
    }

    pub(super) fn change_book(
        &mut self,
        state: &mut State,
        change: impl FnOnce(&mut Book) -> Result<(), Wrong>,
    ) -> Result<(), Wrong> {
        let book = self.pools.books.get(state.book);
        let mut book = Book::clone(&*book.ok_or_else(|| Wrong::model("no book"))?);
        let result = change(&mut book);
        state.book = self.pools.books.put(book);
        result
    }

    pub(super) fn sees(&mut self, what: Seen) {
        let count = self.seen.entry(what).or_default();
        *count = count.saturating_add(1);
    }

    /// Whether all that comes before the search has come.
    pub(super) const fn is_searching(&self) -> bool {
        self.is_searching
    }

    fn elapsed(&self, state: &State) -> Span {
        let elapsed = self.elapsed.get(usize::from(state.passed));
        elapsed.copied().unwrap_or(Span::ZERO)
    }

    /// The clocks of the service's machine.
    pub(super) fn readings(&self, state: &State) -> Readings {
        let elapsed = self.elapsed(state);
        Readings {
            local: LOCAL.plus(elapsed),
            wall: START.plus(elapsed),
            // A restart is on another machine: the harder case.
            boot: None,
        }
    }

    /// The clock of a replica's machine.
    pub(super) fn local(&self, state: &State, replica: usize) -> LocalTime {
        let ahead = u64::try_from(replica).unwrap_or(0).saturating_add(1);
        let ahead = Span::new(CLOCKS_APART.get().saturating_mul(ahead));
        LOCAL.plus(ahead).plus(self.elapsed(state))
    }

    /// The window that it truly is.
    pub(super) fn window(&self, state: &State) -> WindowNumber {
        let owner = state.owner.and_then(|owner| self.pools.owners.get(owner));
        let readings = self.readings(state);
        let known = owner.and_then(|owner| owner.service_time(readings.local));
        let now = known.unwrap_or(readings.wall);
        let period = Period::new(self.model.period);
        period.map_or(0, |period| self.number(period.window_at(now)))
    }

    /// The number of a window.
    pub(super) fn number(&self, window: Window) -> WindowNumber {
        let length = self.model.period.get().max(1);
        let number = |at: ServiceTime| at.get().checked_div(length).unwrap_or(0);
        let since = number(window.start()).saturating_sub(number(START));
        WindowNumber::try_from(since).unwrap_or(WindowNumber::MAX)
    }

    pub(super) fn seat_of(&self, memory: &Memory) -> Option<SeatRecord> {
        let how = (Grain::Whole, Defects::default());
        let view = View::new(&self.values, memory.clone(), Vec::new(), how);
        SeatRecord::load(&view).ok().flatten()
    }
}

fn sum(one: Span, other: Span) -> Span {
    Span::new(one.get().saturating_add(other.get()))
}
