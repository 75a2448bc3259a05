//! Between the wire's messages and the checked types: the one place where lengths, windows and
//! numbers from outside are looked at. Nothing is dropped silently; an error names the field.

use thiserror::Error;

use super::{
    ASKS_PER_CALL_MAX, Algorithm, Descriptor, Lease, LeaseAmounts, NAME_BYTES_MAX, RuleId,
    RuleSpec, Sender,
};
use crate::clock::{Stamps, TimeBounds};
use crate::key::KeyHash;
use crate::units::{Epoch, Generation, Incarnation, ReplicaId, Seat, ServiceTime, Span, Tokens};
use crate::window::{Period, Window};
use crate::wire as pb;

mod call;
mod directory;
mod exchange;

pub use call::{LEASES_PER_JOIN_MAX, RULES_PER_REPLICA_MAX};

/// A message from outside that cannot be. The sender is wrong, and repeating it changes nothing.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("{field} is {problem}")]
pub struct WireError {
    /// Which field.
    pub field: &'static str,
    /// What is wrong with it.
    pub problem: &'static str,
}

/// Result of looking at a message.
pub type Checked<T> = Result<T, WireError>;

fn bad<T>(field: &'static str, problem: &'static str) -> Checked<T> {
    Err(WireError { field, problem })
}

fn required<T>(value: Option<T>, field: &'static str) -> Checked<T> {
    value.ok_or(WireError {
        field,
        problem: "missing",
    })
}

fn key(bytes: &[u8]) -> Checked<KeyHash> {
    KeyHash::from_bytes(bytes).ok_or(WireError {
        field: "key",
        problem: "not 16 bytes long",
    })
}

fn key_bytes(key: KeyHash) -> Vec<u8> {
    key.to_bytes().to_vec()
}

fn window(window: pb::Window) -> Checked<Window> {
    let start = ServiceTime::new(window.start_service_ns);
    let end = ServiceTime::new(window.end_service_ns);
    Window::new(start, end).ok_or(WireError {
        field: "window",
        problem: "empty",
    })
}

impl From<Window> for pb::Window {
    fn from(window: Window) -> Self {
        Self {
            start_service_ns: window.start().get(),
            end_service_ns: window.end().get(),
        }
    }
}

impl From<Stamps> for pb::Stamps {
    fn from(stamps: Stamps) -> Self {
        Self {
            received_service_ns: stamps.received.get(),
            sent_service_ns: stamps.sent.get(),
        }
    }
}

impl From<pb::Stamps> for Stamps {
    fn from(stamps: pb::Stamps) -> Self {
        Self {
            received: ServiceTime::new(stamps.received_service_ns),
            sent: ServiceTime::new(stamps.sent_service_ns),
        }
    }
}

impl From<TimeBounds> for pb::TimeInterval {
    fn from(bounds: TimeBounds) -> Self {
        Self {
            earliest_service_ns: bounds.earliest.get(),
            latest_service_ns: bounds.latest.get(),
        }
    }
}

impl TryFrom<pb::TimeInterval> for TimeBounds {
    type Error = WireError;

    fn try_from(interval: pb::TimeInterval) -> Checked<Self> {
        let earliest = ServiceTime::new(interval.earliest_service_ns);
        let latest = ServiceTime::new(interval.latest_service_ns);
        if earliest > latest {
            return bad(
                "sender.service_time",
                "an interval that ends before it starts",
            );
        }
        Ok(Self { earliest, latest })
    }
}

impl From<Sender> for pb::Sender {
    fn from(sender: Sender) -> Self {
        Self {
            replica_id: sender.replica.get().to_be_bytes().to_vec(),
            incarnation: sender.incarnation.get(),
            seat: sender.seat.get(),
            epoch: sender.epoch.get(),
            service_time: sender.service_time.map(Into::into),
            directory: sender.directory,
        }
    }
}

impl TryFrom<Option<pb::Sender>> for Sender {
    type Error = WireError;

