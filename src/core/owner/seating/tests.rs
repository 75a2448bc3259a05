//! Whom a window is charged for, and what is published when.

use super::*;
use crate::message::{Algorithm, RuleId, RuleSpec};
use crate::owner::member::Member;
use crate::owner::record::{self, Stored, StoredMember};
use crate::units::{Incarnation, LocalTime, ReplicaId};
#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

const MINUTE: Span = Span::from_secs(60);
const LIMIT: u64 = 100;

fn time(seconds: u64) -> ServiceTime {
    ServiceTime::new(1_800_000_000_000_000_000).plus(Span::from_secs(seconds))
}

fn window(start: u64) -> Window {
    Window::new(time(start), time(start + 60)).unwrap()
}

fn spec(amount: u64) -> RuleSpec {
    RuleSpec {
        id: RuleId {
            domain: "test".to_owned(),
            name: "rule".to_owned(),
        },
        algorithm: Algorithm::FixedWindow,
        amount: Tokens::new(amount),
        period: Period::new(MINUTE).unwrap(),
        revision: 0,
    }
}

/// Members with these seats and beginnings; the tenancy's number is the seat's and 100.
fn members(seats: &[(u32, u64)]) -> Members {
    let mut members = Members::default();
    for (seat, joined) in seats {
        let stored = StoredMember {
            tenancy: Tenancy::new(u64::from(*seat) + 100),
            replica: ReplicaId::new(u128::from(*seat)),
            incarnation: Incarnation::new(1),
            seat: Seat::new(*seat),
            joined: time(*joined),
        };
        members.add(Member::new(stored, LocalTime::ZERO, true));
    }
    members
}

struct Fleet {
    seating: Seating,
    members: Members,
    rules: Rules,
}

impl Fleet {
    /// Two members since second 0, who state a limit of 100 at once.
    fn of_two() -> Self {
        let mut fleet = Self {
            seating: Seating::default(),
            members: members(&[(0, 0), (1, 0)]),
            rules: Rules::default(),
        };
        fleet.state(LIMIT);
        fleet.publish(0);
        fleet
    }

    fn state(&mut self, amount: u64) {
        for tenancy in [100, 101] {
            let changed = self.rules.state(Tenancy::new(tenancy), &spec(amount));
            for counters in changed.unwrap() {
                self.seating.look_at(counters);
            }
        }
    }

    fn publish(&mut self, seconds: u64) {
        let now = time(seconds);
        self.seating.publish(now, &self.members, &self.rules);
    }

    /// The ledger of a window: limit, pool, dead, and what each tenancy holds.
    fn begin(&self, start: u64) -> (u64, u64, u64, Vec<(u64, u64)>) {
        let of = (&spec(1).counters(), KeyHash::new(5));
        let fallback = Tokens::new(7);
        let ledger = self
            .seating
            .begin(of, window(start), &self.members, fallback);
        assert!(ledger.is_sound());
        let holders = ledger.holders().iter();
        (
            ledger.limit().get(),
            ledger.pool().get(),
            ledger.dead().get(),
            holders
                .map(|(tenancy, holder)| (tenancy.get(), holder.granted.get()))
                .collect(),
        )
    }
}

#[test]
fn every_seat_holds_its_share_of_a_window_from_the_start() {
    let fleet = Fleet::of_two();
    let both = vec![(100, 25), (101, 25)];
    assert_eq!(fleet.begin(5), (LIMIT, 50, 0, both));
    assert_eq!(fleet.begin(4), (7, 7, 0, vec![]), "not in force yet");
}

#[test]
fn a_replica_that_joins_in_mid_window_has_a_share_of_the_next() {
    let mut fleet = Fleet::of_two();
    fleet.members = members(&[(0, 0), (1, 0), (2, 30)]);
    fleet.publish(30);
    let both = vec![(100, 25), (101, 25)];
    assert_eq!(fleet.begin(34), (LIMIT, 50, 0, both));
    let (limit, pool, dead, holders) = fleet.begin(35);
    assert_eq!((limit, pool, dead, holders.len()), (LIMIT, 50, 0, 3));
}

#[test]
fn the_share_of_a_vacant_seat_is_in_the_pool() {
    // Who sits there now did not when the window began, and was told so.
    let mut fleet = Fleet::of_two();
    fleet.members = members(&[(0, 0), (1, 61)]);
    assert_eq!(fleet.begin(60), (LIMIT, 75, 0, vec![(100, 25)]));
}

#[test]
fn the_share_of_a_lost_seat_is_spent_in_the_windows_that_began_in_its_tenancy() {
    let mut fleet = Fleet::of_two();
    fleet.members = members(&[(0, 0)]);
    fleet.seating.soil(Seat::new(1), time(0), Some(time(70)));
    assert_eq!(fleet.begin(60), (LIMIT, 50, 25, vec![(100, 25)]));
    assert_eq!(fleet.begin(70), (LIMIT, 50, 25, vec![(100, 25)]));
    assert_eq!(fleet.begin(71), (LIMIT, 75, 0, vec![(100, 25)]));
    // Another replica in this seat changes nothing for them.
    fleet.members = members(&[(0, 0), (1, 72)]);
    assert_eq!(fleet.begin(60), (LIMIT, 50, 25, vec![(100, 25)]));
    let both = vec![(100, 25), (101, 25)];
    assert_eq!(fleet.begin(120), (LIMIT, 50, 0, both));
}

