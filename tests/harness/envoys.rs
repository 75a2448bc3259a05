//! Starting, changing, crashing and reading real Envoys.

use std::time::Duration;

use anyhow::{Context, Result};
use headgate_tests::envoy::{Config, Delivery, Envoy, Filter, Stats, Update};
use headgate_tests::load::{Class, Client, Key, Load, Pace, Request};
use headgate_tests::scene::{self, Scene};
use headgate_tests::upstream::Upstream;
use hyper::Method;
use hyper::header::HeaderName;
use serde_json::json;

const API_KEY: HeaderName = HeaderName::from_static("x-api-key");

#[test]
fn three_envoys_with_two_workers_pass_everything_on() -> Result<()> {
    scene::run("harness-three-envoys", async |scene: &Scene| {
        let upstream = Upstream::start(API_KEY).await?;
        let mut envoys = Vec::new();
        for number in 1..=3 {
            let mut config = Config::plain(&format!("envoy-{number}"), upstream.address());
            config.workers = 2;
            envoys.push(Envoy::start(scene, config).await?);
        }
        let keys = vec![Key::named("a")?, Key::named("b")?];
        let load = Load::new(envoys.iter().map(Envoy::address), keys, Pace::Count(600));
        let outcome = load.run().await?;
        assert_eq!(outcome.total().admitted, 600, "{:?}", outcome.failures);
        for envoy in &envoys {
            let stats = envoy.stats().await?;
            assert_eq!(stats.value("http.ingress.downstream_rq_2xx"), Some(200));
            assert_eq!(stats.value("server.concurrency"), Some(2));
        }
        assert_eq!(upstream.count(b"a"), 300);
        assert_eq!(upstream.count(b"b"), 300);
        assert_eq!(upstream.total(), 600);
        Ok(())
    })
}

#[test]
fn both_workers_get_connections() -> Result<()> {
    scene::run("harness-workers", async |scene: &Scene| {
        let upstream = Upstream::start(API_KEY).await?;
        let mut config = Config::plain("envoy", upstream.address());
        config.workers = 2;
        let envoy = Envoy::start(scene, config).await?;
        // Four keep-alive connections, balanced exactly.
        let mut load = Load::new([envoy.address()], vec![Key::named("a")?], Pace::Count(200));
        load.concurrency = 4;
        assert_eq!(load.run().await?.total().admitted, 200);
        let stats = envoy.stats().await?;
        let prefix = format!("listener.127.0.0.1_{}", envoy.address().port());
        for worker in 0..2 {
            let name = format!("{prefix}.worker_{worker}.downstream_cx_total");
            let connections = stats.value(&name).context(name)?;
            assert!(connections >= 2, "worker {worker} had {connections}");
        }
        Ok(())
    })
}

#[test]
fn a_killed_envoy_fails_requests_and_serves_again_on_its_port() -> Result<()> {
    scene::run("harness-restart", async |scene: &Scene| {
        let upstream = Upstream::start(API_KEY).await?;
        let mut envoy = Envoy::start(scene, Config::plain("envoy", upstream.address())).await?;
        let address = envoy.address();
        let load = Load::new([address], vec![Key::named("a")?], Pace::Count(20));
        assert_eq!(load.run().await?.total().admitted, 20);
        envoy.process.kill()?;
        let outcome = load.run().await?;
        assert_eq!(outcome.total().failed, 20);
        assert_eq!(outcome.failures.values().sum::<u64>(), 20);
        envoy.restart().await?;
        assert_eq!(envoy.address(), address);
        assert_eq!(load.run().await?.total().admitted, 20);
        let status = envoy.terminate().await?;
        assert!(status.success(), "{status}");
        Ok(())
    })
}