    fn try_from(sender: Option<pb::Sender>) -> Checked<Self> {
        let sender = required(sender, "sender")?;
        let Ok(replica) = <[u8; 16]>::try_from(sender.replica_id.as_slice()) else {
            return bad("sender.replica_id", "not 16 bytes long");
        };
        Ok(Self {
            replica: ReplicaId::new(u128::from_be_bytes(replica)),
            incarnation: Incarnation::new(sender.incarnation),
            seat: Seat::new(sender.seat),
            epoch: Epoch::new(sender.epoch),
            service_time: sender.service_time.map(TryInto::try_into).transpose()?,
            directory: sender.directory,
        })
    }
}

impl From<RuleSpec> for pb::Rule {
    fn from(rule: RuleSpec) -> Self {
        Self {
            domain: rule.id.domain,
            name: rule.id.name,
            algorithm: match rule.algorithm {
                Algorithm::FixedWindow => pb::Algorithm::FixedWindow.into(),
            },
            amount: rule.amount.get(),
            period_ns: rule.period.length().get(),
            revision: rule.revision,
        }
    }
}

impl TryFrom<pb::Rule> for RuleSpec {
    type Error = WireError;

    fn try_from(rule: pb::Rule) -> Checked<Self> {
        let algorithm = match rule.algorithm() {
            pb::Algorithm::FixedWindow => Algorithm::FixedWindow,
            pb::Algorithm::Unspecified => return bad("rule.algorithm", "unknown to this version"),
        };
        if rule.name.is_empty() || rule.name.len() > NAME_BYTES_MAX {
            return bad("rule.name", "empty or too long");
        }
        if rule.domain.is_empty() || rule.domain.len() > NAME_BYTES_MAX {
            return bad("rule.domain", "empty or too long");
        }
        if rule.amount == 0 {
            return bad("rule.amount", "zero");
        }
        let period = Period::new(Span::new(rule.period_ns));
        Ok(Self {
            id: RuleId {
                domain: rule.domain,
                name: rule.name,
            },
            algorithm,
            amount: Tokens::new(rule.amount),
            period: required(period, "rule.period_ns")?,
            revision: rule.revision,
        })
    }
}

impl From<Lease> for pb::Lease {
    fn from(lease: Lease) -> Self {
        Self {
            key: key_bytes(lease.key),
            window: Some(lease.window.into()),
            generation: lease.amounts.generation.get(),
            granted: lease.amounts.granted.get(),
            used: lease.amounts.used.get(),
            reserved: lease.amounts.reserved.get(),
        }
    }
}

impl TryFrom<pb::Lease> for Lease {
    type Error = WireError;

    fn try_from(lease: pb::Lease) -> Checked<Self> {
        Ok(Self {
            key: key(&lease.key)?,
            window: window(required(lease.window, "lease.window")?)?,
            amounts: amounts(lease.generation, lease.granted, lease.used, lease.reserved)?,
        })
    }
}

/// G >= U + R at every replica; a lease that says otherwise is refused whole.
fn amounts(generation: u64, granted: u64, used: u64, reserved: u64) -> Checked<LeaseAmounts> {
    match used.checked_add(reserved) {
        Some(taken) if taken <= granted => Ok(LeaseAmounts {
            generation: Generation::new(generation),
            granted: Tokens::new(granted),
            used: Tokens::new(used),
            reserved: Tokens::new(reserved),
        }),
        _ => bad(
            "lease.used",
            "more, with what is reserved, than was granted",
        ),
    }
}

impl From<Descriptor> for pb::Descriptor {
    fn from(descriptor: Descriptor) -> Self {
        Self {
            rule: Some(descriptor.rule.into()),
            shown: descriptor.shown,
        }
    }
}

impl TryFrom<pb::Descriptor> for Descriptor {
    type Error = WireError;

    fn try_from(descriptor: pb::Descriptor) -> Checked<Self> {
        let rule = required(descriptor.rule, "descriptor.rule")?.try_into()?;
        Ok(Self {
            rule,
            shown: descriptor.shown,
        })
    }
}

/// Checks a list against its bound, then each of its parts.
///
/// # Errors
/// The first part that cannot be, or a list longer than [`ASKS_PER_CALL_MAX`].
pub fn checked_list<W, T>(list: Vec<W>, field: &'static str) -> Checked<Vec<T>>
where
    T: TryFrom<W, Error = WireError>,
{
    if list.len() > ASKS_PER_CALL_MAX {
        return bad(field, "longer than a call may be");
    }
    list.into_iter().map(TryInto::try_into).collect()
}
