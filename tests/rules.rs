//! The plugin's configuration as people write it: the one place where the harness builds it.

use std::time::Duration;

use hyper::header::HeaderName;
use serde::Serialize;

/// Name of the counter service's cluster in every Envoy of the harness: one as Istio makes them,
/// because such a name is no valid authority.
pub const COUNTER_CLUSTER: &str = "outbound|8081||headgate.headgate-system.svc.cluster.local";

/// How long a request may wait where exact numbers are asserted. Far more than a cluster would
/// give: this machine also runs the load, the upstream and all the Envoys, so a thread may not get
/// its turn for tens of milliseconds, and then "undecided" would be the right answer.
pub const PATIENT: Duration = Duration::from_secs(1);

/// A whole configuration.
#[derive(Clone, Debug, Serialize)]
pub struct Rules {
    counter: Counter,
    rules: Vec<Rule>,
}

#[derive(Clone, Debug, Serialize)]
struct Counter {
    cluster: String,
    timeout: String,
}

/// One rule.
#[derive(Clone, Debug, Serialize)]
pub struct Rule {
    name: String,
    key: Vec<KeyPart>,
    limit: Limit,
    when_undecided: Policy,
}

#[derive(Clone, Debug, Serialize)]
struct KeyPart {
    header: String,
    missing: &'static str,
}

#[derive(Clone, Copy, Debug, Serialize)]
struct Limit {
    amount: u64,
    per: Per,
}

/// The unit of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Per {
    /// Begins anew every second.
    Second,
    /// Every minute.
    Minute,
    /// At midnight, UTC.
    Day,
}

/// What happens to a request of which nobody knows whether it is over the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Policy {
    /// It is answered with 503.
    Deny,
    /// It passes.
    Allow,
}

impl Per {
    /// Length of the window.
    #[must_use]
    pub const fn length(self) -> Duration {
        Duration::from_secs(match self {
            Self::Second => 1,
            Self::Minute => 60,
            Self::Day => 86_400,
        })
    }
}

impl Rules {
    /// These rules, with [`COUNTER_CLUSTER`] and [`PATIENT`].
    #[must_use]
    pub fn new(rules: Vec<Rule>) -> Self {
        let counter = Counter {
            cluster: COUNTER_CLUSTER.to_owned(),
            timeout: milliseconds(PATIENT),
        };
        Self { counter, rules }
    }

    /// Another time that a request may wait, in whole milliseconds.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.counter.timeout = milliseconds(timeout);
        self
    }

    /// Another cluster of the counter service.
    #[must_use]
    pub fn cluster(mut self, cluster: &str) -> Self {
        cluster.clone_into(&mut self.counter.cluster);
        self
    }
}

impl Rule {
    /// `amount` for each value of `x-api-key`; requests without it do not count. Whatever cannot
    /// be decided is denied, so that it is told apart from what was admitted.
    #[must_use]
    pub fn new(name: &str, amount: u64, per: Per) -> Self {
        Self {
            name: name.to_owned(),
            key: Vec::new(),
            limit: Limit { amount, per },
            when_undecided: Policy::Deny,
        }
        .header(&HeaderName::from_static("x-api-key"))
    }

    /// Counts by the values of another header.
    #[must_use]
    pub fn header(mut self, header: &HeaderName) -> Self {
        self.key = vec![KeyPart {
            header: header.to_string(),
            missing: "skip",
        }];
        self
    }

    /// Another policy.
    #[must_use]
    pub fn when_undecided(mut self, policy: Policy) -> Self {
        self.when_undecided = policy;
        self
    }
}

fn milliseconds(duration: Duration) -> String {
    format!("{}ms", duration.as_millis())
}

#[cfg(test)]
mod tests {
    use super::{Per, Rule, Rules};
    use headgate_core::rule::Config;

    #[test]
    fn what_is_built_is_what_the_plugin_reads() {
        let rules = Rules::new(vec![
            Rule::new("a", 7, Per::Day),
            Rule::new("b", 1, Per::Second),
        ]);
        let text = serde_json::to_vec(&rules).expect("serializes");
        let config = Config::parse(&text).expect("usable");
        assert_eq!(config.rules().len(), 2);
        let first = config.rules().first().expect("the first");
        assert_eq!(first.limit().amount().get(), 7);
        assert_eq!(config.counter().cluster(), super::COUNTER_CLUSTER);
        assert_eq!(config.counter().timeout().as_millis(), 1000);
    }
}
