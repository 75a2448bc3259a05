//! Envoys that crash, hang, or get another configuration while requests come in.

use std::time::Duration;

use anyhow::Result;
use headgate_tests::envoy::{Delivery, Envoy, Update};
use headgate_tests::fleet::{Fleet, Plan, filter};
use headgate_tests::load::{Counts, Key, Load, Pace};
use headgate_tests::poll;
use headgate_tests::rules::{Per, Rule, Rules};
use headgate_tests::scene::Scene;
use headgate_tests::windows::{Seen, ServiceTime};

use crate::{assert_unharmed, decided, in_one_window};

const LIMIT: u64 = 300;

/// Far longer than a seat lives without a word.
const SILENCE_DEADLINE: Duration = Duration::from_secs(30);

fn rules() -> Rules {
    Rules::new(vec![Rule::new("per-key", LIMIT, Per::Day)])
}

/// Sends requests of alice to some of the Envoys.
async fn send(envoys: &[Envoy], count: u64) -> Result<Counts> {
    let addresses = envoys.iter().map(Envoy::address);
    let load = Load::new(addresses, vec![Key::named("alice")?], Pace::Count(count));
    let outcome = load.run().await?;
    let total = outcome.total();
    assert_eq!(total.failed + total.timed_out, 0, "{:?}", outcome.failures);
    Ok(total)
}

/// Sends requests to some of the Envoys until one is refused, which cannot be before the silent
/// one's seat has ended. Returns how many were admitted.
async fn send_until_refused(envoys: &[Envoy]) -> Result<u64> {
    let mut admitted = 0;
    poll::until("a refusal", SILENCE_DEADLINE, async || {
        let total = send(envoys, 16).await?;
        admitted += total.admitted;
        Ok((total.refused > 0).then_some(()))
    })
    .await?;
    Ok(admitted)
}

#[test]
fn what_a_crashed_envoy_held_is_undecided_and_then_spent() -> Result<()> {
    in_one_window("crashes-killed", async |scene: &Scene| {
        let mut fleet = Plan::new(rules()).start(scene).await?;
        let mut admitted = send(&fleet.envoys, 60).await?.admitted;
        assert_eq!(admitted, 60);
        fleet.envoys[0].process.kill()?;

        // The others have what is left elsewhere; nobody can know what the dead one did with its
        // own, as long as its seat lives.
        let total = send(&fleet.envoys[1..], LIMIT).await?;
        admitted += total.admitted;
        assert_eq!(total.refused, 0, "{total:?}: nobody can know that yet");
        admitted += send_until_refused(&fleet.envoys[1..]).await?;
        assert!(admitted <= LIMIT, "{admitted} of {LIMIT}");

        // It comes back as another, which holds nothing.
        fleet.envoys[0].restart().await?;
        fleet.ready().await?;
        let total = send(&fleet.envoys, 60).await?;
        assert_eq!(total, decided(0, 60), "after {admitted}");
        assert_eq!(fleet.upstream.count(b"alice"), admitted);
        assert_unharmed(&mut fleet.envoys)
    })
}

#[test]
fn an_envoy_that_was_frozen_for_longer_than_its_seat_lives_spends_nothing_twice() -> Result<()> {
    in_one_window("crashes-frozen", async |scene: &Scene| {
        let mut fleet = Plan::new(rules()).start(scene).await?;
        let mut admitted = send(&fleet.envoys, 60).await?.admitted;
        fleet.envoys[0].process.stop().await?;
        admitted += send_until_refused(&fleet.envoys[1..]).await?;
        fleet.envoys[0].process.resume()?;
        // It still holds a lease that is not its own any more.
        admitted += send(&fleet.envoys[..1], LIMIT).await?.admitted;
        assert!(admitted <= LIMIT, "{admitted} of {LIMIT}");
        fleet.ready().await?;
        assert_eq!(send(&fleet.envoys, 60).await?, decided(0, 60));
        assert_eq!(fleet.upstream.count(b"alice"), admitted);
        assert_unharmed(&mut fleet.envoys)
    })
}

#[test]
fn updates_under_load_change_no_count() -> Result<()> {
    in_one_window("crashes-updates", async |scene: &Scene| {
        let mut plan = Plan::new(rules());
        plan.delivery = Delivery::Live;
        let mut fleet = plan.start(scene).await?;
        // The header of another rule comes and goes; that of alice stays.
        let other = Rule::new("other", 1, Per::Day).header(&"x-other".parse()?);
        let rule = Rule::new("per-key", LIMIT, Per::Day);
        let both = Rules::new(vec![rule, other]);
        let mut load = fleet.load_of("alice", 0)?;
        load.pace = Pace::Rate {
            per_second: 100,
            duration: Duration::from_secs(8),
        };
        let update = async |fleet: &mut Fleet| {
            for rules in [&both, &rules(), &both] {
                for envoy in &mut fleet.envoys {
                    let update = envoy.update(Some(filter(rules)?)).await?;
                    assert_eq!(update, Update::Accepted);
                }
            }
            anyhow::Ok(())
        };
        let (outcome, updated) = tokio::join!(load.run(), update(&mut fleet));
        updated?;
        let outcome = outcome?;
        assert_eq!(
            outcome.total(),
            decided(LIMIT, 800 - LIMIT),
            "{:?}",
            outcome.failures
        );
        assert_unharmed(&mut fleet.envoys)
    })
}

/// What goes wrong, by turns.
async fn trouble(fleet: &mut Fleet, round: usize) -> Result<()> {
    let envoy = round % 3;
    match round % 4 {
        0 => fleet.counter.restart().await,
        1 => {
            fleet.envoys[envoy].process.stop().await?;
            // Pacing: being frozen for a while is the trouble.
            tokio::time::sleep(Duration::from_millis(700)).await;
            fleet.envoys[envoy].process.resume()
        }
        2 => {
            fleet.counter.process.stop().await?;
            // Pacing: as above.
            tokio::time::sleep(Duration::from_millis(700)).await;
            fleet.counter.process.resume()
        }
        _ => fleet.envoys[envoy].restart().await,
    }
}

#[test]
fn no_second_admits_more_than_its_limit_whatever_goes_wrong() -> Result<()> {
    in_one_window("crashes-trouble", async |scene: &Scene| {
        let limit = 60;
        let rules = Rules::new(vec![Rule::new("per-key", limit, Per::Second)]);
        let mut fleet = Plan::new(rules).start(scene).await?;
        let mut load = fleet.load_of("alice", 0)?;
        load.concurrency = 300;
        load.pace = Pace::Rate {
            per_second: 200,
            duration: Duration::from_secs(20),
        };
        let mut times = vec![ServiceTime::read(fleet.counter.address()).await?];
        let work = load.run();
        tokio::pin!(work);
        let mut round = 0;
        let outcome = loop {
            tokio::select! {
                outcome = &mut work => break outcome?,
                done = trouble(&mut fleet, round) => done?,
            }
            round += 1;
            // A service that is not up again yet is read later.
            times.extend(ServiceTime::read(fleet.counter.address()).await);
        };
        let seen = Seen::new(&times, Per::Second, outcome.started, &outcome.records);
        assert!(round > 4, "there were {round} troubles");
        assert_eq!(seen.over(limit), None, "{:?}", seen.windows);
        let full = seen
            .windows
            .values()
            .filter(|window| window.perhaps >= limit);
        assert!(full.count() >= 5, "{:?}", seen.windows);
        Ok(())
    })
}
