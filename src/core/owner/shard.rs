//! All keys of one leader: routes messages to the keys' owners, keeps the members, collects what
//! has to be stored and what has to be said.
//!
//! Invariant: a step's changes are all it takes to rebuild the state that its replies rest on.

use std::collections::{BTreeMap, BTreeSet};

use crate::clock::Stamps;
use crate::key::KeyHash;
use crate::message::call::{AskAnswer, AskCall};
use crate::message::{Answer, SeatState, Sender};
use crate::owner::clock::{Readings, ServiceClock};
use crate::owner::effect::{Change, KeyEffect, Outcome, Rejection, Reply, ReplyTo};
use crate::owner::key::{KeyState, Surroundings};
use crate::owner::member::Members;
use crate::owner::record::{self, Meta};
use crate::owner::rules::Rules;
use crate::owner::seating::{Seating, counters_of};
use crate::units::{Epoch, LocalTime, ServiceTime, Span, Tenancy, Tokens};

mod ask;
mod counts;
mod load;
mod membership;
mod watch;

pub use counts::ShardCounts;
pub use load::Start;

/// What bounds a shard, and its times.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ShardConfig {
    /// How long a seat lives without a message.
    pub time_to_live: Span,
    /// How long a recall may go without a return before it has failed.
    pub recall_timeout: Span,
    /// When a poll is answered at the latest.
    pub watch_poll: Span,
    /// Most keys in memory. Beyond it, new keys are undecided.
    pub keys_max: usize,
    /// Most members. Beyond it, a replica gets no seat.
    pub members_max: usize,
    /// Most asks that wait. Beyond it, calls are rejected.
    pub waiting_max: usize,
}

impl Default for ShardConfig {
    fn default() -> Self {
        Self {
            time_to_live: Span::from_secs(5),
            recall_timeout: Span::from_millis(30),
            watch_poll: Span::from_secs(1),
            keys_max: 1_000_000,
            members_max: 4_096,
            waiting_max: 65_536,
        }
    }
}

/// An open Ask call.
#[derive(Clone, Debug)]
struct OpenAsk {
    from: Option<Tenancy>,
    seat_state: SeatState,
    received: ServiceTime,
    answers: Vec<Answer>,
    /// Asks that it waits for.
    open: usize,
}

/// All keys of one leader.
#[derive(Clone, Debug)]
pub struct Shard {
    config: ShardConfig,
    epoch: Epoch,
    clock: ServiceClock,
    meta: Meta,
    members: Members,
    rules: Rules,
    seating: Seating,
    keys: BTreeMap<KeyHash, KeyState>,
    /// When to look at which key; `wake_of` has the same the other way round.
    wakes: BTreeSet<(ServiceTime, KeyHash)>,
    wake_of: BTreeMap<KeyHash, ServiceTime>,
    calls: BTreeMap<ReplyTo, OpenAsk>,
    waiting: usize,
    counts: ShardCounts,
    outcome: Outcome,
    /// Keys touched in this step.
    touched: BTreeSet<KeyHash>,
    meta_changed: bool,
}

impl Shard {
    /// The leader's epoch.
    #[must_use]
    pub const fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Service time, once it is known.
    #[must_use]
    pub const fn service_time(&self, local: LocalTime) -> Option<ServiceTime> {
        self.clock.now(local)
    }

    /// The clock, to stamp answers where they leave.
    #[must_use]
    pub const fn clock(&self) -> ServiceClock {
        self.clock
    }

    /// Keys in memory.
    #[must_use]
    pub fn keys(&self) -> &BTreeMap<KeyHash, KeyState> {
        &self.keys
    }

    /// Members with a seat.
    #[must_use]
    pub const fn members(&self) -> &Members {
        &self.members
    }

    /// Asks that wait.
    #[must_use]
    pub const fn waiting(&self) -> usize {
        self.waiting
    }

    /// Figures since the start, or since they were last taken.
    #[must_use]
    pub const fn counts(&self) -> ShardCounts {
        self.counts
    }

