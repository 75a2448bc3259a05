//! Between the filter, which knows streams and replies, and what decides, which knows keys and
//! leases. A decision is a value; only the filter acts on it.

use std::fmt;
use std::rc::Rc;

use headgate_core::replica::worker::{Charge, RequestId, Settled};
use headgate_core::rule::Config;
use headgate_core::units::LocalTime;

use crate::host_api::{CallFailure, CallToken, Host, HostError, StreamId};
use crate::metrics::Metrics;
use crate::upstream::Upstream;

/// What everything in one root shares.
#[derive(Debug, Clone)]
pub struct Env {
    /// Envoy.
    pub host: Rc<dyn Host>,
    /// What is counted.
    pub metrics: Rc<Metrics>,
    /// The rules.
    pub config: Rc<Config>,
    /// Where the counter service is.
    pub upstream: Rc<Upstream>,
}

/// A request by the name that the decider knows it under.
#[must_use]
pub const fn request_id(stream: StreamId) -> RequestId {
    RequestId::new(stream.0)
}

/// Decides requests; one for each root in each worker.
pub trait Decider: fmt::Debug {
    /// A request has come, at least one rule applies; none if it waits until `deadline`, after
    /// which it is settled by one of the methods below. Must not send calls: the answer would be
    /// lost with the request.
    ///
    /// # Errors
    /// The host refused what is needed to decide anything; nothing was charged.
    fn request(
        &mut self,
        now: LocalTime,
        deadline: LocalTime,
        stream: StreamId,
        charges: Vec<Charge>,
    ) -> Result<Option<Settled>, HostError>;

    /// Whether [`Decider::wake`] would send something.
    fn has_something_to_send(&self) -> bool;

    /// Called by the root soon after a request began to wait or [`Decider::has_something_to_send`]
    /// became true: the time to send.
    fn wake(&mut self, now: LocalTime) -> Vec<Settled>;

    /// Called by the root every tick.
    fn tick(&mut self, now: LocalTime) -> Vec<Settled>;

    /// Whether the tick is to come often.
    fn is_busy(&self) -> bool;

    /// A call of this decider has ended.
    fn answered(
        &mut self,
        now: LocalTime,
        token: CallToken,
        answer: Result<&[u8], CallFailure>,
    ) -> Vec<Settled>;

    /// A waiting request needs no verdict any more: its client has left, or it was answered as
    /// undecided because it had waited too long.
    fn gone(&mut self, stream: StreamId);

    /// The root ends; whether it may be deleted now. If not, ticks go on until [`Self::is_over`].
    fn close(&mut self, now: LocalTime) -> bool;

    /// Whether a root that ends may be deleted.
    fn is_over(&self) -> bool;
}
