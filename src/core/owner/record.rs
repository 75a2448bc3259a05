//! What the owner stores, as protobuf records: fields can be added without a new format.
//!
//! A stored record is trusted as far as its own invariants hold; one that breaks them is an error
//! that names the record, since serving from it could admit too much.

use std::collections::BTreeMap;

use prost::Message as _;
use thiserror::Error;

use crate::key::{HashKey, KeyHash};
use crate::message::{AskId, Decision, RuleId};
use crate::owner::clock::{Anchor, Boot};
use crate::owner::key::{KeyState, LastAnswer};
use crate::owner::ledger::{ChargeId, Holder, Ledger, Provisional};
use crate::owner::seating::SeatingChange;
use crate::units::{
    Asker, Generation, Incarnation, ReplicaId, Seat, Sequence, ServiceTime, Span, Tenancy, Tokens,
};
use crate::window::{Period, Window};

mod proto;
mod seating;

pub use seating::write_seating;

use proto::{
    AnchorRecord, AskerRecord, ChargeRecord, HolderRecord, KeyRecord, MemberRecord, MetaRecord,
};

/// First byte of a key's place in the store.
const KEY_PREFIX: u8 = b'k';
/// First byte of a member's place in the store.
const MEMBER_PREFIX: u8 = b'm';
/// The one place for what there is only one of.
const META_PLACE: &[u8] = b"meta";

/// A stored record that cannot be.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error(
    "stored record {place} {problem}; restore the store from a backup, or start with an empty one \
     (limits then count from zero)"
)]
pub struct RecordError {
    /// Where it is stored, printable.
    pub place: String,
    /// What is wrong with it.
    pub problem: &'static str,
}

/// A replica's tenancy of a seat.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StoredMember {
    /// Numbers all tenancies.
    pub tenancy: Tenancy,
    /// The replica.
    pub replica: ReplicaId,
    /// Its tenancy, as it counts them.
    pub incarnation: Incarnation,
    /// The seat.
    pub seat: Seat,
    /// When the tenancy began.
    pub joined: ServiceTime,
}

/// What there is only one of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Meta {
    /// Secret of the keyed hash.
    pub hash_key: HashKey,
    /// The next tenancy's number.
    pub next_tenancy: Tenancy,
    /// No time beyond it was used.
    pub ceiling: ServiceTime,
    /// How service time goes on, on the machine that wrote it.
    pub anchor: Option<Anchor>,
}

/// One stored record.
#[derive(Debug)]
pub enum Stored {
    /// A key.
    Key(Box<KeyState>),
    /// A member.
    Member(StoredMember),
    /// What there is only one of.
    Meta(Meta),
    /// A part of what standing shares are computed from.
    Seating(SeatingChange),
}

/// Where a key is stored.
#[must_use]
pub fn key_place(key: KeyHash) -> Vec<u8> {
    let mut place = vec![KEY_PREFIX];
    place.extend_from_slice(&key.to_bytes());
    place
}

/// Where a member is stored.
#[must_use]
pub fn member_place(tenancy: Tenancy) -> Vec<u8> {
    let mut place = vec![MEMBER_PREFIX];
    place.extend_from_slice(&tenancy.get().to_be_bytes());
    place
}

/// Where what there is only one of is stored.
#[must_use]
pub fn meta_place() -> Vec<u8> {
    META_PLACE.to_vec()
}

