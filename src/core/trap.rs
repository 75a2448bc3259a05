//! The traps of the protocol: what goes wrong when one of its rules is missing. Each rule asks here
//! whether it is turned off, so that the simulator can show that its judge convicts the trace.
//!
//! Invariant: without the feature `traps` nothing can be turned off; [`is_off`] is the constant
//! `false` and costs nothing. Only the simulator enables the feature. The numbers are those of the
//! protocol's list; what is missing in between has no rule here yet.

/// A trap, named after what its rule prevents.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Trap {
    /// 1: the share of a seat whose replica is gone is in the pool.
    DirtySeatForgotten,
    /// 2: a repeated ask is judged anew.
    RepeatJudgedAnew,
    /// 3: a request of an ask that is out is served from the lease as well.
    ServedElsewhere,
    /// 4: tokens are spent although a boundary may have passed.
    SpentNearBoundary,
    /// 7: a recall that finds no cell is returned and not recorded.
    RecallUnrecorded,
    /// 8: one key has two cells.
    TwoCells,
    /// 9: a claim does not look at its bucket's mark.
    ShareComesBack,
    /// 10: decisions are charged to the asker's lease, and merged there by the maximum.
    ChargedToLease,
    /// 12: a reservation is spent at once, and giving it back lowers what is used.
    UsedFalls,
    /// 13: a new leader takes its machine's time, also where that is earlier.
    TimeStepsBack,
    /// 15: a Join that is repeated gets another tenancy.
    JoinedTwice,
    /// 16: a lease is taken in by the key's cell, whatever window and generation it is of.
    CellChangedHands,
    /// 17: a recall is told once.
    RecallToldOnce,
    /// 18: a cost is decided after its time.
    DecidedLate,
    /// 19: a bucket's mark does not keep the generation.
    MarkWithoutGeneration,
    /// 20: a new leader goes on from the ceiling at once.
    TimeJumps,
    /// 21: a refusal does not wait for provisional charges.
    ProvisionalIgnored,
    /// 22: an ask waits for a reservation of its own.
    WaitsForItself,
    /// 23: what is left is stated after the lease of the same answer, without provisional charges.
    TotalTakenLate,
    /// 24: last answers are dropped with their window.
    AnswersForgotten,
    /// 25: a seat spends after its time-to-live.
    SpentAfterLife,
    /// 26: a table revision is in force as soon as it is published.
    TableTooSoon,
}

/// Whether rules can be turned off at all.
pub const ARE_BUILT_IN: bool = cfg!(feature = "traps");

#[cfg(not(feature = "traps"))]
mod switch {
    use super::Trap;

    /// Whether the rule against a trap is turned off: never.
    #[inline(always)]
    #[must_use]
    pub const fn is_off(_: Trap) -> bool {
        false
    }
}

#[cfg(feature = "traps")]
mod switch;

pub use switch::*;
