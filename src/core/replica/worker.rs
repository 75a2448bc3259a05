//! One worker of a replica: decides requests from the shared cells, and where it cannot, asks the
//! owner, one ask with waiting requests per key at a time.
//!
//! Invariant: a request is in exactly one place (a queue, an ask, the lobby) and is settled exactly
//! once; the requests of an outstanding ask are never served from anything but its answer, because
//! the owner may have charged them already.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::key::{KeyHash, Value};
use crate::message::RuleSpec;
use crate::replica::activity::Activity;
use crate::replica::seat::{SeatRecord, Seated};
use crate::replica::shared::Shared;
use crate::replica::standing::StandingRecord;
use crate::replica::table::Table;
use crate::trap::{self, Trap};
use crate::units::{Asker, LocalTime, Sequence, Span, Tokens};

mod answer;
mod call;
mod context;
mod counts;
mod outbox;
mod queue;
mod request;

pub use call::{CALLS_IN_FLIGHT_MAX, Call, CallId};
use context::Context;
pub use counts::Counts;
use outbox::Outbox;
use queue::{KeyQueue, Subject};
use request::{Pending, Progress};

/// Most requests one worker keeps waiting. At the default deadline of 100 ms it takes 80,000
/// requests a second, all at the edge, to get there; each holds some 300 bytes.
pub const WAITING_MAX: usize = 8_192;

/// A rule as the worker needs it.
#[derive(Clone, Debug)]
pub struct Rule {
    /// What the counter is told.
    pub spec: RuleSpec,
    /// What happens to a request where nobody can know: let it pass, or not.
    pub undecided_passes: bool,
}

/// Names a request, by the caller.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RequestId(u32);

impl RequestId {
    /// Wraps the caller's number.
    #[must_use]
    pub const fn new(id: u32) -> Self {
        Self(id)
    }

    /// The caller's number.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }
}

/// What one rule wants of a request.
#[derive(Clone, Debug)]
pub struct Charge {
    /// Index of the rule.
    pub rule: usize,
    /// The values the rule counts by.
    pub values: Vec<Value>,
    /// Tokens; 0 asks without spending.
    pub cost: Tokens,
}

/// A request with all rules that apply to it.
#[derive(Clone, Debug)]
pub struct Request {
    /// Names it.
    pub id: RequestId,
    /// The rules that apply; without any it is admitted.
    pub charges: Vec<Charge>,
    /// When its policy acts if nobody has decided.
    pub deadline: LocalTime,
}

/// The answer to a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Every rule admitted it.
    Admit,
    /// A rule's limit is spent.
    Refuse {
        /// Index of the rule.
        rule: usize,
        /// Time to the end of its window, at most.
        retry_after: Span,
    },
    /// Nobody could know for some rule, and its policy acted.
    Undecided {
        /// Index of the first such rule.
        rule: usize,
        /// The policy let the request pass.
        passes: bool,
    },
}

/// A request that has its answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settled {
    /// Which request.
    pub request: RequestId,
    /// Its answer.
    pub verdict: Verdict,
    /// How long it waited for an ask; `None` if it was answered at once.
    pub waited: Option<Span>,
}

/// One worker.
#[derive(Clone, Debug)]
pub struct Worker {
    asker: Asker,
    sequence: Sequence,
    rules: Vec<Rule>,
    buckets: u32,
    /// How long a request may wait, for calls that carry no waiting request.
    patience: Span,
    seat: Option<SeatRecord>,
    /// A copy; read again when it says too little.
    standing: Option<StandingRecord>,
    /// Requests that came before the replica had a seat, hence before their keys could be made.
    lobby: VecDeque<Pending>,
    queues: BTreeMap<KeyHash, KeyQueue>,
    /// Keys that may have something to send.
    ready: BTreeSet<KeyHash>,
    /// At most [`CALLS_IN_FLIGHT_MAX`].
    calls: Vec<call::InFlight>,
    next_call: u64,
    outbox: Outbox,
    waiting: usize,
    activity: Activity,
    counts: Counts,
}

