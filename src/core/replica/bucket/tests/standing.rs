//! Standing shares: a claim in two halves.

use super::*;
#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

/// A bucket in which key 1 has just been claimed.
fn claimed() -> Bucket {
    let mut bucket = Bucket::default();
    let taken = bucket.take(claim(1), Tokens::new(1), Take::Spend, at(1_500));
    assert_eq!(taken, Taken::Unclaimed);
    bucket
}

#[test]
fn a_standing_share_counts_once() {
    let mut bucket = claimed();
    bucket.stand(claim(1), Tokens::new(5));
    take(&mut bucket, 1, Take::Spend);
    bucket.stand(claim(1), Tokens::new(5));
    bucket.stand(claim(1), Tokens::new(9));
    assert_eq!(amounts(&bucket, 1), (0, 5, 1, 0));
}

#[test]
fn a_fence_between_the_halves_of_a_claim_lets_go_of_the_share() {
    // The recall took all that the owner thought was here; the share would live twice.
    let mut bucket = claimed();
    let back = bucket.recall(recall(1, 0, 0), tenant(1, 1), at(1_500));
    assert_eq!(returned(back), (1, 0, 0, 0, true));
    bucket.stand(claim(1), Tokens::new(5));
    assert_eq!(amounts(&bucket, 1), (1, 0, 0, 0));
    // The same with the fence of a new leader, and with another tenancy.
    let mut bucket = claimed();
    bucket.fence_all(Epoch::new(2), at(1_500));
    bucket.stand(claim(1), Tokens::new(5));
    assert_eq!(amounts(&bucket, 1), (1, 0, 0, 0));
    let mut bucket = claimed();
    bucket.renounce_all(tenant(2, 1), at(1_500));
    bucket.stand(claim(1), Tokens::new(5));
    assert_eq!(amounts(&bucket, 1), (1, 0, 0, 0));
}

#[test]
fn a_key_that_was_turned_away_or_recalled_before_its_claim_has_no_share() {
    let mut bucket = Bucket::default();
    bucket.recall(recall(1, 0, 0), tenant(1, 1), at(1_500));
    let taken = bucket.take(claim(1), Tokens::new(1), Take::Spend, at(1_500));
    assert_ne!(taken, Taken::Unclaimed);
    bucket.stand(claim(1), Tokens::new(5));
    assert_eq!(amounts(&bucket, 1).1, 0);
}

#[test]
fn a_grant_that_comes_before_the_share_is_not_added_to_it() {
    // The owner counts the share as part of G: it grants what G grows to.
    let mut bucket = claimed();
    assert!(bucket.grant(claim(1), Generation::default(), Tokens::new(8)));
    bucket.stand(claim(1), Tokens::new(5));
    assert_eq!(amounts(&bucket, 1), (0, 8, 0, 0));
}
