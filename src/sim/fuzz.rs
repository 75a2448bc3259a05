//! Random worlds. A seed gives a whole plan: size, limits, load, network, clocks, faults. Most
//! worlds have few faults, because whatever is undecided excuses refusals and so blunts the judge.

use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use headgate_core::owner::record::RecordError;
use headgate_core::owner::shard::ShardConfig;
use headgate_core::units::{ServiceTime, Span, Tokens};
use headgate_core::window::Period;

use crate::load::{Costs, Keys, Load, Shape, Spread};
use crate::network::Network;
use crate::random::Random;
use crate::sabotage::Sabotage;
use crate::time::Truth;
use crate::world::{Fault, Plan, Report, World};

mod more;

use more::{a_leave, more_faults};

/// Somewhere in a minute; the seed moves it.
const START: ServiceTime = ServiceTime::new(1_800_000_000_000_000_000);

/// Requests per second that a world gets at least and at most: enough to exhaust small limits, few
/// enough for thousands of worlds.
const RATES: (u64, u64) = (40, 1_500);

/// The world of a seed.
#[must_use]
pub fn plan(seed: u64) -> Plan {
    let mut random = Random::new(seed ^ 0x5eed_0000_0000_0000);
    // What plans have since then; the rest of a seed's plan stays as it was.
    let mut later = Random::new(seed ^ 0x1a7e_0000_0000_0000);
    let replicas = random.between(1, 6);
    let workers = random.between(1, 3);
    let limits = limits(&mut random);
    let loaded = Span::from_millis(random.between(3_000, 12_000));
    let quiet = Span::from_millis(random.one_of(&[20, 100, 400, 5_500, 7_000]));
    let wall = START.plus(random.span(Span::from_secs(120)));
    let mut faults = if random.chance(500) {
        let times = Times {
            wall,
            first: limits.first().map(|(_, period)| *period),
            from: Truth::ZERO.plus(quiet),
            loaded,
        };
        faults(&mut random, (replicas, workers), &times)
    } else {
        Vec::new()
    };
    if !faults.is_empty() {
        let more = Random::new(seed ^ 0x5eed_0000_0000_0001);
        faults.extend(more_faults(
            more,
            replicas,
            (Truth::ZERO.plus(quiet), loaded),
        ));
    }
    faults.extend(a_leave(&mut later, replicas, (quiet, loaded)));
    Plan {
        seed,
        replicas: usize::try_from(replicas).unwrap_or(1),
        workers: usize::try_from(workers).unwrap_or(1),
        buckets: random.one_of(&[1, 2, 4, 64]),
        idle_after: Span::from_millis(later.one_of(&[200, 1_000, 10_000])),
        passes_from: usize::from(random.one_of(&[0_u8, 1, 9])),
        deadline: Span::from_millis(random.one_of(&[50, 100, 250])),
        shard: ShardConfig {
            time_to_live: Span::from_secs(random.one_of(&[3, 5])),
            ..ShardConfig::default()
        },
        wall,
        network: network(&mut random),
        sync: Span::from_millis(random.one_of(&[0, 0, 2, 10])),
        clocks_apart: Span::from_secs(1_000),
        drift: random.one_of(&[0, 50, 250]),
        interleaved: random.one_of(&[0, 100, 500]),
        load: load(&mut random, &limits),
        limits,
        quiet,
        loaded,
        faults,
        script: Vec::new(),
        decided: None,
        sabotage: None,
        trace: false,
    }
}

fn limits(random: &mut Random) -> Vec<(Tokens, Period)> {
    let rules = random.one_of(&[1, 1, 1, 2, 2, 3]);
    let mut limits = Vec::new();
    for _ in 0..rules {
        let amount = random.one_of(&[1, 2, 3, 5, 10, 30, 100, 400, 1_000]);
        let period = random.one_of(&[1, 1, 1, 2, 5, 10, 60]);
        let period = Period::new(Span::from_secs(period));
        limits.extend(period.map(|period| (Tokens::new(amount), period)));
    }
    limits
}

