//! Join, Leave, and the end of a silent member's time-to-live.

use std::collections::BTreeSet;

use super::watch::Pushes;
use super::{KeyState, Readings, Rejection, Reply, ReplyTo, Shard};
use crate::key::KeyHash;
use crate::message::call::{Join, Leave, Welcome};
use crate::message::{PROTOCOL_VERSION, SeatState, Sender};
use crate::owner::effect::Change;
use crate::owner::member::Member;
use crate::owner::record::{self, StoredMember};
use crate::trap::{self, Trap};
use crate::units::{Epoch, Seat, ServiceTime, Tenancy};

impl Shard {
    /// Takes in a Join. One tenancy, however often it joins, has one seat.
    pub fn join(&mut self, at: Readings, join: &Join, reply: ReplyTo) {
        if join.protocol_version != PROTOCOL_VERSION {
            self.reject(reply, Rejection::Version);
            return;
        }
        self.clock.look(at);
        let sender = join.sender;
        let known = self.members.find(sender.replica, sender.incarnation);
        if let (Some(_), Some(said)) = (known, sender.service_time) {
            self.clock.hear(at, said);
        }
        let Some(now) = self.clock.now(at.local) else {
            self.reject(reply, Rejection::Recovering);
            return;
        };
        if known.is_none() && sender.epoch != Epoch::default() {
            self.welcome(at, now, None, reply);
            return;
        }
        let tenancy = match known.filter(|_| !trap::is_off(Trap::JoinedTwice)) {
            Some(tenancy) => tenancy,
            None => match self.admit_member(at, now, &sender) {
                Ok(tenancy) => tenancy,
                Err(why) => {
                    self.reject(reply, why);
                    return;
                }
            },
        };
        for rule in &join.rules {
            self.state_rule(tenancy, rule);
        }
        self.register(now, tenancy, join);
        let Some(member) = self.members.get_mut(tenancy) else {
            return;
        };
        member.heard = at.local;
        let stored = member.stored;
        self.welcome(at, now, Some(&stored), reply);
    }

    fn welcome(
        &mut self,
        at: Readings,
        received: ServiceTime,
        seated: Option<&StoredMember>,
        reply: ReplyTo,
    ) {
        let rules = seated.map(|member| self.rules.of(member.tenancy));
        let welcome = Welcome {
            epoch: self.epoch,
            seat: seated.map_or(Seat::default(), |member| member.seat),
            joined: seated.map_or(ServiceTime::ZERO, |member| member.joined),
            time_to_live: self.config.time_to_live,
            stamps: self.stamps(received, at),
            hash_key: self.meta.hash_key,
            seat_state: seated.map_or(SeatState::Unknown, |_| SeatState::Ok),
            directory: rules.map(|rules| self.seating.directory(rules)),
        };
        self.outcome.replies.push((reply, Reply::Welcome(welcome)));
    }

    /// A tenancy that is not known: a replica never seen, or the next incarnation of one, which
    /// says by joining that it holds nothing of the one before.
    fn admit_member(
        &mut self,
        at: Readings,
        now: ServiceTime,
        sender: &Sender,
    ) -> Result<Tenancy, Rejection> {
        let before = self.members.of(sender.replica).map(|member| member.stored);
        if before.is_some_and(|before| sender.incarnation < before.incarnation) {
            return Err(Rejection::OldIncarnation);
        }
        let ended = |before: &StoredMember| before.incarnation < sender.incarnation;
        if let Some(before) = before.filter(ended) {
            self.bury(at, before.tenancy);
        }
        if self.members.len() >= self.config.members_max {
            self.counts.members_full = self.counts.members_full.saturating_add(1);
            return Err(Rejection::SeatsFull);
        }
        let tenancy = self.meta.next_tenancy;
        self.meta.next_tenancy = tenancy.next();
        self.meta_changed = true;
        let stored = StoredMember {
            tenancy,
            replica: sender.replica,
            incarnation: sender.incarnation,
            seat: self.members.vacant_seat(),
            joined: now,
        };
        let value = Some(record::write_member(&stored));
        self.outcome.changes.push(Change {
            key: record::member_place(tenancy),
            value,
        });
        // It has nothing to register with this leader.
        self.members.add(Member::new(stored, at.local, true));
        Ok(tenancy)
    }

