//! What replicas and the owner say to each other, as checked types: lengths, windows and numbers
//! have been looked at once, at the edge ([`crate::message::wire`]), and the logic sees only these.

use crate::key::KeyHash;
use crate::standing::{Limit, Table};
use crate::units::{
    Asker, Epoch, Generation, Incarnation, Rate, ReplicaId, Seat, Sequence, ServiceTime, Span,
    Tokens,
};
use crate::window::{Period, Window};

pub mod call;
pub mod wire;

/// Version of the protocol; a service understands its own and the one before.
pub const PROTOCOL_VERSION: u32 = 1;

/// Most waiting requests in one ask. Beyond it the rest waits for the next ask, one round trip
/// later; 256 costs are some 5 KB.
pub const COSTS_PER_ASK_MAX: usize = 256;

/// Most asks in one call, and most returns. 512 asks of three costs each are some 100 KB, well
/// under the 4 MiB that gRPC servers accept by default.
pub const ASKS_PER_CALL_MAX: usize = 512;

/// Most bytes of a domain or of a rule's name: they travel on first contact with every key.
pub const NAME_BYTES_MAX: usize = 128;

/// How long a waiting request may wait at most, whatever its configuration says, and so how long
/// the owner remembers an answer after it was given.
pub const DEADLINE_MAX: Span = Span::from_secs(10);

/// Identity of a rule's counters.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RuleId {
    /// The team or mesh part that owns the rule.
    pub domain: String,
    /// Its name, unique in the domain.
    pub name: String,
}

/// How a limit counts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Algorithm {
    /// An amount per period, aligned to the Unix epoch.
    FixedWindow,
}

impl Algorithm {
    /// Its number, part of a key's identity; the same as on the wire.
    #[must_use]
    pub const fn number(self) -> u32 {
        match self {
            Self::FixedWindow => 1,
        }
    }

    /// The algorithm of a number.
    #[must_use]
    pub const fn of_number(number: u32) -> Option<Self> {
        match number {
            1 => Some(Self::FixedWindow),
            _ => None,
        }
    }
}

/// A limit as a replica was configured with it, or as it is in force.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RuleSpec {
    /// Whose counters.
    pub id: RuleId,
    /// How it counts.
    pub algorithm: Algorithm,
    /// Tokens per window, at least one.
    pub amount: Tokens,
    /// Length of the window.
    pub period: Period,
    /// The configuration's revision, 0 where it carries none.
    pub revision: u64,
}

/// Which counters: another algorithm or period of the same rule counts afresh.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Counters {
    /// The rule.
    pub rule: RuleId,
    /// How it counts.
    pub algorithm: Algorithm,
    /// Length of the window.
    pub period: Period,
}

impl RuleSpec {
    /// Whose counters it limits.
    #[must_use]
    pub fn counters(&self) -> Counters {
        Counters {
            rule: self.id.clone(),
            algorithm: self.algorithm,
            period: self.period,
        }
    }
}

/// What standing shares are computed from, as far as it concerns one replica.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Directory {
    /// Counts the changes.
    pub revision: u64,
    /// The table revisions, in the order in which they were published.
    pub tables: Vec<Table>,
    /// The limits of the replica's rules, likewise.
    pub limits: Vec<(Counters, Vec<Limit>)>,
}

/// Which rule a key belongs to, and what may be shown of its values.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Descriptor {
    /// The rule.
    pub rule: RuleSpec,
    /// The values, masked where they are secrets.
    pub shown: Vec<String>,
}

/// Who speaks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sender {
    /// The replica.
    pub replica: ReplicaId,
    /// Its tenancy, as it counts them.
    pub incarnation: Incarnation,
    /// The seat from Welcome.
    pub seat: Seat,
    /// The highest epoch it has heard of.
    pub epoch: Epoch,
    /// Bounds on service time at the moment of sending, once it has heard any.
    pub service_time: Option<crate::clock::TimeBounds>,
    /// Revision of the directory that it knows, 0 for none.
    pub directory: u64,
}

/// Amounts of one lease, cumulative within one generation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LeaseAmounts {
    /// Counts the fences.
    pub generation: Generation,
    /// Tokens granted (G).
    pub granted: Tokens,
    /// Tokens spent (U).
    pub used: Tokens,
    /// Tokens reserved by requests over several rules (R).
    pub reserved: Tokens,
}

