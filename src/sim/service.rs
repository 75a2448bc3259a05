//! The counter service's process: core's shard, its machine's clocks, its store. Truth of service
//! time is what the leader says it is; while there is none, its clock is taken to run on.

use std::collections::BTreeMap;

use headgate_core::clock::Stamps;
use headgate_core::key::{HashKey, KeyHash};
use headgate_core::message::Sender;
use headgate_core::message::call::{AskCall, Join, Leave};
use headgate_core::owner::clock::{Boot, Readings, ServiceClock};
use headgate_core::owner::effect::{Outcome, Reply, ReplyTo};
use headgate_core::owner::record::RecordError;
use headgate_core::owner::shard::{Shard, ShardConfig, ShardCounts, Start};
use headgate_core::units::{Epoch, LocalTime, ServiceTime};
use headgate_core::window::Window;

use crate::random::Random;
use crate::store::Store;
use crate::time::{Clock, Truth};

/// Secret of the keyed hash in every world, so that keys can be told from outside.
pub(crate) const HASH_KEY: HashKey = HashKey::new([7; 16]);

/// A request on its way.
#[derive(Clone, Debug)]
pub(crate) enum Body {
    Ask(AskCall),
    Join(Join),
    Watch(Sender),
    Leave(Leave),
}

/// Names a call, in the whole world.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Ticket(pub(crate) u64);

#[derive(Debug)]
struct Open {
    ticket: Ticket,
    received: LocalTime,
}

/// Tokens that died with replicas: by key and window.
pub(crate) type Dead = BTreeMap<(KeyHash, Window), u64>;

/// One process after the other over one store.
#[derive(Debug)]
pub(crate) struct Service {
    config: ShardConfig,
    /// Its machine's monotonic clock.
    pub(crate) clock: Clock,
    /// Which machine it is, by its boot.
    pub(crate) machine: u128,
    /// Its machine's wall clock when the world began, and since it was last set.
    pub(crate) wall: ServiceTime,
    pub(crate) epoch: u64,
    shard: Option<Shard>,
    pub(crate) store: Store,
    open: BTreeMap<ReplyTo, Open>,
    next_reply: u64,
    /// Service time as last known of a dead leader: then, when, on which clock.
    last: (ServiceTime, Truth, Clock),
    pub(crate) dead: Dead,
    dead_seen: u64,
    /// Figures of the leaders before this one.
    before: ShardCounts,
    /// A leader that another one has followed, and that does not know it yet.
    pub(crate) deposed: Option<Deposed>,
}

impl Service {
    pub(crate) fn new(config: ShardConfig, clock: Clock, wall: ServiceTime) -> Self {
        Self {
            config,
            clock,
            machine: 1,
            wall,
            epoch: 0,
            shard: None,
            store: Store::default(),
            open: BTreeMap::new(),
            next_reply: 0,
            last: (wall, Truth::ZERO, clock),
            dead: Dead::new(),
            dead_seen: 0,
            before: ShardCounts::default(),
            deposed: None,
        }
    }

    pub(crate) const fn is_up(&self) -> bool {
        self.shard.is_some()
    }

    fn readings(&self, now: Truth) -> Readings {
        let local = self.clock.local(now);
        let since = local.since(self.clock.local(Truth::ZERO));
        Readings {
            local,
            wall: self.wall.plus(since),
            boot: Some(Boot {
                id: self.machine,
                since: local.since(LocalTime::ZERO),
            }),
        }
    }

    /// Its machine's wall clock shows this now.
    pub(crate) fn wall_reads(&mut self, now: Truth, shown: ServiceTime) {
        let since = self.clock.local(now).since(self.clock.local(Truth::ZERO));
        self.wall = shown.minus(since);
    }

    /// The truth of service time.
    pub(crate) fn time(&self, now: Truth) -> ServiceTime {
        let local = self.clock.local(now);
        let known = self
            .shard
            .as_ref()
            .and_then(|shard| shard.service_time(local));
        known.unwrap_or_else(|| {
            let (then, at, clock) = self.last;
            then.plus(clock.local(now).since(clock.local(at)))
        })
    }

