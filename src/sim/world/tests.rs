//! Worlds in which something was wrong once: each failed before the rule that it names.

use headgate_core::units::Tokens;
use headgate_core::window::Period;

use super::*;
use crate::fuzz;
use crate::load::{Costs, Keys, Shape, Spread};
use crate::network::Network;

/// Two busy replicas and one key with 30 tokens per 2 s; the world begins with a window.
fn busy(seed: u64) -> Plan {
    let mut plan = fuzz::plan(seed);
    plan.replicas = 2;
    plan.workers = 2;
    plan.buckets = 4;
    plan.limits = vec![(Tokens::new(30), Period::new(Span::from_secs(2)).unwrap())];
    plan.wall = ServiceTime::new(1_800_000_000_000_000_000);
    plan.network = Network::CLUSTER;
    plan.sync = Span::ZERO;
    plan.drift = 50;
    plan.faults = Vec::new();
    plan.quiet = Span::from_millis(100);
    plan.loaded = Span::from_secs(9);
    plan.load.keys = vec![Keys::Even(1)];
    plan.load.shape = Shape::Steady;
    plan.load.spread = Spread::Even;
    plan.load.costs = Costs::One;
    plan.load.gap = Span::from_millis(20);
    plan.load.crowd = 300;
    plan.load.impatient = 0;
    plan
}

fn at(millis: u64) -> Truth {
    Truth::ZERO.plus(Span::from_millis(millis))
}

fn is_right(plan: Plan) {
    let seed = plan.seed;
    let report = World::new(plan).unwrap().run().unwrap();
    let verdicts = &report.verdicts;
    assert!(report.is_right(), "seed {seed}: {verdicts:?}, {report:?}");
    assert!(report.counts.refused > 0 && report.counts.admitted > 60);
}

#[test]
fn an_outage_beyond_the_ceiling_does_not_turn_time_back() {
    // The window turns over while nobody leads, and the next leader's wall clock is behind.
    for seed in 0..20 {
        let mut plan = busy(seed);
        plan.faults = vec![
            (at(1_500), Fault::CrashService),
            (at(1_500), Fault::StepWall(-200_000)),
            (at(3_100), Fault::StartService),
        ];
        is_right(plan);
    }
}

#[test]
fn a_tenancy_does_not_outlive_time_that_was_turned_back() {
    // The outage is so long that no seat is alive to say what time it is.
    for seed in 0..20 {
        let mut plan = busy(seed);
        plan.limits = vec![(Tokens::new(30), Period::new(Span::from_secs(5)).unwrap())];
        plan.shard.time_to_live = Span::from_secs(3);
        plan.loaded = Span::from_secs(24);
        plan.load.gap = Span::from_millis(60);
        plan.faults = vec![
            (at(4_500), Fault::CrashService),
            (at(4_500), Fault::StepWall(-200_000)),
            (at(12_500), Fault::StartService),
        ];
        is_right(plan);
    }
}

#[test]
fn a_halted_replica_does_not_mistake_an_old_answer_for_a_new_one() {
    // Its timers and its answers of six seconds come at once, and a boundary soon after.
    for seed in 0..60 {
        let mut plan = busy(seed);
        plan.workers = 3;
        plan.interleaved = 100;
        plan.limits = vec![(Tokens::new(100), Period::new(Span::from_secs(1)).unwrap())];
        plan.load.gap = Span::from_millis(2);
        plan.network.delay = Span::from_millis(4);
        plan.network.jitter = Span::from_millis(2);
        plan.faults = vec![(at(1_500), Fault::HaltReplica(0, Span::from_secs(6)))];
        is_right(plan);
    }
}

#[test]
fn a_deposed_leader_that_goes_on_talking_gives_no_token_twice() {
    for seed in 0..60 {
        let mut plan = busy(seed);
        plan.workers = 2;
        plan.network.slow = 50;
        plan.network.slow_by = Span::from_millis(100);
        plan.quiet = Span::from_millis(5_500);
        let millis = 7_000 + 53 * seed;
        plan.faults = vec![(at(millis), Fault::Depose(Span::from_secs(2)))];
        is_right(plan);
    }
}

#[test]
fn shares_spent_while_nobody_led_are_not_leased_again() {
    // Seats outlive the leader by their time-to-live, and enter a window that begins after its
    // ceiling. The next leader, stopped while it waits, finds all seats silent and its wall clock
    // behind: it starts from the ceiling, and that window begins again.
    for seed in 0..8 {
        let mut plan = busy(seed);
        plan.limits = vec![(Tokens::new(30), Period::new(Span::from_secs(5)).unwrap())];
        plan.shard.time_to_live = Span::from_secs(3);
        plan.loaded = Span::from_secs(21);
        plan.load.gap = Span::from_millis(60);
        plan.faults = vec![
            (at(8_500), Fault::CrashService),
            (at(8_500), Fault::StepWall(-200_000)),
            (at(8_700), Fault::StartService),
            (at(8_700), Fault::HaltService(Span::from_secs(5))),
        ];
        is_right(plan);
    }
}
