//! What the filter needs from Envoy, as a small trait.
//!
//! Everything but `host.rs` sees Envoy through [`Host`], so that decisions are tested natively
//! against a fake one. Invariant: no call panics, whatever the host answers; a failure is a value
//! and says which call it was.

use std::num::NonZeroU32;

pub use headgate_core::replica::shared::{Expected, Stored};
use headgate_core::units::LocalTime;

/// The request and response of one HTTP exchange, as Envoy numbers it on its worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StreamId(pub u32);

/// A queue of Envoy's, valid in every worker of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct QueueId(pub u32);

/// A call that is on its way; its answer carries the same token. Valid in one worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallToken(pub u32);

/// A metric that Envoy knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MetricId(pub u32);

/// What Envoy counts a metric as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MetricKind {
    /// Only rises.
    Counter,
    /// Moves by differences, since workers share it.
    Gauge,
    /// Distribution of recorded values.
    Histogram,
}

/// A method of the counter service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Method {
    /// Takes a seat.
    Join,
    /// A batch of asks and returns.
    Ask,
    /// The long poll.
    Watch,
    /// Gives everything back.
    Leave,
}

impl Method {
    /// The gRPC service all of them belong to.
    pub const SERVICE: &'static str = "headgate.v1.Counter";

    /// Its name on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Join => "Join",
            Self::Ask => "Ask",
            Self::Watch => "Watch",
            Self::Leave => "Leave",
        }
    }
}

/// One call to the counter service.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    /// Where to: see [`crate::upstream::Upstream`].
    pub upstream: &'a str,
    /// What.
    pub method: Method,
    /// The message, encoded.
    pub message: &'a [u8],
    /// Envoy gives up after this, in whole milliseconds; 1 at least, since 0 means never.
    pub timeout_ms: NonZeroU32,
}

/// A reply that the filter gives itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// HTTP status.
    pub status: u16,
    /// gRPC status, for clients that speak gRPC.
    pub grpc_status: u8,
    /// Why, for access logs (`%RESPONSE_CODE_DETAILS%`); no spaces.
    pub details: String,
    /// Response headers, names in lower case.
    pub headers: Vec<(&'static str, String)>,
    /// Response body.
    pub body: String,
}

/// The calls of the host, for messages about their failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// The monotonic clock.
    Clock,
    /// Random bytes.
    Random,
    /// A header of the current request.
    Header,
    /// Reading or writing shared data.
    SharedData,
    /// Registering, resolving, filling or draining a queue.
    Queue,
    /// Sending a call.
    Call,
    /// The bytes of an answer or of the configuration.
    Buffer,
    /// Letting a request go on.
    Resume,
    /// Replying to a request.
    Reply,
    /// Defining or changing a metric.
    Metric,
    /// Setting the tick.
    Tick,
}

/// The host refused a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("Envoy answered status {status} to a {operation:?} call")]
pub struct HostError {
    /// Which call.
    pub operation: Operation,
    /// The status of the proxy-wasm ABI; see its `Status`.
    pub status: u32,
}

/// Why there is no answer to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CallFailure {
    /// The call ended with a gRPC status other than 0. Envoy's own timeouts come as 14 or 4, so
    /// the number tells no more than that nobody knows whether the service acted on it.
    #[error("the call ended with gRPC status {0}")]
    Status(u32),
    /// It was answered, but the answer could not be read from Envoy, or is longer than
    /// [`MAX_ANSWER_BYTES`].
    #[error("the answer could not be read")]
    Unreadable,
    /// Envoy has not reported its end, long after its timeout.
    #[error("the call has not ended long after its timeout")]
    Overdue,
}

/// Longest answer that is read: the service answers a batch of at most 256 keys in far less, so
/// whatever is longer is not its answer, and copying it would stall a worker.
pub const MAX_ANSWER_BYTES: usize = 1 << 20;

/// Envoy, as one worker's filter sees it.
///
/// # Errors
/// Every method: [`HostError`] when Envoy refuses the call.
#[allow(clippy::missing_errors_doc, reason = "said once above for all methods")]
pub trait Host: std::fmt::Debug {
    /// The monotonic clock: the same in all workers of a process, meaningless outside of it.
    fn now(&self) -> Result<LocalTime, HostError>;

    /// Random bytes from the operating system.
    fn random(&self) -> Result<[u8; 16], HostError>;

    /// The first value of a header of the request whose headers callback is running; any bytes.
    fn request_header(&self, name: &str) -> Result<Option<Vec<u8>>, HostError>;

    /// Reads shared data; absent and no bytes if the key was never written.
    fn shared(&self, key: &str) -> Result<Stored, HostError>;

    /// Writes shared data if `expected` holds, and says whether it did. Keys are never freed, so
    /// they are ours to bound.
    fn set_shared(&self, key: &str, value: &[u8], expected: Expected) -> Result<bool, HostError>;

    /// Makes a queue, or takes over the notifications of one with this name.
    fn register_queue(&self, name: &str) -> Result<QueueId, HostError>;

    /// Finds a queue by its name; none if nobody has registered it.
    fn resolve_queue(&self, name: &str) -> Result<Option<QueueId>, HostError>;

    /// Adds an item; the worker that registered the queue is called soon, once for each item.
    fn enqueue(&self, queue: QueueId, item: &[u8]) -> Result<(), HostError>;

    /// Takes the oldest item; none if the queue is empty.
    fn dequeue(&self, queue: QueueId) -> Result<Option<Vec<u8>>, HostError>;

    /// Sends a call. Only from callbacks of the root, or the answer is lost with a request. After
    /// an error no answer will come.
    fn call(&self, call: &Call<'_>) -> Result<CallToken, HostError>;

    /// Lets a paused request go on. Fails harmlessly if the request is gone.
    fn resume(&self, stream: StreamId) -> Result<(), HostError>;

    /// Answers a request in place of the upstream; at most once for each. Fails harmlessly if the
    /// request is gone.
    fn reply(&self, stream: StreamId, reply: &Reply) -> Result<(), HostError>;

    /// Makes a metric known, or finds it by its name.
    fn define_metric(&self, kind: MetricKind, name: &str) -> Result<MetricId, HostError>;

    /// Changes a counter (by a positive number) or a gauge.
    fn add_metric(&self, metric: MetricId, difference: i64) -> Result<(), HostError>;

    /// Records a value in a histogram.
    fn record_metric(&self, metric: MetricId, value: u64) -> Result<(), HostError>;

    /// Sets the period of the root's tick in milliseconds; 0 ends it.
    fn set_tick_ms(&self, period_ms: u32) -> Result<(), HostError>;
}