/// Reads a record.
///
/// # Errors
/// It cannot be read, or breaks an invariant.
pub fn read(place: &[u8], value: &[u8]) -> Result<Stored, RecordError> {
    let wrong = |problem| RecordError {
        place: printable(place),
        problem,
    };
    let unreadable = |_| wrong("cannot be read");
    match place.split_first() {
        _ if place == META_PLACE => {
            let record = MetaRecord::decode(value).map_err(unreadable)?;
            meta(&record)
                .map(Stored::Meta)
                .ok_or_else(|| wrong("has a key of a wrong length"))
        }
        Some((&KEY_PREFIX, rest)) => {
            let key = KeyHash::from_bytes(rest).ok_or_else(|| wrong("has a wrong name"))?;
            let record = KeyRecord::decode(value).map_err(unreadable)?;
            let state = key_state(key, record).ok_or_else(|| wrong("breaks an invariant"))?;
            Ok(Stored::Key(Box::new(state)))
        }
        Some((&MEMBER_PREFIX, rest)) => {
            let tenancy = rest.try_into().map(u64::from_be_bytes).map(Tenancy::new);
            let tenancy = tenancy.map_err(|_| wrong("has a wrong name"))?;
            let record = MemberRecord::decode(value).map_err(unreadable)?;
            member(tenancy, &record)
                .map(Stored::Member)
                .ok_or_else(|| wrong("cannot be read"))
        }
        _ => match seating::read(place, value) {
            Some(part) => part
                .map(Stored::Seating)
                .ok_or_else(|| wrong("cannot be read")),
            None => Err(wrong("is of an unknown kind")),
        },
    }
}

fn printable(place: &[u8]) -> String {
    place
        .iter()
        .flat_map(|byte| std::ascii::escape_default(*byte))
        .map(char::from)
        .collect()
}

/// What to store of the one record there is of its kind.
#[must_use]
pub fn write_meta(meta: &Meta) -> Vec<u8> {
    let record = MetaRecord {
        hash_key: meta.hash_key.bytes().to_vec(),
        next_tenancy: meta.next_tenancy.get(),
        ceiling: meta.ceiling.get(),
        anchor: meta.anchor.map(|anchor| AnchorRecord {
            boot_id: anchor.boot.id.to_be_bytes().to_vec(),
            since_boot: anchor.boot.since.get(),
            service: anchor.service.get(),
            slew: anchor.slew,
        }),
    };
    record.encode_to_vec()
}

fn meta(record: &MetaRecord) -> Option<Meta> {
    Some(Meta {
        hash_key: HashKey::new(record.hash_key.as_slice().try_into().ok()?),
        next_tenancy: Tenancy::new(record.next_tenancy),
        ceiling: ServiceTime::new(record.ceiling),
        anchor: record.anchor.as_ref().and_then(anchor),
    })
}

/// One that cannot be read is no anchor: the next leader asks a live replica for the time.
fn anchor(record: &AnchorRecord) -> Option<Anchor> {
    let id = record.boot_id.as_slice().try_into().ok();
    let id = id.map(u128::from_be_bytes)?;
    let since = Span::new(record.since_boot);
    Some(Anchor {
        boot: Boot { id, since },
        service: ServiceTime::new(record.service),
        slew: record.slew,
    })
}

/// What to store of a member.
#[must_use]
pub fn write_member(member: &StoredMember) -> Vec<u8> {
    let record = MemberRecord {
        replica: member.replica.get().to_be_bytes().to_vec(),
        incarnation: member.incarnation.get(),
        seat: member.seat.get(),
        joined: member.joined.get(),
    };
    record.encode_to_vec()
}

fn member(tenancy: Tenancy, record: &MemberRecord) -> Option<StoredMember> {
    let replica = record
        .replica
        .as_slice()
        .try_into()
        .ok()
        .map(u128::from_be_bytes)?;
    Some(StoredMember {
        tenancy,
        replica: ReplicaId::new(replica),
        incarnation: Incarnation::new(record.incarnation),
        seat: Seat::new(record.seat),
        joined: ServiceTime::new(record.joined),
    })
}

