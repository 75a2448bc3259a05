//! Which place a claim takes, and what it takes over from the window before.

use super::*;
use crate::units::Rate;
#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

const SECOND: u64 = 1_000_000_000;

/// The window of a second that begins here, for a key.
fn of_second(key: u128, second: u64) -> Claim {
    let (start, end) = (second * SECOND, (second + 1) * SECOND);
    Claim {
        window: Window::new(ServiceTime::new(start), ServiceTime::new(end)).unwrap(),
        ..claim(key)
    }
}

/// Both clocks run alike.
fn after(millis: u64) -> Moment {
    let since = millis * 1_000_000;
    Moment {
        local: LocalTime::new(since + SECOND),
        ..at(since)
    }
}

/// A hundred requests, one each millisecond, from the beginning of second 1.
fn ask_often(bucket: &mut Bucket, key: u128) {
    for millis in 1_000..1_100 {
        let wanted = (of_second(key, 1), Tokens::new(1));
        take_cost(bucket, wanted, Take::Spend, after(millis));
    }
}

fn claim_at(bucket: &mut Bucket, claim: Claim, now: Moment) -> usize {
    assert!(bucket.claim(claim, now));
    let is_it = |cell: &Cell| cell.key == claim.key && cell.window == claim.window;
    let mut places = bucket.cells.iter();
    places
        .position(|place| place.as_ref().is_some_and(is_it))
        .unwrap()
}

fn rate(bucket: &Bucket, claim: Claim, now: Moment) -> Rate {
    bucket
        .peek(claim.key, claim.window)
        .unwrap()
        .rate(now.local)
}

#[test]
fn a_claim_prefers_the_former_place_of_its_key() {
    let mut bucket = Bucket::default();
    for key in 10..14 {
        ask_often(&mut bucket, key);
    }
    // All four are over. In any other order one would take the place, and the demand, of another.
    for (key, place) in [(13, 3), (11, 1), (10, 0), (12, 2)] {
        let claim = of_second(key, 2);
        assert_eq!(claim_at(&mut bucket, claim, after(2_000)), place, "{key}");
        assert!(rate(&bucket, claim, after(2_000)) > Rate::ZERO, "{key}");
    }
}

#[test]
fn a_key_without_a_former_place_takes_a_free_one_without_its_demand() {
    let mut bucket = Bucket::default();
    ask_often(&mut bucket, 10);
    ask_often(&mut bucket, 11);
    let claim = of_second(1, 2);
    let place = claim_at(&mut bucket, claim, after(2_000));
    assert_eq!(rate(&bucket, claim, after(2_000)), Rate::ZERO);
    assert_eq!(place, 0, "the first that is free");
}

#[test]
fn a_place_whose_window_is_not_over_is_no_former_place() {
    let mut bucket = Bucket::default();
    ask_often(&mut bucket, 1);
    assert_eq!(claim_at(&mut bucket, of_second(1, 2), after(1_999)), 1);
    let before = of_second(1, 1).window;
    assert!(bucket.peek(KeyHash::new(1), before).is_some());
}

#[test]
fn demand_goes_on_into_the_next_window() {
    let mut bucket = Bucket::default();
    ask_often(&mut bucket, 1);
    let end = after(2_000);
    let right = rate(&bucket, of_second(1, 1), end);
    claim_at(&mut bucket, of_second(1, 2), end);
    assert!(right > Rate::ZERO);
    assert_eq!(rate(&bucket, of_second(1, 2), end), right);
}

#[test]
fn demand_that_a_proof_refused_goes_on_as_if_it_had_been_counted() {
    let mut bucket = Bucket::default();
    ask_often(&mut bucket, 1);
    let asked = after(1_100);
    let before = rate(&bucket, of_second(1, 1), asked);
    let nothing = HeldProof {
        left: Tokens::ZERO,
        until: LocalTime::MAX,
    };
    bucket.prove(of_second(1, 1), nothing, asked);
    let mut later = bucket.clone();
    // Nobody counts refusals, so the rest of the window says nothing about demand.
    claim_at(&mut bucket, of_second(1, 2), after(2_000));
    let on_time = rate(&bucket, of_second(1, 2), after(2_000));
    let off = before.get().abs_diff(on_time.get());
    assert!(off <= before.get() / 20, "{on_time} after {before}");
    // Half a second of the next window without a request says much.
    claim_at(&mut later, of_second(1, 2), after(2_500));
    let idle = rate(&later, of_second(1, 2), after(2_500));
    assert!(idle.get() < before.get() / 2, "{idle} after {before}");
}
