//! Whole requests without an Envoy: processes with several workers each, the real filter in every
//! one, and a counter service. Messages take no time; ticks, timeouts and the service's own clock
//! do. Everything comes to rest between two milliseconds, or the test fails.

use std::collections::BTreeMap;
use std::rc::Rc;

use headgate_core::units::{LocalTime, Span};

use super::counter::Counter;
use super::{Ending, FakeEnvoy, FakeHost};
use crate::filter::{Filter, Next};
use crate::host_api::StreamId;
use crate::root;
use crate::worker::Worker;

/// Most turns of messages within one instant.
const TURNS_MAX: usize = 2_000;

pub(crate) const MILLISECOND: Span = Span::from_millis(1);

/// One root in one worker.
#[derive(Debug)]
pub(crate) struct Root {
    envoy: usize,
    worker: usize,
    pub(crate) host: Rc<FakeHost>,
    pub(crate) filter: Filter<Worker>,
    next_tick: LocalTime,
}

/// A request that was made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked {
    root: usize,
    stream: StreamId,
    next: Next,
}

#[derive(Debug)]
pub(crate) struct Fleet {
    pub(crate) counter: Counter,
    pub(crate) envoys: Vec<FakeEnvoy>,
    pub(crate) roots: Vec<Root>,
    requests: Vec<Asked>,
    streams: u32,
}

impl Fleet {
    /// Envoys with so many workers each, configured, before their first tick. Worker 0 of each is
    /// its main thread, which gets no requests.
    pub(crate) fn new(envoys: usize, workers: usize, configuration: &str) -> Self {
        let mut fleet = Self {
            counter: Counter::new(),
            envoys: (0..envoys).map(|_| FakeEnvoy::new()).collect(),
            roots: Vec::new(),
            requests: Vec::new(),
            streams: 0,
        };
        for (index, envoy) in fleet.envoys.iter().enumerate() {
            // No two machines' clocks agree, nor do their random numbers.
            envoy.advance(Span::from_secs(1_000 * index as u64));
            envoy.seed(1_000_000 * index as u64);
        }
        for envoy in 0..envoys {
            fleet.configure(envoy, workers, configuration);
        }
        fleet
    }

    /// As Envoy does at a new configuration: a trial, then a root in the main thread and in each
    /// worker.
    pub(crate) fn configure(&mut self, envoy: usize, workers: usize, configuration: &str) {
        let _trial = root::configure(self.envoys[envoy].worker(0), configuration.as_bytes());
        for worker in 0..=workers {
            let host = self.envoys[envoy].worker(worker);
            let filter = root::configure(host.clone(), configuration.as_bytes());
            let next_tick = self.envoys[envoy].now();
            self.roots.push(Root {
                envoy,
                worker,
                host,
                filter: filter.expect("usable"),
                next_tick,
            });
        }
    }

    /// Ends the first root of each worker of an Envoy.
    pub(crate) fn end_old_roots(&mut self, envoy: usize, workers: usize) {
        for worker in 0..=workers {
            let is_it = |root: &Root| root.envoy == envoy && root.worker == worker;
            let place = self.roots.iter().position(is_it).expect("a root");
            self.roots[place].filter.close();
        }
    }

    /// A request at a worker, with one header. Its root is the newest one there.
    pub(crate) fn request(&mut self, envoy: usize, worker: usize, key: &str) -> Asked {
        self.streams += 1;
        let stream = StreamId(self.streams);
        let is_it = |root: &Root| root.envoy == envoy && root.worker == worker;
        let root = self.roots.iter().rposition(is_it).expect("a root");
        let place = &mut self.roots[root];
        place.host.begin(stream, &[("k", key.as_bytes())]);
        let next = place.filter.request(stream);
        let asked = Asked { root, stream, next };
        self.requests.push(asked);
        asked
    }

    /// The client of a request leaves.
    pub(crate) fn hang_up(&mut self, asked: Asked) {
        self.roots[asked.root].host.hang_up(asked.stream);
        self.roots[asked.root].filter.gone(asked.stream);
    }

    /// How a request ended: 200 if it was passed on, 0 if it still waits.
    pub(crate) fn status(&self, asked: Asked) -> u16 {
        let endings = self.roots[asked.root].host.endings(asked.stream);
        match (asked.next, endings.as_slice()) {
            (Next::Continue, []) | (Next::Stop, [Ending::Resumed]) => 200,
            (Next::Stop, [Ending::Replied(reply)]) => reply.status,
            (Next::Stop, []) => 0,
            other => panic!("answered more than once: {other:?}"),
        }
    }

    /// All requests by how they ended.
    pub(crate) fn statuses(&self) -> BTreeMap<u16, usize> {
        let mut statuses = BTreeMap::new();
        for asked in &self.requests {
            *statuses.entry(self.status(*asked)).or_default() += 1;
        }
        statuses
    }

    /// A metric over all Envoys.
    pub(crate) fn metric(&self, name: &str) -> i64 {
        let name = format!("headgate_{name}");
        self.envoys.iter().map(|envoy| envoy.metric(&name)).sum()
    }

    /// Carries messages until there are none.
    pub(crate) fn come_to_rest(&mut self) {
        for _ in 0..TURNS_MAX {
            let mut moved = false;
            for envoy in 0..self.envoys.len() {
                while let Some((worker, queue)) = self.envoys[envoy].next_ready() {
                    moved = true;
                    for root in self.roots_of(envoy, worker) {
                        root.filter.queue_ready(queue);
                    }
                }
                while let Some(call) = self.envoys[envoy].next_call() {
                    moved = true;
                    self.counter.take(envoy, call);
                }
            }
            for ((envoy, call), answer) in self.counter.take_answered() {
                moved = true;
                for root in self.roots_of(envoy, call.worker) {
                    let answer = answer.as_deref().map_err(|failure| *failure);
                    root.filter.answered(call.token, answer);
                }
            }
            if !moved {
                return;
            }
        }
        panic!("no rest within {TURNS_MAX} turns");
    }

    fn roots_of(&mut self, envoy: usize, worker: usize) -> impl Iterator<Item = &mut Root> {
        let is_it = move |root: &&mut Root| root.envoy == envoy && root.worker == worker;
        self.roots.iter_mut().filter(is_it)
    }

    /// Time passes, millisecond by millisecond.
    pub(crate) fn pass(&mut self, span: Span) {
        self.come_to_rest();
        for _ in 0..span.as_millis() {
            for envoy in &self.envoys {
                envoy.advance(MILLISECOND);
            }
            self.counter.advance(MILLISECOND);
            for root in &mut self.roots {
                let now = self.envoys[root.envoy].now();
                let period = u64::from(root.host.tick_ms());
                if period > 0 && root.next_tick <= now {
                    root.filter.tick();
                    root.filter.is_over();
                    let period = u64::from(root.host.tick_ms());
                    root.next_tick = now.plus(Span::from_millis(period));
                } else if period > 0 {
                    // A period that was shortened holds from now on.
                    let soon = now.plus(Span::from_millis(period));
                    root.next_tick = root.next_tick.min(soon);
                }
            }
            self.come_to_rest();
        }
    }
}