    /// A new leader starts from the store.
    ///
    /// # Errors
    /// What is stored breaks an invariant.
    pub(crate) fn start(&mut self, now: Truth) -> Result<(), RecordError> {
        self.epoch = self.epoch.saturating_add(1);
        let start = Start {
            epoch: Epoch::new(self.epoch),
            at: self.readings(now),
            fresh_hash_key: HASH_KEY,
        };
        let records = self.store.records().iter();
        let records = records.map(|(key, value)| (key.as_slice(), value.as_slice()));
        self.shard = Some(Shard::load(self.config, &start, records)?);
        self.dead_seen = 0;
        self.note_dead(true);
        Ok(())
    }

    /// The process dies. Gives the calls that were open.
    pub(crate) fn crash(&mut self, now: Truth, random: &mut Random) -> Vec<Ticket> {
        self.last = (self.time(now), now, self.clock);
        if let Some(shard) = self.shard.take() {
            self.before = sum(self.before, shard.counts());
        }
        self.store.crash(random);
        let open = std::mem::take(&mut self.open);
        open.into_values().map(|open| open.ticket).collect()
    }

    /// The process goes on until then, but can write no more.
    pub(crate) fn depose(&mut self, now: Truth, until: Truth, random: &mut Random) {
        self.last = (self.time(now), now, self.clock);
        self.store.crash(random);
        if let Some(shard) = self.shard.take() {
            self.before = sum(self.before, shard.counts());
            let since = self.clock.local(Truth::ZERO);
            let (wall, clock) = (self.wall, self.clock);
            let open = std::mem::take(&mut self.open);
            self.deposed = Some(Deposed {
                epoch: self.epoch,
                shard,
                readings: (clock, wall, since),
                machine: self.machine,
                open,
                until,
            });
        }
    }

    /// A deposed leader takes in a request: its answers, or the calls that break because it ends.
    pub(crate) fn take_deposed(&mut self, now: Truth, ticket: Ticket, body: Body) -> Said {
        let reply = ReplyTo::new(self.next_reply);
        self.next_reply = self.next_reply.saturating_add(1);
        let Some(mut old) = self.deposed.take() else {
            return Said::Ends(vec![ticket]);
        };
        if let Some(answers) = old.take(now, (ticket, reply), body) {
            self.deposed = Some(old);
            return Said::Answers(answers);
        }
        Said::Ends(old.open.into_values().map(|open| open.ticket).collect())
    }

    /// Takes in a request; `None` if there is no process.
    pub(crate) fn take(&mut self, now: Truth, ticket: Ticket, body: Body) -> Option<Outcome> {
        let at = self.readings(now);
        let shard = self.shard.as_mut()?;
        let reply = ReplyTo::new(self.next_reply);
        self.next_reply = self.next_reply.saturating_add(1);
        let received = at.local;
        self.open.insert(reply, Open { ticket, received });
        match body {
            Body::Ask(call) => shard.ask(at, call, reply),
            Body::Join(join) => shard.join(at, &join, reply),
            Body::Watch(sender) => shard.watch(at, &sender, reply),
            Body::Leave(leave) => shard.leave(at, &leave, reply),
        }
        self.finish(at)
    }

    /// When [`Self::wake`] is due.
    pub(crate) fn next_wake(&self) -> Option<Truth> {
        let due = self.shard.as_ref()?.next_wake()?;
        Some(self.clock.truth(due))
    }

    pub(crate) fn wake(&mut self, now: Truth) -> Option<Outcome> {
        let at = self.readings(now);
        self.shard.as_mut()?.wake(at);
        self.finish(at)
    }

    fn finish(&mut self, at: Readings) -> Option<Outcome> {
        let outcome = self.shard.as_mut()?.finish(at);
        self.note_dead(false);
        Some(outcome)
    }

    /// A reply that leaves now, with the stamps of its receipt and of now.
    pub(crate) fn release(
        &mut self,
        now: Truth,
        to: ReplyTo,
        mut reply: Reply,
    ) -> Option<(Ticket, Reply)> {
        let open = self.open.remove(&to)?;
        let clock = self.shard.as_ref()?.clock();
        stamp(&mut reply, clock, (open.received, self.clock.local(now)));
        Some((open.ticket, reply))
    }

