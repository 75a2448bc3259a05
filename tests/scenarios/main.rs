//! The plugin and the counter service in real Envoys. `./build.sh test` builds both first.
//!
//! Where exact numbers are asserted, requests may wait for [`headgate_tests::rules::PATIENT`] and
//! recalls for [`headgate_tests::counter::PATIENT`], far longer than in a cluster: on a busy
//! machine a thread that does not get its turn makes "undecided" the right answer, and a count
//! could not tell that from a token that was lost.

#![allow(clippy::indexing_slicing, reason = "a test that panics fails")]

mod changes;
mod clocks;
mod configuration;
mod counters;
mod crashes;
mod exact;
mod five;
mod folders;
mod headers;
mod outages;
mod readme;
mod replies;
mod restarts;
mod size;
mod windows;

use std::time::Duration;

use anyhow::Result;
use headgate_tests::envoy::Envoy;
use headgate_tests::load::{Counts, Outcome};
use headgate_tests::rules::Per;
use headgate_tests::scene::{self, Scene};

/// What a request may take beyond the time that the rules give it: the two ticks after which the
/// plugin ends a wait that it has lost, and a thread's turn on a busy machine.
const SLACK: Duration = Duration::from_secs(1);

/// Runs a scene in which windows of a day have no end.
fn in_one_window(name: &str, body: impl AsyncFnOnce(&Scene) -> Result<()>) -> Result<()> {
    let wait = headgate_tests::windows::until_room(Per::Day, scene::DEADLINE)?;
    // Pacing: nothing depends on this but which window the scene is in.
    std::thread::sleep(wait);
    scene::run(name, body)
}

/// So many were offered, and each was admitted or refused.
fn decided(admitted: u64, refused: u64) -> Counts {
    Counts {
        offered: admitted + refused,
        admitted,
        refused,
        ..Counts::default()
    }
}

/// So many were offered, and nobody could know.
fn undecided(offered: u64) -> Counts {
    Counts {
        offered,
        undecided: offered,
        ..Counts::default()
    }
}

/// The longest that a request took.
fn longest(outcome: &Outcome) -> Duration {
    outcome.latency(|_| true).permille(1000)
}

/// No instance of the plugin has crashed in any of them.
fn assert_unharmed(envoys: &mut [Envoy]) -> Result<()> {
    for envoy in envoys {
        envoy.process.ensure_running()?;
        let log = envoy.process.log()?;
        for sign in ["panicked", "in-VM backtrace", "Proxy-Wasm plugin in-VM"] {
            assert!(!log.contains(sign), "{}: {log}", envoy.name());
        }
    }
    Ok(())
}
