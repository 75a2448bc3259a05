//! Which limit is in force. The counter keeps one per rule, from what replicas state: the highest
//! revision where they carry one; else the lowest amount until they agree, so that no replica's
//! configuration is exceeded.

use std::collections::BTreeMap;

use crate::message::{RuleId, RuleSpec};
use crate::units::{Tenancy, Tokens};

/// Most rules over all replicas: each takes some hundred bytes, and what is beyond comes from a
/// configuration that makes rules out of request data.
pub const RULES_MAX: usize = 16_384;

/// What the replicas state of each rule.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    stated: BTreeMap<RuleId, BTreeMap<Tenancy, RuleSpec>>,
}

impl Rules {
    /// A replica states a rule; `false` if there are too many.
    pub fn state(&mut self, by: Tenancy, rule: &RuleSpec) -> bool {
        if !self.stated.contains_key(&rule.id) && self.stated.len() >= RULES_MAX {
            return false;
        }
        self.stated
            .entry(rule.id.clone())
            .or_default()
            .insert(by, rule.clone());
        true
    }

    /// A replica is gone.
    pub fn forget(&mut self, gone: Tenancy) {
        self.stated.retain(|_, by| {
            by.remove(&gone);
            !by.is_empty()
        });
    }

    /// The limit in force, if any replica states the rule with this period. (Another period is
    /// another counter, with a limit of its own.)
    #[must_use]
    pub fn limit(&self, rule: &RuleId, period: crate::window::Period) -> Option<Tokens> {
        let stated = self
            .stated
            .get(rule)?
            .values()
            .filter(|spec| spec.period == period);
        let best = stated.max_by_key(|spec| (spec.revision, std::cmp::Reverse(spec.amount)))?;
        Some(best.amount)
    }
}

#[cfg(test)]
mod tests;
