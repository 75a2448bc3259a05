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
    pub const ALL: [Self; 22] = [
        Self::DirtySeatForgotten,
        Self::RepeatJudgedAnew,
        Self::ServedElsewhere,
        Self::SpentNearBoundary,
        Self::RecallUnrecorded,
        Self::TwoCells,
        Self::ShareComesBack,
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
        Self::TableTooSoon,
    ];

    /// Its number in the protocol's list.
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            Self::DirtySeatForgotten => 1,
            Self::RepeatJudgedAnew => 2,
            Self::ServedElsewhere => 3,
            Self::SpentNearBoundary => 4,
            Self::RecallUnrecorded => 7,
            Self::TwoCells => 8,
            Self::ShareComesBack => 9,
            Self::ChargedToLease => 10,
            Self::UsedFalls => 12,
            Self::TimeStepsBack => 13,
            Self::JoinedTwice => 15,
            Self::CellChangedHands => 16,
            Self::RecallToldOnce => 17,
            Self::DecidedLate => 18,
            Self::MarkWithoutGeneration => 19,
            Self::TimeJumps => 20,
            Self::ProvisionalIgnored => 21,
            Self::WaitsForItself => 22,
            Self::TotalTakenLate => 23,
            Self::AnswersForgotten => 24,
            Self::SpentAfterLife => 25,
            Self::TableTooSoon => 26,
        }
    }

    /// A short name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::DirtySeatForgotten => "dirty-seat-forgotten",
            Self::RepeatJudgedAnew => "repeat-judged-anew",
            Self::ServedElsewhere => "served-elsewhere",
            Self::SpentNearBoundary => "spent-near-boundary",
            Self::RecallUnrecorded => "recall-unrecorded",
            Self::TwoCells => "two-cells",
            Self::ShareComesBack => "share-comes-back",
            Self::ChargedToLease => "charged-to-lease",
            Self::UsedFalls => "used-falls",
            Self::TimeStepsBack => "time-steps-back",
            Self::JoinedTwice => "joined-twice",
            Self::CellChangedHands => "cell-changed-hands",
            Self::RecallToldOnce => "recall-told-once",
            Self::DecidedLate => "decided-late",
            Self::MarkWithoutGeneration => "mark-without-generation",
            Self::TimeJumps => "time-jumps",
            Self::ProvisionalIgnored => "provisional-ignored",
            Self::WaitsForItself => "waits-for-itself",
            Self::TotalTakenLate => "total-taken-late",
            Self::AnswersForgotten => "answers-forgotten",
            Self::SpentAfterLife => "spent-after-life",
            Self::TableTooSoon => "table-too-soon",
        }
    }

    /// What goes wrong without the rule.
    #[must_use]
    pub const fn wrong(self) -> &'static str {
        match self {
            Self::DirtySeatForgotten => {
                "tokens are leased that a replica spent before it died, and told nobody"
            }
            Self::RepeatJudgedAnew => {
                "a repeated ask is judged and charged again; of two charges one is used"
            }
            Self::ServedElsewhere => {
                "a request whose ask is out is served from the lease; the owner charges it as well"
            }
            Self::SpentNearBoundary => "tokens of a window that is over are spent in the next one",
            Self::RecallUnrecorded => {
                "a recall without a cell leaves no trace; a later claim takes the share again"
            }
            Self::TwoCells => "a key has two cells, each with the same lease",
            Self::ShareComesBack => {
                "a share that was returned without a cell is there again for the next claim"
            }
            Self::ChargedToLease => {
                "decisions for two workers, charged to one lease, are merged into one charge"
            }
            Self::UsedFalls => {
                "tokens come back that had been reported as spent, after a refusal rested on that"
            }
            Self::TimeStepsBack => "service time goes back at failover, into a window that is over",
            Self::JoinedTwice => {
                "a repeated Join makes another tenancy; the leases of the first answer to nobody"
            }
            Self::CellChangedHands => {
                "a lease is taken in by a cell that is another window's or generation's by now"
            }
            Self::RecallToldOnce => {
                "a lost poll loses its recall; nobody can decide until the window ends"
            }
            Self::DecidedLate => {
                "a request that gave up long ago is charged, in a window it did not live in"
            }
            Self::MarkWithoutGeneration => {
                "a claim in a marked bucket begins at generation 0; a delayed lease fits it"
            }
            Self::TimeJumps => {
                "service time jumps to the ceiling; leases and proofs of a window outlive it"
            }
            Self::ProvisionalIgnored => {
                "a refusal rests on a provisional charge that is released later"
            }
            Self::WaitsForItself => "an ask waits for a reservation of its own until all give up",
            Self::TotalTakenLate => {
                "what is left is stated too low, and others refuse what is still there"
            }
            Self::AnswersForgotten => {
                "an ask that is repeated after a boundary is charged in two windows"
            }
            Self::SpentAfterLife => "a seat spends tokens that others were told are gone",
            Self::TableTooSoon => {
                "replicas that have not heard of a table spend the shares of the old one"
            }
        }
    }
}