impl Worker {
    /// A worker with a random number as its asker.
    #[must_use]
    pub fn new(asker: Asker, rules: Vec<Rule>, buckets: u32, patience: Span) -> Self {
        Self {
            asker,
            sequence: Sequence::default(),
            rules,
            buckets,
            patience,
            seat: None,
            standing: None,
            lobby: VecDeque::new(),
            queues: BTreeMap::new(),
            ready: BTreeSet::new(),
            calls: Vec::new(),
            next_call: 0,
            outbox: Outbox::default(),
            waiting: 0,
            activity: Activity::default(),
            counts: Counts::default(),
        }
    }

    /// The rules, as they were given.
    #[must_use]
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Decides a request at once, or keeps it and gives `None`; it is settled later by
    /// [`Self::answered`] or [`Self::tick`].
    pub fn arrive(
        &mut self,
        shared: &impl Shared,
        now: LocalTime,
        request: Request,
    ) -> Option<Settled> {
        self.activity.saw_request();
        let pending = Pending::new(request, now, &self.rules);
        if self.waiting >= WAITING_MAX {
            self.counts.waiting_full = self.counts.waiting_full.saturating_add(1);
            return Some(pending.give_up(&self.rules, now));
        }
        self.see_seat(shared, now);
        let mut settled = Vec::new();
        self.proceed(shared, now, pending, true, &mut settled);
        settled.pop()
    }

    /// Whether there is something to send now.
    #[must_use]
    pub fn has_something_to_send(&self) -> bool {
        !self.ready.is_empty() || !self.outbox.is_empty()
    }

    /// Whether requests wait, so that ticks should come soon.
    #[must_use]
    pub const fn is_waiting(&self) -> bool {
        self.waiting > 0
    }

    /// Settles what has reached its deadline, and starts what waited for a seat.
    pub fn tick(&mut self, shared: &impl Shared, now: LocalTime) -> Vec<Settled> {
        let mut settled = Vec::new();
        if let Err(error) = self.activity.tick(shared, now) {
            self.counts.shared_failed(error);
        }
        self.reload_seat(shared);
        let has_seat = self.seat.is_some_and(|seat| seat.seated.is_some());
        for pending in std::mem::take(&mut self.lobby) {
            self.waiting = self.waiting.saturating_sub(1);
            let in_time = now < pending.deadline();
            if has_seat || !in_time {
                self.proceed(shared, now, pending, in_time, &mut settled);
            } else {
                self.waiting = self.waiting.saturating_add(1);
                self.lobby.push_back(pending);
            }
        }
        for pending in self.take_expired(now) {
            self.give_up_waiting(shared, now, pending, &mut settled);
        }
        if trap::is_off(Trap::ServedElsewhere) {
            for pending in self.take_asked() {
                self.proceed(shared, now, pending, true, &mut settled);
            }
        }
        self.wake_retries(now);
        settled
    }

    /// The client has gone: nothing is to be settled any more. What was reserved goes back.
    pub fn forget(&mut self, shared: &impl Shared, request: RequestId) {
        let in_lobby = self.lobby.len();
        self.lobby.retain(|pending| pending.id() != request);
        let mut gone: Vec<Pending> = Vec::new();
        for queue in self.queues.values_mut() {
            gone.extend(queue.remove(request));
        }
        let left = in_lobby
            .saturating_sub(self.lobby.len())
            .saturating_add(gone.len());
        self.waiting = self.waiting.saturating_sub(left);
        for mut pending in gone {
            let table = Table::new(shared, self.buckets);
            pending.release(&table, &mut self.outbox, &mut self.counts);
        }
    }

    /// What was counted since the last call.
    pub fn take_counts(&mut self) -> Counts {
        std::mem::take(&mut self.counts)
    }

    /// Takes a return along with the next call.
    pub fn send_return(&mut self, returned: crate::message::Return) {
        self.outbox.push_return(returned, &mut self.counts);
    }

