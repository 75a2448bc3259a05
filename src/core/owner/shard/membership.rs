//! Join, Leave, and the end of a silent member's time-to-live.

use super::{Readings, Rejection, Reply, ReplyTo, Shard, dead_of};
use crate::message::call::{Join, Welcome};
use crate::message::{Lease, PROTOCOL_VERSION, SeatState, Sender};
use crate::owner::effect::Change;
use crate::owner::member::Member;
use crate::owner::record::{self, StoredMember};
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
            self.welcome(at, now, Seat::default(), SeatState::Unknown, reply);
            return;
        }
        let tenancy = match known {
            Some(tenancy) => tenancy,
            None => match self.admit_member(at, &sender) {
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
        let seat = member.stored.seat;
        self.welcome(at, now, seat, SeatState::Ok, reply);
    }

    fn welcome(
        &mut self,
        at: Readings,
        received: ServiceTime,
        seat: Seat,
        seat_state: SeatState,
        reply: ReplyTo,
    ) {
        let welcome = Welcome {
            epoch: self.epoch,
            seat,
            time_to_live: self.config.time_to_live,
            stamps: self.stamps(received, at),
            hash_key: self.meta.hash_key,
            seat_state,
        };
        self.outcome.replies.push((reply, Reply::Welcome(welcome)));
    }

    /// A tenancy that is not known: a replica never seen, or the next incarnation of one, which
    /// says by joining that it holds nothing of the one before.
    fn admit_member(&mut self, at: Readings, sender: &Sender) -> Result<Tenancy, Rejection> {
        let before = self.members.of(sender.replica).map(|member| member.stored);
        if before.is_some_and(|before| sender.incarnation < before.incarnation) {
            return Err(Rejection::OldIncarnation);
        }
        if let Some(before) = before {
            self.bury(at, before.tenancy);
        }
        if self.members.len() >= self.config.members_max {
            self.counts.members_full = self.counts.members_full.saturating_add(1);
            return Err(Rejection::SeatsFull);
        }
        let tenancy = self.meta.next_tenancy;
        self.meta.next_tenancy = Tenancy::new(tenancy.get().saturating_add(1));
        self.meta_changed = true;
        let stored = StoredMember {
            tenancy,
            replica: sender.replica,
            incarnation: sender.incarnation,
            seat: self.members.vacant_seat(),
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

    /// Takes in a Leave: what comes with it goes back, the rest counts as spent.
    pub fn leave(&mut self, at: Readings, sender: &Sender, leases: &[Lease], reply: ReplyTo) {
        let Some(now) = self.clock.now(at.local) else {
            self.reject(reply, Rejection::Recovering);
            return;
        };
        if let Some(tenancy) = self.members.find(sender.replica, sender.incarnation) {
            for lease in leases {
                self.with_key(now, lease.key, |state, _, out| {
                    state.register(tenancy, lease, false, true, out);
                });
            }
            self.bury(at, tenancy);
        }
        self.outcome.replies.push((reply, Reply::Left));
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
        self.rules.forget(gone);
        let place = record::member_place(gone);
        self.outcome.changes.push(Change {
            key: place,
            value: None,
        });
        if let Some(watch) = member.watch {
            let state = SeatState::Unknown;
            self.answer_watch(at, watch.reply, watch.received, state, None);
        }
        let now = self.clock.now(at.local);
        for key in member.keys {
            let before = self.keys.get(&key).map(dead_of).unwrap_or_default();
            match now {
                Some(now) => self.with_key(now, key, |state, around, out| {
                    state.bury(around, gone, out);
                }),
                None => self.bury_before_time_is_known(key, gone),
            }
            let after = self.keys.get(&key).map(dead_of).unwrap_or_default();
            let died = after.minus(before).get();
            self.counts.tokens_dead = self.counts.tokens_dead.saturating_add(died);
        }
    }

    fn bury_before_time_is_known(&mut self, key: crate::key::KeyHash, gone: Tenancy) {
        if let Some(state) = self.keys.get_mut(&key) {
            state.bury_holder(gone);
            self.touched.insert(key);
        }
    }
}
