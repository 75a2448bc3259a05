//! The service's data folder: not writable, of a newer version, cut off, damaged.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use headgate_tests::counter::{Counter, Options};
use headgate_tests::fleet::Plan;
use headgate_tests::rules::{Per, Rule, Rules};
use headgate_tests::scene::{self, Scene};

use crate::{decided, in_one_window};

/// Starts a service that has to give up, and gives back why it did.
async fn refused(scene: &Scene, name: &str, data: &Path) -> Result<String> {
    let mut options = Options::named(name);
    options.data = Some(data.to_owned());
    let (code, sentence) = Counter::spawn(scene, options)?.failure().await?;
    assert_eq!(code, Some(1), "{sentence}");
    Ok(sentence)
}

/// The last of the files that the service writes its records to.
fn last_log(data: &Path) -> Result<PathBuf> {
    let mut logs = Vec::new();
    for entry in std::fs::read_dir(data)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "log") {
            logs.push(path);
        }
    }
    logs.sort();
    logs.pop().context("the folder has no log")
}

#[test]
fn one_that_cannot_be_written_is_named() -> Result<()> {
    scene::run("folders-unwritable", async |scene: &Scene| {
        // Nobody can make a folder here, not even the superuser.
        let data = Path::new("/proc/headgate");
        let sentence = refused(scene, "counter", data).await?;
        assert!(sentence.contains("/proc/headgate"), "{sentence}");
        Ok(())
    })
}

#[test]
fn one_of_a_newer_version_is_left_alone() -> Result<()> {
    scene::run("folders-newer", async |scene: &Scene| {
        let mut counter = Counter::start(scene, Options::named("counter")).await?;
        counter.terminate().await?;
        let format = counter.data().join("format");
        std::fs::write(&format, "headgate store 2\n")?;
        let sentence = refused(scene, "again", counter.data()).await?;
        assert!(sentence.contains("format 2"), "{sentence}");
        assert_eq!(std::fs::read_to_string(format)?, "headgate store 2\n");
        Ok(())
    })
}

#[test]
fn damage_before_the_last_record_is_refused() -> Result<()> {
    scene::run("folders-damaged", async |scene: &Scene| {
        let mut counter = Counter::start(scene, Options::named("counter")).await?;
        counter.terminate().await?;
        // A second start writes behind what is damaged now.
        counter.restart().await?;
        counter.terminate().await?;
        let log = last_log(counter.data())?;
        let mut bytes = std::fs::read(&log)?;
        bytes[26] ^= 1;
        std::fs::write(&log, bytes)?;
        let sentence = refused(scene, "again", counter.data()).await?;
        assert!(sentence.contains("damaged"), "{sentence}");
        Ok(())
    })
}

/// Spends a part, kills the service, and changes the end of its last file.
async fn spent_and_killed(
    scene: &Scene,
    limit: u64,
    change: impl FnOnce(Vec<u8>) -> Vec<u8>,
) -> Result<headgate_tests::fleet::Fleet> {
    let rules = Rules::new(vec![Rule::new("per-key", limit, Per::Day)]);
    let mut fleet = Plan::new(rules).start(scene).await?;
    let outcome = fleet.load_of("alice", limit / 2)?.run().await?;
    assert_eq!(outcome.total(), decided(limit / 2, 0));
    fleet.counter.process.kill()?;
    let log = last_log(fleet.counter.data())?;
    std::fs::write(&log, change(std::fs::read(&log)?))?;
    fleet.counter.restart().await?;
    Ok(fleet)
}

#[test]
fn a_write_that_a_crash_cut_off_is_dropped_and_reported() -> Result<()> {
    in_one_window("folders-torn", async |scene: &Scene| {
        let limit = 60;
        let torn = |mut bytes: Vec<u8>| {
            bytes.extend([1, 2, 3]);
            bytes
        };
        let mut fleet = spent_and_killed(scene, limit, torn).await?;
        let dropped = "headgate_store_dropped_bytes_total";
        assert_eq!(fleet.counter.metric(dropped).await?, 3);
        assert!(fleet.counter.process.log()?.contains("dropped_bytes=3"));
        // Nobody was told of that write, so nothing is missing.
        fleet.ready().await?;
        let outcome = fleet.load_of("alice", limit)?.run().await?;
        assert_eq!(outcome.total(), decided(limit / 2, limit / 2));
        Ok(())
    })
}

#[test]
fn a_last_record_that_is_cut_is_dropped_and_the_rest_recovered() -> Result<()> {
    in_one_window("folders-cut", async |scene: &Scene| {
        let cut = |mut bytes: Vec<u8>| {
            bytes.truncate(bytes.len() - 1);
            bytes
        };
        let mut fleet = spent_and_killed(scene, 60, cut).await?;
        let dropped = "headgate_store_dropped_bytes_total";
        assert!(fleet.counter.metric(dropped).await? > 0);
        fleet.ready().await?;
        let outcome = fleet.load_of("bob", 90)?.run().await?;
        assert_eq!(outcome.total(), decided(60, 30));
        Ok(())
    })
}