    /// A member of an earlier leader says what it holds. Without a fence for this leader a delayed
    /// grant of the old one could still count, so a Join that only states rules registers nothing;
    /// the next poll asks for it.
    fn register(&mut self, now: ServiceTime, tenancy: Tenancy, join: &Join) {
        if join.fenced_for != Some(self.epoch) {
            return;
        }
        if let Some(member) = self.members.get_mut(tenancy) {
            member.registered = true;
        }
        for lease in &join.leases {
            self.with_key(now, lease.key, |state, _, out| {
                state.register(tenancy, lease, true, false, out);
            });
        }
    }

    /// Takes in a Leave: what comes with it goes back; so does what it cannot have used, if nothing
    /// is missing; the rest counts as spent. Every lease is fenced, so it counts without a
    /// registration.
    pub fn leave(&mut self, at: Readings, leave: &Leave, reply: ReplyTo) {
        let Some(now) = self.clock.now(at.local) else {
            self.reject(reply, Rejection::Recovering);
            return;
        };
        let sender = &leave.sender;
        if let Some(tenancy) = self.members.find(sender.replica, sender.incarnation) {
            for lease in &leave.leases {
                self.with_key(now, lease.key, |state, _, out| {
                    state.register(tenancy, lease, false, true, out);
                });
            }
            if leave.complete {
                self.let_go(now, tenancy, leave);
            }
            self.bury(at, tenancy);
        }
        self.outcome.replies.push((reply, Reply::Left));
    }

    /// A member that leaves has never had a cell for these keys: their standing shares are whole.
    fn let_go(&mut self, now: ServiceTime, tenancy: Tenancy, leave: &Leave) {
        let listed: BTreeSet<KeyHash> = leave.leases.iter().map(|lease| lease.key).collect();
        let untouched = |(key, state): &(&KeyHash, &KeyState)| {
            state.ledger().holders().contains_key(&tenancy) && !listed.contains(*key)
        };
        let keys: Vec<KeyHash> = self.keys.iter().filter(untouched).map(|it| *it.0).collect();
        for key in keys {
            self.with_key(now, key, |state, _, out| state.let_go(tenancy, out));
        }
    }

    /// Members that have been silent for their time-to-live are gone.
    pub(super) fn bury_silent(&mut self, at: Readings) {
        let time_to_live = self.config.time_to_live;
        let gone: Vec<Tenancy> = self
            .members
            .iter()
            .filter(|member| member.is_gone(at.local, time_to_live))
            .map(|member| member.stored.tenancy)
            .collect();
        for tenancy in gone {
            self.counts.members_lost = self.counts.members_lost.saturating_add(1);
            self.bury(at, tenancy);
        }
    }

    /// A tenancy has ended: its tokens are spent, for good.
    fn bury(&mut self, at: Readings, gone: Tenancy) {
        let Some(member) = self.members.remove(gone) else {
            return;
        };
        for counters in self.rules.forget(gone) {
            self.seating.look_at(counters);
        }
        let stored = member.stored;
        let now = self.clock.now(at.local);
        // Before the member's end: what a crash keeps of the changes is some first ones of them.
        self.seating.soil(stored.seat, stored.joined, now);
        self.store_seating();
        let place = record::member_place(gone);
        self.outcome.changes.push(Change {
            key: place,
            value: None,
        });
        if let Some(watch) = member.watch {
            let (state, nothing) = (SeatState::Unknown, Pushes::default());
            self.answer_watch(at, watch.reply, watch.received, state, nothing);
        }
        // Every key is looked at, once for a replica that is gone: to remember for each replica the
        // keys that it has a standing share of would take more memory than the keys themselves.
        let holds = |state: &KeyState| state.ledger().holders().contains_key(&gone);
        let held: Vec<KeyHash> = self
            .keys
            .iter()
            .filter(|(_, state)| holds(state))
            .map(|(key, _)| *key)
            .collect();
        for key in held {
            let dead = self.keys.get(&key).and_then(|state| {
                let holder = state.ledger().holders().get(&gone)?;
                let running = now.is_none_or(|now| state.next_window(now).is_none());
                running.then(|| holder.free())
            });
            match now {
                Some(now) => self.with_key(now, key, |state, around, out| {
                    state.bury(around, gone, out);
                }),
                None => self.bury_before_time_is_known(key, gone),
            }
            self.counts.died(dead.unwrap_or_default());
        }
    }

    fn bury_before_time_is_known(&mut self, key: KeyHash, gone: Tenancy) {
        if let Some(state) = self.keys.get_mut(&key) {
            state.bury_holder(gone);
            self.touched.insert(key);
        }
    }
}
