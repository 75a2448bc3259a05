//! What is stored comes back the same; what cannot be is named.

use super::*;
use crate::message::{Ask, Cost, LeaseAmounts, RuleSpec};
use crate::owner::effect::ReplyTo;
use crate::owner::key::Surroundings;
#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

fn busy_key() -> KeyState {
    let rule = RuleSpec {
        id: RuleId {
            domain: "d".to_owned(),
            name: "r".to_owned(),
        },
        algorithm: crate::message::Algorithm::FixedWindow,
        amount: Tokens::new(100),
        period: Period::new(Span::from_secs(60)).unwrap(),
        revision: 0,
    };
    let around = Surroundings {
        now: ServiceTime::new(5),
        replicas: 2,
        recall_timeout: Span::from_millis(30),
        limit: Tokens::new(100),
    };
    let key = KeyHash::new(77);
    let mut state = KeyState::new(key, &rule, &around);
    for (asker, provisional) in [(1, false), (2, true)] {
        let decide_by = ServiceTime::new(1_000);
        let ask = Ask {
            id: AskId {
                asker: Asker::new(asker),
                sequence: Sequence::new(3),
                key,
            },
            window: Some(state.ledger().window()),
            lease: Some(LeaseAmounts::default()),
            costs: vec![Cost {
                amount: Tokens::new(2),
                provisional,
                decide_by,
            }],
            demand: crate::units::Rate::ZERO,
            descriptor: None,
        };
        state.ask(
            &around,
            Some(Tenancy::new(asker)),
            ask,
            ReplyTo::new(asker),
            &mut Vec::new(),
        );
    }
    state.take_changed();
    state
}

#[test]
fn a_key_comes_back_as_it_was() {
    let state = busy_key();
    let place = key_place(KeyHash::new(77));
    let Stored::Key(back) = read(&place, &write_key(&state)).unwrap() else {
        panic!("another kind")
    };
    assert_eq!(*back, state);
    assert_eq!(back.ledger().provisional().len(), 1);
    assert!(!back.ledger().holders().is_empty());
}

#[test]
fn decisions_come_back_in_order_whatever_their_number() {
    use Decision::{Admit, Refuse, Undecided};
    let all: Vec<Decision> = [Admit, Refuse, Undecided]
        .into_iter()
        .cycle()
        .take(256)
        .collect();
    for count in [0, 1, 2, 3, 4, 5, 8, 255, 256] {
        let decisions = &all[..count];
        assert_eq!(unpack(&pack(decisions)), decisions);
        assert!(pack(decisions).len() <= 64);
    }
}

#[test]
fn meta_and_members_come_back_as_they_were() {
    let meta = Meta {
        hash_key: HashKey::new([9; 16]),
        next_tenancy: Tenancy::new(12),
        anchor: Some(crate::owner::clock::Anchor {
            boot: crate::owner::clock::Boot {
                id: 77,
                since: Span::from_secs(3),
            },
            service: ServiceTime::new(9),
            slew: -4,
        }),
        ceiling: ServiceTime::new(34),
    };
    let Stored::Meta(back) = read(&meta_place(), &write_meta(&meta)).unwrap() else {
        panic!("another kind")
    };
    assert_eq!(back, meta);
    let member = StoredMember {
        tenancy: Tenancy::new(3),
        replica: ReplicaId::new(u128::MAX - 5),
        incarnation: Incarnation::new(2),
        seat: Seat::new(1),
        joined: ServiceTime::new(77),
    };
    let place = member_place(member.tenancy);
    let Stored::Member(back) = read(&place, &write_member(&member)).unwrap() else {
        panic!("another kind")
    };
    assert_eq!(back, member);
}

#[test]
fn what_cannot_be_is_named() {
    let place = key_place(KeyHash::new(77));
    let good = write_key(&busy_key());
    let mut record = KeyRecord::decode(good.as_slice()).unwrap();
    record.spent = 101;
    for (place, value) in [
        (place.clone(), record.encode_to_vec()),
        (place, vec![0xff; 9]),
        (vec![b'k', 1, 2], good),
        (b"other".to_vec(), Vec::new()),
        (meta_place(), Vec::new()),
    ] {
        let error = read(&place, &value).unwrap_err();
        assert!(!error.place.is_empty());
    }
}
