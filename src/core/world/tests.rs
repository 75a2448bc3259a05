//! Whole histories: never over, no refusal while tokens are left.

use super::replica::charges;
use super::*;
use crate::replica::worker::{Request, Verdict};
#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

const MINUTE: Span = Span::from_secs(60);

fn load(world: &mut World, requests: u64, within: Span, keys: u64) {
    let workers = world.replicas[0].workers.len() as u64;
    for _ in 0..requests {
        let replica = world.random.below(world.replicas.len() as u64) as usize;
        let worker = world.random.below(workers) as usize;
        let after = Span::new(world.random.below(within.get()));
        let rules = world.rules.len();
        let values = (0..rules)
            .map(|_| format!("key-{}", world.random.below(keys)))
            .collect();
        world.schedule(
            after,
            Event::Arrive {
                replica,
                worker,
                values,
            },
        );
    }
}

#[test]
fn exactly_the_limit_over_all_replicas() {
    for (limit, seed) in [(3, 1), (10, 2), (100, 3), (1_000, 4)] {
        let mut world = World::new(seed, 3, 2, vec![rule("r", limit, MINUTE)]);
        world.run_for(Span::from_millis(50));
        load(&mut world, limit * 3 / 2 + 10, Span::from_secs(5), 1);
        world.run_for(Span::from_secs(6));
        assert_eq!(world.judge.undecided, 0, "limit {limit}");
        let admitted: u64 = world.judge.admitted().values().sum();
        assert_eq!(admitted, limit);
        assert!(world.requests.is_empty(), "every request has its answer");
    }
}

#[test]
fn a_refused_key_costs_no_call_until_the_boundary() {
    let mut world = World::new(5, 2, 2, vec![rule("r", 10, MINUTE)]);
    world.run_for(Span::from_millis(50));
    load(&mut world, 40, Span::from_secs(1), 1);
    world.run_for(Span::from_secs(2));
    let before = world.asks_sent;
    load(&mut world, 200, Span::from_secs(20), 1);
    world.run_for(Span::from_secs(20));
    assert_eq!(world.asks_sent, before);
    assert_eq!(world.judge.admitted().values().sum::<u64>(), 10);
}

#[test]
fn most_requests_of_a_large_limit_do_not_ask() {
    let mut world = World::new(6, 3, 2, vec![rule("r", 10_000, MINUTE)]);
    world.run_for(Span::from_millis(50));
    load(&mut world, 8_000, Span::from_secs(10), 1);
    world.run_for(Span::from_secs(11));
    assert_eq!(world.judge.admitted().values().sum::<u64>(), 8_000);
    assert!(
        world.asks_sent < 400,
        "{} calls for 8,000 requests",
        world.asks_sent
    );
}

/// Everybody has been there since before the window that runs now.
fn with_shares(seed: u64, replicas: usize, limit: u64) -> World {
    let mut world = World::new(seed, replicas, 2, vec![rule("r", limit, MINUTE)]);
    world.run_for(Span::from_secs(31));
    world
}

#[test]
fn a_cold_key_is_decided_without_a_call_where_shares_stand() {
    let mut world = with_shares(21, 3, 100);
    load(&mut world, 60, Span::from_secs(10), 8);
    world.run_for(Span::from_secs(11));
    assert_eq!(world.asks_sent, 0);
    assert_eq!(world.judge.admitted().values().sum::<u64>(), 60);
}

#[test]
fn one_replica_gets_what_stands_at_the_others() {
    for limit in [3, 10, 1_000] {
        let mut world = with_shares(22, 5, limit);
        for _ in 0..limit + 5 {
            let after = Span::new(world.random.below(5_000_000_000));
            let values = vec!["hot".to_owned()];
            let arrive = Event::Arrive {
                replica: 0,
                worker: 0,
                values,
            };
            world.schedule(after, arrive);
        }
        world.run_for(Span::from_secs(6));
        let admitted: u64 = world.judge.admitted().values().sum();
        assert_eq!((admitted, world.judge.undecided), (limit, 0));
    }
}

