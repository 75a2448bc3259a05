//! The monotonic clock of this process. Durations and deadlines are measured on it, never on the
//! wall clock.

use std::time::Duration;

use headgate_core::units::LocalTime;
use tokio::time::Instant;

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
