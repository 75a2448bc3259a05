//! One Envoy's wall clock is stepped while requests come in.

use std::time::Duration;

use anyhow::{Context, Result};
use headgate_tests::counter::{Counter, Options};
use headgate_tests::envoy::Envoy;
use headgate_tests::fleet::Plan;
use headgate_tests::load::Pace;
use headgate_tests::poll;
use headgate_tests::rules::{Per, Rule, Rules};
use headgate_tests::scene::Scene;
use headgate_tests::wall_clock::WallClock;

use crate::{assert_unharmed, decided, in_one_window};

const LIMIT: u64 = 300;

const DAY_SECONDS: i64 = 86_400;

/// How far two Envoys' dates may differ by the time between looking at them.
const APART: i64 = 20;

/// The time of day, in seconds, in an HTTP date.
fn seconds(date: &str) -> Result<i64> {
    let time = date.split(' ').nth(4);
    let time = time.with_context(|| format!("the date {date}"))?;
    time.split(':').try_fold(0, |sum, part| {
        Ok(sum * 60 + part.parse::<i64>().context(date.to_owned())?)
    })
}

/// Waits until one Envoy's wall clock is so far ahead of another's.
async fn ahead(envoy: &Envoy, other: &Envoy, by: i64) -> Result<()> {
    poll::until("a stepped clock", Duration::from_secs(10), async || {
        let apart = seconds(&envoy.date().await?)? - seconds(&other.date().await?)?;
        let wrong = (apart - by + DAY_SECONDS / 2).rem_euclid(DAY_SECONDS) - DAY_SECONDS / 2;
        Ok((wrong.abs() <= APART).then_some(()))
    })
    .await
}

#[test]
fn five_minutes_forth_and_back_change_no_count() -> Result<()> {
    in_one_window("clocks-stepped", async |scene: &Scene| {
        let clock = WallClock::new(scene)?;
        let counter = Counter::start(scene, Options::named("counter")).await?;
        let plan = Plan::new(Rules::new(vec![Rule::new("per-key", LIMIT, Per::Day)])).envoys(2);
        let mut fleet = plan.clone().start_with(scene, counter).await?;
        let (upstream, counter) = (fleet.upstream.address(), fleet.counter.address());
        let mut config = plan.envoy("envoy-stepped", upstream, counter)?;
        config.environment = clock.environment();
        fleet.envoys.push(Envoy::start(scene, config).await?);
        fleet.ready().await?;

        let mut load = fleet.load_of("alice", 0)?;
        load.pace = Pace::Rate {
            per_second: 100,
            duration: Duration::from_secs(6),
        };
        let steps = async {
            for by in [300, 0, -300] {
                clock.ahead(by)?;
                ahead(&fleet.envoys[2], &fleet.envoys[0], by).await?;
            }
            anyhow::Ok(())
        };
        let (outcome, stepped) = tokio::join!(load.run(), steps);
        stepped?;
        let outcome = outcome?;
        let right = decided(LIMIT, 600 - LIMIT);
        assert_eq!(outcome.total(), right, "{:?}", outcome.failures);
        assert_unharmed(&mut fleet.envoys)
    })
}