    /// What was counted since the last call. Two shards that differ only in what was counted then
    /// decide the same from there on.
    pub fn take_counts(&mut self) -> ShardCounts {
        std::mem::take(&mut self.counts)
    }

    /// Looks at what time alone has changed.
    pub fn wake(&mut self, at: Readings) {
        self.clock.look(at);
        if self.clock.recovers_at().is_some() {
            self.bury_silent(at);
            self.clock.give_up_waiting(at);
        }
        let Some(now) = self.clock.now(at.local) else {
            return;
        };
        self.bury_silent(at);
        while let Some((due, key)) = self.wakes.first().copied() {
            if now < due {
                break;
            }
            self.wakes.pop_first();
            self.wake_of.remove(&key);
            self.wake_key(now, key);
        }
    }

    fn wake_key(&mut self, now: ServiceTime, key: KeyHash) {
        if self.keys.get(&key).is_some_and(|state| state.is_over(now)) {
            self.drop_key(key);
            return;
        }
        self.with_key(now, key, |state, around, out| state.wake(around, out));
    }

    fn drop_key(&mut self, key: KeyHash) {
        if self.keys.remove(&key).is_some() {
            let place = record::key_place(key);
            self.outcome.changes.push(Change {
                key: place,
                value: None,
            });
        }
    }

    /// When [`Self::wake`] is due next.
    #[must_use]
    pub fn next_wake(&self) -> Option<LocalTime> {
        let recovery = self.clock.recovers_at();
        let key = self.wakes.first().map(|(due, _)| self.clock.local_at(*due));
        let member = self.members.iter().map(|member| {
            let gone = member.heard.plus(self.config.time_to_live);
            let Some(watch) = member.watch else {
                return gone;
            };
            let repeat = member.next_repeat().unwrap_or(watch.until);
            gone.min(watch.until).min(repeat)
        });
        recovery.into_iter().chain(key).chain(member).min()
    }

    /// Ends a step: answers what can be answered, and hands over what has to be stored and said.
    pub fn finish(&mut self, at: Readings) -> Outcome {
        self.publish(at);
        self.answer_asks(at);
        self.answer_watches(at);
        for key in std::mem::take(&mut self.touched) {
            let Some(state) = self.keys.get_mut(&key) else {
                continue;
            };
            if state.take_changed() {
                let change = Change {
                    key: record::key_place(key),
                    value: Some(record::write_key(state)),
                };
                self.outcome.changes.push(change);
            }
        }
        self.store_meta(at);
        std::mem::take(&mut self.outcome)
    }

    /// No reply tells a time beyond the stored ceiling, because the ceiling is stored with it.
    fn store_meta(&mut self, at: Readings) {
        let nothing = self.outcome.replies.is_empty() && self.outcome.changes.is_empty();
        if nothing && !self.meta_changed {
            return;
        }
        self.clock.look(at);
        self.meta_changed |= self.clock.has_moved();
        let now = self.clock.now(at.local);
        if let Some(ceiling) = now.and_then(|now| self.clock.raise_ceiling(now)) {
            self.meta.ceiling = ceiling;
            self.meta_changed = true;
        }
        if std::mem::take(&mut self.meta_changed) {
            self.meta.anchor = self.clock.drop_anchor(at);
            let value = Some(record::write_meta(&self.meta));
            self.outcome.changes.push(Change {
                key: record::meta_place(),
                value,
            });
        }
    }

    /// Runs one key's state machine and takes in what it brings about.
    fn with_key(
        &mut self,
        now: ServiceTime,
        key: KeyHash,
        step: impl FnOnce(&mut KeyState, &Surroundings, &mut Vec<KeyEffect>),
    ) {
        let Some(state) = self.keys.get_mut(&key) else {
            return;
        };
        let in_force = self.rules.limit(state.rule(), state.period());
        let limit = in_force.unwrap_or_else(|| state.ledger().limit());
        let around = surroundings(&self.config, &self.members, now, limit);
        let waited = state.waiting();
        let mut effects = Vec::new();
        if let Some(window) = state.next_window(now) {
            let counters = counters_of(state.rule(), state.period());
            let of = (&counters, key);
            let ledger = self.seating.begin(of, window, &self.members, limit);
            self.counts.died(ledger.dead());
            state.begin(&around, ledger, &mut effects);
        }
        step(state, &around, &mut effects);
        if !state.ledger().is_sound() {
            self.counts.invariants_broken = self.counts.invariants_broken.saturating_add(1);
        }
        self.waiting = self
            .waiting
            .saturating_sub(waited)
            .saturating_add(state.waiting());
        let due = state.next_wake(now, self.config.recall_timeout);
        self.schedule(key, due);
        self.touched.insert(key);
        for effect in effects {
            self.take_effect(effect);
        }
    }

