//! What goes back by itself, and what does not.

use super::*;
use crate::clock::TimeBounds;
use crate::key::KeyHash;
use crate::message::Recall;
use crate::replica::bucket::{Claim, Take, Taken};
use crate::units::{Epoch, Generation, Incarnation, ServiceTime};
#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

const AFTER: Span = Span::from_secs(10);
const TENANT: Tenant = Tenant {
    incarnation: Incarnation::new(1),
    epoch: Epoch::new(1),
};

fn at(seconds: u64) -> Moment {
    let service = ServiceTime::new(seconds * 1_000_000_000);
    Moment {
        local: LocalTime::new(1).plus(Span::from_secs(seconds)),
        service: TimeBounds {
            earliest: service,
            latest: service,
        },
    }
}

fn claim() -> Claim {
    let end = ServiceTime::ZERO.plus(Span::from_secs(60));
    Claim {
        key: KeyHash::new(5),
        window: Window::new(ServiceTime::ZERO, end).unwrap(),
        tenant: TENANT,
    }
}

/// A standing share of 4 and a lease of 6 on it, of which 1 is spent at second 1.
fn used_once() -> Bucket {
    let mut bucket = Bucket::default();
    let one = Tokens::new(1);
    assert_eq!(
        bucket.take(claim(), one, Take::Spend, at(1)),
        Taken::Unclaimed
    );
    bucket.stand(claim(), Tokens::new(4));
    assert!(bucket.grant(claim(), Generation::default(), Tokens::new(10)));
    assert!(matches!(
        bucket.take(claim(), one, Take::Spend, at(1)),
        Taken::Admitted { .. }
    ));
    bucket
}

#[test]
fn a_cell_gives_back_what_is_above_its_share_after_half_its_window() {
    let mut bucket = used_once();
    let idle = Idle::Cells(AFTER);
    assert_eq!(bucket.give_back_idle(idle, TENANT, at(30)), []);
    let returns = bucket.give_back_idle(idle, TENANT, at(31));
    let [returned] = returns.as_slice() else {
        panic!("{returns:?}");
    };
    let said = returned.lease.amounts;
    assert_eq!(said.generation, Generation::new(1));
    assert_eq!((said.granted.get(), said.used.get()), (4, 1));
    assert_eq!(
        bucket.lease(claim().key, claim().window),
        Some(said),
        "recorded before it is said"
    );
    assert_eq!(bucket.give_back_idle(idle, TENANT, at(50)), [], "once");
    assert!(!bucket.grant(claim(), Generation::default(), Tokens::new(20)));
}

#[test]
fn an_idle_replica_gives_back_everything() {
    let mut bucket = used_once();
    let returns = bucket.give_back_idle(Idle::Replica, TENANT, at(12));
    let amounts: Vec<_> = returns
        .iter()
        .map(|it| it.lease.amounts.granted.get())
        .collect();
    assert_eq!(amounts, [1]);
    let taken = bucket.take(claim(), Tokens::new(1), Take::Spend, at(13));
    assert_eq!(taken, Taken::Edge { has_cell: true });
}

#[test]
fn what_is_reserved_or_of_another_tenancy_stays() {
    let mut bucket = used_once();
    let other = Tenant {
        incarnation: Incarnation::new(2),
        ..TENANT
    };
    assert_eq!(bucket.give_back_idle(Idle::Replica, other, at(12)), []);
    let one = Tokens::new(1);
    assert!(matches!(
        bucket.take(claim(), one, Take::Reserve, at(12)),
        Taken::Admitted { .. }
    ));
    assert_eq!(bucket.give_back_idle(Idle::Replica, TENANT, at(13)), []);
}

#[test]
fn a_recall_that_crosses_a_return_is_answered_by_it_again() {
    let mut bucket = used_once();
    let returns = bucket.give_back_idle(Idle::Replica, TENANT, at(12));
    let recall = Recall {
        key: claim().key,
        window: claim().window,
        generation: Generation::default(),
        keep: Tokens::ZERO,
    };
    let again = bucket.recall(recall, TENANT, at(12));
    assert_eq!(again, returns.first().copied());
}
