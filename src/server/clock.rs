//! The clocks of this process and its machine. Durations and deadlines are measured on the
//! monotonic one, never on the wall clock.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use headgate_core::{
    owner::clock::Boot,
    units::{LocalTime, ServiceTime, Span},
};
use rustix::time::{ClockId, clock_gettime};
use tokio::time::Instant;

/// The wall clock, as service time counts: nanoseconds since the Unix epoch, at least 0. Only a
/// start without any better source reads service time from it.
pub fn wall() -> ServiceTime {
    let since_epoch = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    ServiceTime::new(u64::try_from(since_epoch.as_nanos()).unwrap_or(u64::MAX))
}

/// Where Linux says which boot this is: a random identity in hexadecimal digits and dashes.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// The machine's clock since it was booted; it goes on while the machine sleeps.
#[derive(Clone, Copy, Debug)]
pub struct SinceBoot {
    /// `None` where the system does not say which boot this is.
    id: Option<u128>,
}

impl SinceBoot {
    /// Finds out which boot this is. Without it a restart is treated as one on another machine.
    pub fn find() -> Self {
        let id = std::fs::read_to_string(BOOT_ID)
            .map_err(|error| error.to_string())
            .and_then(|text| {
                let digits: String = text.trim().chars().filter(|sign| *sign != '-').collect();
                u128::from_str_radix(&digits, 16).map_err(|error| error.to_string())
            });
        if let Err(error) = &id {
            tracing::info!(
                file = BOOT_ID,
                %error,
                "cannot tell one boot from another; after a restart service time comes from a \
                 replica"
            );
        }
        Self { id: id.ok() }
    }

    /// Now.
    pub fn now(self) -> Option<Boot> {
        let id = self.id?;
        let time = clock_gettime(ClockId::Boottime);
        let seconds = u64::try_from(time.tv_sec).ok()?;
        let rest = u64::try_from(time.tv_nsec).ok()?;
        let since = Span::new(seconds.checked_mul(1_000_000_000)?.checked_add(rest)?);
        Some(Boot { id, since })
    }
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