impl LeaseAmounts {
    /// Tokens that can still be spent: G - U - R.
    #[must_use]
    pub const fn free(&self) -> Tokens {
        self.granted.minus(self.used).minus(self.reserved)
    }
}

/// A lease of one key in one window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lease {
    /// The key.
    pub key: KeyHash,
    /// The window.
    pub window: Window,
    /// Its amounts.
    pub amounts: LeaseAmounts,
}

/// Names an ask.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct AskId {
    /// The asker.
    pub asker: Asker,
    /// Its number.
    pub sequence: Sequence,
    /// The key.
    pub key: KeyHash,
}

/// One waiting request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cost {
    /// Tokens it needs; 0 is judged as 1 and spends nothing.
    pub amount: Tokens,
    /// Charged until its resolution, because the request spans several rules.
    pub provisional: bool,
    /// It may be decided before this instant, not at or after it.
    pub decide_by: ServiceTime,
}

impl Cost {
    /// What has to be left for it.
    #[must_use]
    pub fn judged(&self) -> Tokens {
        self.amount.max(Tokens::new(1))
    }
}

/// One ask: for waiting requests, ahead of need (no costs), or both.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ask {
    /// Names it.
    pub id: AskId,
    /// The window as the replica sees it; `None` near a boundary: the owner decides in its own.
    pub window: Option<Window>,
    /// The replica's lease; `None` where the key has no cell, hence can hold none.
    pub lease: Option<LeaseAmounts>,
    /// The waiting requests, in order.
    pub costs: Vec<Cost>,
    /// Demand seen lately, refused arrivals included.
    pub demand: Rate,
    /// On first contact, and when the owner did not know the key.
    pub descriptor: Option<Descriptor>,
}

/// The answer to a recall, or a lease given back unasked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Return {
    /// What is left after it, with the new generation.
    pub lease: Lease,
    /// Demand seen lately, refused arrivals included.
    pub demand: Rate,
    /// The key has a cell at the replica.
    pub has_cell: bool,
}

/// Ends a provisional charge.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Resolution {
    /// The ask that was charged.
    pub ask: AskId,
    /// Which of its costs, from 0.
    pub cost: u32,
    /// The charge stands, or goes back.
    pub commit: bool,
}

/// The owner's word on one waiting cost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Decision {
    /// Charged.
    Admit,
    /// Less than the cost was left.
    Refuse,
    /// Nobody can know.
    Undecided,
}

/// No cost above `left` can be served, until the proof ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Proof {
    /// What is left.
    pub left: Tokens,
    /// How long this holds, counted from the sending of the request that it answers.
    pub time_to_live: Span,
}

/// Why an ask brought no decision, where it brought none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AnswerKind {
    /// It was looked at: decisions, lease and proofs count.
    Judged,
    /// The window it named is not the owner's.
    WrongWindow,
    /// The owner does not know the key: the descriptor is needed.
    UnknownKey,
    /// A later ask of this asker was answered before.
    Stale,
}

/// The answer to one ask.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Answer {
    /// Which ask.
    pub id: AskId,
    /// Whether it was looked at.
    pub kind: AnswerKind,
    /// The window it was decided in.
    pub window: Option<Window>,
    /// One for each cost, in order; costs beyond the last one ask again.
    pub decisions: Vec<Decision>,
    /// The asker's lease, if it has one: generation and G (U and R are not the owner's to say).
    pub lease: Option<(Generation, Tokens)>,
    /// Nothing beyond this is left anywhere.
    pub total: Option<Proof>,
    /// A wish for a lease waits at the owner.
    pub parked: bool,
}

/// Tokens are needed elsewhere.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Recall {
    /// The key.
    pub key: KeyHash,
    /// The window.
    pub window: Window,
    /// The generation that is recalled.
    pub generation: Generation,
    /// Unused tokens that may be kept.
    pub keep: Tokens,
}

/// Nothing beyond `total` is left of a key, anywhere.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Exhausted {
    /// The key.
    pub key: KeyHash,
    /// The window.
    pub window: Window,
    /// What is left.
    pub total: Proof,
}

/// What a replica must do about its seat before anything else counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SeatState {
    /// Nothing.
    Ok,
    /// The leader changed: fence all leases, Join again with the same incarnation.
    Register,
    /// The seat is gone: fence all leases, Join with the next incarnation.
    Unknown,
}
