//! The monotonic clock of this process. Durations and deadlines are measured on it, never on the
//! wall clock.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use headgate_core::units::{LocalTime, ServiceTime};
use tokio::time::Instant;

/// The wall clock, as service time counts: nanoseconds since the Unix epoch, at least 0. Only a
/// start without any better source reads service time from it.
pub fn wall() -> ServiceTime {
    let since_epoch = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    ServiceTime::new(u64::try_from(since_epoch.as_nanos()).unwrap_or(u64::MAX))
}

/// Counts from the moment it was made; copies count the same.
#[derive(Clone, Copy, Debug)]
pub struct Monotonic {
    origin: Instant,
}

impl Monotonic {
    /// Starts at 0.
    pub fn start() -> Self {
        Self {
            origin: Instant::now(),
        }
    }

    /// Now.
    pub fn now(&self) -> LocalTime {
        LocalTime::new(u64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// A moment as the runtime's timers want it; `None` if it is too far away to come.
    pub fn instant(&self, time: LocalTime) -> Option<Instant> {
        self.origin.checked_add(Duration::from_nanos(time.get()))
    }
}
