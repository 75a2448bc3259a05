//! Exactly the limit, over three Envoys with two workers each.

use std::time::Duration;

use anyhow::Result;
use headgate_tests::counter::{Counter, Options};
use headgate_tests::fleet::{Fleet, Plan};
use headgate_tests::load::{Class, Key};
use headgate_tests::rules::{Per, Rule, Rules};
use headgate_tests::scene::Scene;
use headgate_tests::slow::SlowWay;

use crate::{assert_unharmed, decided, in_one_window};

/// Offers 1.5 times the limit of one key, as fast as it goes.
fn exactly(name: &str, limit: u64, concurrency: usize) -> Result<()> {
    in_one_window(name, async |scene: &Scene| {
        let rules = Rules::new(vec![Rule::new("per-key", limit, Per::Day)]);
        let mut fleet = Plan::new(rules).start(scene).await?;
        let counted = ["admitted", "refused", "undecided"];
        let mut before = Vec::new();
        for what in counted {
            before.push(fleet.sum(&format!("headgate_{what}_total")).await?);
        }

        let offered = limit + limit / 2;
        let mut load = fleet.load_of("alice", offered)?;
        load.concurrency = concurrency;
        let outcome = load.run().await?;

        let right = decided(limit, offered - limit);
        assert_eq!(outcome.total(), right, "{:?}", outcome.failures);
        assert_eq!(fleet.upstream.count(b"alice"), limit);
        // What the plugin says of itself is the same.
        let mut said = Vec::new();
        for (what, before) in counted.iter().zip(before) {
            said.push(fleet.sum(&format!("headgate_{what}_total")).await? - before);
        }
        assert_eq!(said, [limit, offered - limit, 0]);
        assert_unharmed(&mut fleet.envoys)
    })
}

#[test]
fn of_ten() -> Result<()> {
    exactly("exact-10", 10, 15)
}

#[test]
fn of_a_hundred() -> Result<()> {
    exactly("exact-100", 100, 24)
}

#[test]
fn of_ten_thousand() -> Result<()> {
    exactly("exact-10000", 10_000, 48)
}

#[test]
fn of_one_hot_key_in_four_workers() -> Result<()> {
    in_one_window("exact-hot", async |scene: &Scene| {
        let limit = 2_000;
        let mut plan = Plan::new(Rules::new(vec![Rule::new("per-key", limit, Per::Day)])).envoys(1);
        plan.workers = 4;
        let mut fleet = plan.start(scene).await?;
        let mut load = fleet.load_of("alice", limit + limit / 2)?;
        load.concurrency = 64;
        let outcome = load.run().await?;
        let right = decided(limit, limit / 2);
        assert_eq!(outcome.total(), right, "{:?}", outcome.failures);
        assert_eq!(fleet.upstream.count(b"alice"), limit);
        assert_unharmed(&mut fleet.envoys)
    })
}

#[test]
fn over_a_way_of_ten_milliseconds() -> Result<()> {
    in_one_window("exact-slow-way", async |scene: &Scene| {
        let limit = 300;
        let counter = Counter::start(scene, Options::named("counter")).await?;
        let way = SlowWay::start(counter.address(), Duration::from_millis(5)).await?;
        let mut plan = Plan::new(Rules::new(vec![Rule::new("per-key", limit, Per::Day)]));
        plan.way = Some(way.address());
        let mut fleet = plan.start_with(scene, counter).await?;
        fleet.ready().await?;
        let outcome = fleet.load_of("alice", limit + limit / 2)?.run().await?;
        let right = decided(limit, limit / 2);
        assert_eq!(outcome.total(), right, "{:?}", outcome.failures);
        assert_eq!(fleet.upstream.count(b"alice"), limit);
        assert_unharmed(&mut fleet.envoys)
    })
}

#[test]
fn a_key_below_its_limit_is_never_refused_wherever_its_requests_come_in() -> Result<()> {
    in_one_window("exact-below", async |scene: &Scene| {
        let rules = Rules::new(vec![Rule::new("per-key", 100, Per::Day)]);
        let fleet = Plan::new(rules).start(scene).await?;
        // All at one Envoy, then all at another: what the first still holds has to come over.
        for (target, offered, right) in [
            (0, 40, decided(40, 0)),
            (1, 60, decided(60, 0)),
            (2, 10, decided(0, 10)),
        ] {
            let mut load = fleet.load_of("alice", offered)?;
            load.targets = vec![load.targets[target].clone()];
            let outcome = load.run().await?;
            assert_eq!(outcome.total(), right, "{target}: {:?}", outcome.failures);
        }
        Ok(())
    })
}

