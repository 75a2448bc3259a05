//! A leadership as its holder knows it: the epoch, and until when nobody else can lead.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use headgate_core::units::Epoch;
use tokio::time::{Instant, sleep};

use crate::store::{Candidate, Election, Leadership, Store, StoreError};

/// A lease is renewed this often within its length, so that two renewals may fail.
const RENEWALS_A_LEASE: u32 = 3;

/// Shortest wait before another attempt to lead, whatever the store says.
const ELECTION_PAUSE: Duration = Duration::from_millis(50);

/// While attempts fail the wait doubles up to this: a store that is back is noticed soon, and one
/// that stays away does not flood the log.
const ELECTION_PAUSE_MAX: Duration = Duration::from_secs(1);

/// A leadership; clones see each other's renewals.
#[derive(Clone, Debug)]
pub struct Tenure {
    leadership: Leadership,
    /// On this process's clock; `None` while the process holds the store.
    until: Arc<Mutex<Option<Instant>>>,
}

/// Tries until the candidate leads. A failure that may pass is logged and tried again.
pub async fn elect(store: &impl Store, candidate: &Candidate) -> Result<Tenure, StoreError> {
    let mut failed_pause = ELECTION_PAUSE;
    loop {
        let asked = Instant::now();
        let pause = match store.lead(candidate).await {
            Ok(Election::Won(leadership)) => return Ok(Tenure::new(leadership, asked)),
            Ok(Election::Lost {
                leader,
                retry_after,
            }) => {
                tracing::debug!(%leader, ?retry_after, "another service leads");
                failed_pause = ELECTION_PAUSE;
                retry_after.max(ELECTION_PAUSE)
            }
            Err(error @ StoreError::Damaged(_)) => return Err(error),
            Err(error) => {
                let pause = failed_pause;
                tracing::warn!(%error, retry_after = ?pause, "could not try to lead");
                failed_pause = pause.saturating_mul(2).min(ELECTION_PAUSE_MAX);
                pause
            }
        };
        sleep(pause).await;
    }
}

impl Tenure {
    /// A leadership that was asked for at `asked`, from where its lease counts.
    pub fn new(leadership: Leadership, asked: Instant) -> Self {
        let until = leadership.lease.and_then(|lease| asked.checked_add(lease));
        Self {
            leadership,
            until: Arc::new(Mutex::new(until)),
        }
    }

    /// Goes with every append.
    pub fn epoch(&self) -> Epoch {
        self.leadership.epoch
    }

    /// Nobody else can lead now.
    pub fn is_running(&self) -> bool {
        let until = *self.until.lock().unwrap_or_else(PoisonError::into_inner);
        until.is_none_or(|until| Instant::now() < until)
    }

    /// Renews the lease for as long as that works; ends when another leads.
    pub(super) async fn keep(self, store: Arc<impl Store>) -> StoreError {
        let Some(lease) = self.leadership.lease else {
            return std::future::pending().await;
        };
        loop {
            sleep(lease.checked_div(RENEWALS_A_LEASE).unwrap_or(lease)).await;
            let asked = Instant::now();
            match store.renew(self.epoch()).await {
                Ok(renewed) => {
                    let until = renewed.lease.and_then(|lease| asked.checked_add(lease));
                    *self.until.lock().unwrap_or_else(PoisonError::into_inner) = until;
                }
                Err(error @ (StoreError::Fenced { .. } | StoreError::Damaged(_))) => return error,
                Err(error) => tracing::warn!(%error, "could not renew the leadership lease"),
            }
        }
    }
}
