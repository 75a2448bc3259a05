//! What a step of the owner brings about, besides changed state.

use crate::key::KeyHash;
use crate::message::call::{AskAnswer, WatchAnswer, Welcome};
use crate::message::{Answer, Exhausted, Lease, Recall};
use crate::units::Tenancy;

/// Names an open call, by the caller.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ReplyTo(u64);

impl ReplyTo {
    /// Wraps the caller's number.
    #[must_use]
    pub const fn new(id: u64) -> Self {
        Self(id)
    }

    /// The caller's number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }
}

/// What one key brings about.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum KeyEffect {
    /// An ask has its answer.
    Answer(ReplyTo, Answer),
    /// Tokens are needed back from a replica.
    Recall(Tenancy, Recall),
    /// A recall has been returned, or has lost its object.
    RecallEnded(Tenancy, KeyHash),
    /// A replica may refuse from now on.
    Exhausted(Tenancy, Exhausted),
    /// A lease that a replica was waiting for.
    Granted(Tenancy, Lease),
    /// A replica reported more than it was ever granted; its word was not taken.
    ReportRefused,
    /// As many askers as may be have a last answer; a new one was told that nobody knows.
    AskersFull,
}

/// Why a call cannot be served.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rejection {
    /// The leader does not know service time yet; try again soon.
    Recovering,
    /// The replica speaks a version of the protocol that this service does not.
    Version,
    /// The replica has joined with a later incarnation before.
    OldIncarnation,
    /// There are as many replicas as may be.
    SeatsFull,
    /// As many asks wait as may.
    WaitingFull,
}

/// The answer to a call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reply {
    /// To Join.
    Welcome(Welcome),
    /// To Ask.
    Ask(AskAnswer),
    /// To Watch.
    Watch(WatchAnswer),
    /// To Leave.
    Left,
    /// To any.
    Rejected(Rejection),
}

/// A change to make durable: the key, and the value, or none to delete it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Change {
    /// Place in the store.
    pub key: Vec<u8>,
    /// What is there from now on.
    pub value: Option<Vec<u8>>,
}

/// All that a step brings about. The changes are durable before a reply leaves.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Outcome {
    /// To store, in order.
    pub changes: Vec<Change>,
    /// To send.
    pub replies: Vec<(ReplyTo, Reply)>,
}
