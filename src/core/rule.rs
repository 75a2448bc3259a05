//! The plugin's configuration: as people write it, and as the code may rely on it.
//!
//! Invariant: a [`Config`] exists only if every bound and every rule of this module holds for it,
//! so nothing behind it checks again. What cannot be used is refused with the path of the field,
//! the value that was found and what would be right; no field is ever dropped silently.

mod bounds;
mod check;
mod error;
mod json;
mod raw;
#[cfg(test)]
mod tests;

use std::fmt;
use std::num::NonZeroU64;

use crate::message::{Algorithm, RuleId, RuleSpec};
use crate::units::{Span, Tokens};
use crate::window::Period;

pub use bounds::{
    DEFAULT_AUTHORITY, DEFAULT_DOMAIN, DEFAULT_TIMEOUT, MAX_AMOUNT, MAX_AUTHORITY_BYTES,
    MAX_CLUSTER_BYTES, MAX_CONFIG_BYTES, MAX_HEADER_BYTES, MAX_KEY_HEADERS, MAX_NAME_BYTES,
    MAX_RULES, MAX_TIMEOUT, MIN_TIMEOUT,
};
pub use error::{ConfigErrors, Issue, MAX_ISSUES};

/// A whole configuration of the plugin, known to be usable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    domain: String,
    counter: Counter,
    rules: Vec<Rule>,
}

impl Config {
    /// Reads a configuration from its JSON text.
    ///
    /// # Errors
    /// All mistakes that were found, each with its path, the value and what would be right. In a
    /// part that does not have the right shape (one rule, the counter) only the first is found.
    pub fn parse(json: &[u8]) -> Result<Self, ConfigErrors> {
        check::parse(json)
    }

    /// Whose rules these are: counters belong to (domain, rule name, values).
    #[must_use]
    pub fn domain(&self) -> &str {
        &self.domain
    }

    /// Where the counter service is.
    #[must_use]
    pub fn counter(&self) -> &Counter {
        &self.counter
    }

    /// The rules as configured, 1 to [`MAX_RULES`], names unique.
    #[must_use]
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// The rules as the counter service is told them, in the same order.
    pub fn specs(&self) -> impl Iterator<Item = RuleSpec> {
        self.rules.iter().map(|rule| RuleSpec {
            id: RuleId {
                domain: self.domain.clone(),
                name: rule.name.clone(),
            },
            algorithm: rule.limit.algorithm,
            amount: Tokens::new(rule.limit.amount.get()),
            period: rule.limit.period,
            revision: rule.revision,
        })
    }
}

/// The counter service as Envoy reaches it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counter {
    cluster: String,
    authority: String,
    timeout: Span,
}

impl Counter {
    /// Name of the Envoy cluster; visible ASCII, 1 to [`MAX_CLUSTER_BYTES`].
    #[must_use]
    pub fn cluster(&self) -> &str {
        &self.cluster
    }

    /// The `:authority` of the calls; 1 to [`MAX_AUTHORITY_BYTES`].
    #[must_use]
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// How long a request may wait for its decision, [`MIN_TIMEOUT`] to [`MAX_TIMEOUT`], whole
    /// milliseconds.
    #[must_use]
    pub fn timeout(&self) -> Span {
        self.timeout
    }
}

/// One limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    name: String,
    key: Vec<KeyPart>,
    limit: Limit,
    when_undecided: Policy,
    revision: u64,
}

impl Rule {
    /// Its identity in the domain; ASCII letters, digits and `.`, `_`, `-`, `/`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What is counted separately; empty: one counter for all requests.
    #[must_use]
    pub fn key(&self) -> &[KeyPart] {
        &self.key
    }

    /// How much per window.
    #[must_use]
    pub fn limit(&self) -> Limit {
        self.limit
    }

    /// What happens to a request of which nobody could know in time.
    #[must_use]
    pub fn when_undecided(&self) -> Policy {
        self.when_undecided
    }

    /// The configuration's revision of this limit, 0 where it carries none. The highest one of the
    /// fleet is in force.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.revision
    }
}

/// One value of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyPart {
    header: String,
    missing: Missing,
}

impl KeyPart {
    /// Name of the request header, lower case; a pseudo header starts with a colon.
    #[must_use]
    pub fn header(&self) -> &str {
        &self.header
    }

    /// What happens to a request without the header.
    #[must_use]
    pub fn missing(&self) -> Missing {
        self.missing
    }
}

/// What a request without a header of the key means to the rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Missing {
    /// The rule does not apply to it.
    #[default]
    Skip,
    /// All such requests share one counter, apart from every value.
    Share,
}

/// The third answer: what to do when the counter could not decide in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// Answer 503; the request was not over its limit and is not called so.
    Deny,
    /// Let it pass, and count that it passed undecided.
    Allow,
}

/// How much, and how it is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    amount: NonZeroU64,
    per: Per,
    period: Period,
    algorithm: Algorithm,
}

impl Limit {
    /// Tokens per window, 1 to [`MAX_AMOUNT`].
    #[must_use]
    pub fn amount(&self) -> NonZeroU64 {
        self.amount
    }

    /// The unit it is written in.
    #[must_use]
    pub fn per(&self) -> Per {
        self.per
    }

    /// Length of the window.
    #[must_use]
    pub fn period(&self) -> Period {
        self.period
    }

    /// How it is counted.
    #[must_use]
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

/// The unit of time that a limit is written in, which is the length of its windows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Per {
    /// One second.
    Second,
    /// 60 seconds.
    Minute,
    /// 3,600 seconds.
    Hour,
    /// 86,400 seconds.
    Day,
}

impl Per {
    /// All of them, shortest first.
    pub const ALL: [Self; 4] = [Self::Second, Self::Minute, Self::Hour, Self::Day];

    /// Its length.
    #[must_use]
    pub const fn length(self) -> Span {
        Span::from_secs(match self {
            Self::Second => 1,
            Self::Minute => 60,
            Self::Hour => 3_600,
            Self::Day => 86_400,
        })
    }

    /// Its name in a configuration.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Second => "second",
            Self::Minute => "minute",
            Self::Hour => "hour",
            Self::Day => "day",
        }
    }
}

impl fmt::Display for Per {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}
