//! The protocol's reference scenarios, S1 to S10, with the figures that they had in its first
//! simulation. What the table there leaves open is chosen so that its figures for static shares
//! come out: the hot replica of S2 has 2/3 of the load, that of S9 3/4; a burst of S6 is 200
//! requests for one replica; Zipf's exponent is 1.

use headgate_core::owner::shard::ShardConfig;
use headgate_core::replica::leader::IDLE_AFTER;
use headgate_core::replica::table::BUCKETS_DEFAULT;
use headgate_core::units::{ServiceTime, Span, Tokens};
use headgate_core::window::Period;

use crate::load::{Costs, Keys, Load, Shape, Spread};
use crate::network::Network;
use crate::random::PER_MILLE;
use crate::world::Plan;

/// What a scenario had in the first simulation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reference {
    /// Requests that asked, in hundredths of a per cent of all.
    pub path: u64,
    /// Messages per second.
    pub messages: u64,
    /// 99 % of all requests waited at most so many microseconds.
    pub p99: u64,
    /// 99.9 % of all.
    pub p999: u64,
}

/// A world to measure.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// `S1 N=10`.
    pub name: &'static str,
    /// In words.
    pub what: &'static str,
    /// The world.
    pub plan: Plan,
    /// What to compare with.
    pub reference: Reference,
}

/// Where service time begins: at the start of an hour.
const START: ServiceTime = ServiceTime::new(1_800_000_000_000_000_000);

/// How long replicas have been there when a scenario begins: what standing shares are computed from
/// is in force, at the start of the first window.
const SETTLING: Span = Span::from_secs(12);

const MINUTE: u64 = 60;
const HOUR: u64 = 3_600;

/// Buckets that hold every key of a scenario: the figures are of the protocol, not of small tables.
const BUCKETS_LARGE: u32 = 4 * BUCKETS_DEFAULT;

/// One rule with one key, requests at random.
fn plan(replicas: usize, amount: u64, period: u64, rate: u64, seconds: u64) -> Plan {
    let second = Span::from_secs(1).get();
    Plan {
        seed: 1,
        replicas,
        workers: 2,
        buckets: BUCKETS_DEFAULT,
        idle_after: IDLE_AFTER,
        limits: Period::new(Span::from_secs(period))
            .map(|period| (Tokens::new(amount), period))
            .into_iter()
            .collect(),
        passes_from: 1,
        deadline: Span::from_millis(100),
        shard: ShardConfig::default(),
        wall: START.minus(SETTLING),
        network: Network::CLUSTER,
        sync: Span::ZERO,
        clocks_apart: Span::from_secs(1_000),
        drift: 50,
        interleaved: 20,
        load: Load {
            gap: Span::new(second.checked_div(rate).unwrap_or(second)),
            shape: Shape::Steady,
            spread: Spread::Even,
            keys: vec![Keys::Even(1)],
            costs: Costs::One,
            crowd: 0,
            impatient: 0,
        },
        quiet: Span::from_millis(12_500),
        loaded: Span::from_secs(seconds),
        faults: Vec::new(),
        script: Vec::new(),
        decided: None,
        sabotage: None,
        trace: false,
    }
}

fn with(plan: Plan, change: impl FnOnce(&mut Load)) -> Plan {
    let mut plan = plan;
    change(&mut plan.load);
    plan
}

const fn reference(path: u64, messages: u64, p99: u64, p999: u64) -> Reference {
    Reference {
        path,
        messages,
        p99,
        p999,
    }
}

/// All of them.
#[must_use]
pub fn all() -> Vec<Scenario> {
    let mut all = one_key();
    all.extend(many_keys());
    all.sort_by_key(|scenario| {
        let number = scenario.name.trim_start_matches('S').split(' ').next();
        number.and_then(|number| number.parse::<u32>().ok())
    });
    all
}

fn one_key() -> Vec<Scenario> {
    let two_thirds = 2 * PER_MILLE / 3;
    let three_quarters = 3 * PER_MILLE / 4;
    let scenario = |name, what, plan, reference| Scenario {
        name,
        what,
        plan,
        reference,
    };
    vec![
        scenario(
            "S1 N=10",
            "1,000/s, 1.3 x",
            plan(10, 1_000, 1, 1_300, 30),
            reference(82, 324, 0, 1_400),
        ),
        scenario(
            "S1 N=50",
            "5,000/s, 1.3 x",
            plan(50, 5_000, 1, 6_500, 20),
            reference(80, 1_603, 0, 1_500),
        ),
        scenario(
            "S2 N=50",
            "5,000/s, 0.9 x, one hot replica",
            with(plan(50, 5_000, 1, 4_500, 20), |load| {
                load.spread = Spread::Hot(two_thirds);
            }),
            reference(4, 576, 0, 200),
        ),
        scenario(
            "S6 N=20",
            "10,000 a minute, bursts",
            with(plan(20, 10_000, MINUTE, 200, 10 * MINUTE), |load| {
                load.shape = Shape::Bursts(200, Span::from_millis(200));
            }),
            reference(18, 34, 0, 800),
        ),
        scenario(
            "S7 N=50",
            "100,000/s, 1.1 x, for 4 s",
            plan(50, 100_000, 1, 110_000, 4),
            reference(53, 5_365, 0, 3_200),
        ),
        scenario(
            "S8 N=10",
            "1,000/s, costs 1 to 20",
            with(plan(10, 1_000, 1, 2_000, 30), |load| {
                load.costs = Costs::Between(1, 20);
            }),
            reference(102, 546, 700, 2_000),
        ),
        scenario(
            "S9 N=20",
            "2,000/s, 1.1 x, hot replica moves every 0.25 s",
            with(plan(20, 2_000, 1, 2_200, 30), |load| {
                load.spread = Spread::Moving(three_quarters, Span::from_millis(250));
            }),
            reference(100, 537, 700, 1_500),
        ),
    ]
}

fn many_keys() -> Vec<Scenario> {
    let scenario = |name, what, plan, keys, reference| Scenario {
        name,
        what,
        plan: with(plan, |load| load.keys = vec![Keys::zipf(keys)]),
        reference,
    };
    let large = |plan: Plan| Plan {
        buckets: BUCKETS_LARGE,
        ..plan
    };
    vec![
        scenario(
            "S3 N=10",
            "5 a minute, 1,000 Zipf keys",
            plan(10, 5, MINUTE, 100, 10 * MINUTE),
            1_000,
            reference(3_480, 143, 1_500, 1_700),
        ),
        scenario(
            "S4 N=50",
            "5 a minute, 1,000 Zipf keys",
            plan(50, 5, MINUTE, 100, 10 * MINUTE),
            1_000,
            reference(4_810, 246, 1_400, 1_700),
        ),
        scenario(
            "S5 N=10",
            "100 a minute, 10,000 Zipf keys",
            large(plan(10, 100, MINUTE, 2_000, 3 * MINUTE)),
            10_000,
            reference(81, 531, 0, 1_300),
        ),
        scenario(
            "S10 N=20",
            "100,000 an hour, 200,000 Zipf keys, for 60 s",
            large(plan(20, 100_000, HOUR, 5_000, MINUTE)),
            200_000,
            reference(0, 21, 0, 0),
        ),
    ]
}
