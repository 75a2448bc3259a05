//! What a world is made of.

use headgate_core::message::{Algorithm, RuleId, RuleSpec};
use headgate_core::owner::shard::ShardConfig;
use headgate_core::replica::worker::Rule;
use headgate_core::units::{ServiceTime, Span, Tokens};
use headgate_core::window::Period;

use super::Fault;
use crate::load::{Arrival, Load};
use crate::network::Network;
use crate::random::Random;
use crate::sabotage::Sabotage;
use crate::time::{Clock, Truth};

/// A world to be.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Everything that is left to chance follows from it.
    pub seed: u64,
    /// How many replicas there are at the beginning.
    pub replicas: usize,
    /// Workers of each.
    pub workers: usize,
    /// Buckets of each one's table.
    pub buckets: u32,
    /// What a replica does not use for so long goes back by itself.
    pub idle_after: Span,
    /// The rules: tokens per window, and its length. Every request is under all of them.
    pub limits: Vec<(Tokens, Period)>,
    /// Rules from this one on let requests pass that nobody could decide.
    pub passes_from: usize,
    /// How long a request may wait.
    pub deadline: Span,
    /// The service's configuration.
    pub shard: ShardConfig,
    /// Service time at the beginning, by the service's wall clock.
    pub wall: ServiceTime,
    /// The network.
    pub network: Network,
    /// A write is durable after less than this.
    pub sync: Span,
    /// Clocks differ by less than this when the world begins.
    pub clocks_apart: Span,
    /// Clocks gain or lose at most so many millionths against true time.
    pub drift: u64,
    /// How many turns in a thousand may be interrupted by turns of other workers.
    pub interleaved: u64,
    /// The clients.
    pub load: Load,
    /// How long the world is quiet at first.
    pub quiet: Span,
    /// How long the clients send requests then.
    pub loaded: Span,
    /// Requests that come besides the clients'.
    pub script: Vec<Arrival>,
    /// Who comes and is answered between these instants may not be undecided: by then nothing
    /// excuses it any more.
    pub decided: Option<(Truth, Truth)>,
    /// What goes wrong, and when.
    pub faults: Vec<(Truth, Fault)>,
    /// What is broken on purpose.
    pub sabotage: Option<Sabotage>,
    /// Writes every event to the standard error output.
    pub trace: bool,
}

impl Plan {
    pub(super) fn rules(&self) -> Vec<Rule> {
        let rule = |(index, (amount, period)): (usize, &(Tokens, Period))| Rule {
            spec: RuleSpec {
                id: RuleId {
                    domain: "sim".to_owned(),
                    name: format!("rule-{index}"),
                },
                algorithm: Algorithm::FixedWindow,
                amount: *amount,
                period: *period,
                revision: 0,
            },
            undecided_passes: index >= self.passes_from,
        };
        self.limits.iter().enumerate().map(rule).collect()
    }

    /// Whether a replica may be silent for so long that its tokens are given up. Where none is, a
    /// ledger that says so is no excuse.
    pub(super) fn silences(&self) -> bool {
        let mut faults = self.faults.iter();
        self.network.lost > 0 || faults.any(|(_, fault)| fault.silences())
    }

    pub(super) fn load_end(&self) -> Truth {
        Truth::ZERO.plus(self.quiet).plus(self.loaded)
    }

    /// A machine's clock.
    pub(super) fn clock(&self, random: &mut Random) -> Clock {
        let offset = random.span(self.clocks_apart);
        let drift = random.between(0, self.drift.saturating_mul(2));
        let drift = i64::try_from(drift).unwrap_or(0);
        let most = i64::try_from(self.drift).unwrap_or(0);
        Clock {
            // A machine has been up for a while.
            offset: Span::new(offset.get().saturating_add(1_000_000_000)),
            drift: drift.saturating_sub(most),
        }
    }
}