#[test]
fn with_the_waits_of_a_cluster_what_is_missing_is_undecided() -> Result<()> {
    in_one_window("exact-impatient", async |scene: &Scene| {
        let mut options = Options::named("counter");
        options.arguments.clear();
        let counter = Counter::start(scene, options).await?;
        let limit = 1000;
        let rules = Rules::new(vec![Rule::new("per-key", limit, Per::Day)]);
        let plan = Plan::new(rules.timeout(Duration::from_millis(100)));
        let mut fleet = plan.start_with(scene, counter).await?;
        fleet.ready().await?;
        let total = fleet.load_of("alice", 2 * limit)?.run().await?.total();
        assert!(total.admitted <= limit, "{total:?}");
        // A decision that came too late may have been charged.
        assert!(total.admitted + total.undecided >= limit, "{total:?}");
        assert_eq!(total.failed + total.timed_out, 0, "{total:?}");
        assert_unharmed(&mut fleet.envoys)
    })
}

#[test]
fn two_keys_do_not_disturb_each_other() -> Result<()> {
    in_one_window("exact-two-keys", async |scene: &Scene| {
        let rules = Rules::new(vec![Rule::new("per-key", 100, Per::Day)]);
        let fleet = Plan::new(rules).start(scene).await?;
        let mut alice = Key::named("alice")?;
        alice.weight = 3;
        let outcome = fleet
            .load(vec![alice, Key::named("bob")?], 240)
            .run()
            .await?;
        assert_eq!(outcome.key("alice")?, decided(100, 80));
        assert_eq!(outcome.key("bob")?, decided(60, 0));
        let outcome = fleet.load_of("bob", 60)?.run().await?;
        assert_eq!(outcome.total(), decided(40, 20));
        Ok(())
    })
}

#[test]
fn two_rules_count_for_themselves() -> Result<()> {
    in_one_window("exact-two-rules", async |scene: &Scene| {
        let header = hyper::header::HeaderName::from_static("x-team");
        let rules = Rules::new(vec![
            Rule::new("per-key", 30, Per::Day),
            Rule::new("per-team", 50, Per::Day).header(&header),
        ]);
        let mut plan = Plan::new(rules);
        plan.headers.push(header.clone());
        let fleet = plan.start(scene).await?;
        // The same value under both rules.
        let mut load = fleet.load_of("alice", 60)?;
        assert_eq!(load.run().await?.total(), decided(30, 30));
        load.header = header;
        assert_eq!(load.run().await?.total(), decided(50, 10));
        Ok(())
    })
}

/// Offers three requests for each of so many keys, one at each Envoy at about the same time, of
/// which two are within the limit.
async fn two_of_three(fleet: &Fleet, keys: usize) -> Result<()> {
    let names = (0..keys).map(|number| Key::named(&format!("key-{number}")));
    let mut load = fleet.load(names.collect::<Result<_>>()?, 3 * keys as u64);
    load.concurrency = 48;
    let outcome = load.run().await?;
    let mut admitted = vec![0; keys];
    for record in &outcome.records {
        admitted[record.key] += u64::from(record.class == Class::Admitted);
    }
    let wrong: Vec<_> = (0..keys).filter(|key| admitted[*key] != 2).collect();
    let total = outcome.total();
    assert!(
        wrong.is_empty(),
        "{wrong:?}, {total:?}, {:?}",
        outcome.failures
    );
    let (right, over) = (2 * keys as u64, keys as u64);
    assert_eq!(total, decided(right, over), "{:?}", outcome.failures);
    Ok(())
}

#[test]
fn each_of_many_keys_has_exactly_its_own_and_one_without_a_cell_too() -> Result<()> {
    in_one_window("exact-many-keys", async |scene: &Scene| {
        let rules = Rules::new(vec![Rule::new("per-key", 2, Per::Day)]);
        let mut fleet = Plan::new(rules).start(scene).await?;
        // A third as many as there are cells, so that some find their bucket full.
        two_of_three(&fleet, 6_000).await?;
        assert!(fleet.sum("headgate_cells_missed_total").await? > 0);
        assert_unharmed(&mut fleet.envoys)
    })
}
