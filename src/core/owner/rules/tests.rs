//! One limit in force, whatever the replicas' configurations say.

use super::*;
use crate::message::Algorithm;
use crate::units::Span;
use crate::window::Period;
#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

fn spec(amount: u64, secs: u64, revision: u64) -> RuleSpec {
    RuleSpec {
        id: RuleId {
            domain: "d".to_owned(),
            name: "r".to_owned(),
        },
        algorithm: Algorithm::FixedWindow,
        amount: Tokens::new(amount),
        period: Period::new(Span::from_secs(secs)).unwrap(),
        revision,
    }
}

#[test]
fn the_highest_revision_counts_else_the_lowest_amount() {
    for (stated, expected) in [
        (vec![(10, 0)], 10),
        (vec![(10, 0), (7, 0), (12, 0)], 7),
        (vec![(10, 1), (7, 0)], 10),
        (vec![(10, 1), (20, 2), (7, 0)], 20),
        (vec![(10, 2), (20, 2)], 10),
    ] {
        let mut rules = Rules::default();
        for (by, (amount, revision)) in (0..).zip(&stated) {
            let changed = rules.state(Tenancy::new(by), &spec(*amount, 60, *revision));
            assert_eq!(changed, Some(vec![spec(1, 60, 0).counters()]));
            let again = rules.state(Tenancy::new(by), &spec(*amount, 60, *revision));
            assert_eq!(again, Some(Vec::new()));
        }
        let id = spec(1, 60, 0).id;
        let limit = rules.limit(&id, spec(1, 60, 0).period);
        assert_eq!(limit, Some(Tokens::new(expected)), "{stated:?}");
    }
}

#[test]
fn another_period_is_another_counter_and_the_gone_are_forgotten() {
    let mut rules = Rules::default();
    rules.state(Tenancy::new(1), &spec(10, 60, 0));
    let id = spec(1, 60, 0).id;
    assert_eq!(rules.limit(&id, spec(1, 3_600, 0).period), None);
    rules.forget(Tenancy::new(1));
    assert_eq!(rules.limit(&id, spec(1, 60, 0).period), None);
}
