//! What the owner of the keys counts: core's own figures, followed after every step.

use headgate_core::owner::clock::ClockCounts;
use headgate_core::owner::shard::{Shard, ShardCounts};
use prometheus_client::{
    metrics::{counter::Counter, gauge::Gauge},
    registry::Registry,
};

/// What the owner counts.
#[derive(Clone, Debug, Default)]
pub struct OwnerMetrics {
    last: ShardCounts,
    last_clock: ClockCounts,
    asks: Counter,
    admitted: Counter,
    refused: Counter,
    undecided: Counter,
    recalls: Counter,
    returns: Counter,
    keys_full: Counter,
    waiting_full: Counter,
    replicas_full: Counter,
    pushes_dropped: Counter,
    replicas_lost: Counter,
    tokens_lost: Counter,
    reports_refused: Counter,
    askers_full: Counter,
    rules_full: Counter,
    invariants_broken: Counter,
    wall_steps: Counter,
    suspensions: Counter,
    keys: Gauge,
    replicas: Gauge,
    registered: Gauge,
    waiting: Gauge,
}

/// A counter's name, what it means, and the counter.
type Row<'a> = (&'static str, &'static str, &'a Counter);

impl OwnerMetrics {
    pub(super) fn register(&self, registry: &mut Registry) {
        let rows = self.events().into_iter().chain(self.bounds());
        for (name, help, counter) in rows.chain(self.clocks()) {
            registry.register(name, help, counter.clone());
        }
        registry.register("keys", "Keys in memory", self.keys.clone());
        registry.register("replicas", "Replicas with a seat", self.replicas.clone());
        registry.register(
            "replicas_registered",
            "Replicas that have told this service, since it started, what they hold",
            self.registered.clone(),
        );
        registry.register("waiting_asks", "Asks that wait", self.waiting.clone());
    }

    /// What was decided and moved, and what went wrong.
    fn events(&self) -> [Row<'_>; 10] {
        [
            ("asks", "Asks received, repetitions included", &self.asks),
            (
                "admitted",
                "Waiting requests admitted by the owner",
                &self.admitted,
            ),
            (
                "refused",
                "Waiting requests refused by the owner",
                &self.refused,
            ),
            (
                "undecided",
                "Waiting requests that nobody could decide",
                &self.undecided,
            ),
            ("recalls", "Recalls of leased tokens", &self.recalls),
            ("returns", "Returns of leased tokens", &self.returns),
            (
                "replicas_lost",
                "Replicas that were silent for --seat-ttl",
                &self.replicas_lost,
            ),
            (
                "tokens_lost",
                "Tokens that count as spent because the replica that held them was lost",
                &self.tokens_lost,
            ),
            (
                "reports_refused",
                "Reports of leases that were never granted",
                &self.reports_refused,
            ),
            (
                "invariants_broken",
                "Steps after which the books did not balance; anything but 0 is a defect",
                &self.invariants_broken,
            ),
        ]
    }

    /// What happened to the machine's clocks.
    fn clocks(&self) -> [Row<'_>; 2] {
        [
            (
                "wall_clock_steps",
                "Times that this machine's wall clock was set while the service ran",
                &self.wall_steps,
            ),
            (
                "suspensions",
                "Times that this machine slept while the service ran",
                &self.suspensions,
            ),
        ]
    }

    /// Each bound with how often it was hit.
    fn bounds(&self) -> [Row<'_>; 6] {
        [
            (
                "keys_full",
                "Asks undecided because of --max-keys",
                &self.keys_full,
            ),
            (
                "waiting_full",
                "Calls rejected because of --max-waiting-asks",
                &self.waiting_full,
            ),
            (
                "replicas_full",
                "Joins rejected because of --max-replicas",
                &self.replicas_full,
            ),
            (
                "pushes_dropped",
                "Exhausted keys that a replica was not told of, because it did not poll",
                &self.pushes_dropped,
            ),
            (
                "rules_full",
                "Rules whose limit is not kept because there are too many",
                &self.rules_full,
            ),
            (
                "askers_full",
                "Asks undecided because their key keeps as many last answers as it may",
                &self.askers_full,
            ),
        ]
    }

    /// Brings the metrics up to the shard's figures.
    pub fn follow(&mut self, shard: &Shard) {
        let (now, last) = (shard.counts(), self.last);
        let [admitted, refused, undecided] = now.decisions;
        let [admitted_before, refused_before, undecided_before] = last.decisions;
        for (counter, now, before) in [
            (&self.asks, now.asks, last.asks),
            (&self.admitted, admitted, admitted_before),
            (&self.refused, refused, refused_before),
            (&self.undecided, undecided, undecided_before),
            (&self.recalls, now.recalls, last.recalls),
            (&self.returns, now.returns, last.returns),
            (&self.keys_full, now.keys_full, last.keys_full),
            (&self.waiting_full, now.waiting_full, last.waiting_full),
            (&self.replicas_full, now.members_full, last.members_full),
            (
                &self.pushes_dropped,
                now.pushes_dropped,
                last.pushes_dropped,
            ),
            (&self.replicas_lost, now.members_lost, last.members_lost),
            (&self.tokens_lost, now.tokens_dead, last.tokens_dead),
            (&self.askers_full, now.askers_full, last.askers_full),
            (&self.rules_full, now.rules_full, last.rules_full),
            (
                &self.reports_refused,
                now.reports_refused,
                last.reports_refused,
            ),
            (
                &self.invariants_broken,
                now.invariants_broken,
                last.invariants_broken,
            ),
        ] {
            counter.inc_by(now.saturating_sub(before));
        }
        self.last = now;
        self.follow_clocks(shard.clock().counts());
        self.keys.set(gauge(shard.keys().len()));
        self.replicas.set(gauge(shard.members().len()));
        let members = shard.members().iter();
        let registered = members.filter(|member| member.registered).count();
        self.registered.set(gauge(registered));
        self.waiting.set(gauge(shard.waiting()));
    }

    fn follow_clocks(&mut self, now: ClockCounts) {
        let last = std::mem::replace(&mut self.last_clock, now);
        self.wall_steps
            .inc_by(now.wall_steps.saturating_sub(last.wall_steps));
        self.suspensions
            .inc_by(now.suspensions.saturating_sub(last.suspensions));
    }
}

fn gauge(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
