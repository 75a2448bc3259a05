//! Between the filter, which knows streams and replies, and what decides, which knows keys and
//! leases. A decision is a value; only the filter acts on it.

use std::fmt;
use std::rc::Rc;

use headgate_core::rule::{Config, Rule};
use headgate_core::units::Span;

use crate::host_api::{CallFailure, CallToken, Host, StreamId};
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

/// A rule's place in the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RuleIndex(pub usize);

impl RuleIndex {
    /// The rule; none if the index is of another configuration.
    #[must_use]
    pub fn of(self, config: &Config) -> Option<&Rule> {
        config.rules().get(self.0)
    }
}

/// One value of a key: any bytes; none stands for a missing header, which is no value at all.
pub type Value = Option<Rc<[u8]>>;

/// A rule that applies to a request, and the values it counts by: one for each part of the rule's
/// key, in order, none where the header is missing and the rule says that such requests share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    /// The rule.
    pub rule: RuleIndex,
    /// The values.
    pub values: Vec<Value>,
}

/// The answer to one request over all of its rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Within every limit, and charged to each.
    Admit,
    /// Over a limit.
    Refuse {
        /// Which.
        rule: RuleIndex,
        /// How long that stays so.
        retry_after: Span,
    },
    /// Nobody could know in time.
    Undecided {
        /// Whose policy acts.
        rule: RuleIndex,
    },
}

/// What becomes of a request now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Step {
    /// Decided.
    Done(Verdict),
    /// It waits for the counter service.
    Wait {
        /// Whose policy acts if nothing comes.
        rule: RuleIndex,
    },
}

/// A waiting request and its verdict.
pub type Settled = (StreamId, Verdict);

/// Decides requests; one for each root in each worker.
pub trait Decider: fmt::Debug {
    /// A request has come, at least one rule applies. Must not send calls: the answer would be
    /// lost with the request.
    fn request(&mut self, stream: StreamId, applied: Vec<Applied>) -> Step;

    /// Called by the root soon after a request began to wait: the time to send.
    fn wake(&mut self) -> Vec<Settled>;

    /// Called by the root every [`crate::filter::TICK_MS`].
    fn tick(&mut self) -> Vec<Settled>;

    /// A call of this decider has ended.
    fn answered(&mut self, token: CallToken, answer: Result<&[u8], CallFailure>) -> Vec<Settled>;

    /// A waiting request needs no verdict any more: its client has left, or it was answered as
    /// undecided because it had waited too long.
    fn gone(&mut self, stream: StreamId);
}