    fn schedule(&mut self, key: KeyHash, due: ServiceTime) {
        if let Some(before) = self.wake_of.insert(key, due) {
            self.wakes.remove(&(before, key));
        }
        self.wakes.insert((due, key));
    }

    fn take_effect(&mut self, effect: KeyEffect) {
        match effect {
            KeyEffect::Answer(reply, answer) => self.take_key_answer(reply, answer),
            KeyEffect::Recall(to, recall) => {
                self.counts.recalls = self.counts.recalls.saturating_add(1);
                if let Some(member) = self.members.get_mut(to) {
                    member.recall(recall);
                }
            }
            KeyEffect::RecallEnded(of, key) => {
                if let Some(member) = self.members.get_mut(of) {
                    member.recall_ended(key);
                }
            }
            KeyEffect::AskersFull => {
                self.counts.askers_full = self.counts.askers_full.saturating_add(1);
            }
            KeyEffect::ReportRefused => {
                self.counts.reports_refused = self.counts.reports_refused.saturating_add(1);
            }
            KeyEffect::Granted(to, lease) => {
                let member = self.members.get_mut(to);
                if member.is_some_and(|member| !member.push_lease(lease)) {
                    self.counts.pushes_dropped = self.counts.pushes_dropped.saturating_add(1);
                }
            }
            KeyEffect::Exhausted(to, exhausted) => {
                let member = self.members.get_mut(to);
                if member.is_some_and(|member| !member.push_exhausted(exhausted)) {
                    self.counts.pushes_dropped = self.counts.pushes_dropped.saturating_add(1);
                }
            }
        }
    }

    fn reject(&mut self, reply: ReplyTo, why: Rejection) {
        self.outcome.replies.push((reply, Reply::Rejected(why)));
    }

    /// What a member says of the time may still correct a new leader's, before anything is judged
    /// by it.
    fn hear_time(&mut self, at: Readings, sender: &Sender) {
        self.clock.look(at);
        let known = self.members.find(sender.replica, sender.incarnation);
        if let (Some(_), Some(said), None) = (known, sender.service_time, self.clock.recovers_at())
        {
            self.clock.hear(at, said);
        }
    }

    /// A message came: who is it from, and what must it be told of its seat? Extends the seat's
    /// life.
    fn hear(&mut self, at: Readings, sender: &Sender) -> (Option<Tenancy>, SeatState) {
        let found = self.members.find(sender.replica, sender.incarnation);
        let Some(member) = found.and_then(|tenancy| self.members.get_mut(tenancy)) else {
            return (None, SeatState::Unknown);
        };
        if !member.registered || sender.epoch != self.epoch {
            return (None, SeatState::Register);
        }
        member.heard = at.local;
        (found, SeatState::Ok)
    }

    fn stamps(&self, received: ServiceTime, at: Readings) -> Stamps {
        Stamps {
            received,
            sent: self.clock.now(at.local).unwrap_or(received),
        }
    }
}

/// What a key needs to know besides its own state.
fn surroundings(
    config: &ShardConfig,
    members: &Members,
    now: ServiceTime,
    limit: Tokens,
) -> Surroundings {
    Surroundings {
        now,
        replicas: u64::try_from(members.len()).unwrap_or(u64::MAX).max(1),
        recall_timeout: config.recall_timeout,
        limit,
    }
}

#[cfg(test)]
mod tests;
