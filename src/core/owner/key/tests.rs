//! The owner's rules one by one.

use super::*;
use crate::message::{Algorithm, Cost, LeaseAmounts};
use crate::units::Generation;

const A: Tenancy = Tenancy::new(1);
const B: Tenancy = Tenancy::new(2);
const C: Tenancy = Tenancy::new(3);
const KEY: KeyHash = KeyHash::new(9);
const SECOND: u64 = 1_000_000_000;

struct Owner {
    state: KeyState,
    around: Surroundings,
    sequence: u64,
}

/// What an ask says; the defaults are one cost of 1 from a replica with an empty cell.
struct Says {
    asker: u64,
    sequence: u64,
    lease: Option<(u64, u64, u64)>,
    costs: Vec<u64>,
    provisional: bool,
    named: bool,
    decide_by: u64,
}

impl Default for Says {
    fn default() -> Self {
        Self {
            asker: 1,
            sequence: 0,
            lease: Some((0, 0, 0)),
            costs: vec![1],
            provisional: false,
            named: true,
            decide_by: 100 * SECOND,
        }
    }
}

impl Owner {
    fn new(limit: u64) -> Self {
        let rule = RuleSpec {
            id: RuleId {
                domain: "d".to_owned(),
                name: "r".to_owned(),
            },
            algorithm: Algorithm::FixedWindow,
            amount: Tokens::new(limit),
            period: Period::new(Span::from_secs(60)).unwrap(),
            revision: 0,
        };
        let around = Surroundings {
            now: ServiceTime::new(SECOND),
            replicas: 2,
            recall_timeout: Span::from_millis(30),
            limit: Tokens::new(limit),
        };
        Self {
            state: KeyState::new(KEY, &rule, &around),
            around,
            sequence: 0,
        }
    }

    fn at(&mut self, millis: u64) -> &mut Self {
        self.around.now = ServiceTime::new(millis * 1_000_000);
        self
    }

    fn ask(&mut self, from: Tenancy, says: Says) -> Vec<KeyEffect> {
        self.sequence += 1;
        let sequence = if says.sequence == 0 {
            self.sequence
        } else {
            says.sequence
        };
        let decide_by = ServiceTime::new(says.decide_by);
        let cost = |amount: &u64| Cost {
            amount: Tokens::new(*amount),
            provisional: says.provisional,
            decide_by,
        };
        let ask = Ask {
            id: AskId {
                asker: Asker::new(says.asker),
                sequence: Sequence::new(sequence),
                key: KEY,
            },
            window: says.named.then_some(self.state.ledger().window()),
            lease: says.lease.map(|(generation, granted, used)| LeaseAmounts {
                generation: Generation::new(generation),
                granted: Tokens::new(granted),
                used: Tokens::new(used),
                reserved: Tokens::ZERO,
            }),
            costs: says.costs.iter().map(cost).collect(),
            demand: 0,
            descriptor: None,
        };
        let mut out = Vec::new();
        self.state.ask(
            &self.around,
            Some(from),
            ask,
            ReplyTo::new(self.sequence),
            &mut out,
        );
        assert!(self.state.ledger().is_sound());
        out
    }

    fn give_back(&mut self, from: Tenancy, amounts: (u64, u64, u64, u64)) -> Vec<KeyEffect> {
        let amounts = LeaseAmounts {
            generation: Generation::new(amounts.0),
            granted: Tokens::new(amounts.1),
            used: Tokens::new(amounts.2),
            reserved: Tokens::new(amounts.3),
        };
        let lease = Lease {
            key: KEY,
            window: self.state.ledger().window(),
            amounts,
        };
        let returned = Return {
            lease,
            has_cell: true,
        };
        let mut out = Vec::new();
        self.state
            .give_back(&self.around, from, &returned, &mut out);
        assert!(self.state.ledger().is_sound());
        out
    }

    fn wake(&mut self) -> Vec<KeyEffect> {
        let mut out = Vec::new();
        self.state.wake(&self.around, &mut out);
        out
    }

    /// All of the pool goes to a replica.
    fn lease_all(&mut self, to: Tenancy) {
        let all = self.state.ledger().pool();
        self.state.ledger.holder(to).has_cell = true;
        self.state.ledger.grant(to, all);
    }
}

