//! What the service counts, under Prometheus' naming conventions.
//!
//! No label ever carries a value that came from a request, so the number of series is fixed.

mod owner;

use std::sync::Arc;

use prometheus_client::{
    metrics::{
        counter::Counter,
        gauge::Gauge,
        histogram::{Histogram, exponential_buckets},
    },
    registry::{Registry, Unit},
};

/// Everything registered, as `/metrics` shows it.
#[derive(Debug)]
pub struct Metrics {
    /// For [`prometheus_client::encoding`].
    pub registry: Arc<Registry>,
    /// Of the store.
    pub store: StoreMetrics,
    /// Of the engine.
    pub engine: EngineMetrics,
    /// Of the owner.
    pub owner: OwnerMetrics,
}

impl Metrics {
    /// All metrics at zero, each name with the prefix `headgate_`.
    pub fn new() -> Self {
        let mut registry = Registry::with_prefix("headgate");
        let (store, engine) = (StoreMetrics::default(), EngineMetrics::default());
        let owner = OwnerMetrics::default();
        owner.register(&mut registry);
        store.register(&mut registry);
        engine.register(&mut registry);
        Self {
            registry: Arc::new(registry),
            store,
            engine,
            owner,
        }
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

pub use owner::OwnerMetrics;

/// 0.1 ms to 1.6 s: from a cached write to a disk that is in trouble.
fn write_buckets() -> impl Iterator<Item = f64> {
    exponential_buckets(0.000_1, 2.0, 15)
}

/// What the embedded store counts.
#[derive(Clone, Debug)]
pub struct StoreMetrics {
    /// Duration of a write with its sync.
    pub write_seconds: Histogram,
    /// Batches answered, over the writes that carried them: the size of a group.
    pub batches: Counter,
    /// Bytes of frames written to the log.
    pub written_bytes: Counter,
    /// Size of the files.
    pub disk_bytes: Gauge,
    /// Snapshots written.
    pub compactions: Counter,
    /// Snapshots that could not be written.
    pub compaction_failures: Counter,
    /// Bytes of torn frames that starts cut off.
    pub dropped_bytes: Counter,
}

impl Default for StoreMetrics {
    fn default() -> Self {
        Self {
            write_seconds: Histogram::new(write_buckets()),
            batches: Counter::default(),
            written_bytes: Counter::default(),
            disk_bytes: Gauge::default(),
            compactions: Counter::default(),
            compaction_failures: Counter::default(),
            dropped_bytes: Counter::default(),
        }
    }
}

impl StoreMetrics {
    fn register(&self, registry: &mut Registry) {
        let registry = registry.sub_registry_with_prefix("store");
        registry.register_with_unit(
            "write",
            "Duration of one durable write of the embedded store",
            Unit::Seconds,
            self.write_seconds.clone(),
        );
        registry.register(
            "batches",
            "Batches the embedded store has answered",
            self.batches.clone(),
        );
        registry.register_with_unit(
            "written",
            "Bytes appended to the embedded store's log",
            Unit::Bytes,
            self.written_bytes.clone(),
        );
        registry.register_with_unit(
            "disk",
            "Size of the embedded store's files",
            Unit::Bytes,
            self.disk_bytes.clone(),
        );
        registry.register(
            "compactions",
            "Snapshots the embedded store has written",
            self.compactions.clone(),
        );
        registry.register(
            "compaction_failures",
            "Snapshots the embedded store could not write",
            self.compaction_failures.clone(),
        );
        registry.register_with_unit(
            "dropped",
            "Bytes of a last write, cut off by a crash, that the start dropped",
            Unit::Bytes,
            self.dropped_bytes.clone(),
        );
    }
}

/// What the engine counts.
#[derive(Clone, Debug)]
pub struct EngineMetrics {
    /// Commands applied.
    pub commands: Counter,
    /// Commands refused because the queue was full.
    pub queue_full: Counter,
    /// Commands that wait in the queue.
    pub queue_length: Gauge,
    /// Times that the engine stopped taking commands because too much waited for the store.
    pub store_waits: Counter,
    /// Writes to the store.
    pub writes: Counter,
    /// Writes that failed without effect and were repeated.
    pub write_retries: Counter,
    /// From the start of a write to its durability.
    pub write_seconds: Histogram,
    /// Changed records written.
    pub changes: Counter,
    /// The epoch in which this process leads; 0 if it does not.
    pub epoch: Gauge,
}

impl Default for EngineMetrics {
    fn default() -> Self {
        Self {
            commands: Counter::default(),
            queue_full: Counter::default(),
            queue_length: Gauge::default(),
            store_waits: Counter::default(),
            writes: Counter::default(),
            write_retries: Counter::default(),
            write_seconds: Histogram::new(write_buckets()),
            changes: Counter::default(),
            epoch: Gauge::default(),
        }
    }
}

impl EngineMetrics {
    fn register(&self, registry: &mut Registry) {
        let registry = registry.sub_registry_with_prefix("engine");
        registry.register("commands", "Commands decided", self.commands.clone());
        registry.register(
            "queue_full",
            "Commands refused because too many were waiting",
            self.queue_full.clone(),
        );
        registry.register(
            "queue_length",
            "Commands waiting",
            self.queue_length.clone(),
        );
        registry.register(
            "store_waits",
            "Times that commands had to wait because the store was behind",
            self.store_waits.clone(),
        );
        registry.register("writes", "Writes to the store", self.writes.clone());
        registry.register(
            "write_retries",
            "Writes that failed without effect and were repeated",
            self.write_retries.clone(),
        );
        registry.register_with_unit(
            "write",
            "Duration of a write to the store until it is durable",
            Unit::Seconds,
            self.write_seconds.clone(),
        );
        registry.register("changes", "Changed records written", self.changes.clone());
        registry.register(
            "epoch",
            "Epoch in which this process leads, 0 if it does not",
            self.epoch.clone(),
        );
    }
}
