//! What came of a load, request by request, and its sums.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::time::Instant;

use super::{Class, Key, Reply};

/// Different failures that are remembered; further ones are only counted.
const FAILURES: usize = 20;

/// One request.
#[derive(Clone, Copy, Debug)]
pub struct Record {
    /// Place of its Envoy among the targets.
    pub target: usize,
    /// Place of its key among the keys.
    pub key: usize,
    /// How it counts.
    pub class: Class,
    /// When it was sent, from the load's start.
    pub sent: Duration,
    /// How long it took.
    pub latency: Duration,
}

/// All requests of a load.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// In no order.
    pub records: Vec<Record>,
    /// Why requests failed, and how many did so.
    pub failures: BTreeMap<String, u64>,
    /// When the load began.
    pub started: Instant,
    /// From there to the last answer.
    pub elapsed: Duration,
    /// The most that a request was sent behind its time; large where `concurrency` was too small.
    pub latest: Duration,
    keys: Vec<String>,
}

/// Requests by class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// All of them.
    pub offered: u64,
    /// See [`Class::Admitted`].
    pub admitted: u64,
    /// See [`Class::Refused`].
    pub refused: u64,
    /// See [`Class::Undecided`].
    pub undecided: u64,
    /// See [`Class::Failed`].
    pub failed: u64,
    /// See [`Class::TimedOut`].
    pub timed_out: u64,
}

/// Latencies in order.
#[derive(Clone, Debug, Default)]
pub struct Latency(Vec<Duration>);

impl Outcome {
    pub(super) fn new(keys: &[Key]) -> Self {
        Self {
            records: Vec::new(),
            failures: BTreeMap::new(),
            started: Instant::now(),
            elapsed: Duration::ZERO,
            latest: Duration::ZERO,
            keys: keys.iter().map(|key| key.name.clone()).collect(),
        }
    }

    pub(super) fn add(&mut self, target: usize, key: usize, start: Instant, reply: &Reply) {
        let sent = reply.sent.saturating_duration_since(start);
        self.records.push(Record {
            target,
            key,
            class: reply.class,
            sent,
            latency: reply.latency,
        });
        if let Some(failure) = &reply.failure {
            self.fail(failure, 1);
        }
    }

    pub(super) fn merge(&mut self, other: Self) {
        self.records.extend(other.records);
        self.latest = self.latest.max(other.latest);
        for (failure, count) in other.failures {
            self.fail(&failure, count);
        }
    }

    fn fail(&mut self, failure: &str, times: u64) {
        let known = self.failures.len() < FAILURES || self.failures.contains_key(failure);
        let name = if known { failure } else { "others" };
        *self.failures.entry(name.to_owned()).or_default() += times;
    }

    /// All requests by class.
    #[must_use]
    pub fn total(&self) -> Counts {
        self.count(|_| true)
    }

    /// The requests of one key by class.
    ///
    /// # Errors
    /// When the load had no such key.
    pub fn key(&self, name: &str) -> Result<Counts> {
        let place = self.keys.iter().position(|key| key == name);
        let place = place.with_context(|| format!("the load had no key {name}"))?;
        Ok(self.count(|record| record.key == place))
    }

    /// Those requests that satisfy a condition, by class.
    pub fn count(&self, mut condition: impl FnMut(&Record) -> bool) -> Counts {
        let mut counts = Counts::default();
        for record in self.records.iter().filter(|record| condition(record)) {
            counts.add(record.class);
        }
        counts
    }

    /// Latencies of those requests that satisfy a condition.
    pub fn latency(&self, mut condition: impl FnMut(&Record) -> bool) -> Latency {
        let chosen = self.records.iter().filter(|record| condition(record));
        let mut latencies: Vec<Duration> = chosen.map(|record| record.latency).collect();
        latencies.sort_unstable();
        Latency(latencies)
    }
}

impl Counts {
    fn add(&mut self, class: Class) {
        self.offered += 1;
        *match class {
            Class::Admitted => &mut self.admitted,
            Class::Refused => &mut self.refused,
            Class::Undecided => &mut self.undecided,
            Class::Failed => &mut self.failed,
            Class::TimedOut => &mut self.timed_out,
        } += 1;
    }
}

impl Latency {
    /// Takes in those of another load.
    pub fn merge(&mut self, other: Self) {
        self.0.extend(other.0);
        self.0.sort_unstable();
    }

    /// The smallest latency that at least so many thousandths of the requests did not exceed;
    /// 500 is the median. Zero where there are none.
    #[must_use]
    pub fn permille(&self, thousandths: usize) -> Duration {
        let rank = self
            .0
            .len()
            .saturating_mul(thousandths)
            .div_ceil(1000)
            .max(1);
        self.0
            .get(rank - 1)
            .or(self.0.last())
            .copied()
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::{Latency, Outcome};
    use std::time::Duration;

    fn latency(millis: impl Iterator<Item = u64>) -> Latency {
        Latency(millis.map(Duration::from_millis).collect())
    }

    #[test]
    fn quantiles_are_of_the_nearest_rank() {
        let hundred = latency(1..=100);
        assert_eq!(hundred.permille(500), Duration::from_millis(50));
        assert_eq!(hundred.permille(990), Duration::from_millis(99));
        assert_eq!(hundred.permille(999), Duration::from_millis(100));
        assert_eq!(hundred.permille(1000), Duration::from_millis(100));
        assert_eq!(latency(7..=7).permille(990), Duration::from_millis(7));
        assert_eq!(latency(0..0).permille(990), Duration::ZERO);
    }

    #[test]
    fn the_list_of_failures_has_an_end() {
        let mut outcome = Outcome::new(&[]);
        for number in 0..100 {
            outcome.fail(&number.to_string(), 1);
        }
        assert_eq!(outcome.failures.len(), super::FAILURES + 1);
        assert_eq!(outcome.failures.get("others"), Some(&80));
    }
}