fn answers(effects: &[KeyEffect]) -> Vec<&Answer> {
    let answer = |effect: &'_ KeyEffect| matches!(effect, KeyEffect::Answer(..));
    let all = effects.iter().filter(|effect| answer(effect));
    all.map(|effect| match effect {
        KeyEffect::Answer(_, answer) => answer,
        other => panic!("{other:?}"),
    })
    .collect()
}

fn decisions(effects: &[KeyEffect]) -> Vec<Decision> {
    answers(effects)
        .iter()
        .flat_map(|answer| answer.decisions.clone())
        .collect()
}

fn recalls(effects: &[KeyEffect]) -> Vec<(Tenancy, u64, u64)> {
    let recall = |effect: &KeyEffect| match effect {
        KeyEffect::Recall(from, recall) => {
            Some((*from, recall.generation.get(), recall.keep.get()))
        }
        _ => None,
    };
    effects.iter().filter_map(recall).collect()
}

use Decision::{Admit, Refuse, Undecided};

#[test]
fn waiting_costs_come_before_leases_and_are_charged_to_the_owner() {
    let mut owner = Owner::new(100);
    let effects = owner.ask(
        A,
        Says {
            costs: vec![3, 4],
            ..Says::default()
        },
    );
    assert_eq!(decisions(&effects), [Admit, Admit]);
    assert_eq!(owner.state.ledger().spent(), Tokens::new(7));
    let (generation, granted) = answers(&effects)[0].lease.unwrap();
    assert_eq!(
        (generation, granted),
        (Generation::default(), Tokens::new(13))
    );
}

#[test]
fn a_key_without_a_cell_gets_decisions_and_no_lease() {
    for says in [
        Says {
            lease: None,
            ..Says::default()
        },
        Says {
            lease: None,
            named: false,
            ..Says::default()
        },
    ] {
        let mut owner = Owner::new(100);
        let effects = owner.ask(A, says);
        assert_eq!(decisions(&effects), [Admit]);
        assert_eq!(answers(&effects)[0].lease, None);
        assert_eq!(owner.state.ledger().pool(), Tokens::new(99));
    }
}

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
        demand: 0,
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
fn a_refusal_states_what_is_left_and_zero_is_told_to_all() {
    let mut owner = Owner::new(10);
    let effects = owner.ask(
        A,
        Says {
            costs: vec![11, 3],
            lease: None,
            ..Says::default()
        },
    );
    assert_eq!(decisions(&effects), [Refuse, Admit]);
    assert_eq!(answers(&effects)[0].total.unwrap().left, Tokens::new(10));
    owner.ask(
        B,
        Says {
            asker: 2,
            costs: vec![7],
            lease: None,
            ..Says::default()
        },
    );
    let effects = owner.ask(
        B,
        Says {
            asker: 2,
            lease: None,
            ..Says::default()
        },
    );
    assert_eq!(decisions(&effects), [Refuse]);
    let told: Vec<_> = effects
        .iter()
        .filter(|effect| matches!(effect, KeyEffect::Exhausted(..)))
        .collect();
    assert_eq!(told.len(), 2, "both who know the key");
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
fn nothing_is_decided_after_its_time() {
    let mut owner = Owner::new(10);
    let effects = owner.ask(
        A,
        Says {
            decide_by: SECOND,
            ..Says::default()
        },
    );
    assert_eq!(decisions(&effects), [Undecided]);
    owner.lease_all(A);
    owner.ask(
        B,
        Says {
            asker: 2,
            decide_by: SECOND + 10_000_000,
            ..Says::default()
        },
    );
    assert_eq!(decisions(&owner.at(1_010).wake()), [Undecided]);
    assert_eq!(owner.state.ledger().spent(), Tokens::ZERO);
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

#[test]
fn a_wish_is_answered_at_once() {
    let mut owner = Owner::new(100);
    let effects = owner.ask(
        A,
        Says {
            costs: vec![],
            ..Says::default()
        },
    );
    assert_eq!(
        answers(&effects)[0].lease,
        Some((Generation::default(), Tokens::new(15)))
    );
    assert!(!answers(&effects)[0].parked);
    owner.lease_all(B);
    let effects = owner.ask(
        A,
        Says {
            lease: Some((0, 15, 15)),
            costs: vec![],
            ..Says::default()
        },
    );
    assert!(answers(&effects)[0].parked);
}
