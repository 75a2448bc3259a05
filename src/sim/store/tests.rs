//! What is durable, and when.

use super::*;

fn step(key: u8) -> Outcome {
    let change = Change {
        key: vec![key],
        value: Some(vec![key]),
    };
    Outcome {
        changes: vec![change],
        replies: vec![(ReplyTo::new(u64::from(key)), Reply::Left)],
    }
}

const SYNC: Span = Span::from_millis(10);

fn at(millis: u64) -> Truth {
    Truth::ZERO.plus(Span::from_millis(millis))
}

#[test]
fn replies_wait_for_their_changes_and_all_before_them() {
    let mut store = Store::default();
    assert_eq!(store.write(at(0), step(1), SYNC), at(10));
    assert_eq!(store.write(at(3), step(2), SYNC), at(20));
    assert_eq!(store.write(at(4), Outcome::default(), SYNC), at(20));
    assert_eq!(store.take_durable(at(9)).len(), 0);
    assert_eq!(store.take_durable(at(10)).len(), 1);
    assert_eq!(store.records().len(), 1);
    assert_eq!(store.take_durable(at(20)).len(), 1);
    assert_eq!(store.write(at(30), Outcome::default(), SYNC), at(30));
}

#[test]
fn a_crash_keeps_what_was_durable_and_a_beginning_of_the_rest() {
    let mut kept = std::collections::BTreeSet::new();
    for seed in 0..50 {
        let mut store = Store::default();
        store.write(at(0), step(1), SYNC);
        store.take_durable(at(10));
        store.write(at(11), step(2), SYNC);
        store.write(at(11), step(3), SYNC);
        store.crash(&mut Random::new(seed));
        let keys: Vec<u8> = store.records().keys().flatten().copied().collect();
        kept.insert(keys);
        assert_eq!(store.take_durable(at(100)).len(), 0);
    }
    let all: Vec<Vec<u8>> = kept.into_iter().collect();
    assert_eq!(all, [vec![1], vec![1, 2], vec![1, 2, 3]]);
}