#[test]
fn a_seat_lost_before_service_time_is_known_is_dirty_until_it_is() {
    let mut fleet = Fleet::of_two();
    fleet.members = members(&[(0, 0)]);
    fleet.seating.soil(Seat::new(1), time(0), None);
    assert_eq!(fleet.begin(200).2, 25);
    fleet.publish(100);
    assert_eq!((fleet.begin(100).2, fleet.begin(101).2), (25, 0));
}

#[test]
fn two_lost_tenancies_of_a_seat_cover_the_time_between_them() {
    let mut fleet = Fleet::of_two();
    fleet.members = members(&[(0, 0)]);
    fleet.seating.soil(Seat::new(1), time(0), Some(time(20)));
    fleet.seating.soil(Seat::new(1), time(40), Some(time(50)));
    for (start, dead) in [(10, 25), (30, 25), (50, 25), (51, 0)] {
        assert_eq!(fleet.begin(start).2, dead, "{start}");
    }
}

#[test]
fn dirty_seats_are_forgotten_when_no_window_can_have_begun_in_them() {
    let mut fleet = Fleet::of_two();
    fleet.seating.soil(Seat::new(1), time(0), Some(time(10)));
    fleet.seating.take_changes();
    let over = 10 + STANDING_PERIOD_MAX.get() / 1_000_000_000;
    fleet.publish(over - 1);
    assert_eq!(fleet.seating.take_changes(), vec![]);
    fleet.publish(over);
    let clean = SeatingChange::Dirty(Seat::new(1), None);
    assert_eq!(fleet.seating.take_changes(), vec![clean]);
}

#[test]
fn a_changed_limit_holds_for_the_windows_that_begin_after_it_is_in_force() {
    let mut fleet = Fleet::of_two();
    fleet.state(40);
    fleet.publish(100);
    assert_eq!(fleet.begin(104).0, LIMIT);
    assert_eq!(fleet.begin(105).0, 40);
}

#[test]
fn a_limit_that_changes_too_often_waits_and_is_published_later() {
    let mut fleet = Fleet::of_two();
    let revisions = LIMITS_PER_RULE_MAX as u64 + 3;
    for amount in 1..revisions {
        fleet.state(amount);
        fleet.publish(amount);
    }
    let full = fleet.begin(50).0;
    assert!(
        full < revisions - 1,
        "the last is not published yet: {full}"
    );
    fleet.publish(100);
    assert_eq!(fleet.begin(105).0, revisions - 1);
}

#[test]
fn a_fleet_that_changes_too_often_keeps_the_table_it_has() {
    let mut fleet = Fleet::of_two();
    let sizes = TABLES_MAX as u32 + 5;
    for size in 3..sizes {
        let seats: Vec<_> = (0..size).map(|seat| (seat, 0)).collect();
        fleet.members = members(&seats);
        fleet.publish(u64::from(size));
    }
    let seats = |fleet: &Fleet| fleet.seating.tables.last().unwrap().seats;
    assert_eq!(fleet.seating.tables.len(), TABLES_MAX);
    assert!(seats(&fleet) < sizes - 1);
    fleet.publish(8_000);
    assert_eq!(seats(&fleet), sizes - 1);
}

#[test]
fn a_rule_that_nobody_states_is_forgotten_after_its_last_window() {
    let mut fleet = Fleet::of_two();
    for tenancy in [100, 101] {
        for counters in fleet.rules.forget(Tenancy::new(tenancy)) {
            fleet.seating.look_at(counters);
        }
    }
    fleet.publish(10);
    assert_eq!(fleet.begin(60).0, LIMIT);
    fleet.publish(74);
    assert_eq!(fleet.begin(60).0, LIMIT);
    fleet.publish(75);
    assert_eq!(fleet.begin(60).0, 7, "the fallback");
}

#[test]
fn the_directory_has_only_the_rules_that_are_asked_for() {
    let fleet = Fleet::of_two();
    let counters = || spec(1).counters();
    let mine = fleet.seating.directory([counters()].into_iter());
    assert_eq!(mine.limits.len(), 1);
    let other = Counters {
        period: Period::new(Span::from_secs(1)).unwrap(),
        ..counters()
    };
    let nothing = fleet.seating.directory([other].into_iter());
    assert_eq!((nothing.limits.len(), nothing.tables.len()), (0, 1));
    assert_eq!(mine.revision, fleet.seating.revision());
}

#[test]
fn what_is_stored_comes_back_with_the_next_leader() {
    let mut fleet = Fleet::of_two();
    fleet.seating.soil(Seat::new(1), time(0), Some(time(70)));
    fleet.members = members(&[(0, 0), (1, 80)]);
    fleet.publish(80);
    let mut next = Seating::default();
    let mut stored = std::collections::BTreeMap::new();
    for change in fleet.seating.take_changes() {
        let (place, value) = record::write_seating(&change);
        stored.insert(place, value);
    }
    for (place, value) in stored {
        let Some(value) = value else { continue };
        match record::read(&place, &value).unwrap() {
            Stored::Seating(part) => next.restore(part),
            other => panic!("{other:?}"),
        }
    }
    let before: Vec<_> = [60, 120].map(|start| fleet.begin(start)).to_vec();
    assert_eq!(next.revision(), fleet.seating.revision());
    fleet.seating = next;
    let after: Vec<_> = [60, 120].map(|start| fleet.begin(start)).to_vec();
    assert_eq!(before, after);
}
