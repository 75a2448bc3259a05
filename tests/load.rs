//! Load: many requests over keep-alive connections, spread over keys and Envoys, and what became
//! of each.

mod client;
mod outcome;
mod spread;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use anyhow::{Result, ensure};
use hyper::header::{HeaderName, HeaderValue};
use tokio::task::JoinSet;
use tokio::time::Instant;

pub use client::{Client, Reply, Request};
pub use outcome::{Counts, Latency, Outcome, Record};
use spread::Spread;

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// The upstream answered it.
    Admitted,
    /// Over the limit: 429 with the plugin's body.
    Refused,
    /// Nobody could know, and the rule denies then: 503 with the plugin's body.
    Undecided,
    /// Any other answer, or a broken connection.
    Failed,
    /// No answer within the request's deadline.
    TimedOut,
}

/// A load.
#[derive(Clone, Debug)]
pub struct Load {
    /// The Envoys.
    pub targets: Vec<Target>,
    /// Path of every request.
    pub path: String,
    /// The header that carries the key.
    pub header: HeaderName,
    /// The keys.
    pub keys: Vec<Key>,
    /// How many requests, and when.
    pub pace: Pace,
    /// Requests in flight at most, over all Envoys.
    pub concurrency: usize,
    /// The longest that one request may take.
    pub deadline: Duration,
}

/// An Envoy that takes a part of the load.
#[derive(Clone, Debug)]
pub struct Target {
    /// Where it listens.
    pub address: SocketAddr,
    /// Its part, against the sum of all.
    pub weight: u32,
}

/// A key that takes a part of the load.
#[derive(Clone, Debug)]
pub struct Key {
    /// For people.
    pub name: String,
    /// The header's value; none leaves the header out.
    pub value: Option<HeaderValue>,
    /// Its part, against the sum of all.
    pub weight: u32,
}

/// How many requests, and when.
#[derive(Clone, Copy, Debug)]
pub enum Pace {
    /// So many, each as soon as one of `concurrency` is free (a closed loop).
    Count(u64),
    /// At a constant rate, whatever the answers take (an open loop, up to `concurrency`).
    Rate {
        /// Requests per second, at least 1.
        per_second: u64,
        /// For how long.
        duration: Duration,
    },
}

/// What is known while a load runs.
#[derive(Debug, Default)]
pub struct Progress {
    by_class: [AtomicU64; 5],
}

impl Key {
    /// A key with the same name and value, and weight 1.
    ///
    /// # Errors
    /// When `name` cannot be a header's value.
    pub fn named(name: &str) -> Result<Self> {
        Ok(Self {
            name: name.to_owned(),
            value: Some(HeaderValue::from_str(name)?),
            weight: 1,
        })
    }
}

impl Progress {
    /// Requests of a class that have ended.
    #[must_use]
    pub fn count(&self, class: Class) -> u64 {
        self.cell(class).load(Relaxed)
    }

    fn add(&self, class: Class) {
        self.cell(class).fetch_add(1, Relaxed);
    }

    fn cell(&self, class: Class) -> &AtomicU64 {
        let [admitted, refused, undecided, failed, timed_out] = &self.by_class;
        match class {
            Class::Admitted => admitted,
            Class::Refused => refused,
            Class::Undecided => undecided,
            Class::Failed => failed,
            Class::TimedOut => timed_out,
        }
    }
}

impl Load {
    /// A load over `addresses` in equal parts, with `x-api-key`, 16 requests in flight and 5 s
    /// for each; change what should be different.
    #[must_use]
    pub fn new(
        addresses: impl IntoIterator<Item = SocketAddr>,
        keys: Vec<Key>,
        pace: Pace,
    ) -> Self {
        Self {
            targets: addresses
                .into_iter()
                .map(|address| Target { address, weight: 1 })
                .collect(),
            path: "/".to_owned(),
            header: HeaderName::from_static("x-api-key"),
            keys,
            pace,
            concurrency: 16,
            deadline: Duration::from_secs(5),
        }
    }

    /// Runs it to its end.
    ///
    /// # Errors
    /// When it is empty, or its weights are. A request that fails is part of the outcome.
    pub async fn run(&self) -> Result<Outcome> {
        self.run_with(&Arc::default()).await
    }

    /// As [`Load::run`], and counts in `progress` meanwhile.
    ///
    /// # Errors
    /// As those of [`Load::run`].
    pub async fn run_with(&self, progress: &Arc<Progress>) -> Result<Outcome> {
        ensure!(self.concurrency > 0, "a load needs a concurrency");
        let run = Arc::new(Run {
            targets: Spread::new(self.targets.iter().map(|target| target.weight))?,
            keys: Spread::new(self.keys.iter().map(|key| key.weight))?,
            client: Client::new(),
            progress: Arc::clone(progress),
            next: AtomicU64::new(0),
            start: Instant::now(),
            load: self.clone(),
        });
        let mut workers = JoinSet::new();
        for _ in 0..self.concurrency {
            workers.spawn(Arc::clone(&run).work());
        }
        let mut outcome = Outcome::new(&self.keys);
        while let Some(part) = workers.join_next().await {
            outcome.merge(part?);
        }
        outcome.started = run.start;
        outcome.elapsed = run.start.elapsed();
        Ok(outcome)
    }
}

/// A load that runs.
struct Run {
    load: Load,
    targets: Spread,
    keys: Spread,
    client: Client,
    progress: Arc<Progress>,
    /// Number of the next request.
    next: AtomicU64,
    start: Instant,
}

impl Run {
    /// One of the requests in flight: takes numbers until there are none left.
    async fn work(self: Arc<Self>) -> Outcome {
        let mut outcome = Outcome::new(&self.load.keys);
        loop {
            let number = self.next.fetch_add(1, Relaxed);
            let Some(due) = self.due(number) else {
                return outcome;
            };
            if let Some(due) = due {
                // Pacing: the rate is what was ordered.
                tokio::time::sleep_until(due).await;
                outcome.latest = outcome.latest.max(due.elapsed());
            }
            let (target, key) = self.pick(number);
            let (Some(to), Some(which)) = (self.load.targets.get(target), self.load.keys.get(key))
            else {
                return outcome;
            };
            let reply = self
                .client
                .send(Request {
                    address: to.address,
                    path: &self.load.path,
                    header: which.value.as_ref().map(|value| (&self.load.header, value)),
                    deadline: self.load.deadline,
                })
                .await;
            self.progress.add(reply.class);
            outcome.add(target, key, self.start, &reply);
        }
    }

    /// `None` beyond the last request; else when this one is due, if at any time of its own.
    fn due(&self, number: u64) -> Option<Option<Instant>> {
        match self.load.pace {
            Pace::Count(count) => (number < count).then_some(None),
            Pace::Rate {
                per_second,
                duration,
            } => {
                let nanos = u128::from(number) * 1_000_000_000 / u128::from(per_second.max(1));
                let after = Duration::from_nanos(u64::try_from(nanos).ok()?);
                (after < duration).then(|| Some(self.start + after))
            }
        }
    }

    /// Target and key of a request. Each round over the targets has one key, so that every key
    /// meets every target.
    fn pick(&self, number: u64) -> (usize, usize) {
        (
            self.targets.at(number),
            self.keys.at(number / self.targets.round()),
        )
    }
}
