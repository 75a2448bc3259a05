//! A shard from its store.

use std::collections::{BTreeMap, BTreeSet};

use super::{Shard, ShardConfig, ShardCounts};
use crate::key::{HashKey, KeyHash};
use crate::owner::clock::{Readings, ServiceClock};
use crate::owner::effect::Outcome;
use crate::owner::key::KeyState;
use crate::owner::member::{Member, Members};
use crate::owner::record::{self, Meta, RecordError, Stored};
use crate::owner::rules::Rules;
use crate::owner::seating::Seating;
use crate::trap::{self, Trap};
use crate::units::{Epoch, ServiceTime, Tenancy};

/// What a leader starts from.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    /// Its epoch, never used before.
    pub epoch: Epoch,
    /// The time on its machine.
    pub at: Readings,
    /// Secret of the keyed hash for a store that has none yet.
    pub fresh_hash_key: HashKey,
}

impl Shard {
    /// Builds a shard from all records of its store.
    ///
    /// # Errors
    /// A record cannot be read, or breaks an invariant.
    pub fn load<'a>(
        config: ShardConfig,
        start: &Start,
        records: impl IntoIterator<Item = (&'a [u8], &'a [u8])>,
    ) -> Result<Self, RecordError> {
        let mut meta = None;
        let mut members = Members::default();
        let mut keys = BTreeMap::new();
        let mut seating = Seating::default();
        for (place, value) in records {
            match record::read(place, value)? {
                Stored::Meta(stored) => meta = Some(stored),
                Stored::Member(member) => {
                    members.add(Member::new(member, start.at.local, false));
                }
                Stored::Seating(part) => seating.restore(part),
                Stored::Key(state) => {
                    let key = KeyHash::from_bytes(place.get(1..).unwrap_or_default());
                    keys.extend(key.map(|key| (key, *state)));
                }
            }
        }
        for state in keys.values_mut() {
            bury_the_gone(state, &members);
        }
        // With an old leader's time to follow, a store without any promise still has a ceiling.
        let clock = match meta {
            None => ServiceClock::fresh(start.at),
            Some(_) if trap::is_off(Trap::TimeStepsBack) => ServiceClock::fresh(start.at),
            Some(Meta {
                ceiling, anchor, ..
            }) => ServiceClock::resuming(ceiling, anchor, start.at, config.time_to_live),
        };
        let fresh = Meta {
            hash_key: start.fresh_hash_key,
            next_tenancy: Tenancy::new(1),
            ceiling: ServiceTime::ZERO,
            anchor: None,
        };
        let is_fresh = meta.is_none();
        let mut meta = meta.unwrap_or(fresh);
        meta.next_tenancy = meta.next_tenancy.max(unused_tenancy(&members));
        let mut shard = Self {
            config,
            epoch: start.epoch,
            clock,
            meta,
            members,
            rules: Rules::default(),
            seating,
            keys,
            wakes: BTreeSet::new(),
            wake_of: BTreeMap::new(),
            calls: BTreeMap::new(),
            waiting: 0,
            counts: ShardCounts::default(),
            outcome: Outcome::default(),
            touched: BTreeSet::new(),
            meta_changed: is_fresh,
        };
        if shard.members.is_empty() || trap::is_off(Trap::TimeJumps) {
            // Nobody holds a lease of the old leader, so there is nothing to wait for.
            shard.clock.skip_waiting(start.at);
        }
        shard.schedule_all();
        Ok(shard)
    }

    fn schedule_all(&mut self) {
        let ends: Vec<_> = self
            .keys
            .iter()
            .map(|(key, state)| {
                (
                    *key,
                    state.next_wake(ServiceTime::ZERO, crate::units::Span::ZERO),
                )
            })
            .collect();
        for (key, due) in ends {
            self.schedule(key, due);
        }
    }
}

/// A crash may have kept a member and not the number of the next one, which is stored after.
fn unused_tenancy(members: &Members) -> Tenancy {
    let after = members.iter().map(|member| member.stored.tenancy.next());
    after.max().unwrap_or_default()
}

/// A crash may have kept a member's end without all that follows from it: what the gone held is
/// spent.
fn bury_the_gone(state: &mut KeyState, members: &Members) {
    let holders: Vec<Tenancy> = state.ledger().holders().keys().copied().collect();
    for tenancy in holders {
        if members.get(tenancy).is_none() {
            state.bury_holder(tenancy);
        }
    }
}
