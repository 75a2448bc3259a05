//! For each rule of the protocol that a trap names: a world in which all is well, and the same
//! world with the rule off, which the judge convicts.
//!
//! Worlds are short and told in full: who comes when, what is lost or late. Service time begins
//! with a window, and clocks do not drift, so that the windows' boundaries are at whole seconds of
//! true time.

use super::*;
use crate::load::Arrival;
use headgate_core::units::ServiceTime;

mod owner;
mod replica;
mod standing;
mod time;

/// Replicas of one or two workers, nothing lost and nobody there.
fn world(replicas: usize, workers: usize, limits: &[(u64, u64)]) -> Plan {
    let mut plan = fuzz::plan(1);
    plan.replicas = replicas;
    plan.workers = workers;
    plan.idle_after = Span::from_secs(10);
    plan.buckets = 4;
    plan.limits = limits.iter().map(|limit| self::limit(*limit)).collect();
    plan.passes_from = limits.len();
    plan.deadline = Span::from_millis(250);
    plan.shard.time_to_live = Span::from_secs(3);
    plan.wall = ServiceTime::new(1_800_000_000_000_000_000);
    plan.network = Network::CLUSTER;
    plan.sync = Span::ZERO;
    plan.drift = 0;
    plan.interleaved = 0;
    plan.faults = Vec::new();
    plan.quiet = Span::ZERO;
    plan.loaded = Span::from_secs(9);
    plan.load.keys = limits.iter().map(|_| Keys::Even(1)).collect();
    plan.load.gap = Span::from_secs(1_000_000);
    plan.load.shape = Shape::Steady;
    plan
}

/// Tokens per seconds.
fn limit((amount, seconds): (u64, u64)) -> (Tokens, Period) {
    let period = Period::new(Span::from_secs(seconds));
    (Tokens::new(amount), period.unwrap())
}

/// An instant in thousandths of a second.
fn at(millis: u64) -> Truth {
    Truth::ZERO.plus(Span::from_millis(millis))
}

/// Some requests at one instant, one after the other.
struct Come {
    at: Truth,
    replica: usize,
    worker: usize,
    /// By rule.
    keys: &'static [u64],
    cost: u64,
    times: usize,
}

impl Plan {
    fn come(&mut self, come: &Come) {
        let arrival = Arrival {
            at: come.at,
            replica: come.replica,
            worker: come.worker,
            keys: come.keys.to_vec(),
            cost: Tokens::new(come.cost),
            patience: None,
        };
        let all = std::iter::repeat_n(arrival, come.times);
        self.script.extend(all);
    }
}

/// The first worker's requests of cost 1 on the first key.
fn come(millis: u64, replica: usize, times: usize) -> Come {
    Come {
        at: at(millis),
        replica,
        worker: 0,
        keys: &[0],
        cost: 1,
        times,
    }
}

/// What the judge says with the rule off; it has to acquit with the rule on.
fn without(trap: Trap, plan: &Plan) -> Verdicts {
    let honest = World::new(plan.clone()).unwrap().run().unwrap();
    assert!(honest.is_right(), "{:?}", honest.verdicts);
    verdicts(Sabotage::Rule(trap).applied_to(plan.clone()))
}

fn is_over(trap: Trap, plan: &Plan) {
    let verdicts = without(trap, plan);
    assert!(verdicts.over() > 0, "{verdicts:?}");
}

fn is_false(trap: Trap, plan: &Plan) {
    let verdicts = without(trap, plan);
    assert!(verdicts.false_refusals() > 0, "{verdicts:?}");
}

/// Undecided after all that could excuse it.
fn is_undecided(trap: Trap, plan: &Plan) {
    let verdicts = without(trap, plan);
    assert!(verdicts.undecided() > 0, "{verdicts:?}");
}
