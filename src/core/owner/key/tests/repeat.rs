//! Asks that come again, and asks around a boundary.

use super::*;
#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

#[test]
fn a_repeated_ask_is_charged_once_and_answered_the_same() {
    let mut owner = Owner::new(100);
    let first = owner.ask(
        A,
        Says {
            sequence: 5,
            costs: vec![3],
            ..Says::default()
        },
    );
    let again = owner.ask(
        A,
        Says {
            sequence: 5,
            costs: vec![3],
            ..Says::default()
        },
    );
    assert_eq!(answers(&first), answers(&again));
    assert_eq!(owner.state.ledger().spent(), Tokens::new(3));
    let older = owner.ask(
        A,
        Says {
            sequence: 4,
            ..Says::default()
        },
    );
    assert_eq!(answers(&older)[0].kind, AnswerKind::Stale);
    assert_eq!(owner.state.ledger().spent(), Tokens::new(3));
}

#[test]
fn a_repeated_ask_of_the_last_window_is_not_charged_in_this_one() {
    let mut owner = Owner::new(100);
    let says = || Says {
        sequence: 5,
        named: false,
        lease: None,
        ..Says::default()
    };
    owner.at(59_990).ask(A, says());
    let effects = owner.at(60_010).ask(A, says());
    assert_eq!(decisions(&effects), [Admit]);
    assert_eq!(
        owner.state.ledger().spent(),
        Tokens::ZERO,
        "of the new window"
    );
}

#[test]
fn an_ask_for_another_window_is_not_judged() {
    let mut owner = Owner::new(100);
    let window = Some(owner.state.ledger().window());
    let id = AskId {
        asker: Asker::new(1),
        sequence: Sequence::new(1),
        key: KEY,
    };
    let ask = Ask {
        id,
        window,
        lease: None,
        costs: vec![],
        demand: crate::units::Rate::ZERO,
        descriptor: None,
    };
    let mut out = Vec::new();
    owner.at(60_000);
    owner
        .state
        .ask(&owner.around, Some(A), ask, ReplyTo::new(1), &mut out);
    assert_eq!(answers(&out)[0].kind, AnswerKind::WrongWindow);
}

#[test]
fn whoever_named_no_window_waits_on_in_the_next_one() {
    let mut owner = Owner::new(5);
    owner.at(59_990).lease_all(A);
    let decide_by = 61 * SECOND;
    let named = Says {
        asker: 2,
        decide_by,
        ..Says::default()
    };
    let unnamed = Says {
        asker: 3,
        decide_by,
        named: false,
        lease: None,
        ..Says::default()
    };
    assert!(decisions(&owner.ask(B, named)).is_empty());
    assert!(decisions(&owner.ask(C, unnamed)).is_empty());
    let effects = owner.at(60_000).wake();
    let kinds: Vec<_> = answers(&effects).iter().map(|answer| answer.kind).collect();
    assert_eq!(kinds, [AnswerKind::WrongWindow, AnswerKind::Judged]);
    assert_eq!(decisions(&effects), [Admit]);
}
