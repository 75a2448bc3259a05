//! An Envoy for tests: one process with any number of workers, on one thread.
//!
//! Shared data has the host's real semantics (one version counter for all keys, a write to a
//! missing key succeeds whatever it expects, version 0 overwrites), the clock is driven by hand,
//! and calls are recorded for the test to answer.

pub(crate) mod counter;
pub(crate) mod fleet;
#[cfg(test)]
mod tests;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;

use headgate_core::units::{LocalTime, Span};

use crate::host_api::*;

/// A call that was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SentCall {
    pub(crate) worker: usize,
    pub(crate) token: CallToken,
    pub(crate) upstream: String,
    pub(crate) method: Method,
    pub(crate) message: Vec<u8>,
    pub(crate) timeout_ms: u32,
}

/// How a request ended in the eyes of its client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ending {
    Resumed,
    Replied(Reply),
}

#[derive(Debug, Default)]
struct Queue {
    owner: usize,
    items: VecDeque<Vec<u8>>,
}

/// What all workers share.
#[derive(Debug, Default)]
struct Process {
    now: Cell<LocalTime>,
    random: Cell<u64>,
    version: Cell<u32>,
    data: RefCell<BTreeMap<String, (Vec<u8>, u32)>>,
    names: RefCell<BTreeMap<String, u32>>,
    queues: RefCell<BTreeMap<u32, Queue>>,
    ready: RefCell<VecDeque<(usize, QueueId)>>,
    metrics: RefCell<BTreeMap<String, Vec<i64>>>,
    metric_names: RefCell<Vec<(MetricKind, String)>>,
    calls: RefCell<VecDeque<SentCall>>,
    tokens: Cell<u32>,
    failing: RefCell<BTreeSet<&'static str>>,
}

/// The process.
#[derive(Debug, Clone, Default)]
pub(crate) struct FakeEnvoy(Rc<Process>);

impl FakeEnvoy {
    /// A process whose clock has run for a while.
    pub(crate) fn new() -> Self {
        let envoy = Self::default();
        envoy.0.now.set(LocalTime::new(1_000_000_000));
        envoy
    }

    /// One worker of it.
    pub(crate) fn worker(&self, number: usize) -> Rc<FakeHost> {
        Rc::new(FakeHost {
            process: Rc::clone(&self.0),
            number,
            headers: RefCell::default(),
            streams: RefCell::default(),
            endings: RefCell::default(),
            tick_ms: Cell::new(0),
        })
    }

    /// Its clock.
    pub(crate) fn now(&self) -> LocalTime {
        self.0.now.get()
    }

    /// Where its random numbers begin.
    pub(crate) fn seed(&self, seed: u64) {
        self.0.random.set(seed);
    }

    /// Time passes.
    pub(crate) fn advance(&self, span: Span) {
        self.0.now.set(self.0.now.get().plus(span));
    }

    /// The next notification about a queue: for which worker.
    pub(crate) fn next_ready(&self) -> Option<(usize, QueueId)> {
        self.0.ready.borrow_mut().pop_front()
    }

    /// The oldest call that the test has not taken yet.
    pub(crate) fn next_call(&self) -> Option<SentCall> {
        self.0.calls.borrow_mut().pop_front()
    }

    /// The keys of shared data.
    pub(crate) fn keys(&self) -> Vec<String> {
        self.0.data.borrow().keys().cloned().collect()
    }

    /// Overwrites shared data, as a fault would.
    pub(crate) fn overwrite(&self, key: &str, value: &[u8]) {
        let version = self.0.version.get() + 1;
        self.0.version.set(version);
        let value = (value.to_vec(), version);
        self.0.data.borrow_mut().insert(key.to_owned(), value);
    }

    /// A counter's or gauge's value; 0 if nobody has changed it.
    pub(crate) fn metric(&self, name: &str) -> i64 {
        self.0
            .metrics
            .borrow()
            .get(name)
            .map_or(0, |values| values.iter().sum())
    }

    /// The recorded values of a histogram.
    pub(crate) fn recorded(&self, name: &str) -> Vec<i64> {
        self.0
            .metrics
            .borrow()
            .get(name)
            .cloned()
            .unwrap_or_default()
    }

