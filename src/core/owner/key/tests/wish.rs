//! Wishes that the pool cannot serve.

use super::*;
#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

impl Owner {
    /// Asks ahead of need, with so much granted and used in the first generation.
    fn wish(&mut self, from: Tenancy, (granted, used): (u64, u64), demand: u64) -> Vec<KeyEffect> {
        let says = Says {
            asker: from.get(),
            lease: Some((0, granted, used)),
            costs: vec![],
            demand,
            ..Says::default()
        };
        self.ask(from, says)
    }

    fn lease(&mut self, to: Tenancy, tokens: u64) {
        let granted = self.state.ledger.grant(to, Tokens::new(tokens));
        assert_eq!(granted, Tokens::new(tokens));
        self.state.ledger.holder(to).has_cell = true;
    }

    fn wishes(&self, of: Tenancy) -> bool {
        let holder = self.state.ledger.holders().get(&of);
        holder.is_some_and(|holder| holder.wishes)
    }
}

/// Who was told of which lease: generation and G.
fn pushed(effects: &[KeyEffect]) -> Vec<(Tenancy, u64, u64)> {
    let pushed = effects.iter().filter_map(|effect| match effect {
        KeyEffect::Granted(to, lease) => Some((
            *to,
            lease.amounts.generation.get(),
            lease.amounts.granted.get(),
        )),
        _ => None,
    });
    pushed.collect()
}

fn is_parked(effects: &[KeyEffect]) -> bool {
    let all = answers(effects);
    assert_eq!(all.len(), 1);
    all[0].parked
}

#[test]
fn a_wish_that_the_pool_cannot_serve_is_parked_and_served_when_tokens_come_back() {
    let mut owner = Owner::new(100);
    owner.lease_all(B);
    let effects = owner.wish(A, (0, 0), 0);
    assert!(is_parked(&effects));
    assert_eq!(
        (answers(&effects)[0].lease, pushed(&effects)),
        (None, vec![])
    );
    assert!(owner.wishes(A));
    owner.state.take_changed();
    let effects = owner.give_back(B, (1, 40, 0, 0));
    // No demand is known: 0.3 of an even share of 100.
    assert_eq!(pushed(&effects), [(A, 0, 15)]);
    assert!(answers(&effects).is_empty(), "long answered");
    assert!(!owner.wishes(A));
    assert!(
        owner.state.take_changed(),
        "a grant is stored before it is told"
    );
    assert_eq!(pushed(&owner.give_back(B, (2, 0, 0, 0))), [], "once");
}

#[test]
fn who_runs_dry_first_is_served_first() {
    let mut owner = Owner::new(100);
    owner.lease(A, 10);
    owner.lease(B, 10);
    owner.lease_all(C);
    // Both have 5 unused; A's last for five seconds, B's for half a one.
    owner.wish(A, (10, 5), 1_000);
    owner.wish(B, (10, 5), 10_000);
    assert!(owner.wishes(A) && owner.wishes(B));
    let effects = owner.give_back(C, (1, 58, 0, 0));
    // B's demand of 3 % of the window, and what is left of 22 for A.
    assert_eq!(pushed(&effects), [(B, 0, 28), (A, 0, 14)]);
}

#[test]
fn a_wish_that_is_not_reached_stays_parked_and_calls_back_once_more() {
    let mut owner = Owner::new(100);
    owner.lease(A, 10);
    owner.lease(B, 10);
    owner.lease_all(C);
    owner.wish(A, (10, 5), 1_000);
    owner.wish(B, (10, 5), 10_000);
    let effects = owner.give_back(C, (1, 70, 0, 0));
    assert_eq!(pushed(&effects), [(B, 0, 20)]);
    assert!(owner.wishes(A));
    // C asks for nothing: 0.3 of an even share of 90 is 13, of which it keeps 0.8.
    assert_eq!(recalls(&effects), [(C, 1, 10)]);
}

#[test]
fn who_wants_too_little_for_a_lease_does_not_keep_others_from_theirs() {
    let mut owner = Owner::new(4);
    owner.lease(B, 1);
    owner.lease_all(C);
    owner.wish(A, (0, 0), 1);
    owner.wish(B, (1, 0), 1_000_000);
    let effects = owner.give_back(C, (1, 1, 1, 0));
    // A is dry, so it comes first, but a token in 1,000 seconds gives it no lease.
    assert_eq!(pushed(&effects), [(B, 0, 2)]);
}

#[test]
fn a_parked_wish_calls_back_from_the_richest_in_the_background() {
    // Of 40 unused tokens 20 are fair; above 1.5 x 20 + 1 is too much.
    for (richest, right) in [(31, vec![]), (32, vec![(B, 0, 16)]), (40, vec![(B, 0, 16)])] {
        let mut owner = Owner::new(40);
        owner.lease(B, richest);
        owner.lease_all(C);
        let effects = owner.wish(A, (0, 0), 0);
        assert!(is_parked(&effects));
        assert_eq!(recalls(&effects), right, "{richest}");
    }
}

