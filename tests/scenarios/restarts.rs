//! The counter service ends in the middle of a window and comes back: no token twice, and every
//! token still there.

use anyhow::Result;
use headgate_tests::counter::Counter;
use headgate_tests::fleet::Plan;
use headgate_tests::rules::{Per, Rule, Rules};
use headgate_tests::scene::Scene;

use crate::{assert_unharmed, decided, in_one_window};

const LIMIT: u64 = 300;

/// Spends a third, has `end` end the service while leases are out, and spends the rest after it has
/// come back. With nothing under way at the end, no rule of the protocol spends a token.
fn restarted(name: &str, end: impl AsyncFnOnce(&mut Counter) -> Result<()>) -> Result<()> {
    in_one_window(name, async |scene: &Scene| {
        let rules = Rules::new(vec![Rule::new("per-key", LIMIT, Per::Day)]);
        let mut fleet = Plan::new(rules).start(scene).await?;
        let third = fleet.load_of("alice", LIMIT / 3)?;
        let outcome = third.run().await?;
        assert_eq!(
            outcome.total(),
            decided(LIMIT / 3, 0),
            "{:?}",
            outcome.failures
        );

        end(&mut fleet.counter).await?;
        fleet.counter.restart().await?;
        fleet.ready().await?;

        let rest = fleet.load_of("alice", LIMIT)?.run().await?;
        let right = decided(LIMIT - LIMIT / 3, LIMIT / 3);
        assert_eq!(rest.total(), right, "{:?}", rest.failures);
        assert_eq!(fleet.upstream.count(b"alice"), LIMIT);
        assert_unharmed(&mut fleet.envoys)
    })
}

#[test]
fn stopped_cleanly() -> Result<()> {
    restarted("restarts-clean", async |counter: &mut Counter| {
        let status = counter.terminate().await?;
        assert!(status.success(), "{status}");
        Ok(())
    })
}

#[test]
fn killed() -> Result<()> {
    restarted("restarts-killed", async |counter: &mut Counter| {
        counter.process.kill()
    })
}

#[test]
fn killed_under_load_again_and_again() -> Result<()> {
    in_one_window("restarts-under-load", async |scene: &Scene| {
        let rules = Rules::new(vec![Rule::new("per-key", LIMIT, Per::Day)]);
        let mut fleet = Plan::new(rules).start(scene).await?;
        let load = fleet.load_of("alice", LIMIT / 3)?;
        let (mut admitted, mut open) = (0, 0);
        for _ in 0..3 {
            let (outcome, restarted) = tokio::join!(load.run(), fleet.counter.restart());
            restarted?;
            let total = outcome?.total();
            assert_eq!(total.failed + total.timed_out, 0, "{total:?}");
            admitted += total.admitted;
            // Whoever was undecided may have been charged before the end.
            open += total.undecided;
        }
        fleet.ready().await?;
        let rest = fleet.load_of("alice", LIMIT)?.run().await?;
        let total = rest.total();
        assert_eq!(total.undecided, 0, "{total:?}");
        admitted += total.admitted;
        assert!(admitted <= LIMIT, "{admitted} of {LIMIT}");
        assert!(admitted + open >= LIMIT, "{admitted} and {open} of {LIMIT}");
        assert_eq!(fleet.upstream.count(b"alice"), admitted);
        assert_unharmed(&mut fleet.envoys)
    })
}