    /// From now on the host refuses calls of this kind, or no longer does.
    pub(crate) fn fail(&self, operation: Operation, fails: bool) {
        let mut failing = self.0.failing.borrow_mut();
        if fails {
            failing.insert(name_of(operation));
        } else {
            failing.remove(name_of(operation));
        }
    }
}

fn name_of(operation: Operation) -> &'static str {
    match operation {
        Operation::Clock => "clock",
        Operation::Random => "random",
        Operation::Header => "header",
        Operation::SharedData => "shared data",
        Operation::Queue => "queue",
        Operation::Call => "call",
        Operation::Buffer => "buffer",
        Operation::Resume => "resume",
        Operation::Reply => "reply",
        Operation::Metric => "metric",
        Operation::Tick => "tick",
    }
}

/// One worker.
#[derive(Debug)]
pub(crate) struct FakeHost {
    process: Rc<Process>,
    number: usize,
    headers: RefCell<BTreeMap<String, Vec<u8>>>,
    streams: RefCell<BTreeSet<StreamId>>,
    endings: RefCell<BTreeMap<StreamId, Vec<Ending>>>,
    tick_ms: Cell<u32>,
}

impl FakeHost {
    /// A request comes: its headers are those that can be read now.
    pub(crate) fn begin(&self, stream: StreamId, headers: &[(&str, &[u8])]) {
        self.streams.borrow_mut().insert(stream);
        let headers = headers
            .iter()
            .map(|(name, value)| ((*name).to_owned(), value.to_vec()));
        *self.headers.borrow_mut() = headers.collect();
    }

    /// The client hangs up.
    pub(crate) fn hang_up(&self, stream: StreamId) {
        self.streams.borrow_mut().remove(&stream);
    }

    /// Everything that was done to a request; more than one is a mistake.
    pub(crate) fn endings(&self, stream: StreamId) -> Vec<Ending> {
        self.endings
            .borrow()
            .get(&stream)
            .cloned()
            .unwrap_or_default()
    }

    /// The period of the tick.
    pub(crate) fn tick_ms(&self) -> u32 {
        self.tick_ms.get()
    }

    fn check(&self, operation: Operation) -> Result<(), HostError> {
        if self.process.failing.borrow().contains(name_of(operation)) {
            return Err(HostError {
                operation,
                status: 10,
            });
        }
        Ok(())
    }

    fn end(&self, operation: Operation, stream: StreamId, ending: Ending) -> Result<(), HostError> {
        self.check(operation)?;
        if !self.streams.borrow().contains(&stream) {
            return Err(HostError {
                operation,
                status: 2,
            });
        }
        self.endings
            .borrow_mut()
            .entry(stream)
            .or_default()
            .push(ending);
        Ok(())
    }

    fn metric(&self, metric: MetricId, value: i64) -> Result<(), HostError> {
        self.check(Operation::Metric)?;
        let names = self.process.metric_names.borrow();
        let missing = HostError {
            operation: Operation::Metric,
            status: 1,
        };
        let (_, name) = names.get(metric.0 as usize).ok_or(missing)?;
        self.process
            .metrics
            .borrow_mut()
            .entry(name.clone())
            .or_default()
            .push(value);
        Ok(())
    }
}

impl Host for FakeHost {
    fn now(&self) -> Result<LocalTime, HostError> {
        self.check(Operation::Clock)?;
        Ok(self.process.now.get())
    }

    fn random(&self) -> Result<[u8; 16], HostError> {
        self.check(Operation::Random)?;
        let number = self.process.random.get() + 1;
        self.process.random.set(number);
        // Every half of it differs from every other.
        let mixed = u128::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
        Ok(mixed.to_le_bytes())
    }

    fn request_header(&self, name: &str) -> Result<Option<Vec<u8>>, HostError> {
        self.check(Operation::Header)?;
        Ok(self.headers.borrow().get(name).cloned())
    }

    fn shared(&self, key: &str) -> Result<Stored, HostError> {
        self.check(Operation::SharedData)?;
        let data = self.process.data.borrow();
        let absent = Stored {
            value: Vec::new(),
            version: Expected::Absent,
        };
        Ok(data.get(key).map_or(absent, |(value, version)| Stored {
            value: value.clone(),
            version: Expected::Version(*version),
        }))
    }

