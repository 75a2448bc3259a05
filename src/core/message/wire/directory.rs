//! What standing shares are computed from.

use super::{Checked, RULES_PER_REPLICA_MAX, WireError, bad, required};
use crate::message::{Counters, Directory, RuleSpec};
use crate::standing::{LIMITS_PER_RULE_MAX, Limit, MILLION, TABLES_MAX, Table};
use crate::units::ServiceTime;
use crate::wire as pb;

impl From<Directory> for pb::Directory {
    fn from(directory: Directory) -> Self {
        let limits = directory.limits.into_iter().flat_map(|(counters, limits)| {
            limits.into_iter().map(move |limit| pb::LimitInForce {
                rule: Some(stated(&counters, limit).into()),
                effective_service_ns: limit.effective.get(),
            })
        });
        Self {
            revision: directory.revision,
            tables: directory.tables.into_iter().map(Into::into).collect(),
            limits: limits.collect(),
        }
    }
}

fn stated(counters: &Counters, limit: Limit) -> RuleSpec {
    RuleSpec {
        id: counters.rule.clone(),
        algorithm: counters.algorithm,
        amount: limit.amount,
        period: counters.period,
        revision: 0,
    }
}

impl TryFrom<pb::Directory> for Directory {
    type Error = WireError;

    fn try_from(directory: pb::Directory) -> Checked<Self> {
        if directory.tables.len() > TABLES_MAX {
            return bad("directory.tables", "longer than it may be");
        }
        if directory.limits.len() > RULES_PER_REPLICA_MAX.saturating_mul(LIMITS_PER_RULE_MAX) {
            return bad("directory.limits", "longer than it may be");
        }
        let mut limits: Vec<(Counters, Vec<Limit>)> = Vec::new();
        for stated in directory.limits {
            let rule: RuleSpec = required(stated.rule, "directory.limits.rule")?.try_into()?;
            let limit = Limit {
                effective: ServiceTime::new(stated.effective_service_ns),
                amount: rule.amount,
            };
            let counters = rule.counters();
            // Those of one rule come one after the other.
            match limits.last_mut() {
                Some((last, entries)) if *last == counters => entries.push(limit),
                _ => limits.push((counters, vec![limit])),
            }
        }
        Ok(Self {
            revision: directory.revision,
            tables: directory
                .tables
                .into_iter()
                .map(TryInto::try_into)
                .collect::<Checked<_>>()?,
            limits,
        })
    }
}

impl From<Table> for pb::TableRevision {
    fn from(table: Table) -> Self {
        Self {
            effective_service_ns: table.effective.get(),
            seats: table.seats,
            short_part_millionths: table.short_part,
            long_part_millionths: table.long_part,
        }
    }
}

impl TryFrom<pb::TableRevision> for Table {
    type Error = WireError;

    fn try_from(table: pb::TableRevision) -> Checked<Self> {
        if u64::from(table.short_part_millionths.max(table.long_part_millionths)) > MILLION {
            return bad("directory.tables.part", "more than the whole");
        }
        Ok(Self {
            effective: ServiceTime::new(table.effective_service_ns),
            seats: table.seats,
            short_part: table.short_part_millionths,
            long_part: table.long_part_millionths,
        })
    }
}
