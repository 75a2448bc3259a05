//! Waiting for something to become true, with a deadline and without guessing how long it takes.

use std::time::Duration;

use anyhow::{Result, bail};
use tokio::time::Instant;

/// Time between two looks: short against everything that is waited for, long against a look.
const INTERVAL: Duration = Duration::from_millis(5);

/// Looks until `probe` answers `Some`, and gives that back.
///
/// # Errors
/// The probe's own error ends the waiting. After `deadline`, an error that names `what`.
pub async fn until<T>(
    what: &str,
    deadline: Duration,
    mut probe: impl AsyncFnMut() -> Result<Option<T>>,
) -> Result<T> {
    let end = Instant::now() + deadline;
    loop {
        // A look that hangs must not outlive the deadline either.
        match tokio::time::timeout_at(end, probe()).await {
            Ok(Ok(Some(value))) => return Ok(value),
            Ok(Ok(None)) if Instant::now() < end => {}
            Ok(Err(error)) => return Err(error.context(format!("while waiting for {what}"))),
            Ok(Ok(None)) | Err(_) => bail!("{what}: not within {deadline:?}"),
        }
        // Pacing: only the time between looks; what counts is the probe.
        tokio::time::sleep(INTERVAL).await;
    }
}
