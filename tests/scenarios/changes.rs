//! Envoys and the service come, go, end and stand still while requests come in. What is admitted is
//! never more than the limit, and what is missing was lost with an Envoy or undecided.

use std::time::Duration;

use anyhow::Result;
use headgate_tests::envoy::{Delivery, Envoy, Update};
use headgate_tests::fleet::{Fleet, Plan, filter};
use headgate_tests::load::{Counts, Key, Load, Pace};
use headgate_tests::poll;
use headgate_tests::rules::{Per, Rule, Rules};
use headgate_tests::scene::Scene;

use crate::{assert_unharmed, in_one_window};

const LIMIT: u64 = 300;

/// The most that one Envoy holds of a key at any time, and so the most that is lost with it:
/// three quarters of what remains of the limit is the largest lease (the protocol's section 10).
const HELD_MAX: u64 = LIMIT * 3 / 4;

/// Far longer than a seat lives without a word.
const SILENCE_DEADLINE: Duration = Duration::from_secs(30);

fn plan() -> Plan {
    Plan::new(Rules::new(vec![Rule::new("per-key", LIMIT, Per::Day)]))
}

/// A load of alice at a rate.
fn at_rate(fleet: &Fleet, per_second: u64, seconds: u64) -> Result<Load> {
    let mut load = fleet.load_of("alice", 0)?;
    load.concurrency = 300;
    load.pace = Pace::Rate {
        per_second,
        duration: Duration::from_secs(seconds),
    };
    Ok(load)
}

/// Sends requests to all until one is refused. Returns how many were undecided before.
async fn spend_the_rest(envoys: &[Envoy]) -> Result<u64> {
    let mut undecided = 0;
    poll::until("a refusal", SILENCE_DEADLINE, async || {
        let addresses = envoys.iter().map(Envoy::address);
        let load = Load::new(addresses, vec![Key::named("alice")?], Pace::Count(20));
        let total = load.run().await?.total();
        assert_eq!(total.failed + total.timed_out, 0, "{total:?}");
        undecided += total.undecided;
        Ok((total.refused > 0).then_some(()))
    })
    .await?;
    Ok(undecided)
}

/// What the upstream has seen is within the limit, and the rest is accounted for.
async fn assert_accounted(fleet: &Fleet, undecided: u64, lost_max: u64) -> Result<()> {
    let admitted = fleet.upstream.count(b"alice");
    let lost = fleet.counter.metric("headgate_tokens_lost_total").await?;
    let all = format!("{admitted} admitted, {lost} lost, {undecided} undecided of {LIMIT}");
    assert!(admitted <= LIMIT, "{all}");
    assert!(admitted + lost + undecided >= LIMIT, "{all}");
    // The metric counts other keys too; what is missing of this one is bounded.
    assert!(
        admitted + undecided + lost_max >= LIMIT,
        "{all}: at most {lost_max} may be missing"
    );
    Ok(())
}

/// None failed, and all were answered in time.
fn assert_answered(total: &Counts) {
    assert_eq!(total.failed + total.timed_out, 0, "{total:?}");
}

#[test]
fn an_envoy_killed_under_load_costs_at_most_what_it_held() -> Result<()> {
    in_one_window("changes-killed", async |scene: &Scene| {
        let mut fleet = plan().start(scene).await?;
        let load = at_rate(&fleet, 60, 3)?;
        let mut gone = fleet.envoys.remove(0);
        let end = async {
            // Pacing: it is to end amid the load, with a lease.
            tokio::time::sleep(Duration::from_secs(1)).await;
            gone.process.kill()
        };
        let (outcome, killed) = tokio::join!(load.run(), end);
        killed?;
        let outcome = outcome?;
        assert_answered(&outcome.count(|record| record.target != 0));
        // An answer that the end cut off may have been charged.
        let cut = outcome.total();
        let open = cut.undecided + cut.failed + cut.timed_out;
        spend_the_rest(&fleet.envoys).await?;
        assert!(fleet.upstream.count(b"alice") >= LIMIT - HELD_MAX - open);
        // After a refusal for good nothing is undecided: whatever it held is lost by now.
        assert_accounted(&fleet, open, HELD_MAX).await?;
        assert_unharmed(&mut fleet.envoys)
    })
}

