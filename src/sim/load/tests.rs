//! Loads have the shapes they say.

use std::collections::BTreeMap;

use super::*;

const SECOND: Truth = Truth::new(1_000_000_000);

fn steady() -> Load {
    Load {
        gap: Span::new(100_000),
        shape: Shape::Steady,
        spread: Spread::Even,
        keys: vec![Keys::Even(4)],
        costs: Costs::One,
        crowd: 0,
        impatient: 0,
    }
}

fn second_of(load: Load) -> Vec<Arrival> {
    Clients::new(load, Random::new(1), Truth::ZERO, 2).until(SECOND, 10)
}

fn by_replica(arrivals: &[Arrival]) -> BTreeMap<usize, usize> {
    let mut counts = BTreeMap::new();
    for arrival in arrivals {
        *counts.entry(arrival.replica).or_default() += 1;
    }
    counts
}

#[test]
fn requests_come_as_often_as_said_and_everywhere() {
    let arrivals = second_of(steady());
    assert!(
        (9_500..10_500).contains(&arrivals.len()),
        "{}",
        arrivals.len()
    );
    assert!(by_replica(&arrivals).values().all(|count| *count > 800));
    assert!(arrivals.iter().all(|arrival| arrival.keys[0] < 4));
}

#[test]
fn a_hot_replica_has_its_share_and_may_move() {
    let spread = Spread::Hot(667);
    let arrivals = second_of(Load { spread, ..steady() });
    let most = by_replica(&arrivals).into_values().max().unwrap();
    assert!(most > arrivals.len() * 6 / 10);
    let spread = Spread::Moving(900, Span::from_millis(100));
    let arrivals = second_of(Load { spread, ..steady() });
    let most = by_replica(&arrivals).into_values().max().unwrap();
    assert!(most < arrivals.len() * 6 / 10);
}

#[test]
fn bursts_hit_one_replica_at_once() {
    let shape = Shape::Bursts(200, Span::from_millis(1));
    let arrivals = second_of(Load { shape, ..steady() });
    assert_eq!(arrivals.len() % 200, 0);
    let burst = &arrivals[..200];
    assert!(burst.iter().all(|one| one.replica == burst[0].replica));
}

#[test]
fn zipf_keys_fall_with_their_rank() {
    let keys = vec![Keys::zipf(100)];
    let arrivals = second_of(Load { keys, ..steady() });
    let count = |key| arrivals.iter().filter(|one| one.keys[0] == key).count();
    // 1 / H(100) = 19 %.
    assert!((1_700..2_200).contains(&count(0)), "{}", count(0));
    assert!((800..1_100).contains(&count(1)), "{}", count(1));
    assert!(arrivals.iter().all(|one| one.keys[0] < 100));
}

#[test]
fn crowds_come_to_all_workers_at_once() {
    let arrivals = second_of(Load {
        crowd: 1_000,
        ..steady()
    });
    let crowd = &arrivals[..3];
    assert!(
        crowd
            .iter()
            .all(|one| one.at == crowd[0].at && one.keys == crowd[0].keys)
    );
    assert_ne!(crowd[0].worker, crowd[1].worker);
}
