//! What is kept for a member between two polls is bounded, and what is dropped is said.

use super::*;
use crate::message::LeaseAmounts;
use crate::units::Tokens;
use crate::window::Window;
#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

fn member() -> Member {
    let stored = StoredMember {
        tenancy: Tenancy::new(1),
        replica: ReplicaId::new(1),
        incarnation: Incarnation::new(1),
        seat: Seat::new(0),
        joined: ServiceTime::ZERO,
    };
    Member::new(stored, LocalTime::ZERO, true)
}

fn lease(key: usize, granted: u64) -> Lease {
    Lease {
        key: KeyHash::new(key as u128),
        window: Window::new(ServiceTime::ZERO, ServiceTime::MAX).unwrap(),
        amounts: LeaseAmounts {
            granted: Tokens::new(granted),
            ..LeaseAmounts::default()
        },
    }
}

#[test]
fn leases_beyond_the_bound_are_dropped_and_counted() {
    let mut member = member();
    for key in 0..LEASES_MAX {
        assert!(member.push_lease(lease(key, 1)), "{key}");
    }
    assert!(member.push_lease(lease(7, 2)), "known: it takes no room");
    assert!(!member.push_lease(lease(LEASES_MAX, 1)), "one was dropped");
    let mut told = Vec::new();
    while member.has_pushes(LocalTime::ZERO) {
        let some = member.take_leases();
        assert!((1..=ASKS_PER_CALL_MAX).contains(&some.len()));
        told.extend(some);
    }
    assert_eq!(told.len(), LEASES_MAX);
    assert!(told.contains(&lease(LEASES_MAX, 1)), "the news is kept");
}

#[test]
fn a_lease_that_grew_twice_is_told_once_as_it_is_now() {
    let mut member = member();
    member.push_lease(lease(1, 5));
    member.push_lease(lease(1, 9));
    assert!(member.has_pushes(LocalTime::ZERO));
    assert_eq!(member.take_leases(), [lease(1, 9)]);
    assert!(!member.has_pushes(LocalTime::ZERO));
}