#[test]
fn a_dead_replica_costs_its_share_of_each_key_and_nothing_more() {
    let mut world = with_shares(23, 5, 100);
    world.replicas[4].dead = true;
    world.run_for(Span::from_secs(6));
    world.add_replica(2);
    world.run_for(Span::from_millis(100));
    load(&mut world, 300, Span::from_secs(10), 2);
    world.run_for(Span::from_secs(11));
    world.judge.assert_never_over(23);
    // Half of 100 over five seats, of two keys, and what was asked of the dead one.
    world
        .judge
        .assert_no_false_refusal(23, 20 + world.judge.undecided);
    let admitted: u64 = world.judge.admitted().values().sum();
    assert_eq!(admitted, 180);
}

#[test]
fn windows_turn_over() {
    let mut world = World::new(7, 3, 2, vec![rule("r", 20, Span::from_secs(1))]);
    world.run_for(Span::from_millis(50));
    load(&mut world, 400, Span::from_secs(8), 1);
    world.run_for(Span::from_secs(9));
    world.judge.assert_never_over(7);
    world.judge.assert_no_false_refusal(7, 0);
    assert_eq!(world.judge.undecided, 0);
    assert!(world.judge.admitted().len() >= 8);
}

#[test]
fn several_rules_are_one_transaction() {
    // The narrow rule refuses most; what it refuses must not cost the broad one anything.
    let rules = vec![rule("broad", 60, MINUTE), rule("narrow", 7, MINUTE)];
    for seed in 0..20 {
        let mut world = World::new(seed, 2, 2, rules.clone());
        world.run_for(Span::from_millis(50));
        for _ in 0..200 {
            let replica = world.random.below(2) as usize;
            let worker = world.random.below(2) as usize;
            let after = Span::new(world.random.below(3_000_000_000));
            let narrow = format!("key-{}", world.random.below(4));
            let values = vec!["all".to_owned(), narrow];
            world.schedule(
                after,
                Event::Arrive {
                    replica,
                    worker,
                    values,
                },
            );
        }
        world.run_for(Span::from_secs(5));
        world.judge.assert_never_over(seed);
        assert_eq!(world.judge.undecided, 0, "seed {seed}");
        let admitted = world.judge.admitted();
        for (place, count) in &admitted {
            let expected = if place.0 == 0 { 28 } else { 7 };
            assert_eq!(*count, expected, "seed {seed}: {place:?}");
        }
    }
}

#[test]
fn loss_duplication_and_reordering_never_admit_too_much() {
    for seed in 0..60 {
        let limit = [3, 12, 80][(seed % 3) as usize];
        let mut world = World::new(seed, 3, 2, vec![rule("r", limit, Span::from_secs(2))]);
        world.faults = Faults {
            lost: 30,
            duplicated: 100,
            slow: 100,
        };
        world.run_for(Span::from_millis(300));
        load(&mut world, limit * 8, Span::from_secs(8), 2);
        world.run_for(Span::from_secs(9));
        world.judge.assert_never_over(seed);
        // A charge for a request that was undecided may count as admitted.
        let undecided = world.judge.undecided;
        world.judge.assert_no_false_refusal(seed, undecided);
        assert!(
            world.requests.is_empty(),
            "seed {seed}: every request has its answer"
        );
    }
}

#[test]
fn a_killed_service_grants_no_token_twice_and_loses_none() {
    for seed in 0..40 {
        let mut world = World::new(seed, 3, 2, vec![rule("r", 200, MINUTE)]);
        world.run_for(Span::from_millis(100));
        load(&mut world, 500, Span::from_secs(8), 1);
        for _ in 0..3 {
            let up = Span::new(500_000_000 + world.random.below(1_500_000_000));
            world.run_for(up);
            world.kill_service();
            let down = Span::new(world.random.below(300_000_000));
            world.run_for(down);
            world.start_service();
        }
        world.run_for(Span::from_secs(9));
        world.judge.assert_never_over(seed);
        let undecided = world.judge.undecided;
        world.judge.assert_no_false_refusal(seed, undecided);
        assert!(undecided < 100, "seed {seed}: {undecided} undecided");
    }
}