#[test]
fn what_is_fair_follows_demand() {
    let mut owner = Owner::new(40);
    owner.lease_all(B);
    owner.state.ledger.holder(B).demand = Rate::new(10_000);
    // A quarter of demand is B's: of 40 it keeps 0.8 of 10.
    assert_eq!(recalls(&owner.wish(A, (0, 0), 30_000)), [(B, 0, 8)]);
}

#[test]
fn any_wish_with_a_fair_share_calls_back() {
    let mut owner = Owner::new(4);
    owner.lease_all(C);
    let holder = owner.state.ledger.holder(A);
    (holder.has_cell, holder.wishes, holder.demand) = (true, true, Rate::new(1));
    // Of A's share nothing is left in whole tokens; B's is nearly all.
    assert_eq!(recalls(&owner.wish(B, (0, 0), 1_000_000)), [(C, 0, 0)]);
}

#[test]
fn nothing_is_called_back_while_the_pool_has_some() {
    let mut owner = Owner::new(100);
    owner.lease(B, 99);
    let effects = owner.wish(A, (0, 0), 0);
    assert_eq!(answers(&effects)[0].lease.unwrap().1, Tokens::new(1));
    assert_eq!(recalls(&effects), []);
}

#[test]
fn one_recall_in_the_background_at_a_time() {
    let mut owner = Owner::new(200);
    owner.around.replicas = 10;
    owner.lease(B, 120);
    owner.lease_all(C);
    assert_eq!(recalls(&owner.wish(A, (0, 0), 0)), [(B, 0, 16)]);
    assert_eq!(recalls(&owner.wish(A, (0, 0), 0)), [], "the other one");
    // A reservation of B's may still go back.
    let effects = owner.give_back(B, (1, 120, 119, 1));
    assert_eq!(recalls(&effects), []);
    let effects = owner.give_back(B, (2, 120, 120, 0));
    assert_eq!(recalls(&effects), [(C, 0, 6)], "of 80 unused");
}

#[test]
fn a_holder_that_is_called_back_from_is_not_served() {
    let mut owner = Owner::new(100);
    owner.lease(B, 80);
    owner.lease_all(C);
    assert_eq!(recalls(&owner.wish(A, (0, 0), 0)), [(B, 0, 40)]);
    assert!(is_parked(&owner.wish(B, (80, 10), 0)));
    // C gives back unasked: more than A is given, and still B has to wait.
    let effects = owner.give_back(C, (1, 0, 0, 0));
    assert_eq!(pushed(&effects), [(A, 0, 13)]);
    assert_eq!(owner.state.ledger().pool(), Tokens::new(7));
    let effects = owner.give_back(B, (1, 50, 10, 0));
    assert_eq!(pushed(&effects), [(B, 1, 63)], "of the new generation");
}

#[test]
fn a_wish_dies_with_its_window() {
    let mut owner = Owner::new(100);
    owner.lease_all(B);
    owner.wish(A, (0, 0), 5_000);
    owner.at(60_000);
    let next = owner.state.next_window(owner.around.now).unwrap();
    let mut ledger = Ledger::new(next, Tokens::new(100));
    ledger.stand(A, Tokens::new(10));
    let mut out = Vec::new();
    owner.state.begin(&owner.around, ledger, &mut out);
    assert!(!owner.wishes(A));
    // A has its cell again, and the pool has plenty.
    owner.state.ledger.holder(A).has_cell = true;
    let effects = owner.give_back(B, (0, 0, 0, 0));
    assert_eq!(pushed(&effects), []);
}

#[test]
fn a_wish_dies_with_its_holder() {
    let mut owner = Owner::new(100);
    owner.lease_all(B);
    owner.wish(A, (0, 0), 0);
    let mut out = Vec::new();
    owner.state.bury(&owner.around, A, &mut out);
    assert_eq!(pushed(&owner.give_back(B, (1, 0, 0, 0))), []);
    assert_eq!(owner.state.ledger().pool(), Tokens::new(100));
}

#[test]
fn demand_is_known_in_the_next_window() {
    let mut owner = Owner::new(100);
    owner.wish(A, (0, 0), 30_000);
    owner.at(60_000);
    let next = owner.state.next_window(owner.around.now).unwrap();
    let mut ledger = Ledger::new(next, Tokens::new(100));
    ledger.stand(A, Tokens::new(10));
    ledger.stand(B, Tokens::new(10));
    owner.state.begin(&owner.around, ledger, &mut Vec::new());
    let demand = |of| owner.state.ledger().holders()[&of].demand;
    assert_eq!((demand(A), demand(B)), (Rate::new(30_000), Rate::ZERO));
    // B is new there, and asks as fast: half of what A's demand leaves, not nearly all.
    let effects = owner.wish(B, (10, 0), 30_000);
    assert_eq!(answers(&effects)[0].lease.unwrap().1, Tokens::new(10 + 37));
}
