//! One instance works for the replica; fences come before registrations.

use super::*;
use crate::clock::Stamps;
use crate::key::{HashKey, KeyHash};
use crate::replica::bucket::Claim;
use crate::replica::bucket::{Take, Taken};
use crate::units::{Generation, Incarnation, Seat, ServiceTime, Tokens};
use crate::window::Window;
use crate::world::Memory;
#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

mod pushes;

const FRESH: ReplicaId = ReplicaId::new(42);

fn at(millis: u64) -> LocalTime {
    LocalTime::new(millis * 1_000_000)
}

fn stamps(millis: u64) -> Stamps {
    let time = ServiceTime::new(millis * 1_000_000 + 1_000_000_000_000);
    Stamps {
        received: time,
        sent: time,
    }
}

fn welcome(millis: u64, epoch: u64) -> Welcome {
    Welcome {
        epoch: Epoch::new(epoch),
        seat: Seat::new(3),
        joined: ServiceTime::ZERO,
        directory: None,
        time_to_live: Span::from_secs(5),
        stamps: stamps(millis),
        hash_key: HashKey::new([1; 16]),
        seat_state: SeatState::Ok,
    }
}

fn answer(millis: u64, epoch: u64, seat_state: SeatState) -> WatchAnswer {
    WatchAnswer {
        epoch: Epoch::new(epoch),
        stamps: stamps(millis),
        seat_state,
        recalls: Vec::new(),
        exhausted: Vec::new(),
        leases: Vec::new(),
        directory: None,
    }
}

fn join(leader: &mut Leader, memory: &Memory, millis: u64) -> (Ticket, Join) {
    match leader.next_call(memory, at(millis), FRESH).unwrap() {
        Some(LeaderCall::Join(ticket, join)) => (ticket, join),
        other => panic!("{other:?}"),
    }
}

fn watch(leader: &mut Leader, memory: &Memory, millis: u64) -> Ticket {
    match leader.next_call(memory, at(millis), FRESH).unwrap() {
        Some(LeaderCall::Watch(ticket, _)) => ticket,
        other => panic!("{other:?}"),
    }
}

/// A leader that has joined and polls; its seat's first cell holds a lease of 10.
fn seated(memory: &Memory) -> (Leader, Ticket) {
    let mut leader = Leader::new(1, Vec::new(), 4);
    let (joined_ticket, _) = join(&mut leader, memory, 1_000);
    leader
        .joined(memory, at(1_001), joined_ticket, Some(welcome(1_000, 1)))
        .unwrap();
    let record = SeatRecord::load(memory).unwrap().unwrap();
    let table = Table::new(memory, 4);
    let now = record.seated.unwrap().moment(at(1_001));
    let window = Window::new(ServiceTime::ZERO, ServiceTime::MAX).unwrap();
    let claim = Claim {
        key: KeyHash::new(5),
        window,
        tenant: record.tenant(),
    };
    let (none, one) = (Tokens::ZERO, Tokens::new(1));
    let taken = table.take(claim, one, Take::Spend, now).unwrap();
    assert_eq!(taken, Taken::Unclaimed);
    let taken = table.stand_and_take((claim, none), one, Take::Spend, now);
    assert_eq!(taken.unwrap(), Taken::Edge { has_cell: true });
    assert!(
        table
            .grant(claim, Generation::default(), Tokens::new(10))
            .unwrap()
    );
    let ticket = watch(&mut leader, memory, 1_002);
    (leader, ticket)
}

#[test]
fn one_instance_holds_the_watch_until_it_falls_silent() {
    let memory = Memory::default();
    let (mut first, mut second) = (Leader::new(1, vec![], 4), Leader::new(2, vec![], 4));
    assert!(
        first
            .next_call(&memory, at(1_000), FRESH)
            .unwrap()
            .is_some()
    );
    assert!(
        second
            .next_call(&memory, at(1_500), FRESH)
            .unwrap()
            .is_none()
    );
    // The first renews at half time; from then on it is silent.
    assert!(
        first
            .next_call(&memory, at(1_600), FRESH)
            .unwrap()
            .is_none(),
        "a call is out"
    );
    assert!(
        second
            .next_call(&memory, at(2_500), FRESH)
            .unwrap()
            .is_none()
    );
    assert!(
        second
            .next_call(&memory, at(2_600), FRESH)
            .unwrap()
            .is_some()
    );
    assert!(
        first
            .next_call(&memory, at(2_700), FRESH)
            .unwrap()
            .is_none()
    );
    assert!(
        first.holds_watch(&memory, at(2_700), true).unwrap(),
        "a newer configuration"
    );
    assert!(
        second
            .next_call(&memory, at(2_800), FRESH)
            .unwrap()
            .is_none()
    );
}

#[test]
fn joining_again_is_the_same_tenancy() {
    let memory = Memory::default();
    let mut leader = Leader::new(1, vec![], 4);
    let (first_ticket, first) = join(&mut leader, &memory, 1_000);
    leader
        .joined(&memory, at(1_100), first_ticket, None)
        .unwrap();
    assert!(
        leader
            .next_call(&memory, at(1_101), FRESH)
            .unwrap()
            .is_none(),
        "a pause"
    );
    let (_, second) = join(&mut leader, &memory, 1_200);
    assert_eq!(first.sender.replica, second.sender.replica);
    assert_eq!(first.sender.incarnation, second.sender.incarnation);
}

#[test]
fn the_time_to_live_counts_from_the_sending() {
    let memory = Memory::default();
    let (mut leader, ticket) = seated(&memory);
    let heard = answer(2_002, 1, SeatState::Ok);
    leader
        .watched(&memory, at(2_003), ticket, Some(heard))
        .unwrap();
    let seat = SeatRecord::load(&memory).unwrap().unwrap().seated.unwrap();
    assert_eq!(seat.alive_until, at(6_002));
    assert!(seat.is_alive(at(6_001)) && !seat.is_alive(at(6_002)));
}