    /// Keeps what the ledgers say has died, before they are dropped with their windows.
    fn note_dead(&mut self, at_start: bool) {
        let Some(shard) = &self.shard else { return };
        let seen = shard.counts().tokens_dead;
        if seen == self.dead_seen && !at_start {
            return;
        }
        self.dead_seen = seen;
        for (key, state) in shard.keys() {
            let ledger = state.ledger();
            let dead = ledger.dead().get();
            if dead > 0 {
                let most = self.dead.entry((*key, ledger.window())).or_default();
                *most = dead.max(*most);
            }
        }
    }

    /// Figures of all leaders so far.
    pub(crate) fn counts(&self) -> ShardCounts {
        let now = self.shard.as_ref().map(Shard::counts);
        now.map_or(self.before, |now| sum(self.before, now))
    }
}

/// A leader that another one has followed. It has not noticed: it answers whoever still talks to
/// it, until a write of its own is refused.
#[derive(Debug)]
pub(crate) struct Deposed {
    pub(crate) epoch: u64,
    shard: Shard,
    /// Its machine's clock, its wall clock when the world began, and what the clock showed then.
    readings: (Clock, ServiceTime, LocalTime),
    machine: u128,
    open: BTreeMap<ReplyTo, Open>,
    until: Truth,
}

/// What comes of a request to a deposed leader.
pub(crate) enum Said {
    Answers(Vec<(Ticket, Reply)>),
    /// It ends, and with it these calls.
    Ends(Vec<Ticket>),
}

impl Deposed {
    /// Its answers; `None` if it has to write for them, or its time is over.
    fn take(
        &mut self,
        now: Truth,
        (ticket, reply): (Ticket, ReplyTo),
        body: Body,
    ) -> Option<Vec<(Ticket, Reply)>> {
        let (clock, wall, began) = self.readings;
        let local = clock.local(now);
        let wall = wall.plus(local.since(began));
        let boot = Some(Boot {
            id: self.machine,
            since: local.since(LocalTime::ZERO),
        });
        let at = Readings { local, wall, boot };
        let received = local;
        self.open.insert(reply, Open { ticket, received });
        self.shard.wake(at);
        match body {
            Body::Ask(call) => self.shard.ask(at, call, reply),
            Body::Join(join) => self.shard.join(at, &join, reply),
            Body::Watch(sender) => self.shard.watch(at, &sender, reply),
            Body::Leave(leave) => self.shard.leave(at, &leave, reply),
        }
        let outcome = self.shard.finish(at);
        if !outcome.changes.is_empty() || self.until <= now {
            return None;
        }
        let mut answers = Vec::new();
        for (to, mut reply) in outcome.replies {
            if let Some(open) = self.open.remove(&to) {
                stamp(&mut reply, self.shard.clock(), (open.received, local));
                answers.push((open.ticket, reply));
            }
        }
        Some(answers)
    }
}

fn stamp(reply: &mut Reply, clock: ServiceClock, (received, sent): (LocalTime, LocalTime)) {
    let (received, sent) = (clock.stamp(received), clock.stamp(sent));
    if let (Some(stamps), Some(received), Some(sent)) = (stamps_of(reply), received, sent) {
        *stamps = Stamps { received, sent };
    }
}

fn sum(one: ShardCounts, other: ShardCounts) -> ShardCounts {
    ShardCounts {
        recalls: one.recalls.saturating_add(other.recalls),
        members_lost: one.members_lost.saturating_add(other.members_lost),
        tokens_dead: one.tokens_dead.saturating_add(other.tokens_dead),
        reports_refused: one.reports_refused.saturating_add(other.reports_refused),
        invariants_broken: one
            .invariants_broken
            .saturating_add(other.invariants_broken),
        ..one
    }
}

fn stamps_of(reply: &mut Reply) -> Option<&mut Stamps> {
    match reply {
        Reply::Welcome(welcome) => Some(&mut welcome.stamps),
        Reply::Ask(answer) => Some(&mut answer.stamps),
        Reply::Watch(answer) => Some(&mut answer.stamps),
        Reply::Left | Reply::Rejected(_) => None,
    }
}
