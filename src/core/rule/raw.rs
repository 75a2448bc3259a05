//! The configuration as written: its shape and nothing else.

use super::error::Issue;
use super::json::{Array, Value};
use super::{Missing, Policy};
use crate::message::Algorithm;

/// The whole.
#[derive(Debug)]
pub(super) struct RawConfig<'a> {
    /// Default: [`super::DEFAULT_DOMAIN`].
    pub(super) domain: Option<String>,
    /// A [`RawCounter`].
    pub(super) counter: Value<'a>,
    /// [`RawRule`]s.
    pub(super) rules: Array<'a>,
}

impl<'a> RawConfig<'a> {
    pub(super) fn read(value: &Value<'a>) -> Result<Self, Issue> {
        let object = value.object(&["domain", "counter", "rules"])?;
        Ok(Self {
            domain: object.get("domain").map(Value::text).transpose()?,
            counter: object.need("counter")?.clone(),
            rules: object.need("rules")?.array()?,
        })
    }
}

/// `counter`.
#[derive(Debug)]
pub(super) struct RawCounter {
    pub(super) cluster: String,
    pub(super) authority: Option<String>,
    pub(super) timeout: Option<String>,
}

impl RawCounter {
    pub(super) fn read(value: &Value<'_>) -> Result<Self, Issue> {
        let object = value.object(&["cluster", "authority", "timeout"])?;
        Ok(Self {
            cluster: object.need("cluster")?.text()?,
            authority: object.get("authority").map(Value::text).transpose()?,
            timeout: object.get("timeout").map(Value::text).transpose()?,
        })
    }
}

/// `rules[]`.
#[derive(Debug)]
pub(super) struct RawRule<'a> {
    pub(super) name: String,
    /// [`RawKeyPart`]s.
    pub(super) key: Array<'a>,
    /// A [`RawLimit`].
    pub(super) limit: Value<'a>,
    pub(super) when_undecided: Policy,
    /// A whole number.
    pub(super) revision: Option<Value<'a>>,
}

impl<'a> RawRule<'a> {
    pub(super) fn read(value: &Value<'a>) -> Result<Self, Issue> {
        let object = value.object(&["name", "key", "limit", "when_undecided", "revision"])?;
        let key = object.get("key").map(Value::array);
        let policies = [("deny", Policy::Deny), ("allow", Policy::Allow)];
        Ok(Self {
            name: object.need("name")?.text()?,
            key: key.transpose()?.unwrap_or_default(),
            limit: object.need("limit")?.clone(),
            when_undecided: object.need("when_undecided")?.choice(&policies)?,
            revision: object.get("revision").cloned(),
        })
    }
}

/// `rules[].key[]`.
#[derive(Debug)]
pub(super) struct RawKeyPart {
    pub(super) header: String,
    pub(super) missing: Missing,
}

impl RawKeyPart {
    pub(super) fn read(value: &Value<'_>) -> Result<Self, Issue> {
        let object = value.object(&["header", "missing"])?;
        let meanings = [("skip", Missing::Skip), ("share", Missing::Share)];
        let missing = object.get("missing").map(|value| value.choice(&meanings));
        Ok(Self {
            header: object.need("header")?.text()?,
            missing: missing.transpose()?.unwrap_or_default(),
        })
    }
}

/// `rules[].limit`.
#[derive(Debug)]
pub(super) struct RawLimit<'a> {
    /// A whole number.
    pub(super) amount: Value<'a>,
    pub(super) per: String,
    pub(super) algorithm: Algorithm,
}

impl<'a> RawLimit<'a> {
    pub(super) fn read(value: &Value<'a>) -> Result<Self, Issue> {
        let object = value.object(&["amount", "per", "algorithm"])?;
        let algorithms = [("fixed_window", Algorithm::FixedWindow)];
        let algorithm = object
            .get("algorithm")
            .map(|value| value.choice(&algorithms));
        Ok(Self {
            amount: object.need("amount")?.clone(),
            per: object.need("per")?.text()?,
            algorithm: algorithm.transpose()?.unwrap_or(Algorithm::FixedWindow),
        })
    }
}
