//! The end of a window, and the quiet after a key's first refusal in it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Result;
use headgate_tests::fleet::{Fleet, Plan};
use headgate_tests::load::{Class, Client, Load, Outcome, Pace, Request};
use headgate_tests::rules::{Per, Rule, Rules};
use headgate_tests::scene::{self, Scene};
use headgate_tests::windows::{Seen, ServiceTime};
use hyper::header::{HeaderName, HeaderValue};

use crate::{decided, in_one_window};

/// Runs a load, and looks at it by windows of the service.
async fn look(fleet: &Fleet, per: Per, load: &Load) -> Result<(Outcome, Seen)> {
    let time = ServiceTime::read(fleet.counter.address()).await?;
    let outcome = load.run().await?;
    let seen = Seen::new(&[time], per, outcome.started, &outcome.records);
    Ok((outcome, seen))
}

/// No window admits more than its limit, and one in which a request was refused no less. Returns
/// how many of the latter there were.
fn check(seen: &Seen, limit: u64) -> usize {
    assert_eq!(seen.over(limit), None, "{:?}", seen.windows);
    let refusing = || seen.windows.values().filter(|window| window.refused > 0);
    let enough = refusing().all(|window| window.perhaps >= limit);
    assert!(enough, "under {limit}: {:?}", seen.windows);
    refusing().count()
}

#[test]
fn every_second_has_its_own_limit() -> Result<()> {
    scene::run("windows-second", async |scene: &Scene| {
        let limit = 60;
        let rules = Rules::new(vec![Rule::new("per-key", limit, Per::Second)]);
        let fleet = Plan::new(rules).start(scene).await?;
        let mut load = fleet.load_of("alice", 0)?;
        load.pace = Pace::Rate {
            per_second: 300,
            duration: Duration::from_secs(6),
        };
        load.concurrency = 64;
        let (outcome, seen) = look(&fleet, Per::Second, &load).await?;
        assert!(check(&seen, limit) >= 3, "{:?}", seen.windows);
        let total = outcome.total();
        assert_eq!(
            total.admitted + total.refused,
            total.offered,
            "{total:?}, {:?}",
            outcome.failures
        );
        Ok(())
    })
}

#[test]
fn a_minute_turns_over() -> Result<()> {
    scene::run("windows-minute", async |scene: &Scene| {
        let limit = 100;
        let rules = Rules::new(vec![Rule::new("per-key", limit, Per::Minute)]);
        let fleet = Plan::new(rules).start(scene).await?;
        let before = Duration::from_secs(3);
        let into = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs() % 60;
        let mut load = fleet.load_of("alice", 0)?;
        load.pace = Pace::Rate {
            per_second: 100,
            duration: before * 2,
        };
        load.concurrency = 64;
        // Pacing: the load is to have the end of a minute in its middle.
        tokio::time::sleep(Duration::from_secs(60 - into).saturating_sub(before)).await;
        let (outcome, seen) = look(&fleet, Per::Minute, &load).await?;
        assert_eq!(check(&seen, limit), 2, "{:?}", seen.windows);
        assert_eq!(
            outcome.total(),
            decided(2 * limit, 400),
            "{:?}, {:?}",
            seen.windows,
            outcome.failures
        );
        Ok(())
    })
}

#[test]
fn after_its_first_refusal_on_an_envoy_a_key_costs_no_call() -> Result<()> {
    in_one_window("windows-quiet", async |scene: &Scene| {
        let rules = Rules::new(vec![Rule::new("per-key", 40, Per::Day)]);
        let fleet = Plan::new(rules).start(scene).await?;
        assert_eq!(
            fleet.load_of("alice", 40)?.run().await?.total(),
            decided(40, 0)
        );
        // One by one, so that none is on its way when the next one comes.
        let client = Client::new();
        let key = HeaderValue::from_static("alice");
        for envoy in &fleet.envoys {
            let request = Request {
                address: envoy.address(),
                path: "/",
                header: Some((&HeaderName::from_static("x-api-key"), &key)),
                deadline: Duration::from_secs(5),
            };
            let reply = client.send(request).await;
            assert_eq!(reply.class, Class::Refused, "{:?}", reply.failure);
        }
        let calls = async || {
            let asked = fleet.sum("headgate_asked_total").await?;
            let ahead = fleet.sum("headgate_asked_ahead_total").await?;
            anyhow::Ok((asked, ahead))
        };
        let before = calls().await?;
        assert_eq!(
            fleet.load_of("alice", 600)?.run().await?.total(),
            decided(0, 600)
        );
        assert_eq!(calls().await?, before, "refusals made calls");
        Ok(())
    })
}
