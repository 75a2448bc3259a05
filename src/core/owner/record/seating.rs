//! The records of what standing shares are computed from.

use prost::Message as _;

use crate::message::{Algorithm, Counters, RuleId};
use crate::owner::seating::{Dirty, SeatingChange};
use crate::standing::{Limit, Table};
use crate::units::{Seat, ServiceTime, Span, Tokens};
use crate::window::Period;

/// First byte of the place of a rule's limits; the rule's counters follow, written out.
const LIMITS_PREFIX: u8 = b'l';
/// First byte of a dirty seat's place.
const SEAT_PREFIX: u8 = b's';
/// The one place of the table revisions.
const TABLES_PLACE: &[u8] = b"tables";

#[derive(Clone, PartialEq, prost::Message)]
struct TablesRecord {
    #[prost(uint64, tag = "1")]
    revision: u64,
    #[prost(message, repeated, tag = "2")]
    tables: Vec<TableRecord>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct TableRecord {
    #[prost(fixed64, tag = "1")]
    effective: u64,
    #[prost(uint32, tag = "2")]
    seats: u32,
    #[prost(uint32, tag = "3")]
    short_part: u32,
    #[prost(uint32, tag = "4")]
    long_part: u32,
}

#[derive(Clone, PartialEq, prost::Message)]
struct LimitsRecord {
    #[prost(string, tag = "1")]
    domain: String,
    #[prost(string, tag = "2")]
    name: String,
    #[prost(uint32, tag = "3")]
    algorithm: u32,
    #[prost(uint64, tag = "4")]
    period: u64,
    #[prost(message, repeated, tag = "5")]
    limits: Vec<LimitRecord>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct LimitRecord {
    #[prost(fixed64, tag = "1")]
    effective: u64,
    #[prost(uint64, tag = "2")]
    amount: u64,
}

#[derive(Clone, PartialEq, prost::Message)]
struct DirtyRecord {
    #[prost(fixed64, tag = "1")]
    from: u64,
    #[prost(fixed64, tag = "2")]
    to: u64,
}

/// Where a change is stored, and what; nothing any more where that is `None`.
#[must_use]
pub fn write_seating(change: &SeatingChange) -> (Vec<u8>, Option<Vec<u8>>) {
    match change {
        SeatingChange::Tables(revision, tables) => {
            let record = TablesRecord {
                revision: *revision,
                tables: tables.iter().map(table_record).collect(),
            };
            (TABLES_PLACE.to_vec(), Some(record.encode_to_vec()))
        }
        SeatingChange::Limits(counters, limits) => {
            let record = LimitsRecord {
                domain: counters.rule.domain.clone(),
                name: counters.rule.name.clone(),
                algorithm: counters.algorithm.number(),
                period: counters.period.length().get(),
                limits: limits.iter().map(limit_record).collect(),
            };
            let value = (!limits.is_empty()).then(|| record.encode_to_vec());
            (limits_place(counters), value)
        }
        SeatingChange::Dirty(seat, dirty) => {
            let mut place = vec![SEAT_PREFIX];
            place.extend_from_slice(&seat.get().to_be_bytes());
            let record = dirty.map(|dirty| DirtyRecord {
                from: dirty.from.get(),
                to: dirty.to.get(),
            });
            (place, record.map(|record| record.encode_to_vec()))
        }
    }
}

/// The lengths keep two names that run into each other apart.
fn limits_place(counters: &Counters) -> Vec<u8> {
    let mut place = vec![LIMITS_PREFIX];
    for part in [&counters.rule.domain, &counters.rule.name] {
        let length = u32::try_from(part.len()).unwrap_or(u32::MAX);
        place.extend_from_slice(&length.to_be_bytes());
        place.extend_from_slice(part.as_bytes());
    }
    place.extend_from_slice(&counters.algorithm.number().to_be_bytes());
    place.extend_from_slice(&counters.period.length().get().to_be_bytes());
    place
}

fn table_record(table: &Table) -> TableRecord {
    TableRecord {
        effective: table.effective.get(),
        seats: table.seats,
        short_part: table.short_part,
        long_part: table.long_part,
    }
}

fn limit_record(limit: &Limit) -> LimitRecord {
    LimitRecord {
        effective: limit.effective.get(),
        amount: limit.amount.get(),
    }
}

/// Reads a record; `None` if the place is of another kind, `Some(None)` if it cannot be read.
pub(super) fn read(place: &[u8], value: &[u8]) -> Option<Option<SeatingChange>> {
    if place == TABLES_PLACE {
        return Some(tables(value));
    }
    let (kind, rest) = place.split_first()?;
    match *kind {
        LIMITS_PREFIX => Some(limits(value)),
        SEAT_PREFIX => Some(dirty(rest, value)),
        _ => None,
    }
}

fn tables(value: &[u8]) -> Option<SeatingChange> {
    let record = TablesRecord::decode(value).ok()?;
    let table = |table: &TableRecord| Table {
        effective: ServiceTime::new(table.effective),
        seats: table.seats,
        short_part: table.short_part,
        long_part: table.long_part,
    };
    let tables: Vec<Table> = record.tables.iter().map(table).collect();
    let ordered = tables.is_sorted_by_key(|table| table.effective);
    ordered.then_some(SeatingChange::Tables(record.revision, tables))
}

fn limits(value: &[u8]) -> Option<SeatingChange> {
    let record = LimitsRecord::decode(value).ok()?;
    let limit = |limit: &LimitRecord| Limit {
        effective: ServiceTime::new(limit.effective),
        amount: Tokens::new(limit.amount),
    };
    let limits: Vec<Limit> = record.limits.iter().map(limit).collect();
    let counters = Counters {
        rule: RuleId {
            domain: record.domain,
            name: record.name,
        },
        algorithm: Algorithm::of_number(record.algorithm)?,
        period: Period::new(Span::new(record.period))?,
    };
    let ordered = limits.is_sorted_by_key(|limit| limit.effective);
    ordered.then_some(SeatingChange::Limits(counters, limits))
}

fn dirty(seat: &[u8], value: &[u8]) -> Option<SeatingChange> {
    let seat = Seat::new(seat.try_into().ok().map(u32::from_be_bytes)?);
    let record = DirtyRecord::decode(value).ok()?;
    let dirty = Dirty {
        from: ServiceTime::new(record.from),
        to: ServiceTime::new(record.to),
    };
    Some(SeatingChange::Dirty(seat, Some(dirty)))
}