/// What to store of a key. The pool is what is left of the limit; U of a holder is its own to say.
#[must_use]
pub fn write_key(state: &KeyState) -> Vec<u8> {
    let ledger = state.ledger();
    let holders = ledger
        .holders()
        .iter()
        .map(|(tenancy, holder)| HolderRecord {
            tenancy: tenancy.get(),
            generation: holder.generation.get(),
            granted: holder.granted.get(),
            has_cell: holder.has_cell,
        });
    let charges = ledger
        .provisional()
        .iter()
        .map(|((ask, cost), charge)| ChargeRecord {
            asker: ask.asker.get(),
            sequence: ask.sequence.get(),
            cost: *cost,
            amount: charge.amount.get(),
            expires: charge.expires.get(),
        });
    let askers = state.askers().iter().map(|(asker, last)| AskerRecord {
        asker: asker.get(),
        sequence: last.sequence.get(),
        window_start: last.window.start().get(),
        window_end: last.window.end().get(),
        decisions: pack(&last.decisions),
    });
    let record = KeyRecord {
        domain: state.rule().domain.clone(),
        name: state.rule().name.clone(),
        period: state.period().length().get(),
        window_start: ledger.window().start().get(),
        window_end: ledger.window().end().get(),
        limit: ledger.limit().get(),
        spent: ledger.spent().get(),
        dead: ledger.dead().get(),
        holders: holders.collect(),
        charges: charges.collect(),
        askers: askers.collect(),
    };
    record.encode_to_vec()
}

fn key_state(key: KeyHash, record: KeyRecord) -> Option<KeyState> {
    let window = window(record.window_start, record.window_end)?;
    let holders = record.holders.iter().map(|holder| {
        let known = Holder {
            generation: Generation::new(holder.generation),
            granted: Tokens::new(holder.granted),
            has_cell: holder.has_cell,
            ..Holder::default()
        };
        (Tenancy::new(holder.tenancy), known)
    });
    let charges = record
        .charges
        .iter()
        .map(|charge| -> (ChargeId, Provisional) {
            let (asker, sequence) = (Asker::new(charge.asker), Sequence::new(charge.sequence));
            let amount = Tokens::new(charge.amount);
            let expires = ServiceTime::new(charge.expires);
            (
                (
                    AskId {
                        asker,
                        sequence,
                        key,
                    },
                    charge.cost,
                ),
                Provisional { amount, expires },
            )
        });
    let ledger = Ledger::restore(
        window,
        Tokens::new(record.limit),
        (Tokens::new(record.spent), Tokens::new(record.dead)),
        holders.collect(),
        charges.collect(),
    )?;
    let askers: Option<BTreeMap<Asker, LastAnswer>> =
        record.askers.iter().map(last_answer).collect();
    let rule = RuleId {
        domain: record.domain,
        name: record.name,
    };
    let period = Period::new(Span::new(record.period))?;
    Some(KeyState::restored(key, rule, period, ledger, askers?))
}

fn last_answer(record: &AskerRecord) -> Option<(Asker, LastAnswer)> {
    let answer = LastAnswer {
        sequence: Sequence::new(record.sequence),
        window: window(record.window_start, record.window_end)?,
        decisions: unpack(&record.decisions),
    };
    Some((Asker::new(record.asker), answer))
}

fn window(start: u64, end: u64) -> Option<Window> {
    Window::new(ServiceTime::new(start), ServiceTime::new(end))
}

/// Decisions in one byte.
const DECISIONS_PER_BYTE: usize = 4;

/// Two bits a decision, the first one lowest; 0 is the end. A hot key keeps thousands of answers.
fn pack(decisions: &[Decision]) -> Vec<u8> {
    let bits = |decision: &Decision| match decision {
        Decision::Admit => 1_u8,
        Decision::Refuse => 2,
        Decision::Undecided => 3,
    };
    let chunks = decisions.chunks(DECISIONS_PER_BYTE);
    chunks
        .map(|chunk| {
            chunk
                .iter()
                .rev()
                .fold(0, |byte, next| byte << 2 | bits(next))
        })
        .collect()
}

fn unpack(bytes: &[u8]) -> Vec<Decision> {
    let all = bytes
        .iter()
        .flat_map(|byte| [byte & 3, byte >> 2 & 3, byte >> 4 & 3, byte >> 6]);
    let decision = |bits: u8| match bits {
        1 => Some(Decision::Admit),
        2 => Some(Decision::Refuse),
        3 => Some(Decision::Undecided),
        _ => None,
    };
    all.map_while(decision).collect()
}

#[cfg(test)]
mod tests;