#[test]
fn the_service_stands_still_for_two_seconds() -> Result<()> {
    in_one_window("changes-frozen", async |scene: &Scene| {
        let mut fleet = plan().start(scene).await?;
        let load = at_rate(&fleet, 60, 4)?;
        let still = async {
            fleet.counter.process.stop().await?;
            // Pacing: standing still for so long is the trouble.
            tokio::time::sleep(Duration::from_secs(2)).await;
            fleet.counter.process.resume()
        };
        let (outcome, stood) = tokio::join!(load.run(), still);
        stood?;
        let total = outcome?.total();
        assert_answered(&total);
        assert!(total.undecided > 0, "{total:?}: it made no difference");
        assert_eq!(total.refused, 0, "{total:?}: 240 of {LIMIT} were offered");
        fleet.ready().await?;
        let later = spend_the_rest(&fleet.envoys).await?;
        assert_accounted(&fleet, total.undecided + later, 0).await?;
        assert_unharmed(&mut fleet.envoys)
    })
}

#[test]
fn from_two_envoys_to_five_and_back() -> Result<()> {
    in_one_window("changes-scale", async |scene: &Scene| {
        let plan = plan().envoys(2);
        let mut fleet = plan.clone().start(scene).await?;
        let total = fleet.load_of("alice", 60)?.run().await?.total();
        assert_eq!(total.admitted, 60, "{total:?}");
        let (upstream, counter) = (fleet.upstream.address(), fleet.counter.address());
        let load = at_rate(&fleet, 10, 6)?;
        let more = async {
            let mut more = Vec::new();
            for number in 3..=5 {
                let config = plan.envoy(&format!("envoy-{number}"), upstream, counter)?;
                more.push(Envoy::start(scene, config).await?);
            }
            anyhow::Ok(more)
        };
        let (outcome, more) = tokio::join!(load.run(), more);
        let total = outcome?.total();
        assert_eq!(total.admitted, 60, "{total:?}: nobody has gone yet");
        fleet.envoys.extend(more?);
        fleet.ready().await?;
        let total = fleet.load_of("alice", 60)?.run().await?.total();
        assert_eq!(total.admitted, 60, "{total:?}: nobody has gone yet");
        for mut envoy in fleet.envoys.split_off(2) {
            envoy.terminate().await?;
        }
        spend_the_rest(&fleet.envoys).await?;
        assert_accounted(&fleet, 0, HELD_MAX).await?;
        assert_unharmed(&mut fleet.envoys)
    })
}

#[test]
fn the_plugin_goes_and_comes_back_in_one_envoy() -> Result<()> {
    in_one_window("changes-removed", async |scene: &Scene| {
        let mut plan = plan();
        plan.delivery = Delivery::Live;
        let rules = plan.rules.clone();
        let mut fleet = plan.start(scene).await?;
        let load = at_rate(&fleet, 40, 6)?;
        let envoy = &mut fleet.envoys[0];
        let upstream = &fleet.upstream;
        let update = async {
            for _ in 0..2 {
                assert_eq!(envoy.update(None).await?, Update::Accepted);
                let before = upstream.count(b"yes");
                let passes = "a request to pass without the plugin";
                poll::until(passes, SILENCE_DEADLINE, async || {
                    let load =
                        Load::new([envoy.address()], vec![Key::named("bob")?], Pace::Count(1));
                    load.run().await?;
                    Ok((upstream.count(b"yes") > before).then_some(()))
                })
                .await?;
                let back = envoy.update(Some(filter(&rules)?)).await?;
                assert_eq!(back, Update::Accepted);
            }
            anyhow::Ok(())
        };
        let (outcome, updated) = tokio::join!(load.run(), update);
        updated?;
        let total = outcome?.total();
        assert_answered(&total);
        fleet.ready().await?;
        let later = spend_the_rest(&fleet.envoys).await?;
        assert_accounted(&fleet, total.undecided + later, HELD_MAX).await?;
        assert_unharmed(&mut fleet.envoys)
    })
}
