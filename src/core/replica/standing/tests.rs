//! What a replica counts on of its standing share, and when it counts on nothing.

use super::*;
use crate::clock::OffsetEstimate;
use crate::message::{Algorithm, RuleId};
use crate::replica::seat::Seated;
use crate::standing::{LONG_PART, PUBLISHED_AHEAD, SHORT_PART};
use crate::units::{Epoch, ReplicaId, Span};
use crate::world::Memory;
#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

const SECRET: HashKey = HashKey::new([3; 16]);

fn time(seconds: u64) -> ServiceTime {
    ServiceTime::new(1_800_000_000_000_000_000).plus(Span::from_secs(seconds))
}

fn minute() -> Period {
    Period::new(Span::from_secs(60)).unwrap()
}

fn counters() -> Counters {
    Counters {
        rule: RuleId {
            domain: "test".to_owned(),
            name: "rule".to_owned(),
        },
        algorithm: Algorithm::FixedWindow,
        period: minute(),
    }
}

/// Two seats from second 10 on, four from second 70 on; a limit of 100 from second 20 on.
fn directory(revision: u64) -> Directory {
    let table = |effective, seats| Table {
        effective,
        seats,
        short_part: SHORT_PART,
        long_part: LONG_PART,
    };
    let limit = Limit {
        effective: time(20),
        amount: Tokens::new(100),
    };
    Directory {
        revision,
        tables: vec![table(time(10), 2), table(time(70), 4)],
        limits: vec![(counters(), vec![limit])],
    }
}

fn record(joined: u64, heard: u64) -> StandingRecord {
    let seat = (Incarnation::new(1), Seat::new(0), time(joined));
    StandingRecord::of(seat, time(heard), &directory(1), SECRET)
}

fn wanted(start: u64) -> Wanted {
    Wanted {
        counters: counters_id(&counters(), SECRET),
        period: minute(),
        key: KeyHash::new(9),
        window: Window::new(time(start), time(start + 60)).unwrap(),
    }
}

fn share(record: &StandingRecord, start: u64) -> Option<u64> {
    record.share(wanted(start)).map(Tokens::get)
}

#[test]
fn a_window_has_the_table_and_the_limit_in_force_when_it_begins() {
    let record = record(0, 200);
    assert_eq!(share(&record, 60), Some(25), "half of 100 over two seats");
    let four = share(&record, 120);
    assert!(matches!(four, Some(12 | 13)), "{four:?}");
}

#[test]
fn nothing_stands_of_a_window_that_began_before_the_limit_or_the_tenancy() {
    assert_eq!(share(&record(0, 200), 0), Some(0), "no limit in force");
    assert_eq!(share(&record(61, 200), 60), Some(0), "joined in mid-window");
    assert_eq!(share(&record(60, 200), 60), Some(25));
}

#[test]
fn what_may_have_been_published_unheard_is_not_guessed() {
    let mut record = record(0, 100);
    let ahead = PUBLISHED_AHEAD.get() / 1_000_000_000;
    assert_eq!(share(&record, 100 + ahead + 1), None);
    assert!(share(&record, 100 + ahead).is_some());
    record.hear(time(101), None, SECRET);
    assert!(share(&record, 100 + ahead + 1).is_some());
}

#[test]
fn a_directory_is_taken_in_unless_a_later_one_is_known() {
    let mut record = record(0, 100);
    let mut other = directory(2);
    other.limits.clear();
    record.hear(time(130), Some(&other), SECRET);
    assert_eq!(record.revision, 2);
    assert_eq!(share(&record, 120), Some(0));
    record.hear(time(110), Some(&directory(1)), SECRET);
    assert_eq!((record.revision, share(&record, 120)), (2, Some(0)));
    assert_eq!(record.heard, time(130), "an answer that was overtaken");
}

#[test]
fn bytes_go_round_and_a_former_tenancy_writes_nothing() {
    let memory = Memory::default();
    assert_eq!(StandingRecord::load(&memory), Ok(None));
    let mut later = record(0, 100);
    later.incarnation = Incarnation::new(2);
    later.store(&memory).unwrap();
    assert_eq!(StandingRecord::load(&memory), Ok(Some(later.clone())));
    record(0, 900).store(&memory).unwrap();
    let hear = |incarnation| {
        StandingRecord::change(&memory, Incarnation::new(incarnation), |record| {
            record.hear(time(500), None, SECRET);
        })
    };
    hear(1).unwrap();
    assert_eq!(StandingRecord::load(&memory), Ok(Some(later)));
    hear(2).unwrap();
    let heard = StandingRecord::load(&memory).unwrap().unwrap().heard;
    assert_eq!(heard, time(500));
}

/// A seat of incarnation 1 that lives until local second 5, and the record of its shares.
fn seated() -> (Memory, StandingRecord) {
    let memory = Memory::default();
    SeatRecord::load_or_create(&memory, ReplicaId::new(7)).unwrap();
    let seated = Seated {
        seat: Seat::new(0),
        epoch: Epoch::new(1),
        alive_until: LocalTime::ZERO.plus(Span::from_secs(5)),
        time_to_live: Span::from_secs(5),
        failed_at: LocalTime::ZERO,
        hash_key: SECRET,
        offset: OffsetEstimate::from_parts(0, 0, LocalTime::ZERO),
    };
    let seat = |record: &mut SeatRecord| record.seated = Some(seated);
    SeatRecord::change(&memory, Incarnation::new(1), seat).unwrap();
    (memory, record(0, 100))
}

fn at(seconds: u64) -> LocalTime {
    LocalTime::ZERO.plus(Span::from_secs(seconds))
}

#[test]
fn a_seat_that_is_lost_between_the_halves_of_a_claim_gives_nothing() {
    let (memory, record) = seated();
    let now = |copy, seconds| share_now(&memory, copy, at(seconds), wanted(60));
    assert_eq!(now(Some(&record), 4), Ok(Some(Tokens::new(25))));
    assert_eq!(now(None, 4), Ok(None), "no record");
    assert_eq!(now(Some(&record), 5), Ok(None), "its time to live is over");
    let end = |record: &mut SeatRecord| {
        record.incarnation = Incarnation::new(2);
    };
    SeatRecord::change(&memory, Incarnation::new(1), end).unwrap();
    assert_eq!(now(Some(&record), 4), Ok(None), "another tenancy");
}
