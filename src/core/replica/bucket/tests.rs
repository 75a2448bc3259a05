//! The bucket's rules one by one. Each test names the trace it closes.

use super::*;
use crate::message::{Recall, Return};
use crate::units::{Epoch, Incarnation};
#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

mod claim;
mod standing;

const WINDOW: (u64, u64) = (1_000, 2_000);

fn window() -> Window {
    Window::new(ServiceTime::new(WINDOW.0), ServiceTime::new(WINDOW.1)).unwrap()
}

fn at(service: u64) -> Moment {
    let service = ServiceTime::new(service);
    let bounds = TimeBounds {
        earliest: service,
        latest: service,
    };
    Moment {
        local: LocalTime::new(10_000_000),
        service: bounds,
    }
}

fn tenant(incarnation: u64, epoch: u64) -> Tenant {
    Tenant {
        incarnation: Incarnation::new(incarnation),
        epoch: Epoch::new(epoch),
    }
}

fn claim(key: u128) -> Claim {
    Claim {
        key: KeyHash::new(key),
        window: window(),
        tenant: tenant(1, 1),
    }
}

fn recall(key: u128, generation: u64, keep: u64) -> Recall {
    let (generation, keep) = (Generation::new(generation), Tokens::new(keep));
    Recall {
        key: KeyHash::new(key),
        window: window(),
        generation,
        keep,
    }
}

fn take(bucket: &mut Bucket, key: u128, how: Take) -> Taken {
    take_cost(bucket, (claim(key), Tokens::new(1)), how, at(1_500))
}

/// Takes, and where the standing share has to be looked for there is none.
fn take_cost(bucket: &mut Bucket, (claim, cost): (Claim, Tokens), how: Take, now: Moment) -> Taken {
    match bucket.take(claim, cost, how, now) {
        Taken::Unclaimed => {
            bucket.stand(claim, Tokens::ZERO);
            bucket.take(claim, cost, how, now)
        }
        taken => taken,
    }
}

/// A bucket in which key 1 has been granted this much.
fn granted(tokens: u64) -> Bucket {
    let mut bucket = Bucket::default();
    assert_eq!(
        take(&mut bucket, 1, Take::Spend),
        Taken::Edge { has_cell: true }
    );
    assert!(bucket.grant(claim(1), Generation::default(), Tokens::new(tokens)));
    bucket
}

fn amounts(bucket: &Bucket, key: u128) -> (u64, u64, u64, u64) {
    let lease = bucket.lease(KeyHash::new(key), window()).unwrap();
    (
        lease.generation.get(),
        lease.granted.get(),
        lease.used.get(),
        lease.reserved.get(),
    )
}

fn returned(back: Option<Return>) -> (u64, u64, u64, u64, bool) {
    let back = back.unwrap();
    let lease = back.lease.amounts;
    let (granted, used) = (lease.granted.get(), lease.used.get());
    (
        lease.generation.get(),
        granted,
        used,
        lease.reserved.get(),
        back.has_cell,
    )
}

#[test]
fn bytes_go_round() {
    let mut bucket = granted(7);
    take(&mut bucket, 1, Take::Reserve);
    let until = LocalTime::new(99);
    bucket.prove(
        claim(2),
        HeldProof {
            left: Tokens::new(3),
            until,
        },
        at(1_500),
    );
    (10..20).for_each(|key| {
        take(&mut bucket, key, Take::Spend);
    });
    let bytes = bucket.encode();
    assert_eq!(bytes.len(), BUCKET_WORDS * crate::words::WORD_BYTES);
    assert_eq!(Bucket::decode(&bytes), Some(bucket));
    assert_eq!(Bucket::decode(&bytes[1..]), None);
    assert_eq!(Bucket::decode(&[]), Some(Bucket::default()));
}

#[test]
fn a_lease_is_spent_to_the_last_token_and_no_further() {
    let mut bucket = granted(3);
    for _ in 0..3 {
        assert!(matches!(
            take(&mut bucket, 1, Take::Spend),
            Taken::Admitted { .. }
        ));
    }
    assert_eq!(
        take(&mut bucket, 1, Take::Spend),
        Taken::Edge { has_cell: true }
    );
    assert_eq!(amounts(&bucket, 1), (0, 3, 3, 0));
}

#[test]
fn a_cost_of_zero_needs_a_token_and_spends_none() {
    let mut bucket = granted(1);
    let zero =
        |bucket: &mut Bucket| take_cost(bucket, (claim(1), Tokens::ZERO), Take::Spend, at(1_500));
    assert!(matches!(zero(&mut bucket), Taken::Admitted { .. }));
    take(&mut bucket, 1, Take::Spend);
    assert_eq!(zero(&mut bucket), Taken::Edge { has_cell: true });
}

