//! Every token is in exactly one place, whatever happens in whatever order.

use proptest::prelude::*;

use super::*;
use crate::key::KeyHash;
use crate::units::{Asker, Sequence};
#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

fn window() -> Window {
    Window::new(ServiceTime::new(0), ServiceTime::new(100)).unwrap()
}

fn said(generation: u64, granted: u64, used: u64, reserved: u64) -> LeaseAmounts {
    LeaseAmounts {
        generation: Generation::new(generation),
        granted: Tokens::new(granted),
        used: Tokens::new(used),
        reserved: Tokens::new(reserved),
    }
}

fn charge_id(sequence: u64) -> ChargeId {
    let (asker, sequence) = (Asker::new(1), Sequence::new(sequence));
    (
        AskId {
            asker,
            sequence,
            key: KeyHash::default(),
        },
        0,
    )
}

const ONE: Tenancy = Tenancy::new(1);

#[test]
fn a_fenced_return_gives_back_what_was_not_used() {
    let mut ledger = Ledger::new(window(), Tokens::new(100));
    ledger.grant(ONE, Tokens::new(40));
    assert_eq!(ledger.report(ONE, said(1, 15, 10, 0), true), Some(true));
    assert_eq!(ledger.pool(), Tokens::new(85));
    assert_eq!(ledger.holders()[&ONE].free(), Tokens::new(5));
    assert!(ledger.is_sound());
}

#[test]
fn old_and_impossible_words_change_nothing() {
    let mut ledger = Ledger::new(window(), Tokens::new(100));
    ledger.grant(ONE, Tokens::new(40));
    ledger.report(ONE, said(2, 30, 10, 0), true);
    let before = ledger.clone();
    assert_eq!(
        ledger.report(ONE, said(1, 0, 0, 0), true),
        Some(false),
        "an older generation"
    );
    assert_eq!(
        ledger.report(ONE, said(2, 31, 0, 0), false),
        None,
        "more than was granted"
    );
    assert_eq!(
        ledger.report(ONE, said(3, 31, 0, 0), true),
        None,
        "more than was granted"
    );
    assert_eq!(ledger, before);
    // Within a generation U only grows: a report that was overtaken says less.
    ledger.report(ONE, said(2, 30, 20, 0), false);
    ledger.report(ONE, said(2, 30, 12, 0), false);
    assert_eq!(ledger.holders()[&ONE].used, Tokens::new(20));
}

#[test]
fn a_provisional_charge_goes_one_way_once() {
    let mut ledger = Ledger::new(window(), Tokens::new(10));
    let charge = Provisional {
        amount: Tokens::new(4),
        expires: ServiceTime::new(50),
    };
    assert!(ledger.charge_provisionally(charge_id(1), charge, Tokens::new(4)));
    assert_eq!(
        (ledger.pool(), ledger.left()),
        (Tokens::new(6), Tokens::new(10))
    );
    assert!(ledger.resolve(charge_id(1), false));
    assert!(
        !ledger.resolve(charge_id(1), true),
        "a release, then a repeated commit"
    );
    assert_eq!(ledger.pool(), Tokens::new(10));
    assert!(ledger.charge_provisionally(charge_id(2), charge, Tokens::new(4)));
    assert!(!ledger.expire_provisional(ServiceTime::new(49)));
    assert!(ledger.expire_provisional(ServiceTime::new(50)));
    assert_eq!(ledger.spent(), Tokens::new(4));
    assert!(ledger.is_sound());
}

#[test]
fn the_dead_keep_their_tokens() {
    let mut ledger = Ledger::new(window(), Tokens::new(10));
    ledger.grant(ONE, Tokens::new(6));
    ledger.report(ONE, said(0, 6, 2, 0), false);
    assert!(ledger.bury(ONE));
    assert_eq!(
        (ledger.pool(), ledger.dead()),
        (Tokens::new(4), Tokens::new(4))
    );
    assert!(ledger.is_sound());
}

#[test]
fn stored_parts_above_the_limit_are_no_ledger() {
    let parts = |spent| {
        let (spent, dead) = (Tokens::new(spent), Tokens::ZERO);
        Ledger::restore(
            window(),
            Tokens::new(10),
            (spent, dead),
            BTreeMap::new(),
            BTreeMap::new(),
        )
    };
    assert_eq!(parts(7).map(|ledger| ledger.pool()), Some(Tokens::new(3)));
    assert_eq!(parts(11), None);
}

#[derive(Clone, Debug)]
enum Step {
    Charge(u64),
    Provisional(u64, u64),
    Resolve(u64, bool),
    Grant(u64, u64),
    Report(u64, u64, u64, u64),
    Bury(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0_u64..8).prop_map(Step::Charge),
        (0_u64..5, 0_u64..8).prop_map(|(id, amount)| Step::Provisional(id, amount)),
        (0_u64..5, any::<bool>()).prop_map(|(id, commit)| Step::Resolve(id, commit)),
        (0_u64..3, 0_u64..20).prop_map(|(who, amount)| Step::Grant(who, amount)),
        (0_u64..3, 0_u64..4, 0_u64..30, 0_u64..30)
            .prop_map(|(who, gen_, granted, used)| Step::Report(who, gen_, granted, used)),
        (0_u64..3).prop_map(Step::Bury),
    ]
}

proptest! {
    #[test]
    fn no_token_is_made_or_lost(steps in prop::collection::vec(step(), 0..60)) {
        let mut ledger = Ledger::new(window(), Tokens::new(50));
        for step in steps {
            match step {
                Step::Charge(amount) => {
                    ledger.charge(Tokens::new(amount), Tokens::new(amount.max(1)));
                }
                Step::Provisional(id, amount) => {
                    let amount = Tokens::new(amount);
                    let charge = Provisional { amount, expires: ServiceTime::new(50) };
                    ledger.charge_provisionally(charge_id(id), charge, amount);
                }
                Step::Resolve(id, commit) => {
                    ledger.resolve(charge_id(id), commit);
                }
                Step::Grant(who, amount) => {
                    ledger.grant(Tenancy::new(who), Tokens::new(amount));
                }
                Step::Report(who, generation, granted, used) => {
                    let said = said(generation, granted, used.min(granted), 0);
                    ledger.report(Tenancy::new(who), said, true);
                }
                Step::Bury(who) => {
                    ledger.bury(Tenancy::new(who));
                }
            }
            prop_assert!(ledger.is_sound(), "{:?}", ledger);
        }
    }
}
