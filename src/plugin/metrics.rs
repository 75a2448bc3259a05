//! What the filter counts, as Envoy stats.
//!
//! The list is fixed: a metric is never freed, so no name holds anything a request or a rule
//! brought along. A metric that Envoy refused to define is left out, never a reason to fail.

use std::fmt;
use std::rc::Rc;

use headgate_core::units::Span;

use crate::host_api::{Host, HostError, MetricId, MetricKind};

/// A counter. Every request that at least one rule applied to ends in exactly one of the first
/// four.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Count {
    /// Passed on by decision.
    Admitted,
    /// Over a limit.
    Refused,
    /// Nobody could know in time; the rule's policy acted.
    Undecided,
    /// Gone while it waited for its decision.
    Abandoned,
    /// Decided after waiting for the counter service.
    Asked,
    /// Asks that no request waited for.
    AskedAhead,
    /// Keys that found no cell and were decided on the path.
    CellsMissed,
    /// A call was not sent, or ended without an answer.
    ErrorsCall,
    /// An answer that does not make sense.
    ErrorsAnswer,
    /// Shared data could not be read or written, or other workers were faster too often in a row.
    ErrorsSharedData,
    /// A value in shared data broke an invariant, or was about to.
    ErrorsInvariant,
    /// The worker's queue or timer could not be set to wake it.
    ErrorsWake,
    /// A request could not be read, timed, resumed or answered.
    ErrorsRequest,
    /// Too many requests wait already, or too many returns and resolutions.
    ErrorsOverload,
}

impl Count {
    /// All, in the order of their numbers.
    const ALL: [Self; 14] = [
        Self::Admitted,
        Self::Refused,
        Self::Undecided,
        Self::Abandoned,
        Self::Asked,
        Self::AskedAhead,
        Self::CellsMissed,
        Self::ErrorsCall,
        Self::ErrorsAnswer,
        Self::ErrorsSharedData,
        Self::ErrorsInvariant,
        Self::ErrorsWake,
        Self::ErrorsRequest,
        Self::ErrorsOverload,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::Admitted => "headgate_admitted_total",
            Self::Refused => "headgate_refused_total",
            Self::Undecided => "headgate_undecided_total",
            Self::Abandoned => "headgate_abandoned_total",
            Self::Asked => "headgate_asked_total",
            Self::AskedAhead => "headgate_asked_ahead_total",
            Self::CellsMissed => "headgate_cells_missed_total",
            Self::ErrorsCall => "headgate_errors_call_total",
            Self::ErrorsAnswer => "headgate_errors_answer_total",
            Self::ErrorsSharedData => "headgate_errors_shared_data_total",
            Self::ErrorsInvariant => "headgate_errors_invariant_total",
            Self::ErrorsWake => "headgate_errors_wake_total",
            Self::ErrorsRequest => "headgate_errors_request_total",
            Self::ErrorsOverload => "headgate_errors_overload_total",
        }
    }
}

/// Cells that hold a lease of a running window, over all workers.
const CELLS_IN_USE: &str = "headgate_cells_in_use";
/// How long requests waited for a decision, in microseconds.
const ASK_WAIT_US: &str = "headgate_ask_wait_us";

const NANOS_PER_MICRO: u64 = 1_000;

/// The metrics of one root.
#[derive(Debug)]
pub struct Metrics {
    host: Rc<dyn Host>,
    counts: [Option<MetricId>; Count::ALL.len()],
    cells_in_use: Option<MetricId>,
    ask_wait_us: Option<MetricId>,
}

impl Metrics {
    /// Defines them all.
    #[must_use]
    pub fn define(host: Rc<dyn Host>) -> Self {
        let define = |kind, name: &str| match host.define_metric(kind, name) {
            Ok(id) => Some(id),
            Err(error) => {
                log::warn!("metric {name} is missing: {error}");
                None
            }
        };
        Self {
            counts: Count::ALL.map(|count| define(MetricKind::Counter, count.name())),
            cells_in_use: define(MetricKind::Gauge, CELLS_IN_USE),
            ask_wait_us: define(MetricKind::Histogram, ASK_WAIT_US),
            host,
        }
    }

    /// Counts one.
    pub fn count(&self, count: Count) {
        self.add(count, 1);
    }

    /// Counts several; none changes nothing.
    pub fn add(&self, count: Count, number: u64) {
        let id = self.counts.get(count as usize).copied().flatten();
        if let (Some(id), 1..) = (id, number) {
            let number = i64::try_from(number).unwrap_or(i64::MAX);
            report(self.host.add_metric(id, number));
        }
    }

    /// Counts a failure under its cause and leaves a trace of it for a debug log.
    pub fn failed(&self, cause: Count, what: &dyn fmt::Display) {
        log::debug!("{}: {what}", cause.name());
        self.count(cause);
    }

    /// Cells taken (positive) or given up (negative).
    pub fn cells_in_use(&self, difference: i64) {
        if let (Some(id), true) = (self.cells_in_use, difference != 0) {
            report(self.host.add_metric(id, difference));
        }
    }

    /// A request got its decision after waiting for so long.
    pub fn waited(&self, span: Span) {
        self.count(Count::Asked);
        if let Some(id) = self.ask_wait_us {
            report(self.host.record_metric(id, span.get() / NANOS_PER_MICRO));
        }
    }
}

/// A metric that cannot be written is not worth a request.
fn report(result: Result<(), HostError>) {
    if let Err(error) = result {
        log::debug!("{error}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_finds_its_own_number() {
        for (number, count) in Count::ALL.into_iter().enumerate() {
            assert_eq!(count as usize, number, "{count:?}");
        }
    }
}
