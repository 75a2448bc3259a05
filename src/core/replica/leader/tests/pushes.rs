//! Leases that come with the answer to a poll.

use super::*;
use crate::message::{LeaseAmounts, Recall};
use crate::world::Memory;
#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

const KEY: KeyHash = KeyHash::new(5);

fn window() -> Window {
    Window::new(ServiceTime::ZERO, ServiceTime::MAX).unwrap()
}

fn lease(generation: u64, granted: u64) -> Lease {
    Lease {
        key: KEY,
        window: window(),
        amounts: LeaseAmounts {
            generation: Generation::new(generation),
            granted: Tokens::new(granted),
            ..LeaseAmounts::default()
        },
    }
}

fn push(millis: u64, epoch: u64, lease: Lease) -> WatchAnswer {
    let leases = vec![lease];
    WatchAnswer {
        leases,
        ..answer(millis, epoch, SeatState::Ok)
    }
}

/// Generation and G of the seat's first cell.
fn held(memory: &Memory) -> (u64, u64) {
    let held = Table::new(memory, 4).lease(KEY, window(), at(1_010));
    let (amounts, _) = held.unwrap().unwrap();
    (amounts.generation.get(), amounts.granted.get())
}

fn take(memory: &Memory, millis: u64, cost: u64) -> Taken {
    let record = SeatRecord::load(memory).unwrap().unwrap();
    let claim = Claim {
        key: KEY,
        window: window(),
        tenant: record.tenant(),
    };
    let now = record.seated.unwrap().moment(at(millis));
    let table = Table::new(memory, 4);
    table
        .take(claim, Tokens::new(cost), Take::Spend, now)
        .unwrap()
}

#[test]
fn a_pushed_lease_is_taken_in() {
    let memory = Memory::default();
    let (mut leader, ticket) = seated(&memory);
    let told = push(1_010, 1, lease(0, 25));
    let returns = leader.watched(&memory, at(1_011), ticket, Some(told));
    assert!(returns.unwrap().is_empty());
    assert_eq!(held(&memory), (0, 25));
    // Amounts are absolute: the same again, or less, changes nothing.
    for granted in [25, 20] {
        let ticket = watch(&mut leader, &memory, 1_100);
        let told = push(1_110, 1, lease(0, granted));
        leader
            .watched(&memory, at(1_111), ticket, Some(told))
            .unwrap();
        assert_eq!(held(&memory), (0, 25));
    }
}

#[test]
fn a_pushed_lease_of_an_older_generation_is_void() {
    let memory = Memory::default();
    let (mut leader, ticket) = seated(&memory);
    let recall = Recall {
        key: KEY,
        window: window(),
        generation: Generation::default(),
        keep: Tokens::new(4),
    };
    let recalled = WatchAnswer {
        recalls: vec![recall],
        ..answer(1_010, 1, SeatState::Ok)
    };
    let returns = leader.watched(&memory, at(1_011), ticket, Some(recalled));
    assert_eq!(returns.unwrap().len(), 1);
    for (generation, right) in [(0, (1, 4)), (2, (1, 4)), (1, (1, 40))] {
        let ticket = watch(&mut leader, &memory, 1_200);
        let told = push(1_210, 1, lease(generation, 40));
        leader
            .watched(&memory, at(1_211), ticket, Some(told))
            .unwrap();
        assert_eq!(held(&memory), right, "generation {generation}");
    }
}

#[test]
fn a_pushed_lease_and_the_recall_after_it_may_come_together() {
    let memory = Memory::default();
    let (mut leader, ticket) = seated(&memory);
    let recall = Recall {
        key: KEY,
        window: window(),
        generation: Generation::default(),
        keep: Tokens::ZERO,
    };
    let told = WatchAnswer {
        recalls: vec![recall],
        ..push(1_010, 1, lease(0, 25))
    };
    let returns = leader.watched(&memory, at(1_011), ticket, Some(told));
    assert_eq!(returns.unwrap().len(), 1);
    assert_eq!(held(&memory), (1, 0), "all 25 went back");
}

#[test]
fn a_pushed_lease_of_an_older_epoch_is_void() {
    for (epoch, right) in [(1, (1, 10)), (2, (1, 25))] {
        let memory = Memory::default();
        let (mut leader, ticket) = seated(&memory);
        // Another instance has fenced the cells for leader 2 meanwhile.
        let seated = SeatRecord::load(&memory).unwrap().unwrap().seated.unwrap();
        let table = Table::new(&memory, 4);
        table
            .fence_all(Epoch::new(2), seated.moment(at(1_005)))
            .unwrap();
        let told = push(1_010, epoch, lease(1, 25));
        leader
            .watched(&memory, at(1_011), ticket, Some(told))
            .unwrap();
        assert_eq!(held(&memory), right, "epoch {epoch}");
    }
}

#[test]
fn a_pushed_lease_of_a_former_tenancy_is_void() {
    let memory = Memory::default();
    let (mut leader, ticket) = seated(&memory);
    let seated = SeatRecord::load(&memory).unwrap().unwrap().seated.unwrap();
    let tenant = Tenant {
        incarnation: ticket.incarnation.next(),
        epoch: Epoch::new(1),
    };
    let table = Table::new(&memory, 4);
    table
        .renounce_all(tenant, seated.moment(at(1_005)))
        .unwrap();
    let told = push(1_010, 1, lease(1, 25));
    leader
        .watched(&memory, at(1_011), ticket, Some(told))
        .unwrap();
    assert_eq!(held(&memory), (1, 0));
}

#[test]
fn a_pushed_lease_claims_no_cell() {
    let memory = Memory::default();
    let (mut leader, ticket) = seated(&memory);
    let key = KeyHash::new(6);
    let told = push(
        1_010,
        1,
        Lease {
            key,
            ..lease(0, 25)
        },
    );
    leader
        .watched(&memory, at(1_011), ticket, Some(told))
        .unwrap();
    let table = Table::new(&memory, 4);
    assert_eq!(table.lease(key, window(), at(1_012)).unwrap(), None);
}

#[test]
fn a_parked_cell_asks_ahead_again_after_a_push() {
    for is_pushed in [false, true] {
        let memory = Memory::default();
        let (mut leader, ticket) = seated(&memory);
        let low = Taken::Admitted { ask_ahead: true };
        assert_eq!(take(&memory, 1_003, 9), low);
        Table::new(&memory, 4)
            .hold_ask_ahead(KEY, window(), LocalTime::MAX)
            .unwrap();
        let granted = if is_pushed { 11 } else { 10 };
        let told = push(1_400, 1, lease(0, granted));
        leader
            .watched(&memory, at(1_401), ticket, Some(told))
            .unwrap();
        // To the last token, long after the patience with a lost message.
        let taken = take(&memory, 2_500, granted - 9);
        let ask_ahead = is_pushed;
        assert_eq!(taken, Taken::Admitted { ask_ahead });
    }
}
