//! The README's configuration, in a real Envoy.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use headgate_tests::counter::{Counter, Options};
use headgate_tests::load::{Key, Load, Pace};
use headgate_tests::ports::Reservation;
use headgate_tests::process::{Process, Spec};
use headgate_tests::rules::Per;
use headgate_tests::scene::{self, Scene, artefact};
use headgate_tests::upstream::Upstream;
use headgate_tests::{envoy, poll, windows};
use hyper::header::HeaderName;
use tokio::net::TcpStream;

use crate::decided;

/// What the README says, which is checked here.
const LIMIT: u64 = 100;

/// The only block of YAML in the README.
fn configuration() -> Result<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../README.md");
    let text = std::fs::read_to_string(&path)?;
    let mut blocks = text.split("```yaml\n").skip(1);
    let block = blocks.next().context("the README has no block of YAML")?;
    assert!(blocks.next().is_none(), "which one is meant?");
    let (block, _) = block.split_once("```").context("a block without an end")?;
    Ok(block.to_owned())
}

/// Puts a value of this machine in the place of one of the README's.
fn replace(text: &str, from: &str, to: &str) -> String {
    assert_eq!(text.matches(from).count(), 1, "{from}");
    text.replace(from, to)
}

#[test]
fn its_envoy_limits_as_it_says() -> Result<()> {
    scene::run("readme", async |scene: &Scene| {
        windows::make_room(Per::Minute, Duration::from_secs(25)).await?;
        let upstream = Upstream::start(HeaderName::from_static("x-api-key")).await?;
        let counter = Counter::start(scene, Options::named("counter")).await?;
        let port = Reservation::new()?;
        let mut text = configuration()?;
        for (from, to) in [
            (9901, 0),
            (10000, port.address().port()),
            (8080, upstream.address().port()),
            (8081, counter.address().port()),
        ] {
            text = replace(
                &text,
                &format!("port_value: {from}}}"),
                &format!("port_value: {to}}}"),
            );
        }
        let wasm = artefact("HEADGATE_WASM", "headgate.wasm")?;
        text = replace(&text, "target/headgate.wasm", &wasm.display().to_string());
        let file = scene.folder().join("envoy.yaml");
        std::fs::write(&file, text)?;

        let mut process = Process::start(Spec {
            name: "envoy".to_owned(),
            program: envoy::program()?,
            arguments: [
                "--config-path",
                &file.display().to_string(),
                "--disable-hot-restart",
            ]
            .map(str::to_owned)
            .to_vec(),
            environment: Vec::new(),
            log: scene.folder().join("envoy.log"),
        })?;
        poll::until("Envoy", Duration::from_secs(30), async || {
            process.ensure_running()?;
            Ok(TcpStream::connect(port.address())
                .await
                .is_ok()
                .then_some(()))
        })
        .await?;
        let load = |key, count| {
            let key = Key::named(key)?;
            anyhow::Ok(Load::new([port.address()], vec![key], Pace::Count(count)))
        };
        poll::until("a first decision", Duration::from_secs(10), async || {
            let total = load("probe", 1)?.run().await?.total();
            Ok((total == decided(1, 0)).then_some(()))
        })
        .await?;
        let outcome = load("alice", LIMIT + 20)?.run().await?;
        assert_eq!(
            outcome.total(),
            decided(LIMIT, 20),
            "{:?}",
            outcome.failures
        );
        Ok(())
    })
}
