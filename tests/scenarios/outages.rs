//! The counter service is away: the rule's policy acts in time, and it is called undecided.

use std::time::Duration;

use anyhow::Result;
use headgate_tests::counter::{Counter, Options};
use headgate_tests::fleet::{Fleet, Plan};
use headgate_tests::load::Counts;
use headgate_tests::rules::{Per, Policy, Rule, Rules};
use headgate_tests::scene::Scene;

use crate::{SLACK, assert_unharmed, decided, in_one_window, longest, undecided};

const TIMEOUT: Duration = Duration::from_millis(300);

const LIMIT: u64 = 60;

fn plan(policy: Policy) -> Plan {
    let rule = Rule::new("per-key", LIMIT, Per::Day).when_undecided(policy);
    Plan::new(Rules::new(vec![rule]).timeout(TIMEOUT))
}

/// Sends requests of one key; none may take longer than it may.
async fn send(fleet: &Fleet, key: &str, count: u64) -> Result<Counts> {
    let outcome = fleet.load_of(key, count)?.run().await?;
    let (longest, most) = (longest(&outcome), TIMEOUT + SLACK);
    assert!(longest <= most, "{longest:?} of at most {most:?}");
    Ok(outcome.total())
}

/// What the plugin counts: admitted, refused, undecided.
async fn said(fleet: &Fleet) -> Result<[u64; 3]> {
    Ok([
        fleet.sum("headgate_admitted_total").await?,
        fleet.sum("headgate_refused_total").await?,
        fleet.sum("headgate_undecided_total").await?,
    ])
}

fn down_from_the_start(name: &str, policy: Policy, right: Counts) -> Result<()> {
    in_one_window(name, async |scene: &Scene| {
        let mut counter = Counter::start(scene, Options::named("counter")).await?;
        counter.process.kill()?;
        let mut fleet = plan(policy).start_with(scene, counter).await?;
        assert_eq!(send(&fleet, "alice", 24).await?, right);
        assert_eq!(said(&fleet).await?, [0, 0, 24]);
        // It comes after all.
        fleet.counter.restart().await?;
        fleet.ready().await?;
        assert_eq!(send(&fleet, "bob", 24).await?, decided(24, 0));
        assert_unharmed(&mut fleet.envoys)
    })
}

#[test]
fn from_the_start_with_deny() -> Result<()> {
    down_from_the_start("outages-start-deny", Policy::Deny, undecided(24))
}

#[test]
fn from_the_start_with_allow() -> Result<()> {
    in_one_window("outages-start-allow", async |scene: &Scene| {
        let mut counter = Counter::start(scene, Options::named("counter")).await?;
        counter.process.kill()?;
        let mut fleet = plan(Policy::Allow).start_with(scene, counter).await?;
        assert_eq!(send(&fleet, "alice", 24).await?, decided(24, 0));
        assert_eq!(
            said(&fleet).await?,
            [0, 0, 24],
            "passed, but not by decision"
        );
        assert_unharmed(&mut fleet.envoys)
    })
}

/// Has the service go away between two loads. What the Envoys hold they spend, the rest is
/// undecided, and all of it is there when the service is back.
fn in_between(
    name: &str,
    away: impl AsyncFnOnce(&mut Counter) -> Result<()>,
    back: impl AsyncFnOnce(&mut Counter) -> Result<()>,
) -> Result<()> {
    in_one_window(name, async |scene: &Scene| {
        let mut fleet = plan(Policy::Deny).start(scene).await?;
        assert_eq!(send(&fleet, "alice", 24).await?, decided(24, 0));
        let before = said(&fleet).await?;

        away(&mut fleet.counter).await?;
        let meanwhile = send(&fleet, "alice", LIMIT).await?;
        assert_eq!(meanwhile.refused, 0, "{meanwhile:?}: nobody can know that");
        assert_eq!(
            meanwhile.admitted + meanwhile.undecided,
            LIMIT,
            "{meanwhile:?}"
        );
        assert!(meanwhile.undecided > 0, "{meanwhile:?}");
        assert_eq!(
            send(&fleet, "bob", 24).await?,
            undecided(24),
            "nobody holds any"
        );
        let [admitted, refused, more] = said(&fleet).await?;
        let grown = [admitted - before[0], refused - before[1], more - before[2]];
        assert_eq!(grown, [meanwhile.admitted, 0, meanwhile.undecided + 24]);

        back(&mut fleet.counter).await?;
        fleet.ready().await?;
        let left = LIMIT - 24 - meanwhile.admitted;
        let rest = send(&fleet, "alice", LIMIT).await?;
        assert_eq!(rest, decided(left, LIMIT - left), "after {meanwhile:?}");
        assert_eq!(fleet.upstream.count(b"alice"), LIMIT);
        assert_unharmed(&mut fleet.envoys)
    })
}

#[test]
fn killed_in_between() -> Result<()> {
    in_between(
        "outages-killed",
        async |counter: &mut Counter| counter.process.kill(),
        async |counter: &mut Counter| counter.restart().await,
    )
}

#[test]
fn frozen_in_between() -> Result<()> {
    in_between(
        "outages-frozen",
        async |counter: &mut Counter| counter.process.stop().await,
        async |counter: &mut Counter| counter.process.resume(),
    )
}

#[test]
fn a_cluster_that_does_not_exist_is_an_outage_at_once() -> Result<()> {
    in_one_window("outages-no-cluster", async |scene: &Scene| {
        let counter = Counter::start(scene, Options::named("counter")).await?;
        let mut plan = plan(Policy::Deny);
        plan.rules = plan.rules.cluster("nowhere");
        let mut fleet = plan.start_with(scene, counter).await?;
        assert_eq!(send(&fleet, "alice", 24).await?, undecided(24));
        assert_eq!(said(&fleet).await?, [0, 0, 24]);
        assert!(fleet.sum("headgate_errors_call_total").await? > 0);
        assert_unharmed(&mut fleet.envoys)
    })
}
