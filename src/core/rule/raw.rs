//! The configuration as written: its shape and nothing else.
//!
//! Parts are first kept as text and read one by one, so that a mistake in one does not hide those
//! in the others, and so that each is seen to be an object: the derived readers would also take
//! an array of the fields in order. They are read from their text, not from a parsed value: a
//! parsed value has already dropped a field that was written twice.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, Visitor};
use serde_json::value::RawValue;

use super::{Missing, Policy};
use crate::message::Algorithm;

/// The whole.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawConfig<'a> {
    /// Default: [`super::DEFAULT_DOMAIN`].
    pub(super) domain: Option<String>,
    /// A [`RawCounter`].
    #[serde(borrow)]
    pub(super) counter: &'a RawValue,
    /// [`RawRule`]s.
    #[serde(borrow)]
    pub(super) rules: Vec<&'a RawValue>,
}

/// `counter`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawCounter {
    pub(super) cluster: String,
    pub(super) authority: Option<String>,
    pub(super) timeout: Option<String>,
}

/// `rules[]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawRule<'a> {
    pub(super) name: String,
    /// [`RawKeyPart`]s.
    #[serde(borrow, default)]
    pub(super) key: Vec<&'a RawValue>,
    /// A [`RawLimit`].
    #[serde(borrow)]
    pub(super) limit: &'a RawValue,
    pub(super) when_undecided: Policy,
    pub(super) revision: Option<RawNumber>,
}

/// `rules[].key[]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawKeyPart {
    pub(super) header: String,
    #[serde(default)]
    pub(super) missing: Missing,
}

/// `rules[].limit`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawLimit {
    pub(super) amount: RawNumber,
    pub(super) per: String,
    #[serde(default)]
    pub(super) algorithm: RawAlgorithm,
}

/// `rules[].limit.algorithm`.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum RawAlgorithm {
    #[default]
    FixedWindow,
}

impl From<RawAlgorithm> for Algorithm {
    fn from(raw: RawAlgorithm) -> Self {
        match raw {
            RawAlgorithm::FixedWindow => Self::FixedWindow,
        }
    }
}

/// A whole number as it may arrive: Istio turns every number into a double on its way here, so an
/// integral double is one too, and digits in quotes are the way to keep a long one exact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RawNumber {
    /// Whole and not negative.
    Whole(u64),
    /// Anything else, as it was written, for the message.
    Other(String),
}

/// Largest whole number up to which every one has a double of its own (2^53).
const LARGEST_EXACT_DOUBLE: f64 = 9_007_199_254_740_992.0;

struct NumberVisitor;

impl Visitor<'_> for NumberVisitor {
    type Value = RawNumber;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a whole number")
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<RawNumber, E> {
        Ok(RawNumber::Whole(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<RawNumber, E> {
        Ok(u64::try_from(value)
            .map_or_else(|_| RawNumber::Other(value.to_string()), RawNumber::Whole))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<RawNumber, E> {
        let whole = value.fract() == 0.0 && (0.0..=LARGEST_EXACT_DOUBLE).contains(&value);
        // Exact: an integral double of at most 2^53.
        Ok(if whole {
            RawNumber::Whole(value as u64)
        } else {
            RawNumber::Other(value.to_string())
        })
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<RawNumber, E> {
        // `parse` alone would also take a leading plus sign.
        let digits = value.bytes().all(|byte| byte.is_ascii_digit());
        Ok(match value.parse() {
            Ok(number) if digits => RawNumber::Whole(number),
            _ => RawNumber::Other(format!("{value:?}")),
        })
    }
}

impl<'de> Deserialize<'de> for RawNumber {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NumberVisitor)
    }
}
