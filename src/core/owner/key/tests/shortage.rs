//! When the pool has too little.

use super::*;
#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

#[test]
fn recalls_go_first_to_the_richest_then_to_all_and_only_then_it_refuses() {
    let mut owner = Owner::new(40);
    owner.state.ledger.grant(A, Tokens::new(30));
    owner.lease_all(B);
    let effects = owner.ask(
        C,
        Says {
            asker: 3,
            costs: vec![30],
            ..Says::default()
        },
    );
    // The fair share of 40 unused over 2 replicas is 20; A has more and keeps 15.
    assert_eq!(recalls(&effects), [(A, 0, 15)]);
    assert_eq!(decisions(&effects), []);
    let effects = owner.give_back(A, (1, 15, 0, 0));
    assert_eq!(recalls(&effects), [(A, 1, 0), (B, 0, 0)]);
    let effects = owner.give_back(A, (2, 4, 4, 0));
    assert_eq!((recalls(&effects), decisions(&effects)), (vec![], vec![]));
    let effects = owner.give_back(B, (1, 4, 4, 0));
    assert_eq!(decisions(&effects), [Admit]);
    assert_eq!(owner.state.ledger().pool(), Tokens::new(2));
}

#[test]
fn the_asker_is_recalled_from_as_well() {
    // Another worker of the same replica holds the last tokens.
    let mut owner = Owner::new(10);
    owner.lease_all(A);
    let effects = owner.ask(
        A,
        Says {
            lease: Some((0, 10, 4)),
            ..Says::default()
        },
    );
    assert_eq!(recalls(&effects), [(A, 0, 2)]);
}

#[test]
fn a_silent_holder_makes_it_undecided_and_never_refused() {
    let mut owner = Owner::new(10);
    owner.lease_all(A);
    assert!(
        decisions(&owner.ask(
            B,
            Says {
                asker: 2,
                ..Says::default()
            }
        ))
        .is_empty()
    );
    assert!(decisions(&owner.at(1_029).wake()).is_empty());
    assert_eq!(decisions(&owner.at(1_030).wake()), [Undecided]);
    let effects = owner.at(1_040).ask(
        B,
        Says {
            asker: 2,
            ..Says::default()
        },
    );
    assert_eq!(
        decisions(&effects),
        [Undecided],
        "at once, while the recall has failed"
    );
    owner.give_back(A, (1, 10, 10, 0));
    let effects = owner.ask(
        B,
        Says {
            asker: 2,
            ..Says::default()
        },
    );
    assert_eq!(decisions(&effects), [Refuse], "it has answered");
}

#[test]
fn the_tokens_of_a_dead_replica_are_spent() {
    let mut owner = Owner::new(10);
    owner.lease_all(A);
    owner.ask(
        B,
        Says {
            asker: 2,
            ..Says::default()
        },
    );
    let mut out = Vec::new();
    owner.state.bury(&owner.around, A, &mut out);
    assert_eq!(decisions(&out), [Refuse]);
    assert_eq!(owner.state.ledger().dead(), Tokens::new(10));
}

#[test]
fn a_return_that_still_reserves_is_waited_for() {
    let mut owner = Owner::new(5);
    owner.lease_all(A);
    owner.ask(
        B,
        Says {
            asker: 2,
            ..Says::default()
        },
    );
    assert!(decisions(&owner.give_back(A, (1, 5, 4, 1))).is_empty());
    assert_eq!(decisions(&owner.give_back(A, (2, 4, 4, 0))), [Admit]);
}

#[test]
fn a_provisional_charge_blocks_refusals_until_it_is_resolved() {
    let mut owner = Owner::new(1);
    let says = Says {
        provisional: true,
        lease: None,
        sequence: 1,
        ..Says::default()
    };
    assert_eq!(decisions(&owner.ask(A, says)), [Admit]);
    let waits = owner.ask(
        B,
        Says {
            asker: 2,
            lease: None,
            ..Says::default()
        },
    );
    assert!(decisions(&waits).is_empty());
    let ask = AskId {
        asker: Asker::new(1),
        sequence: Sequence::new(1),
        key: KEY,
    };
    let mut out = Vec::new();
    let release = Resolution {
        ask,
        cost: 0,
        commit: false,
    };
    owner.state.resolve(&owner.around, &release, &mut out);
    assert_eq!(decisions(&out), [Admit]);
}

#[test]
fn an_ask_is_answered_before_it_waits_on_its_own_reservation() {
    let mut owner = Owner::new(1);
    let says = Says {
        provisional: true,
        lease: None,
        costs: vec![1, 1],
        ..Says::default()
    };
    let effects = owner.ask(A, says);
    assert_eq!(decisions(&effects), [Admit], "the rest asks again");
}

fn ended(effects: &[KeyEffect]) -> Vec<Tenancy> {
    let ended = effects.iter().filter_map(|effect| match effect {
        KeyEffect::RecallEnded(of, _) => Some(*of),
        _ => None,
    });
    ended.collect()
}

#[test]
fn a_recall_ends_with_the_first_word_from_after_the_fence() {
    let mut owner = Owner::new(10);
    owner.lease_all(A);
    let waits = Says {
        asker: 2,
        ..Says::default()
    };
    owner.ask(B, waits);
    // One worker has fenced the cell; an ask of the other one overtakes its return.
    let effects = owner.ask(
        A,
        Says {
            lease: Some((1, 4, 4)),
            ..Says::default()
        },
    );
    assert_eq!(ended(&effects), [A]);
    assert_eq!(decisions(&effects), [Admit, Admit]);
    assert_eq!(ended(&owner.give_back(A, (1, 4, 4, 0))), [], "long over");
}

#[test]
fn a_recall_ends_with_its_window() {
    for reserved in [None, Some(1)] {
        let mut owner = Owner::new(10);
        owner.lease_all(A);
        let waits = Says {
            asker: 2,
            costs: vec![10],
            ..Says::default()
        };
        owner.ask(B, waits);
        if let Some(reserved) = reserved {
            let effects = owner.give_back(A, (1, 1, 0, reserved));
            assert_eq!(ended(&effects), [], "one more return is to follow");
        }
        let effects = owner.at(60_000).wake();
        assert_eq!(ended(&effects), [A], "reserved: {reserved:?}");
    }
}
