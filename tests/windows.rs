//! Windows: keeping away from their ends, and counting by them.
//!
//! A window belongs to the counter service: its ends are multiples of its length in service time,
//! which is not the wall clock. So [`ServiceTime`] is read from the service, and a request, which
//! was decided at some instant between its sending and its answer, counts for a window only where
//! that whole interval lies inside, and may count for it where any part of it does.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, ensure};
use headgate_core::wire::{Sender, WatchRequest, WatchResponse};
use prost::Message;
use tokio::time::Instant;

use crate::grpc;
use crate::load::{Class, Record};
use crate::rules::Per;

/// How far service time may be from the wall clock: it can be ahead by the second up to which it
/// is promised in the store, and as far behind.
const SLACK: Duration = Duration::from_secs(3);

/// How long the service may take to say what time it is.
const DEADLINE: Duration = Duration::from_secs(5);

/// Waits until a run of this length sees one window only.
///
/// # Errors
/// When no window is long enough.
pub async fn make_room(per: Per, length: Duration) -> Result<()> {
    // Pacing: nothing depends on this but which window the run begins in.
    tokio::time::sleep(until_room(per, length)?).await;
    Ok(())
}

/// How long to wait until a run of this length sees one window only; mostly not at all.
///
/// # Errors
/// When no window is long enough.
pub fn until_room(per: Per, length: Duration) -> Result<Duration> {
    let wanted = length + SLACK + SLACK;
    ensure!(
        wanted < per.length(),
        "a run of {length:?} does not fit into a window of {:?}",
        per.length()
    );
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?;
    let into = remainder(now, per.length());
    let left = per.length().saturating_sub(into);
    Ok(if into < SLACK {
        SLACK.saturating_sub(into)
    } else if left < wanted - SLACK {
        left + SLACK
    } else {
        Duration::ZERO
    })
}

/// How long to wait until the next window has begun for sure.
///
/// # Errors
/// When the machine's clock is before 1970.
pub fn until_next(per: Per) -> Result<Duration> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?;
    Ok(per.length().saturating_sub(remainder(now, per.length())) + SLACK)
}

fn remainder(time: Duration, length: Duration) -> Duration {
    let nanos = time.as_nanos().checked_rem(length.as_nanos()).unwrap_or(0);
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

/// What a service says of the time, and when it said so.
#[derive(Clone, Copy, Debug)]
pub struct ServiceTime {
    /// It was this time (since the Unix epoch) ...
    said: Duration,
    /// ... at some instant from here ...
    sent: Instant,
    /// ... to here.
    answered: Instant,
}

impl ServiceTime {
    /// Asks a service, by a poll of a replica that it does not know.
    ///
    /// # Errors
    /// When it does not answer, or does not know the time yet.
    pub async fn read(service: SocketAddr) -> Result<Self> {
        let request = WatchRequest {
            sender: Some(Sender {
                replica_id: vec![0x5a; 16],
                ..Sender::default()
            }),
        };
        let sent = Instant::now();
        let answer = grpc::call(service, "Watch", &request.encode_to_vec(), DEADLINE).await?;
        let answered = Instant::now();
        ensure!(
            answer.status() == Some("0"),
            "Watch ended with status {:?}",
            answer.metadata
        );
        let stamps = WatchResponse::decode(answer.message())?.stamps;
        let said = stamps.context("no stamps in the answer")?.sent_service_ns;
        ensure!(said > 0, "the service does not know the time yet");
        Ok(Self {
            said: Duration::from_nanos(said),
            sent,
            answered,
        })
    }

    /// Service time is at least and at most this at an instant before or after it was read.
    fn at(&self, instant: Instant) -> (Duration, Duration) {
        let moved = |read: Instant| {
            let after = instant.saturating_duration_since(read);
            let before = read.saturating_duration_since(instant);
            (self.said + after).saturating_sub(before)
        };
        (moved(self.answered), moved(self.sent))
    }
}

/// One window, as far as can be told from outside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InWindow {
    /// Requests admitted in this window or in one beside it.
    pub perhaps: u64,
    /// Requests refused in this window for sure.
    pub refused: u64,
}

