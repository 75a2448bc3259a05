//! What a model can be convicted of.

use std::fmt;

/// What was promised.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Promise {
    /// Invariant A: pool + leases + spent + provisional + dead = limit.
    EveryTokenOnce,
    /// Invariant B: what a replica holds is at most what the owner knows that it holds, and only
    /// whoever the owner knows may spend.
    LeasesAreKnown,
    /// Invariant C: a proof is given only when nothing is left but what it says.
    ProofsAreTrue,
    /// Invariant D: what is left of a window never grows, so a proof stays true to its end.
    ProofsStayTrue,
    /// H1: nobody is admitted beyond the limit.
    NeverOver,
    /// H2: nobody is refused while enough is left.
    NoFalseRefusal,
    /// A request has one answer.
    OneAnswer,
    /// Where nothing can happen any more, nobody waits.
    NobodyWaitsForEver,
    /// Core finds nothing broken itself: no lease that was never granted is reported, no value of
    /// shared memory breaks G >= U + R.
    NothingBroken,
    /// The model itself can go on: not a promise of core.
    ModelHolds,
}

/// A promise that was broken, and how.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Wrong {
    /// Which one.
    pub promise: Promise,
    /// How.
    pub what: String,
}

impl Wrong {
    pub(super) fn new(promise: Promise, what: impl Into<String>) -> Self {
        let what = what.into();
        Self { promise, what }
    }

    /// The model itself is wrong.
    pub(super) fn model(what: &str) -> Self {
        Self::new(Promise::ModelHolds, what)
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:?}: {}", self.promise, self.what)
    }
}
