//! The owner's rules one by one.

use super::*;
use crate::message::{Algorithm, Answer, AskId, Cost, LeaseAmounts};
use crate::units::{Generation, Rate};
#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

const A: Tenancy = Tenancy::new(1);
const B: Tenancy = Tenancy::new(2);
const C: Tenancy = Tenancy::new(3);
const KEY: KeyHash = KeyHash::new(9);
const SECOND: u64 = 1_000_000_000;

mod repeat;
mod shortage;
mod wish;

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
    demand: u64,
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
            demand: 0,
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
            demand: Rate::new(says.demand),
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
            demand: self.state.ledger.holder(from).demand,
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

#[test]
fn more_askers_than_a_record_holds_are_undecided() {
    let mut owner = Owner::new(1_000_000);
    for asker in 0..ASKERS_MAX as u64 {
        owner.ask(
            A,
            Says {
                asker,
                lease: None,
                ..Says::default()
            },
        );
    }
    let says = || Says {
        asker: u64::MAX,
        lease: None,
        named: false,
        ..Says::default()
    };
    let effects = owner.ask(A, says());
    assert!(effects.contains(&KeyEffect::AskersFull));
    assert_eq!(decisions(&effects), [Undecided]);
    assert_eq!(
        decisions(&owner.ask(
            A,
            Says {
                asker: 7,
                lease: None,
                ..Says::default()
            }
        )),
        [Admit]
    );
    // The window after the one in which they were answered, and the longest deadline.
    owner.at(130_000);
    assert_eq!(
        decisions(&owner.ask(
            A,
            Says {
                decide_by: u64::MAX,
                ..says()
            }
        )),
        [Admit]
    );
}
