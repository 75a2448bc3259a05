//! The judge convicts what was broken on purpose, and nothing else.

use super::*;
use crate::fuzz;
use crate::load::{Keys, Shape, Spread};
use crate::network::Network;
use crate::oracle::Verdicts;
use crate::time::Truth;
use crate::world::{Fault, Plan, World};
use headgate_core::window::Period;

mod traps;

/// A busy world without any fault of its own.
fn busy(seed: u64, sabotage: Option<Sabotage>) -> Plan {
    let mut plan = fuzz::plan(seed);
    plan.replicas = 4;
    plan.workers = 2;
    plan.buckets = 4;
    plan.limits = vec![(Tokens::new(200), Period::new(Span::from_secs(1)).unwrap())];
    plan.network = Network::CLUSTER;
    plan.faults = Vec::new();
    plan.interleaved = 300;
    plan.loaded = Span::from_secs(4);
    plan.load.keys = vec![Keys::Even(1)];
    plan.load.shape = Shape::Steady;
    plan.load.spread = Spread::Moving(800, Span::from_millis(200));
    plan.load.gap = Span::from_millis(3);
    plan.load.costs = crate::load::Costs::One;
    plan.load.crowd = 300;
    plan.load.impatient = 0;
    match sabotage {
        Some(sabotage) => sabotage.applied_to(plan),
        None => plan,
    }
}

fn verdicts(plan: Plan) -> Verdicts {
    World::new(plan).unwrap().run().unwrap().verdicts
}

/// Over and false in some busy worlds.
fn convicted(sabotage: Option<Sabotage>, change: impl Fn(&mut Plan)) -> (u64, u64) {
    let mut sum = (0, 0);
    for seed in 0..4 {
        let mut plan = busy(seed, sabotage);
        change(&mut plan);
        let verdicts = verdicts(plan);
        sum = (sum.0 + verdicts.over(), sum.1 + verdicts.false_refusals());
    }
    sum
}

#[test]
fn an_honest_world_is_acquitted() {
    assert_eq!(convicted(None, |_| {}), (0, 0));
}

#[test]
fn a_replica_that_spends_without_a_lease_is_over() {
    assert!(convicted(Some(Sabotage::SpendsWithoutLease), |_| {}).0 > 0);
}

#[test]
fn a_replica_that_refuses_without_a_proof_is_false() {
    let (over, refused) = convicted(Some(Sabotage::RefusesWithoutProof), |_| {});
    assert_eq!(over, 0);
    assert!(refused > 0);
}

#[test]
fn an_old_lease_under_a_new_generation_is_over() {
    assert!(convicted(Some(Sabotage::ReplaysLeases), |_| {}).0 > 0);
}

#[test]
fn altered_decisions_are_over_or_false() {
    assert!(convicted(Some(Sabotage::AdmitsRefused), |_| {}).0 > 0);
    assert!(convicted(Some(Sabotage::RefusesAdmitted), |_| {}).1 > 0);
}

#[test]
fn an_invented_proof_is_false() {
    assert!(convicted(Some(Sabotage::InventsProofs), |_| {}).1 > 0);
}

#[test]
fn writes_that_lose_no_race_are_over() {
    // Shows as well that turns come in between a read and its write.
    assert!(convicted(Some(Sabotage::BlindWrites), |_| {}).0 > 0);
}

#[test]
fn a_store_that_forgets_is_over() {
    let crash = |plan: &mut Plan| {
        plan.limits = vec![(Tokens::new(500), Period::new(Span::from_secs(60)).unwrap())];
        let at = |millis| Truth::ZERO.plus(Span::from_millis(millis));
        plan.faults = vec![
            (at(2_000), Fault::CrashService),
            (at(2_100), Fault::StartService),
        ];
    };
    assert_eq!(convicted(None, crash), (0, 0));
    assert!(convicted(Some(Sabotage::ForgetsWrites), crash).0 > 0);
}

#[test]
fn clocks_beyond_their_bound_are_convicted() {
    let (over, refused) = convicted(Some(Sabotage::WildClocks), |_| {});
    assert!(over + refused > 0);
}

#[test]
fn every_sabotage_has_a_name_of_its_own() {
    for sabotage in Sabotage::all() {
        let (number, name, _) = sabotage.about();
        assert_eq!(Sabotage::named(name), Some(sabotage));
        let numbered = number.and_then(|number| Sabotage::named(&number.to_string()));
        assert_eq!(numbered, number.map(|_| sabotage));
    }
    assert_eq!(Sabotage::named("nothing"), None);
    assert_eq!(Sabotage::named("1000"), None);
}

#[test]
fn a_rule_is_off_in_its_own_world_only() {
    let plan = busy(1, Some(Sabotage::Rule(Trap::RepeatJudgedAnew)));
    World::new(plan).unwrap().run().unwrap();
    assert!(!headgate_core::trap::is_off(Trap::RepeatJudgedAnew));
}
