//! What a shard counts, and what a crash in the middle of a step leaves of it.

use super::*;
use crate::key::HashKey;
use crate::message::call::Join;
use crate::message::{Lease, LeaseAmounts, PROTOCOL_VERSION};
use crate::owner::member::{LEASES_MAX, Member};
use crate::owner::record::StoredMember;
use crate::units::{Incarnation, ReplicaId, Seat};
use crate::window::Window;
#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

const MEMBER: Tenancy = Tenancy::new(1);

fn at(seconds: u64) -> Readings {
    Readings {
        local: LocalTime::ZERO.plus(Span::from_secs(seconds)),
        wall: ServiceTime::new(1_000).plus(Span::from_secs(seconds)),
        boot: None,
    }
}

/// A leader of what is stored.
fn led(epoch: u64, at: Readings, stored: &BTreeMap<Vec<u8>, Vec<u8>>) -> Shard {
    let start = Start {
        epoch: Epoch::new(epoch),
        at,
        fresh_hash_key: HashKey::new([1; 16]),
    };
    let records = stored.iter();
    let records = records.map(|(place, value)| (place.as_slice(), value.as_slice()));
    Shard::load(ShardConfig::default(), &start, records).unwrap()
}

/// Has replicas join a new leader; gives what it has to store, step by step.
fn joins(shard: &mut Shard, at: Readings, replicas: &[u128]) -> Vec<Change> {
    let mut changes = Vec::new();
    for replica in replicas {
        let join = Join {
            protocol_version: PROTOCOL_VERSION,
            sender: Sender {
                replica: ReplicaId::new(*replica),
                incarnation: Incarnation::new(1),
                seat: Seat::default(),
                epoch: Epoch::default(),
                service_time: None,
                directory: 0,
            },
            rules: Vec::new(),
            leases: Vec::new(),
            fenced_for: None,
        };
        let reply = ReplyTo::new(u64::try_from(*replica).unwrap());
        shard.join(at, &join, reply);
        changes.extend(shard.finish(at).changes);
    }
    changes
}

fn store(stored: &mut BTreeMap<Vec<u8>, Vec<u8>>, changes: &[Change]) {
    for change in changes {
        match &change.value {
            Some(value) => stored.insert(change.key.clone(), value.clone()),
            None => stored.remove(&change.key),
        };
    }
}

#[test]
fn whatever_a_crash_keeps_of_a_join_no_two_replicas_share_a_tenancy() {
    let changes = joins(&mut led(1, at(0), &BTreeMap::new()), at(0), &[1, 2]);
    for kept in 0..=changes.len() {
        let mut stored = BTreeMap::new();
        store(&mut stored, &changes[..kept]);
        let mut next = led(2, at(1), &stored);
        next.clock.skip_waiting(at(1));
        joins(&mut next, at(1), &[3, 4]);
        for replica in [1, 2, 3, 4].map(ReplicaId::new) {
            let found = next.members.of(replica).map(|member| member.stored.replica);
            assert!(found.is_none_or(|found| found == replica), "{kept} kept");
        }
        assert!(next.members.of(ReplicaId::new(4)).is_some());
    }
}

#[test]
fn a_members_end_is_not_stored_before_its_seat_is_dirty() {
    let mut shard = led(1, at(0), &BTreeMap::new());
    let changes = joins(&mut shard, at(0), &[1]);
    let mut stored = BTreeMap::new();
    store(&mut stored, &changes);
    shard.wake(at(20));
    let end = shard.finish(at(20)).changes;
    let member = record::member_place(MEMBER);
    assert!(end.iter().any(|change| change.key == member));
    for kept in 0..=end.len() {
        let mut stored = stored.clone();
        store(&mut stored, &end[..kept]);
        let dirty = stored.keys().any(|place| place.first() == Some(&b's'));
        assert!(dirty || stored.contains_key(&member), "{kept} kept");
    }
}

fn shard() -> Shard {
    let mut shard = led(1, at(0), &BTreeMap::new());
    let stored = StoredMember {
        tenancy: MEMBER,
        replica: ReplicaId::new(1),
        incarnation: Incarnation::new(1),
        seat: Seat::new(0),
        joined: ServiceTime::ZERO,
    };
    shard
        .members
        .add(Member::new(stored, LocalTime::ZERO, true));
    shard
}

#[test]
fn pushed_leases_beyond_the_bound_are_counted() {
    let mut shard = shard();
    for key in 0..=LEASES_MAX {
        assert_eq!(shard.counts().pushes_dropped, 0, "{key}");
        let lease = Lease {
            key: KeyHash::new(key as u128),
            window: Window::new(ServiceTime::ZERO, ServiceTime::MAX).unwrap(),
            amounts: LeaseAmounts::default(),
        };
        shard.take_effect(KeyEffect::Granted(MEMBER, lease));
        // Of who is gone nothing is kept, hence nothing is dropped.
        shard.take_effect(KeyEffect::Granted(Tenancy::new(2), lease));
    }
    assert_eq!(shard.counts().pushes_dropped, 1);
}