#[test]
fn low_leases_ask_ahead_once() {
    let mut bucket = granted(10);
    let asks: Vec<bool> = (0..10)
        .map(|_| match take(&mut bucket, 1, Take::Spend) {
            Taken::Admitted { ask_ahead } => ask_ahead,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(asks.iter().filter(|ask| **ask).count(), 1);
    // Earlier where demand would use up the rest within a few round trips.
    assert!(
        asks[..7].contains(&true),
        "at the latest with three tenths left"
    );
    bucket.grant(claim(1), Generation::default(), Tokens::new(11));
    assert_eq!(
        take(&mut bucket, 1, Take::Spend),
        Taken::Admitted { ask_ahead: true }
    );
}

#[test]
fn a_grant_of_an_older_generation_is_void() {
    let mut bucket = granted(10);
    take(&mut bucket, 1, Take::Spend);
    let back = bucket.recall(recall(1, 0, 4), tenant(1, 1), at(1_500));
    assert_eq!(returned(back), (1, 5, 1, 0, true));
    assert!(!bucket.grant(claim(1), Generation::default(), Tokens::new(20)));
    assert_eq!(amounts(&bucket, 1), (1, 5, 1, 0));
    assert!(bucket.grant(claim(1), Generation::new(1), Tokens::new(8)));
    assert_eq!(amounts(&bucket, 1), (1, 8, 1, 0));
}

#[test]
fn a_grant_of_another_tenancy_or_an_older_epoch_is_void() {
    for (incarnation, epoch, taken) in [(1, 1, true), (1, 2, true), (2, 1, false), (1, 0, false)] {
        let mut bucket = granted(1);
        let claim = Claim {
            tenant: tenant(incarnation, epoch),
            ..claim(1)
        };
        let accepted = bucket.grant(claim, Generation::default(), Tokens::new(5));
        assert_eq!(accepted, taken, "incarnation {incarnation}, epoch {epoch}");
    }
}

#[test]
fn an_older_recall_is_answered_again_and_changes_nothing() {
    let mut bucket = granted(10);
    let first = bucket.recall(recall(1, 0, 4), tenant(1, 1), at(1_500));
    let again = bucket.recall(recall(1, 0, 0), tenant(1, 1), at(1_500));
    assert_eq!(first, again);
    assert_eq!(amounts(&bucket, 1), (1, 4, 0, 0));
}

#[test]
fn a_recall_before_its_window_is_not_answered() {
    let mut bucket = Bucket::default();
    assert_eq!(bucket.recall(recall(1, 0, 0), tenant(1, 1), at(999)), None);
    assert_eq!(bucket, Bucket::default());
}

#[test]
fn a_recall_without_a_cell_is_recorded_before_it_is_returned() {
    let mut bucket = Bucket::default();
    let back = bucket.recall(recall(1, 4, 0), tenant(1, 1), at(1_500));
    assert_eq!(returned(back), (5, 0, 0, 0, true));
    // The share that was returned does not come back with the next request.
    assert_eq!(
        take(&mut bucket, 1, Take::Spend),
        Taken::Edge { has_cell: true }
    );
    assert_eq!(amounts(&bucket, 1), (5, 0, 0, 0));
}

#[test]
fn a_recall_in_a_full_bucket_marks_it() {
    let mut bucket = Bucket::default();
    (10..14).for_each(|key| {
        take(&mut bucket, key, Take::Spend);
    });
    let back = bucket.recall(recall(1, 4, 0), tenant(1, 1), at(1_500));
    assert_eq!(returned(back), (5, 0, 0, 0, false));
    assert_eq!(
        take(&mut bucket, 1, Take::Spend),
        Taken::Edge { has_cell: false }
    );
    assert_eq!(bucket.turned_away_generation, Generation::new(5));
    // One generation for all that claim later, so a delayed grant meets none of them.
    let next = Window::new(ServiceTime::new(2_000), ServiceTime::new(9_000)).unwrap();
    let claim = Claim {
        window: next,
        ..claim(1)
    };
    bucket.turned_away_until = ServiceTime::new(9_000);
    take_cost(&mut bucket, (claim, Tokens::new(1)), Take::Spend, at(2_500));
    let lease = bucket.lease(KeyHash::new(1), next).unwrap();
    assert_eq!(lease.generation, Generation::new(5));
}

#[test]
fn a_cell_is_given_up_only_when_its_window_is_over() {
    let mut bucket = Bucket::default();
    for key in 10..14 {
        assert_eq!(
            take(&mut bucket, key, Take::Spend),
            Taken::Edge { has_cell: true }
        );
    }
    assert_eq!(
        take(&mut bucket, 1, Take::Spend),
        Taken::Edge { has_cell: false }
    );
    let next = Window::new(ServiceTime::new(2_000), ServiceTime::new(3_000)).unwrap();
    let claim = Claim {
        window: next,
        ..claim(1)
    };
    let taken = take_cost(&mut bucket, (claim, Tokens::new(1)), Take::Spend, at(2_000));
    assert_eq!(taken, Taken::Edge { has_cell: true });
    // The mark ended with the window, so the claim starts as any other.
    let lease = bucket.lease(KeyHash::new(1), next).unwrap();
    assert_eq!(lease.generation, Generation::default());
}

#[test]
fn a_proof_refuses_what_is_above_it_until_it_ends() {
    let mut bucket = Bucket::default();
    let until = at(0).local.plus(Span::from_millis(5));
    bucket.prove(
        claim(1),
        HeldProof {
            left: Tokens::new(2),
            until,
        },
        at(1_500),
    );
    let cost = |bucket: &mut Bucket, cost: u64, now: Moment| {
        take_cost(bucket, (claim(1), Tokens::new(cost)), Take::Spend, now)
    };
    assert_eq!(cost(&mut bucket, 3, at(1_500)), Taken::Refused);
    assert_eq!(
        cost(&mut bucket, 2, at(1_500)),
        Taken::Edge { has_cell: true }
    );
    let later = Moment {
        local: until,
        ..at(1_500)
    };
    assert_eq!(cost(&mut bucket, 3, later), Taken::Edge { has_cell: true });
}

#[test]
fn a_released_reservation_of_a_recalled_lease_goes_back_under_a_new_fence() {
    let mut bucket = granted(10);
    take(&mut bucket, 1, Take::Reserve);
    let back = bucket.recall(recall(1, 0, 0), tenant(1, 1), at(1_500));
    assert_eq!(returned(back), (1, 1, 0, 1, true));
    let back = bucket.release(KeyHash::new(1), window(), Tokens::new(1));
    assert_eq!(returned(back), (2, 0, 0, 0, true));
    assert_eq!(
        take(&mut bucket, 1, Take::Spend),
        Taken::Edge { has_cell: true }
    );
}

#[test]
fn a_committed_reservation_is_spent_whatever_the_generation() {
    let mut bucket = granted(10);
    take(&mut bucket, 1, Take::Reserve);
    bucket.recall(recall(1, 0, 3), tenant(1, 1), at(1_500));
    let back = bucket.commit(KeyHash::new(1), window(), Tokens::new(1));
    // What the recall left to keep goes back as well: it waited for this.
    assert_eq!(returned(back), (2, 1, 1, 0, true));
}

#[test]
fn an_expired_reservation_counts_as_spent() {
    let mut bucket = granted(10);
    take(&mut bucket, 1, Take::Reserve);
    let late = Moment {
        local: at(0).local.plus(RESERVATION_MAX),
        ..at(1_500)
    };
    take_cost(&mut bucket, (claim(1), Tokens::new(1)), Take::Spend, late);
    assert_eq!(amounts(&bucket, 1), (0, 10, 2, 0));
    bucket.release(KeyHash::new(1), window(), Tokens::new(1));
    assert_eq!(
        amounts(&bucket, 1),
        (0, 10, 2, 0),
        "a release that comes too late"
    );
}

#[test]
fn a_new_leader_finds_every_lease_fenced_and_as_large_as_before() {
    let mut bucket = granted(10);
    take(&mut bucket, 1, Take::Spend);
    take(&mut bucket, 1, Take::Reserve);
    let leases = bucket.fence_all(Epoch::new(2), at(1_500));
    assert_eq!(leases.len(), 1);
    assert_eq!(amounts(&bucket, 1), (1, 10, 1, 1));
    assert!(
        !bucket.grant(claim(1), Generation::new(1), Tokens::new(20)),
        "an old epoch's grant"
    );
    assert!(
        bucket.fence_all(Epoch::new(3), at(2_000)).is_empty(),
        "the window is over"
    );
}

#[test]
fn a_new_tenancy_starts_with_nothing() {
    let mut bucket = granted(10);
    bucket.renounce_all(tenant(2, 1), at(1_500));
    assert_eq!(amounts(&bucket, 1), (1, 0, 0, 0));
    assert_eq!(
        take(&mut bucket, 1, Take::Spend),
        Taken::Edge { has_cell: false },
        "an old view"
    );
    let new = Claim {
        tenant: tenant(2, 1),
        ..claim(1)
    };
    let taken = take_cost(&mut bucket, (new, Tokens::new(1)), Take::Spend, at(1_500));
    assert_eq!(taken, Taken::Edge { has_cell: true });
}

#[test]
fn a_cell_that_a_stale_worker_claimed_is_adopted_empty() {
    let mut bucket = granted(10);
    let new = Claim {
        tenant: tenant(2, 1),
        ..claim(1)
    };
    let taken = take_cost(&mut bucket, (new, Tokens::new(1)), Take::Spend, at(1_500));
    assert_eq!(taken, Taken::Edge { has_cell: true });
    assert_eq!(amounts(&bucket, 1), (1, 0, 0, 0));
}