fn load(random: &mut Random, limits: &[(Tokens, Period)]) -> Load {
    let keys: Vec<(Keys, u64)> = limits
        .iter()
        .map(|_| match random.one_of(&[1, 1, 2, 6, 40]) {
            40 => (Keys::zipf(40), 6),
            count => (Keys::Even(count), count),
        })
        .collect();
    let costs = match random.below(6) {
        0 => Costs::Between(0, 3),
        1 => Costs::Between(1, 10),
        _ => Costs::One,
    };
    let mean = match costs {
        Costs::One => 1,
        Costs::Between(least, most) => least.midpoint(most).max(1),
    };
    // So many tenths of what the tightest rule admits.
    let load = random.one_of(&[6, 11, 13, 20, 50]);
    let rates = limits
        .iter()
        .zip(&keys)
        .map(|((amount, period), (_, keys))| {
            let tenths = amount.get().saturating_mul(*keys).saturating_mul(load);
            let seconds = period.length().as_millis() / 1_000;
            tenths
                .checked_div(seconds.saturating_mul(10).saturating_mul(mean))
                .unwrap_or(0)
        });
    let rate = rates.min().unwrap_or(0).clamp(RATES.0, RATES.1);
    let second = Span::from_secs(1).get();
    Load {
        gap: Span::new(second.checked_div(rate).unwrap_or(second)),
        shape: match random.below(4) {
            0 => Shape::Bursts(20, Span::from_millis(5)),
            _ => Shape::Steady,
        },
        spread: match random.below(5) {
            0 => Spread::Hot(700),
            1 => Spread::Hot(1_000),
            2 => Spread::Moving(800, Span::from_millis(250)),
            _ => Spread::Even,
        },
        keys: keys.into_iter().map(|(keys, _)| keys).collect(),
        costs,
        crowd: random.one_of(&[0, 100, 500]),
        impatient: random.one_of(&[0, 0, 0, 30]),
    }
}

fn network(random: &mut Random) -> Network {
    let is_good = random.chance(500);
    let mut one = |values: &[u64]| if is_good { 0 } else { random.one_of(values) };
    let lost = one(&[0, 0, 5, 30, 100]);
    let doubled = one(&[0, 50, 200]);
    let slow = one(&[0, 50, 200]);
    Network {
        delay: Span::new(random.one_of(&[50_000, 175_000, 1_000_000, 4_000_000])),
        jitter: Span::new(random.one_of(&[50_000, 250_000, 2_000_000])),
        slow,
        slow_by: Span::from_millis(random.one_of(&[5, 40, 200])),
        lost,
        doubled,
    }
}

/// When something may go wrong.
struct Times {
    /// Service time when the world begins.
    wall: ServiceTime,
    /// Windows of the first rule.
    first: Option<Period>,
    from: Truth,
    loaded: Span,
}

impl Times {
    /// A fault and its end: anywhere, or such that it ends near a boundary.
    fn draw(&self, random: &mut Random) -> (Truth, Truth) {
        let lasts = Span::from_millis(random.one_of(&[20, 100, 500, 2_000, 6_000]));
        let at = self.from.plus(random.span(self.loaded));
        let Some(period) = self.first.filter(|_| random.chance(400)) else {
            return (at, at.plus(lasts));
        };
        let ends = self.wall.plus(at.since(Truth::ZERO)).plus(lasts);
        let boundary = period.window_at(ends).end().since(self.wall);
        // As much before it as joins and first messages take, or a little after it.
        let before = random.span(Span::from_millis(60));
        let back = boundary.minus(before).get().saturating_add(10_000_000);
        (
            Truth::new(back.saturating_sub(lasts.get())),
            Truth::new(back),
        )
    }
}