#[test]
fn a_new_leader_of_the_service_gets_fenced_leases() {
    let memory = Memory::default();
    let (mut leader, ticket) = seated(&memory);
    let told = answer(1_010, 2, SeatState::Register);
    leader
        .watched(&memory, at(1_011), ticket, Some(told))
        .unwrap();
    let (joined_ticket, joined) = join(&mut leader, &memory, 1_012);
    assert_eq!(joined.fenced_for, Some(Epoch::new(2)));
    assert_eq!(joined.leases.len(), 1);
    assert_eq!(joined.leases[0].amounts.generation, Generation::new(1));
    assert_eq!(joined.leases[0].amounts.granted, Tokens::new(10));
    assert_eq!(joined.sender.incarnation, ticket.incarnation);
    // Repeated until answered.
    leader
        .joined(&memory, at(1_050), joined_ticket, None)
        .unwrap();
    let (_, again) = join(&mut leader, &memory, 1_200);
    assert_eq!(again.fenced_for, Some(Epoch::new(2)));
}

#[test]
fn a_lost_seat_is_left_with_nothing_and_the_next_tenancy_joins() {
    let memory = Memory::default();
    let (mut leader, ticket) = seated(&memory);
    let told = answer(1_010, 1, SeatState::Unknown);
    leader
        .watched(&memory, at(1_011), ticket, Some(told))
        .unwrap();
    let (_, joined) = join(&mut leader, &memory, 1_012);
    assert_eq!(joined.sender.incarnation, Incarnation::new(2));
    assert_eq!(joined.sender.epoch, Epoch::default());
    assert!(joined.leases.is_empty());
    let record = SeatRecord::load(&memory).unwrap().unwrap();
    assert!(!record.seated.unwrap().is_alive(at(1_012)));
    let window = Window::new(ServiceTime::ZERO, ServiceTime::MAX).unwrap();
    let (lease, _) = Table::new(&memory, 4)
        .lease(KeyHash::new(5), window, at(1_012))
        .unwrap()
        .unwrap();
    assert_eq!(
        (lease.granted, lease.generation),
        (Tokens::ZERO, Generation::new(1))
    );
}

#[test]
fn a_call_whose_end_is_never_reported_does_not_silence_the_replica() {
    let memory = Memory::default();
    let (mut leader, _) = seated(&memory);
    let mut polled = false;
    for millis in (1_100..6_000).step_by(100) {
        polled |= leader
            .next_call(&memory, at(millis), FRESH)
            .unwrap()
            .is_some();
    }
    assert!(polled);
}

#[test]
fn words_of_a_former_tenancy_do_not_revive_the_seat() {
    let memory = Memory::default();
    let (mut leader, ticket) = seated(&memory);
    SeatRecord::change(&memory, ticket.incarnation, |record| {
        record.incarnation = ticket.incarnation.next();
        record.seated = None;
    })
    .unwrap();
    let heard = answer(2_002, 1, SeatState::Ok);
    leader
        .watched(&memory, at(2_003), ticket, Some(heard))
        .unwrap();
    assert_eq!(SeatRecord::load(&memory).unwrap().unwrap().seated, None);
}

#[test]
fn two_pollers_do_not_end_each_others_polls_at_the_speed_of_the_network() {
    let memory = Memory::default();
    let (mut leader, mut ticket) = seated(&memory);
    let mut polls = 0;
    for millis in 1_003..1_103 {
        let ended = answer(millis, 1, SeatState::Ok);
        leader
            .watched(&memory, at(millis), ticket, Some(ended))
            .unwrap();
        if let Some(LeaderCall::Watch(next, _)) =
            leader.next_call(&memory, at(millis), FRESH).unwrap()
        {
            ticket = next;
            polls += 1;
        }
    }
    assert!(polls <= 5, "{polls} polls in 100 ms");
}

#[test]
fn an_answer_is_not_taken_for_that_of_a_later_call() {
    let memory = Memory::default();
    let (mut leader, first) = seated(&memory);
    // The first poll was given up as overdue; its answer comes when the second one is out.
    let second = watch(&mut leader, &memory, 4_500);
    let seat = || SeatRecord::load(&memory).unwrap().unwrap().seated.unwrap();
    let before = seat();
    let late = answer(1_003, 1, SeatState::Ok);
    leader
        .watched(&memory, at(4_501), first, Some(late))
        .unwrap();
    assert_eq!(seat(), before);
    let heard = answer(4_501, 1, SeatState::Ok);
    leader
        .watched(&memory, at(4_502), second, Some(heard))
        .unwrap();
    assert!(seat().alive_until > before.alive_until);
}

#[test]
fn a_tenancy_ends_when_service_time_has_gone_back() {
    // Cells of windows that seemed to be over may have been given up, with all that they had used.
    let memory = Memory::default();
    let (mut leader, ticket) = seated(&memory);
    let register = answer(1_500, 2, SeatState::Register);
    leader
        .watched(&memory, at(1_500), ticket, Some(register))
        .unwrap();
    let (joined, _) = join(&mut leader, &memory, 1_500);
    leader
        .joined(&memory, at(1_501), joined, Some(welcome(700, 2)))
        .unwrap();
    let (again_ticket, again) = join(&mut leader, &memory, 1_502);
    assert_eq!(again.sender.incarnation, Incarnation::new(2));
    assert_eq!(again.sender.epoch, Epoch::default());
    // The new tenancy takes the time as it is.
    leader
        .joined(&memory, at(1_503), again_ticket, Some(welcome(702, 2)))
        .unwrap();
    watch(&mut leader, &memory, 1_504);
}
