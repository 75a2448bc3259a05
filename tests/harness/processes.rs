//! No child outlives its owner, however that one ends.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};
use headgate_tests::poll;
use headgate_tests::process::{Process, Spec};
use headgate_tests::scene::{self, Scene};

const DEADLINE: Duration = Duration::from_secs(10);

/// Tells [`sacrifice`], when this program runs itself, where to write its child's number.
const SACRIFICE: &str = "HEADGATE_TESTS_SACRIFICE";

fn shell(folder: &Path, script: &str) -> Spec {
    Spec {
        name: "child".into(),
        program: PathBuf::from("sh"),
        arguments: vec!["-c".into(), script.into()],
        environment: vec![("WORD".into(), "hello".into())],
        log: folder.join("child.log"),
    }
}

/// Gone, or dead and only waiting for init to notice.
fn is_gone(id: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{id}/stat")).map_or(true, |stat| stat.contains(") Z "))
}

async fn gone(id: u32) -> Result<()> {
    poll::until("the child's end", DEADLINE, async || {
        Ok(is_gone(id).then_some(()))
    })
    .await
}

#[test]
fn output_and_environment_reach_the_log_and_a_failure_shows_it() -> Result<()> {
    scene::run("harness-process-log", async |scene: &Scene| {
        let mut child = Process::start(shell(scene.folder(), "echo $WORD; exit 3"))?;
        let error = poll::until("its end", DEADLINE, async || {
            Ok(child.ensure_running().err())
        })
        .await?
        .to_string();
        assert!(
            error.contains("hello") && error.contains("exit status: 3"),
            "{error}"
        );
        child.restart()?;
        poll::until("the second output", DEADLINE, async || {
            Ok((child.log()? == "hello\nhello\n").then_some(()))
        })
        .await
    })
}

#[test]
fn a_dropped_child_is_gone_even_when_it_is_frozen_or_the_owner_panics() -> Result<()> {
    scene::run("harness-process-drop", async |scene: &Scene| {
        let mut child = Process::start(shell(scene.folder(), "exec sleep 600"))?;
        let id = child.id();
        child.stop().await?;
        assert!(!is_gone(id));
        drop(child);
        gone(id).await?;

        let child = Process::start(shell(scene.folder(), "exec sleep 600"))?;
        let id = child.id();
        let owner = std::thread::spawn(move || {
            let _child = child;
            panic!("on purpose");
        });
        assert!(owner.join().is_err());
        gone(id).await
    })
}

#[test]
fn a_terminated_child_reports_how_it_ended() -> Result<()> {
    scene::run("harness-process-terminate", async |scene: &Scene| {
        let script = "trap 'exit 7' TERM; echo ready; while :; do sleep 0.01; done";
        let mut child = Process::start(shell(scene.folder(), script))?;
        poll::until("its trap", DEADLINE, async || {
            Ok(child.log()?.contains("ready").then_some(()))
        })
        .await?;
        assert_eq!(child.terminate(DEADLINE).await?.code(), Some(7));
        assert!(child.stop().await.is_err(), "it has ended");
        Ok(())
    })
}

/// Not a test by itself: what the next one kills.
#[test]
fn sacrifice() -> Result<()> {
    let Some(folder) = std::env::var_os(SACRIFICE).map(PathBuf::from) else {
        return Ok(());
    };
    let child = Process::start(shell(&folder, "exec sleep 600"))?;
    std::fs::write(folder.join("id.new"), child.id().to_string())?;
    std::fs::rename(folder.join("id.new"), folder.join("id"))?;
    loop {
        std::thread::park();
    }
}

#[test]
fn a_child_is_gone_when_this_program_is_killed() -> Result<()> {
    scene::run("harness-process-killed", async |scene: &Scene| {
        let mut program = Command::new(std::env::current_exe()?)
            .args(["--exact", "processes::sacrifice"])
            .env(SACRIFICE, scene.folder())
            .stdout(Stdio::null())
            .spawn()?;
        let id = poll::until("the child of the program", DEADLINE, async || {
            let Ok(id) = std::fs::read_to_string(scene.folder().join("id")) else {
                return Ok(None);
            };
            id.parse::<u32>().map(Some).context(id)
        })
        .await;
        program.kill()?;
        program.wait()?;
        let id = id?;
        gone(id).await
    })
}
