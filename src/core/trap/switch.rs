//! The switches, for the simulator. At most one rule is turned off at a time, on one thread, for as
//! long as a guard lives; so runs on other threads keep all rules.

use std::cell::Cell;

use super::Trap;

thread_local! {
    static OFF: Cell<Option<Trap>> = const { Cell::new(None) };
}

/// Whether the rule against a trap is turned off on this thread.
#[must_use]
pub fn is_off(trap: Trap) -> bool {
    OFF.get() == Some(trap)
}

/// Turns the rule against a trap off on this thread, until the guard is dropped; with `None`, all
/// rules hold until then.
pub fn turn_off(trap: Option<Trap>) -> Off {
    Off {
        before: OFF.replace(trap),
    }
}

/// Restores what was, at its end.
#[derive(Debug)]
#[must_use = "the rule holds again when this is dropped"]
pub struct Off {
    before: Option<Trap>,
}

impl Drop for Off {
    fn drop(&mut self) {
        OFF.set(self.before);
    }
}

impl Trap {
    /// All of them, by their numbers.
    pub const ALL: [Self; 19] = [
        Self::RepeatJudgedAnew,
        Self::ServedElsewhere,
        Self::SpentNearBoundary,
        Self::RecallUnrecorded,
        Self::TwoCells,
        Self::ChargedToLease,
        Self::UsedFalls,
        Self::TimeStepsBack,
        Self::JoinedTwice,
        Self::CellChangedHands,
        Self::RecallToldOnce,
        Self::DecidedLate,
        Self::MarkWithoutGeneration,
        Self::TimeJumps,
        Self::ProvisionalIgnored,
        Self::WaitsForItself,
        Self::TotalTakenLate,
        Self::AnswersForgotten,
        Self::SpentAfterLife,
    ];

    /// The number in the protocol's list, a short name, and what goes wrong without the rule.
    #[must_use]
    pub const fn about(self) -> (u8, &'static str, &'static str) {
        match self {
            Self::RepeatJudgedAnew => (
                2,
                "repeat-judged-anew",
                "a repeated ask is judged and charged again; of two charges one is used",
            ),
            Self::ServedElsewhere => (
                3,
                "served-elsewhere",
                "a request whose ask is out is served from the lease; the owner charges it as well",
            ),
            Self::SpentNearBoundary => (
                4,
                "spent-near-boundary",
                "tokens of a window that is over are spent in the next one",
            ),
            Self::RecallUnrecorded => (
                7,
                "recall-unrecorded",
                "a recall without a cell leaves no trace; a later claim takes the share again",
            ),
            Self::TwoCells => (
                8,
                "two-cells",
                "a key has two cells, each with the same lease",
            ),
            Self::ChargedToLease => (
                10,
                "charged-to-lease",
                "decisions for two workers, charged to one lease, are merged into one charge",
            ),
            Self::UsedFalls => (
                12,
                "used-falls",
                "tokens come back that had been reported as spent, after a refusal rested on that",
            ),
            Self::TimeStepsBack => (
                13,
                "time-steps-back",
                "service time goes back at failover, into a window that is over",
            ),
            Self::JoinedTwice => (
                15,
                "joined-twice",
                "a repeated Join makes another tenancy; the leases of the first answer to nobody",
            ),
            Self::CellChangedHands => (
                16,
                "cell-changed-hands",
                "a lease is taken in by a cell that is another window's or generation's by now",
            ),
            Self::RecallToldOnce => (
                17,
                "recall-told-once",
                "a lost poll loses its recall; nobody can decide until the window ends",
            ),
            Self::DecidedLate => (
                18,
                "decided-late",
                "a request that gave up long ago is charged, in a window it did not live in",
            ),
            Self::MarkWithoutGeneration => (
                19,
                "mark-without-generation",
                "a claim in a marked bucket begins at generation 0; a delayed lease fits it",
            ),
            Self::TimeJumps => (
                20,
                "time-jumps",
                "service time jumps to the ceiling; leases and proofs of a window outlive it",
            ),
            Self::ProvisionalIgnored => (
                21,
                "provisional-ignored",
                "a refusal rests on a provisional charge that is released later",
            ),
            Self::WaitsForItself => (
                22,
                "waits-for-itself",
                "an ask waits for a reservation of its own until all give up",
            ),
            Self::TotalTakenLate => (
                23,
                "total-taken-late",
                "what is left is stated too low, and others refuse what is still there",
            ),
            Self::AnswersForgotten => (
                24,
                "answers-forgotten",
                "an ask that is repeated after a boundary is charged in two windows",
            ),
            Self::SpentAfterLife => (
                25,
                "spent-after-life",
                "a seat spends tokens that others were told are gone",
            ),
        }
    }
}