    /// Goes on with a request as far as can be without an answer from the owner.
    fn proceed(
        &mut self,
        shared: &impl Shared,
        now: LocalTime,
        mut pending: Pending,
        may_wait: bool,
        settled: &mut Vec<Settled>,
    ) {
        let Some(seat) = self.seat.filter(|seat| seat.seated.is_some()) else {
            if may_wait {
                self.waiting = self.waiting.saturating_add(1);
                pending.mark_waiting();
                self.lobby.push_back(pending);
            } else {
                settled.push(pending.give_up(&self.rules, now));
            }
            return;
        };
        let mut context = self.context(shared, &seat, now);
        match pending.advance(&mut context, may_wait) {
            Progress::Done(verdict) => settled.push(pending.settled(verdict, now)),
            Progress::Waits(subject) => self.enqueue(pending, subject),
        }
        self.queue_asks_ahead();
    }

    /// What a request needs to go on.
    fn context<'a, S: Shared>(
        &'a mut self,
        shared: &'a S,
        seat: &'a SeatRecord,
        now: LocalTime,
    ) -> Context<'a, S> {
        Context {
            table: Table::new(shared, self.buckets),
            shared,
            standing: &mut self.standing,
            seat,
            now,
            rules: &self.rules,
            outbox: &mut self.outbox,
            counts: &mut self.counts,
        }
    }

    fn enqueue(&mut self, mut pending: Pending, subject: Subject) {
        pending.mark_waiting();
        self.waiting = self.waiting.saturating_add(1);
        let key = subject.key;
        let queue = self
            .queues
            .entry(key)
            .or_insert_with(|| KeyQueue::new(subject));
        queue.push(pending);
        self.ready.insert(key);
    }

    /// Asks ahead of need for the cells that ran low, unless an ask for the key is out anyway.
    fn queue_asks_ahead(&mut self) {
        for subject in self.outbox.take_ahead() {
            let key = subject.key;
            let queue = self
                .queues
                .entry(key)
                .or_insert_with(|| KeyQueue::new(subject));
            if queue.wish() {
                self.counts.asked_ahead = self.counts.asked_ahead.saturating_add(1);
                self.ready.insert(key);
            }
        }
    }

    fn take_expired(&mut self, now: LocalTime) -> Vec<Pending> {
        let mut expired = Vec::new();
        for (key, queue) in &mut self.queues {
            let before = expired.len();
            queue.take_expired(now, &mut expired);
            if expired.len() > before {
                self.ready.insert(*key);
            }
        }
        self.waiting = self.waiting.saturating_sub(expired.len());
        expired
    }

    /// The requests of all asks that are out.
    fn take_asked(&mut self) -> Vec<Pending> {
        let queues = self.queues.values_mut();
        let asks = queues.filter_map(|queue| queue.outstanding.as_mut());
        let asked: Vec<Pending> = asks
            .flat_map(|ask| ask.requests.iter_mut().filter_map(Option::take))
            .collect();
        self.waiting = self.waiting.saturating_sub(asked.len());
        asked
    }

    /// The rule it waits for is undecided; the rules after it may still refuse at once.
    fn give_up_waiting(
        &mut self,
        shared: &impl Shared,
        now: LocalTime,
        mut pending: Pending,
        settled: &mut Vec<Settled>,
    ) {
        let table = Table::new(shared, self.buckets);
        let rules = &self.rules;
        match pending.undecided(&table, rules, &mut self.outbox, &mut self.counts) {
            Some(verdict) => settled.push(pending.settled(verdict, now)),
            None => self.proceed(shared, now, pending, false, settled),
        }
    }

    /// Looks again at the seat where the copy at hand gives no right to spend.
    fn see_seat(&mut self, shared: &impl Shared, now: LocalTime) {
        let seated: Option<Seated> = self.seat.and_then(|seat| seat.seated);
        if !seated.is_some_and(|seated| seated.is_alive(now)) {
            self.reload_seat(shared);
        }
    }

    fn reload_seat(&mut self, shared: &impl Shared) {
        match SeatRecord::load(shared) {
            Ok(seat) => self.seat = seat,
            Err(error) => self.counts.shared_failed(error),
        }
    }
}