/// A load by windows.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// By their number since the Unix epoch.
    pub windows: BTreeMap<u64, InWindow>,
    /// For each admitted request the last and the first window it may have been admitted in.
    admitted: Vec<(u64, u64)>,
}

impl Seen {
    /// Counts by windows. `start` is when the load began; of several readings of the time, which
    /// differ where the service was restarted between them, each may be right.
    #[must_use]
    pub fn new(times: &[ServiceTime], per: Per, start: Instant, records: &[Record]) -> Self {
        let number = |time: Duration| {
            let number = time.as_nanos() / per.length().as_nanos().max(1);
            u64::try_from(number).unwrap_or(u64::MAX)
        };
        let mut seen = Self::default();
        for record in records {
            let sent = start + record.sent;
            let answered = sent + record.latency;
            let earliest = times.iter().map(|time| time.at(sent).0).min();
            let latest = times.iter().map(|time| time.at(answered).1).max();
            let first = number(earliest.unwrap_or_default());
            let last = number(latest.unwrap_or_default());
            let admitted = record.class == Class::Admitted;
            if admitted {
                seen.admitted.push((last, first));
            }
            for window in first..=last {
                let entry = seen.windows.entry(window).or_default();
                entry.perhaps += u64::from(admitted);
                entry.refused += u64::from(first == last && record.class == Class::Refused);
            }
        }
        seen
    }

    /// The first window up to which more was admitted than `limit` for each allows, however the
    /// requests are dealt out to the windows in which they may have been admitted.
    #[must_use]
    pub fn over(&self, limit: u64) -> Option<u64> {
        let mut admitted = self.admitted.clone();
        // Whoever has to be in an early window takes a place there first; that is optimal.
        admitted.sort_unstable();
        let mut taken: BTreeMap<u64, u64> = BTreeMap::new();
        for (last, first) in admitted {
            let free = |window: &u64| taken.get(window).copied().unwrap_or(0) < limit;
            match (first..=last).find(free) {
                Some(window) => *taken.entry(window).or_default() += 1,
                None => return Some(last),
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::{InWindow, Seen, ServiceTime};
    use crate::load::{Class, Record};
    use crate::rules::Per;
    use std::collections::BTreeMap;
    use std::time::Duration;
    use tokio::time::Instant;

    #[test]
    fn requests_count_for_the_windows_they_may_have_been_decided_in() {
        let start = Instant::now();
        let time = ServiceTime {
            said: Duration::from_millis(10_500),
            sent: start,
            answered: start + Duration::from_millis(10),
        };
        let record = |sent, latency, class| Record {
            target: 0,
            key: 0,
            class,
            sent: Duration::from_millis(sent),
            latency: Duration::from_millis(latency),
        };
        let records = [
            record(100, 10, Class::Admitted),
            // Ends at 11.0 by the later of both readings.
            record(400, 100, Class::Admitted),
            record(450, 10, Class::Refused),
            record(700, 10, Class::Admitted),
        ];
        let seen = Seen::new(&[time], Per::Second, start, &records);
        let window = |perhaps, refused| InWindow { perhaps, refused };
        let expected = [(10, window(2, 1)), (11, window(2, 0))];
        assert_eq!(seen.windows, BTreeMap::from(expected));
        assert_eq!((seen.over(2), seen.over(1)), (None, Some(11)));
    }

    #[test]
    fn requests_are_dealt_out_to_windows_if_that_can_be() {
        let over = |admitted: &[(u64, u64)], limit| {
            let admitted = admitted
                .iter()
                .map(|(first, last)| (*last, *first))
                .collect();
            let seen = Seen {
                admitted,
                ..Seen::default()
            };
            seen.over(limit)
        };
        assert_eq!(over(&[(1, 1), (1, 2), (1, 2)], 1), Some(2));
        assert_eq!(over(&[(1, 2), (1, 1), (2, 3)], 1), None);
        // Taking the first free window for the first one would leave none for the last.
        assert_eq!(over(&[(1, 3), (1, 1), (2, 2)], 1), None);
        assert_eq!(over(&[(1, 1), (1, 1), (2, 9)], 1), Some(1));
    }
}
