//! The load's promises: numbers, spread, rate, and an end in every case.

use std::time::Duration;

use anyhow::Result;
use headgate_tests::envoy::{Config, Envoy};
use headgate_tests::load::{Key, Load, Pace};
use headgate_tests::scene::{self, Scene};
use headgate_tests::upstream::Upstream;
use hyper::header::{HeaderName, HeaderValue};

const API_KEY: HeaderName = HeaderName::from_static("x-api-key");

#[test]
fn weights_of_keys_and_targets_are_kept() -> Result<()> {
    scene::run("harness-weights", async |scene: &Scene| {
        let upstream = Upstream::start(API_KEY).await?;
        let one = Envoy::start(scene, Config::plain("one", upstream.address())).await?;
        let two = Envoy::start(scene, Config::plain("two", upstream.address())).await?;
        let mut keys = vec![Key::named("often")?, Key::named("seldom")?];
        keys[0].weight = 3;
        let mut load = Load::new([one.address(), two.address()], keys, Pace::Count(400));
        load.targets[1].weight = 4;
        let outcome = load.run().await?;
        assert_eq!(outcome.key("often")?.admitted, 300);
        assert_eq!(outcome.key("seldom")?.admitted, 100);
        assert!(outcome.key("never").is_err());
        let at = |target| outcome.count(|record| record.target == target).admitted;
        assert_eq!((at(0), at(1)), (80, 320));
        // Every key meets every target.
        let both = outcome
            .count(|record| record.target == 0 && record.key == 1)
            .admitted;
        assert_eq!(both, 20);
        Ok(())
    })
}

#[test]
fn a_rate_is_kept() -> Result<()> {
    scene::run("harness-rate", async |_: &Scene| {
        let upstream = Upstream::start(API_KEY).await?;
        let duration = Duration::from_secs(1);
        let pace = Pace::Rate {
            per_second: 500,
            duration,
        };
        let load = Load::new([upstream.address()], vec![Key::named("a")?], pace);
        let outcome = load.run().await?;
        assert_eq!(outcome.total().admitted, 500, "{:?}", outcome.failures);
        // The last one is due 2 ms before the end; nothing can be sent before its time.
        assert!(
            outcome.elapsed >= duration - Duration::from_millis(2),
            "{:?}",
            outcome.elapsed
        );
        let early = outcome.count(|record| record.sent < Duration::from_millis(500));
        assert!(early.offered <= 251, "{early:?} in the first half");
        Ok(())
    })
}

#[test]
fn odd_values_reach_the_upstream_as_they_are() -> Result<()> {
    scene::run("harness-odd-values", async |scene: &Scene| {
        let upstream = Upstream::start(API_KEY).await?;
        let envoy = Envoy::start(scene, Config::plain("envoy", upstream.address())).await?;
        let long = "x".repeat(60 * 1024);
        let values = [&b"\xff\xfe"[..], b"", long.as_bytes()];
        for value in values {
            let key = Key {
                name: "odd".into(),
                value: Some(HeaderValue::from_bytes(value)?),
                weight: 1,
            };
            let outcome = Load::new([envoy.address()], vec![key], Pace::Count(1))
                .run()
                .await?;
            assert_eq!(outcome.total().admitted, 1, "{:?}", outcome.failures);
            assert_eq!(upstream.count(value), 1);
        }
        Ok(())
    })
}

#[test]
fn an_empty_load_is_an_error() -> Result<()> {
    scene::run("harness-empty-load", async |_: &Scene| {
        let load = Load::new([], vec![Key::named("a")?], Pace::Count(1));
        assert!(load.run().await.is_err());
        Ok(())
    })
}