fn faults(
    random: &mut Random,
    (replicas, workers): (u64, u64),
    times: &Times,
) -> Vec<(Truth, Fault)> {
    let mut faults = Vec::new();
    for _ in 0..random.between(1, 5) {
        let (at, back) = times.draw(random);
        let lasts = back.since(at);
        let place = |number| usize::try_from(number).unwrap_or(0);
        let replica = place(random.below(replicas));
        match random.below(12) {
            0 | 1 => {
                faults.push((at, Fault::CrashReplica(replica)));
                faults.push((back, Fault::StartReplica(replica)));
            }
            2 => faults.push((at, Fault::AddReplica)),
            3 => {
                let worker = place(random.below(workers));
                faults.push((at, Fault::CrashWorker(replica, worker)));
            }
            4 => faults.push((at, Fault::HaltReplica(replica, lasts))),
            5 => faults.push((at, Fault::CutOff(replica, lasts))),
            6 => faults.push((at, Fault::HaltService(lasts))),
            7 => {
                let millis = i64::try_from(random.below(600_000)).unwrap_or(0);
                faults.push((at, Fault::StepWall(millis.saturating_sub(300_000))));
                faults.push((at, Fault::CrashService));
                faults.push((back, Fault::StartService));
            }
            8 | 9 => {
                let millis = i64::try_from(random.below(600_000)).unwrap_or(0);
                faults.push((at, Fault::StepWall(millis.saturating_sub(300_000))));
            }
            _ => {
                faults.push((at, Fault::CrashService));
                faults.push((back, Fault::StartService));
            }
        }
    }
    faults
}

/// The world of a seed, maybe broken on purpose.
#[must_use]
pub fn broken_plan(seed: u64, sabotage: Option<Sabotage>) -> Plan {
    let plan = plan(seed);
    match sabotage {
        Some(sabotage) => sabotage.applied_to(plan),
        None => plan,
    }
}

fn millis(random: &mut Random, some: &[u64]) -> Span {
    Span::from_millis(random.one_of(some))
}

/// Runs the world of a seed.
///
/// # Errors
/// Core refuses its own records.
pub fn run(seed: u64, sabotage: Option<Sabotage>) -> Result<Report, RecordError> {
    World::new(broken_plan(seed, sabotage))?.run()
}

/// What came of many worlds.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// Worlds.
    pub runs: u64,
    /// Requests in them.
    pub requests: u64,
    /// Tokens admitted beyond limits.
    pub over: u64,
    /// Refused although something was left, in fixed windows.
    pub false_refusals: u64,
    /// The same in other ledgers; core has none yet.
    pub false_other: u64,
    /// Nobody knew.
    pub undecided: u64,
    /// Tokens that died with replicas and were missed.
    pub crash_lost: u64,
    /// Worlds in which something was wrong.
    pub failed: Vec<u64>,
}

impl Summary {
    /// Adds the world of a seed.
    pub fn add(&mut self, seed: u64, report: &Report) {
        let sum = |total: &mut u64, more: u64| *total = total.saturating_add(more);
        sum(&mut self.runs, 1);
        sum(&mut self.requests, report.counts.requests);
        sum(&mut self.over, report.verdicts.over());
        sum(&mut self.false_refusals, report.verdicts.false_refusals());
        sum(&mut self.undecided, report.counts.undecided);
        sum(&mut self.crash_lost, report.verdicts.crash_lost);
        if !report.is_right() {
            self.failed.push(seed);
            self.failed.sort_unstable();
        }
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "runs {}, requests {}, over {}, false {}, false-other {}, undecided {}, crash-lost {}",
            self.runs,
            self.requests,
            self.over,
            self.false_refusals,
            self.false_other,
            self.undecided,
            self.crash_lost
        )
    }
}

/// Runs the worlds of so many seeds in a row on as many threads as there are processors; tells of
/// each that has ended, in no certain order. The sum does not depend on the order.
///
/// # Errors
/// Core refuses its own records.
pub fn run_many(
    first: u64,
    runs: u64,
    sabotage: Option<Sabotage>,
    told: impl Fn(u64, &Report, &Summary) + Sync,
) -> Result<Summary, RecordError> {
    let next = AtomicU64::new(0);
    let summary = Mutex::new(Summary::default());
    let work = || -> Result<(), RecordError> {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= runs {
                return Ok(());
            }
            let seed = first.wrapping_add(index);
            let report = run(seed, sabotage)?;
            // A thread that panicked ends the whole run at its join.
            if let Ok(mut summary) = summary.lock() {
                summary.add(seed, &report);
                told(seed, &report, &summary);
            }
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        threads
            .into_iter()
            .try_for_each(|thread| match thread.join() {
                Ok(result) => result,
                Err(panic) => std::panic::resume_unwind(panic),
            })
    })?;
    Ok(summary
        .into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner))
}

#[cfg(test)]
mod tests;
