//! The filter's configuration as the harness writes it is one that Envoy takes, in each delivery
//! and with each failure policy. The module does nothing, so everything passes.

use std::path::PathBuf;

use anyhow::Result;
use headgate_tests::envoy::{Config, Delivery, Envoy, FailurePolicy, Filter, Update};
use headgate_tests::load::{Key, Load, Pace};
use headgate_tests::scene::{self, Scene};
use headgate_tests::upstream::Upstream;
use hyper::header::HeaderName;
use serde_json::json;

const API_KEY: HeaderName = HeaderName::from_static("x-api-key");

/// Modules that Envoy counts as loaded.
const LOADED: &str = "wasm.envoy.wasm.runtime.v8.created";

/// The smallest module that Envoy takes for a plugin: memory, `malloc` and the ABI's version.
fn module(scene: &Scene) -> Result<PathBuf> {
    let parts: [&[u8]; 9] = [
        b"\0asm\x01\0\0\0",
        // Types: nothing to nothing, i32 to i32; two functions of them; one page of memory.
        b"\x01\x09\x02\x60\0\0\x60\x01\x7f\x01\x7f",
        b"\x03\x03\x02\0\x01",
        b"\x05\x03\x01\0\x01",
        b"\x07\x2d\x03\x06memory\x02\0",
        b"\x17proxy_abi_version_0_2_1\0\0",
        b"\x06malloc\0\x01",
        // Bodies: return; return 1024.
        b"\x0a\x0a\x02\x02\0\x0b",
        b"\x05\0\x41\x80\x08\x0b",
    ];
    let path = scene.folder().join("nothing.wasm");
    std::fs::write(&path, parts.concat())?;
    Ok(path)
}

#[test]
fn every_failure_policy_and_both_deliveries_are_taken() -> Result<()> {
    scene::run("harness-filters", async |scene: &Scene| {
        let upstream = Upstream::start(API_KEY).await?;
        let policies = [
            FailurePolicy::Closed,
            FailurePolicy::Open,
            FailurePolicy::Reload,
        ];
        for (number, policy) in policies.into_iter().enumerate() {
            let mut config = Config::plain(&format!("envoy-{number}"), upstream.address());
            config.delivery = if number == 0 {
                Delivery::Static
            } else {
                Delivery::Live
            };
            config.workers = 2;
            let mut filter = Filter::new(module(scene)?, &json!({"rules": []}));
            filter.failure_policy = policy;
            config.filter = Some(filter);
            let envoy = Envoy::start(scene, config).await?;
            let load = Load::new([envoy.address()], vec![Key::named("a")?], Pace::Count(20));
            let outcome = load.run().await?;
            assert_eq!(
                outcome.total().admitted,
                20,
                "{policy:?}: {:?}",
                outcome.failures
            );
            let loaded = envoy.stats().await?.value(LOADED);
            assert!(
                loaded.is_some_and(|count| count >= 3),
                "{policy:?}: {loaded:?} modules"
            );
        }
        Ok(())
    })
}

#[test]
fn a_filter_comes_and_goes_while_envoy_runs() -> Result<()> {
    scene::run("harness-filter-live", async |scene: &Scene| {
        let upstream = Upstream::start(API_KEY).await?;
        let mut config = Config::plain("envoy", upstream.address());
        config.delivery = Delivery::Live;
        let mut envoy = Envoy::start(scene, config).await?;
        let load = Load::new([envoy.address()], vec![Key::named("a")?], Pace::Count(20));
        assert_eq!(envoy.stats().await?.value(LOADED), None);

        let filter = Filter::new(module(scene)?, &json!({"rules": []}));
        assert_eq!(envoy.update(Some(filter.clone())).await?, Update::Accepted);
        let loaded = envoy.stats().await?.value(LOADED);
        assert!(loaded.is_some_and(|count| count >= 2), "{loaded:?} modules");
        assert_eq!(load.run().await?.total().admitted, 20);

        let other = Filter {
            wasm: scene.folder().join("missing.wasm"),
            ..filter
        };
        assert_eq!(envoy.update(Some(other)).await?, Update::Rejected);
        assert_eq!(
            load.run().await?.total().admitted,
            20,
            "the last good one stays"
        );
        assert_eq!(envoy.update(None).await?, Update::Accepted);
        assert_eq!(load.run().await?.total().admitted, 20);
        Ok(())
    })
}
