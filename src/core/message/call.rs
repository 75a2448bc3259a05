//! The calls as wholes: Join, Ask, Watch, and their answers.

use super::{
    Answer, Ask, Directory, Exhausted, Lease, Recall, Resolution, Return, RuleSpec, SeatState,
    Sender,
};
use crate::clock::Stamps;
use crate::key::HashKey;
use crate::units::{Epoch, Seat, ServiceTime, Span};

/// Asks for a seat, states the rules, registers what is still held.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Join {
    /// Version of the protocol that the replica speaks.
    pub protocol_version: u32,
    /// Who asks.
    pub sender: Sender,
    /// All rules it was configured with.
    pub rules: Vec<RuleSpec>,
    /// All leases it holds, if it registers with a new leader.
    pub leases: Vec<Lease>,
    /// The leader for which all leases were fenced before this was sent.
    pub fenced_for: Option<Epoch>,
}

/// The answer to Join.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Welcome {
    /// The leader's epoch.
    pub epoch: Epoch,
    /// The seat.
    pub seat: Seat,
    /// When the tenancy began: only windows that begin from then on give it standing shares.
    pub joined: ServiceTime,
    /// How long the seat lives after the sending of the last answered message.
    pub time_to_live: Span,
    /// For the estimate of service time.
    pub stamps: Stamps,
    /// Secret of the keyed hash.
    pub hash_key: HashKey,
    /// Unknown: the tenancy has ended, and the next incarnation is to join.
    pub seat_state: SeatState,
    /// What standing shares are computed from; none without a seat.
    pub directory: Option<Directory>,
}

/// The last word of a replica whose plugin is removed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Leave {
    /// Who goes.
    pub sender: Sender,
    /// All leases it had, fenced with nothing left in them.
    pub leases: Vec<Lease>,
    /// Nothing is missing from them: of every other key it has used nothing.
    pub complete: bool,
}

/// A batch of asks and of what answers the owner.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AskCall {
    /// Who asks.
    pub sender: Sender,
    /// The asks.
    pub asks: Vec<Ask>,
    /// Answers to recalls.
    pub returns: Vec<Return>,
    /// Ends of provisional charges.
    pub resolutions: Vec<Resolution>,
}

/// The answer to a batch. An ask that is missing from it still waits.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AskAnswer {
    /// The leader's epoch.
    pub epoch: Epoch,
    /// For the estimate of service time.
    pub stamps: Stamps,
    /// The sender's seat.
    pub seat_state: SeatState,
    /// In any order.
    pub answers: Vec<Answer>,
    /// Recalls that the replica has not returned yet.
    pub recalls: Vec<Recall>,
}

/// The answer to a long poll.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WatchAnswer {
    /// The leader's epoch.
    pub epoch: Epoch,
    /// For the estimate of service time.
    pub stamps: Stamps,
    /// The sender's seat.
    pub seat_state: SeatState,
    /// Recalls that the replica has not returned yet.
    pub recalls: Vec<Recall>,
    /// Keys of which nothing is left.
    pub exhausted: Vec<Exhausted>,
    /// Leases that replicas were waiting for; U and R are not the owner's to say.
    pub leases: Vec<Lease>,
    /// The directory, if it is another one than the sender knows.
    pub directory: Option<Directory>,
}
