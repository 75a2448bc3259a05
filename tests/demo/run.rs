//! The load, one key after the other.
//!
//! The plugin's statistics are not per key (a key comes from a request, and a statistic is never
//! freed), so calls on the path are attributed by sending one key at a time: what
//! `headgate_asked_total` grew by is that key's.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use headgate_tests::envoy::Envoy;
use headgate_tests::fleet::{Fleet, Plan};
use headgate_tests::load::{Class, Counts, Key, Latency, Load, Outcome, Pace, Progress, Target};
use headgate_tests::rules::{Per, Rule, Rules};
use headgate_tests::scene::Scene;
use headgate_tests::upstream::Upstream;
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::decimal::grouped;
use crate::flags::{Flags, KeyLimit};

/// Requests in flight at most, over all Envoys: at the default rate a tenth of a second's.
const CONCURRENCY: usize = 200;

/// Time between two looks at the progress.
const LOOK: Duration = Duration::from_millis(200);

/// Shortest time for one key.
const SHORTEST: Duration = Duration::from_millis(500);

/// What came of one key.
#[derive(Debug)]
pub(crate) struct KeyResult {
    pub(crate) name: String,
    pub(crate) limit: u64,
    pub(crate) counts: Counts,
    /// Requests that got through to the upstream.
    pub(crate) arrived: u64,
    /// Requests that waited for the counter service.
    pub(crate) asked: u64,
    /// Latencies of the admitted requests.
    pub(crate) with: Latency,
    /// Latencies past the plugin, in the time in which requests were admitted.
    pub(crate) without: Latency,
    /// Why requests failed.
    failures: BTreeMap<String, u64>,
}

impl KeyResult {
    /// What a limiter that never errs would have admitted.
    pub(crate) fn right(&self) -> u64 {
        self.limit.min(self.counts.offered)
    }

    /// What is not as it should be, in sentences.
    pub(crate) fn wrong(&self) -> Vec<String> {
        let Self { name, counts, .. } = self;
        let mut wrong = Vec::new();
        let failed = counts.failed + counts.timed_out;
        if counts.admitted > self.limit {
            let over = counts.admitted - self.limit;
            wrong.push(format!("{name} is over its limit by {over}"));
        }
        if counts.admitted < self.right() {
            wrong.push(format!(
                "{name} is {} under what its limit allows, though more was offered \
                 ({} undecided, {failed} failed)",
                self.right() - counts.admitted,
                counts.undecided
            ));
        }
        if self.arrived != counts.admitted {
            wrong.push(format!(
                "{name}: {} requests got through, but {} clients heard so",
                self.arrived, counts.admitted
            ));
        }
        if failed > 0 {
            wrong.push(format!(
                "{name}: {failed} requests failed: {:?}",
                self.failures
            ));
        }
        wrong
    }
}

/// Starts everything and sends the load.
pub(crate) async fn run(scene: &Scene, flags: &Flags) -> Result<Vec<KeyResult>> {
    let names: BTreeSet<&str> = flags.keys.iter().map(|key| key.name.as_str()).collect();
    ensure!(
        names.len() == flags.keys.len(),
        "each key needs a name of its own"
    );
    let each = flags.duration / u32::try_from(flags.keys.len())?;
    ensure!(
        each >= SHORTEST,
        "{} keys in {:?} is less than {SHORTEST:?} for each",
        flags.keys.len(),
        flags.duration
    );
    println!(
        "{} Envoys with {} workers each, one counter service, {} requests/s",
        flags.envoys,
        flags.workers,
        grouped(flags.rate.into())
    );
    // Behind the listeners without the plugin stands one of its own, so that the counts of the
    // other are those of the plugin.
    let plain = Upstream::start_for(Vec::new()).await?;
    let mut plan = plan(flags)?;
    plan.plain = Some(plain.address());
    let fleet = plan.start(scene).await?;
    let mut results = Vec::new();
    for key in &flags.keys {
        results.push(one(&fleet, flags, key, each).await?);
    }
    Ok(results)
}

/// One rule for each limit.
fn plan(flags: &Flags) -> Result<Plan> {
    let mut rules = BTreeMap::new();
    for key in &flags.keys {
        let header = key.header()?;
        let rule = Rule::new(&format!("limit-{}", key.limit), key.limit, Per::Day);
        rules.insert(key.limit, (rule.header(&header), header));
    }
    let (rules, headers) = rules.into_values().unzip();
    let mut plan = Plan::new(Rules::new(rules)).envoys(flags.envoys.into());
    plan.workers = flags.workers.into();
    plan.headers = headers;
    Ok(plan)
}