#[test]
fn without_a_service_the_policy_acts_at_the_deadline() {
    let mut world = World::new(9, 1, 2, vec![rule("r", 10, MINUTE)]);
    world.kill_service();
    load(&mut world, 20, Span::from_secs(1), 1);
    world.run_for(Span::from_secs(2));
    assert_eq!(world.judge.undecided, 20);
    assert!(world.requests.is_empty());
}

#[test]
fn a_dead_replica_costs_its_lease_and_nothing_more() {
    for seed in 0..20 {
        let mut world = World::new(seed, 3, 2, vec![rule("r", 300, MINUTE)]);
        world.run_for(Span::from_millis(100));
        load(&mut world, 700, Span::from_secs(20), 1);
        world.run_for(Span::from_millis(1_500));
        world.replicas[2].dead = true;
        world.run_for(Span::from_secs(20));
        world.judge.assert_never_over(seed);
        let dead = world.shard.as_ref().unwrap().counts().tokens_dead;
        assert!(dead <= 60, "seed {seed}: {dead} tokens died");
        let undecided = world.judge.undecided;
        // What was in flight at the dead replica was charged and never answered.
        world
            .judge
            .assert_no_false_refusal(seed, dead + undecided + 10);
    }
}

#[test]
fn a_silent_replica_comes_back_with_nothing() {
    // Cut off for longer than its time-to-live, then back: its old lease is void.
    let mut world = World::new(11, 2, 1, vec![rule("r", 100, MINUTE)]);
    world.run_for(Span::from_millis(100));
    load(&mut world, 20, Span::from_secs(1), 1);
    world.run_for(Span::from_secs(1));
    world.faults.lost = 1_000;
    world.run_for(Span::from_secs(8));
    world.faults.lost = 0;
    world.run_for(Span::from_secs(3));
    load(&mut world, 200, Span::from_secs(10), 1);
    world.run_for(Span::from_secs(12));
    world.judge.assert_never_over(11);
    let counts = world.shard.as_ref().unwrap().counts();
    assert_eq!(counts.members_lost, 2);
    world
        .judge
        .assert_no_false_refusal(11, counts.tokens_dead + world.judge.undecided);
}

#[test]
fn a_refusal_names_the_end_of_its_window() {
    let mut world = World::new(12, 1, 1, vec![rule("r", 1, MINUTE)]);
    world.run_for(Span::from_millis(50));
    let now = world.local(0);
    let deadline = now.plus(Span::from_millis(100));
    let replica = &mut world.replicas[0];
    for id in [1, 2] {
        let charges = charges(&["k".to_owned()]);
        let request = Request {
            id: RequestId::new(id),
            charges,
            deadline,
        };
        world.requests.insert(RequestId::new(id), 0);
        world
            .judge
            .arrived(RequestId::new(id), &["k".to_owned()], START);
        assert!(
            replica.workers[0]
                .arrive(&replica.memory, now, request)
                .is_none()
        );
    }
    world.send_asks(0);
    world.run_for(Span::from_millis(50));
    let now = world.local(0);
    let charges = charges(&["k".to_owned()]);
    let request = Request {
        id: RequestId::new(3),
        charges,
        deadline: now,
    };
    let replica = &mut world.replicas[0];
    let settled = replica.workers[0]
        .arrive(&replica.memory, now, request)
        .unwrap();
    let Verdict::Refuse { retry_after, .. } = settled.verdict else {
        panic!("{settled:?}");
    };
    let left = Period::new(MINUTE)
        .unwrap()
        .window_at(world.true_time())
        .end();
    let left = left.since(world.true_time());
    assert!(
        retry_after.minus(left) < Span::from_millis(2),
        "{retry_after:?} {left:?}"
    );
    assert!(
        left.minus(retry_after) < Span::from_millis(2),
        "{retry_after:?} {left:?}"
    );
}
