//! Which limit is in force. The counter keeps one per rule, from what replicas state: the highest
//! revision where they carry one; else the lowest amount until they agree, so that no replica's
//! configuration is exceeded.

use std::collections::BTreeMap;

use crate::message::{Counters, RuleId, RuleSpec};
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
    /// A replica states a rule. Gives the counters whose limit may be another one now; `None` if
    /// there are too many rules.
    pub fn state(&mut self, by: Tenancy, rule: &RuleSpec) -> Option<Vec<Counters>> {
        if !self.stated.contains_key(&rule.id) && self.stated.len() >= RULES_MAX {
            return None;
        }
        let by_tenancy = self.stated.entry(rule.id.clone()).or_default();
        let before = by_tenancy.get(&by);
        if before == Some(rule) {
            return Some(Vec::new());
        }
        let mut changed = vec![rule.counters()];
        let before = before.map(RuleSpec::counters);
        changed.extend(before.filter(|before| *before != rule.counters()));
        by_tenancy.insert(by, rule.clone());
        Some(changed)
    }

    /// A replica is gone. Gives the counters whose limit may be another one now.
    pub fn forget(&mut self, gone: Tenancy) -> Vec<Counters> {
        let mut changed = Vec::new();
        self.stated.retain(|_, by| {
            changed.extend(by.remove(&gone).map(|rule| rule.counters()));
            !by.is_empty()
        });
        changed
    }

    /// The counters of the rules that a replica states.
    pub fn of(&self, tenancy: Tenancy) -> impl Iterator<Item = Counters> {
        let rules = self.stated.values();
        rules.filter_map(move |by| by.get(&tenancy).map(RuleSpec::counters))
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