/// The load of one key, and what came of it.
async fn one(fleet: &Fleet, flags: &Flags, key: &KeyLimit, each: Duration) -> Result<KeyResult> {
    let asked = fleet.sum("headgate_asked_total").await?;
    let load = load(fleet, flags, key, each)?;
    let progress = Arc::default();
    let outcome = tokio::select! {
        outcome = load.run_with(&progress) => outcome?,
        () = show(fleet, key, each, &progress) => anyhow::bail!("the progress ended"),
    };
    let asked = fleet.sum("headgate_asked_total").await? - asked;
    let result = result(fleet, key, asked, outcome);
    line(&format!(
        "  {}: {} offered, {} admitted",
        key.name,
        grouped(result.counts.offered),
        grouped(result.counts.admitted)
    ));
    println!();
    Ok(result)
}

/// Requests with and without the plugin by turns, over all Envoys.
fn load(fleet: &Fleet, flags: &Flags, key: &KeyLimit, duration: Duration) -> Result<Load> {
    let pace = Pace::Rate {
        per_second: u64::from(flags.rate) * 2,
        duration,
    };
    let mut load = Load::new([], vec![Key::named(&key.name)?], pace);
    let both = |envoy: &Envoy| [envoy.address(), envoy.plain_address()];
    let addresses = fleet.envoys.iter().flat_map(both);
    load.targets = addresses
        .map(|address| Target { address, weight: 1 })
        .collect();
    load.header = key.header()?;
    load.concurrency = CONCURRENCY;
    Ok(load)
}

/// Targets are by turns with and without the plugin.
fn is_with(target: usize) -> bool {
    target.is_multiple_of(2)
}

fn result(fleet: &Fleet, key: &KeyLimit, asked: u64, outcome: Outcome) -> KeyResult {
    let admitted = |target, class| is_with(target) && class == Class::Admitted;
    let ours = outcome.records.iter();
    let ours = ours.filter(|record| admitted(record.target, record.class));
    // A refused request is answered by Envoy itself, so only admitted ones go the same way as
    // those without the plugin; and they are compared for the same time.
    let last = ours.map(|record| record.sent).max().unwrap_or_default();
    KeyResult {
        name: key.name.clone(),
        limit: key.limit,
        counts: outcome.count(|record| is_with(record.target)),
        arrived: fleet.upstream.count(key.name.as_bytes()),
        asked,
        with: outcome.latency(|record| admitted(record.target, record.class)),
        without: outcome.latency(|record| {
            !is_with(record.target) && record.class == Class::Admitted && record.sent <= last
        }),
        failures: outcome.failures,
    }
}

/// Shows how far it is, for ever.
async fn show(fleet: &Fleet, key: &KeyLimit, each: Duration, progress: &Progress) {
    let start = Instant::now();
    let mut looks = interval(LOOK);
    looks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        looks.tick().await;
        if !std::io::stdout().is_terminal() {
            continue;
        }
        line(&format!(
            "  {}: {} of {} s, {} admitted, {} refused, {} undecided",
            key.name,
            start.elapsed().as_secs().min(each.as_secs()),
            each.as_secs(),
            grouped(fleet.upstream.count(key.name.as_bytes())),
            grouped(progress.count(Class::Refused)),
            grouped(progress.count(Class::Undecided)),
        ));
    }
}

/// Writes over the line before.
fn line(text: &str) {
    let clear = if std::io::stdout().is_terminal() {
        "\r\x1b[K"
    } else {
        ""
    };
    print!("{clear}{text}");
    // Nobody is told of a line that is late.
    drop(std::io::stdout().flush());
}

#[cfg(test)]
mod tests {
    use super::{BTreeMap, Counts, KeyResult, Latency};

    /// What is wrong with a key of limit 10.
    fn wrong(counts: Counts, arrived: u64) -> String {
        let result = KeyResult {
            name: "a".to_owned(),
            limit: 10,
            counts,
            arrived,
            asked: 0,
            with: Latency::default(),
            without: Latency::default(),
            failures: BTreeMap::new(),
        };
        result.wrong().join("; ")
    }

    fn counts(offered: u64, admitted: u64) -> Counts {
        Counts {
            offered,
            admitted,
            refused: offered - admitted,
            ..Counts::default()
        }
    }

    #[test]
    fn exactly_the_limit_or_all_that_was_offered_is_right() {
        assert_eq!(wrong(counts(15, 10), 10), "");
        assert_eq!(wrong(counts(10, 10), 10), "");
        assert_eq!(wrong(counts(4, 4), 4), "");
    }

    #[test]
    fn one_more_or_one_less_is_wrong() {
        assert_eq!(wrong(counts(15, 11), 11), "a is over its limit by 1");
        assert!(wrong(counts(15, 9), 9).starts_with("a is 1 under"));
        assert!(wrong(counts(4, 3), 3).starts_with("a is 1 under"));
        assert!(wrong(counts(15, 10), 11).contains("11 requests got through"));
        let failed = Counts {
            offered: 16,
            failed: 1,
            ..counts(15, 10)
        };
        assert!(wrong(failed, 10).contains("1 requests failed"));
    }
}
