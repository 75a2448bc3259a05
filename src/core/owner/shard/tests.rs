//! What a shard counts.

use super::*;
use crate::key::HashKey;
use crate::message::{Lease, LeaseAmounts};
use crate::owner::member::{LEASES_MAX, Member};
use crate::owner::record::StoredMember;
use crate::units::{Incarnation, ReplicaId, Seat};
use crate::window::Window;
#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

const MEMBER: Tenancy = Tenancy::new(1);

fn shard() -> Shard {
    let at = Readings {
        local: LocalTime::ZERO,
        wall: ServiceTime::new(1_000),
        boot: None,
    };
    let start = Start {
        epoch: Epoch::new(1),
        at,
        fresh_hash_key: HashKey::new([1; 16]),
    };
    let mut shard = Shard::load(ShardConfig::default(), &start, []).unwrap();
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