    fn set_shared(&self, key: &str, value: &[u8], expected: Expected) -> Result<bool, HostError> {
        self.check(Operation::SharedData)?;
        let expected = match expected {
            Expected::Absent => u32::MAX,
            Expected::Version(version) => version,
        };
        let mut data = self.process.data.borrow_mut();
        let present = data.get(key).map(|(_, version)| *version);
        if present.is_some_and(|version| expected != 0 && version != expected) {
            return Ok(false);
        }
        let version = self.process.version.get().checked_add(1).unwrap_or(1);
        self.process.version.set(version);
        data.insert(key.to_owned(), (value.to_vec(), version));
        Ok(true)
    }

    fn register_queue(&self, name: &str) -> Result<QueueId, HostError> {
        self.check(Operation::Queue)?;
        let mut names = self.process.names.borrow_mut();
        let next = u32::try_from(names.len()).expect("few") + 1;
        let id = *names.entry(name.to_owned()).or_insert(next);
        self.process
            .queues
            .borrow_mut()
            .entry(id)
            .or_default()
            .owner = self.number;
        Ok(QueueId(id))
    }

    fn resolve_queue(&self, name: &str) -> Result<Option<QueueId>, HostError> {
        self.check(Operation::Queue)?;
        Ok(self.process.names.borrow().get(name).copied().map(QueueId))
    }

    fn enqueue(&self, queue: QueueId, item: &[u8]) -> Result<(), HostError> {
        self.check(Operation::Queue)?;
        let mut queues = self.process.queues.borrow_mut();
        let missing = HostError {
            operation: Operation::Queue,
            status: 1,
        };
        let found = queues.get_mut(&queue.0).ok_or(missing)?;
        found.items.push_back(item.to_vec());
        self.process
            .ready
            .borrow_mut()
            .push_back((found.owner, queue));
        Ok(())
    }

    fn dequeue(&self, queue: QueueId) -> Result<Option<Vec<u8>>, HostError> {
        self.check(Operation::Queue)?;
        let mut queues = self.process.queues.borrow_mut();
        let missing = HostError {
            operation: Operation::Queue,
            status: 1,
        };
        Ok(queues.get_mut(&queue.0).ok_or(missing)?.items.pop_front())
    }

    fn call(&self, call: &Call<'_>) -> Result<CallToken, HostError> {
        self.check(Operation::Call)?;
        let token = CallToken(self.process.tokens.get() + 1);
        self.process.tokens.set(token.0);
        self.process.calls.borrow_mut().push_back(SentCall {
            worker: self.number,
            token,
            upstream: call.upstream.to_owned(),
            method: call.method,
            message: call.message.to_vec(),
            timeout_ms: call.timeout_ms.get(),
        });
        Ok(token)
    }

    fn resume(&self, stream: StreamId) -> Result<(), HostError> {
        self.end(Operation::Resume, stream, Ending::Resumed)
    }

    fn reply(&self, stream: StreamId, reply: &Reply) -> Result<(), HostError> {
        self.end(Operation::Reply, stream, Ending::Replied(reply.clone()))
    }

    fn define_metric(&self, kind: MetricKind, name: &str) -> Result<MetricId, HostError> {
        self.check(Operation::Metric)?;
        let mut names = self.process.metric_names.borrow_mut();
        let wanted = (kind, name.to_owned());
        let found = names
            .iter()
            .position(|known| *known == wanted)
            .unwrap_or_else(|| {
                names.push(wanted);
                names.len() - 1
            });
        Ok(MetricId(u32::try_from(found).expect("few")))
    }

    fn add_metric(&self, metric: MetricId, difference: i64) -> Result<(), HostError> {
        self.metric(metric, difference)
    }

    fn record_metric(&self, metric: MetricId, value: u64) -> Result<(), HostError> {
        self.metric(metric, i64::try_from(value).expect("small"))
    }

    fn set_tick_ms(&self, period_ms: u32) -> Result<(), HostError> {
        self.check(Operation::Tick)?;
        self.tick_ms.set(period_ms);
        Ok(())
    }
}
