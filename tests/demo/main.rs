//! The main job, for people: real Envoys with the plugin, one counter service, real traffic, and
//! exactly the limit admitted over all of them. `./build.sh demo --help` lists the flags.

mod decimal;
mod flags;
mod report;
mod run;
mod table;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, ensure};
use clap::Parser;
use headgate_tests::scene::{self, Scene};
use headgate_tests::{rules::Per, windows};
use tokio::signal::unix::{SignalKind, signal};

use flags::Flags;

/// Time beyond the load for everything to start on a busy machine.
const START: Duration = Duration::from_secs(90);

/// What a shell reports of a program that SIGINT has ended.
const INTERRUPTED: u8 = 130;

fn main() -> ExitCode {
    let flags = Flags::parse();
    let mut interrupted = false;
    let outcome = run_all(&flags, &mut interrupted);
    match outcome {
        Ok(()) if interrupted => ExitCode::from(INTERRUPTED),
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("demo: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run_all(flags: &Flags, interrupted: &mut bool) -> Result<()> {
    let length = flags.duration + START;
    // The limits are per day, so that the run is inside of one window; a run over midnight would
    // rightly get two limits.
    let wait = windows::until_room(Per::Day, length)?;
    if !wait.is_zero() {
        println!(
            "waiting {} s, because the window ends at midnight UTC",
            wait.as_secs()
        );
    }
    scene::run_within(wait + length, "demo", async |scene: &Scene| {
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        // Whatever has been started ends with the future that owns it. A terminal tells the Envoys
        // as well, so that what they answer next is not to be looked at.
        tokio::select! {
            biased;
            _ = interrupt.recv() => *interrupted = true,
            _ = terminate.recv() => *interrupted = true,
            outcome = show(scene, flags) => outcome?,
        }
        Ok(())
    })
}

/// Runs it and shows what came of it.
async fn show(scene: &Scene, flags: &Flags) -> Result<()> {
    windows::make_room(Per::Day, flags.duration + START).await?;
    let results = run::run(scene, flags).await?;
    let report = report::Report::new(flags, &results)?;
    println!("\n{}", table::table(&results));
    let path = report.write()?;
    println!("report: {}", path.display());
    let wrong: Vec<String> = results.iter().flat_map(run::KeyResult::wrong).collect();
    ensure!(wrong.is_empty(), "{}", wrong.join("; "));
    println!(
        "Exactly as many requests as each limit allows were admitted, counted over all Envoys."
    );
    Ok(())
}