#[test]
fn a_frozen_envoy_times_requests_out_and_goes_on() -> Result<()> {
    scene::run("harness-freeze", async |scene: &Scene| {
        let upstream = Upstream::start(API_KEY).await?;
        let mut envoy = Envoy::start(scene, Config::plain("envoy", upstream.address())).await?;
        let mut load = Load::new([envoy.address()], vec![Key::named("a")?], Pace::Count(4));
        load.deadline = Duration::from_millis(100);
        load.concurrency = 4;
        envoy.process.stop().await?;
        assert_eq!(load.run().await?.total().timed_out, 4);
        envoy.process.resume()?;
        load.deadline = Duration::from_secs(5);
        assert_eq!(load.run().await?.total().admitted, 4);
        Ok(())
    })
}

#[test]
fn a_live_listener_can_be_replaced_and_a_wrong_one_is_rejected() -> Result<()> {
    scene::run("harness-live", async |scene: &Scene| {
        let upstream = Upstream::start(API_KEY).await?;
        let mut config = Config::plain("envoy", upstream.address());
        config.delivery = Delivery::Live;
        let mut envoy = Envoy::start(scene, config).await?;
        let load = Load::new([envoy.address()], vec![Key::named("a")?], Pace::Count(10));
        assert_eq!(load.run().await?.total().admitted, 10);

        let missing = Filter::new(scene.folder().join("missing.wasm"), &json!({}));
        assert_eq!(envoy.update(Some(missing)).await?, Update::Rejected);
        let log = envoy.process.log()?;
        assert!(log.contains("missing.wasm"), "{log}");
        assert_eq!(
            load.run().await?.total().admitted,
            10,
            "the last good one stays"
        );

        assert_eq!(envoy.update(None).await?, Update::Accepted);
        assert_eq!(load.run().await?.total().admitted, 10);
        Ok(())
    })
}

#[test]
fn a_wrong_first_configuration_names_the_reason() -> Result<()> {
    scene::run("harness-wrong-start", async |scene: &Scene| {
        let upstream = Upstream::start(API_KEY).await?;
        let mut config = Config::plain("envoy", upstream.address());
        config.filter = Some(Filter::new(scene.folder().join("missing.wasm"), &json!({})));
        let error = Envoy::start(scene, config)
            .await
            .expect_err("no such module");
        assert!(format!("{error:#}").contains("missing.wasm"), "{error:#}");
        Ok(())
    })
}

#[test]
fn the_admin_interface_can_be_told_to_drain() -> Result<()> {
    scene::run("harness-drain", async |scene: &Scene| {
        let upstream = Upstream::start(API_KEY).await?;
        let envoy = Envoy::start(scene, Config::plain("envoy", upstream.address())).await?;
        let (status, _) = envoy.admin(Method::POST, "/healthcheck/fail").await?;
        assert!(status.is_success(), "{status}");
        let drained = "its health check to fail";
        let deadline = Duration::from_secs(5);
        envoy
            .stats_until(drained, deadline, |stats| {
                stats.value("server.live") == Some(0)
            })
            .await?;
        Ok(())
    })
}

#[test]
fn values_are_those_of_now_and_histograms_follow() -> Result<()> {
    scene::run("harness-stats", async |scene: &Scene| {
        let upstream = Upstream::start(API_KEY).await?;
        let envoy = Envoy::start(scene, Config::plain("envoy", upstream.address())).await?;
        let client = Client::new();
        let request = Request {
            address: envoy.address(),
            path: "/any?thing",
            header: None,
            deadline: Duration::from_secs(5),
        };
        let reply = client.send(request).await;
        assert_eq!(reply.class, Class::Admitted, "{:?}", reply.failure);
        assert_eq!(reply.body, "hello\n");
        assert_eq!(upstream.count(b""), 1);
        let stats = envoy.stats().await?;
        assert!(
            stats.plugin("headgate_admitted_total").is_err(),
            "there is no plugin"
        );
        assert_eq!(stats.value("http.ingress.downstream_rq_2xx"), Some(1));
        let median = |stats: &Stats| stats.quantile("http.ingress.downstream_rq_time", "50");
        let deadline = Duration::from_secs(5);
        envoy
            .stats_until("a median", deadline, |stats| median(stats).is_some())
            .await?;
        Ok(())
    })
}
