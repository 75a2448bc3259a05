//! What standing shares are computed from, at the owner: table revisions, limits in force, and the
//! seats that a window is to be charged for although nobody sits there any more.
//!
//! Invariant: whatever a replica may still count on for a running window is here. What is stored
//! comes back with the next leader; nothing is dropped before the last window that began under it
//! is over.

use std::collections::{BTreeMap, BTreeSet};

use crate::key::KeyHash;
use crate::message::{Counters, Directory};
use crate::owner::ledger::Ledger;
use crate::owner::member::Members;
use crate::owner::rules::Rules;
use crate::standing::{
    Effective, LIMITS_PER_RULE_MAX, LONG_PART, Limit, PUBLISHED_AHEAD, SHORT_PART,
    STANDING_PERIOD_MAX, TABLES_MAX, Table, in_force,
};
use crate::trap::{self, Trap};
use crate::units::{Seat, ServiceTime, Span, Tenancy, Tokens};
use crate::window::{Period, Window};

/// Shortest time between two table revisions: a fleet that starts makes one of them, not hundreds.
const BETWEEN_TABLES: Span = Span::from_millis(250);

/// A seat whose share nobody can return: windows that began in here are charged for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Dirty {
    /// When the first of the tenancies began.
    pub from: ServiceTime,
    /// When the last of them ended; [`ServiceTime::MAX`] while service time is not known.
    pub to: ServiceTime,
}

/// A part of the seating that has to be stored.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SeatingChange {
    /// All table revisions, and the number of the directory.
    Tables(u64, Vec<Table>),
    /// The limits of one rule; none any more if it is empty.
    Limits(Counters, Vec<Limit>),
    /// A dirty seat; `None` if it is clean again.
    Dirty(Seat, Option<Dirty>),
}

/// Table revisions, limits in force and dirty seats.
#[derive(Clone, Debug, Default)]
pub struct Seating {
    revision: u64,
    tables: Vec<Table>,
    limits: BTreeMap<Counters, Vec<Limit>>,
    dirty: BTreeMap<Seat, Dirty>,
    /// Rules whose limit may have to be published.
    pending: BTreeSet<Counters>,
    /// Rules that no member states any more, and since when.
    unstated: BTreeMap<Counters, ServiceTime>,
    changes: Vec<SeatingChange>,
}

impl Seating {
    /// Takes in what was stored.
    pub fn restore(&mut self, stored: SeatingChange) {
        match stored {
            SeatingChange::Tables(revision, tables) => {
                self.revision = revision;
                self.tables = tables;
            }
            SeatingChange::Limits(counters, limits) => {
                // Nobody has stated it to this leader yet.
                self.pending.insert(counters.clone());
                self.limits.insert(counters, limits);
            }
            SeatingChange::Dirty(seat, dirty) => {
                self.dirty.extend(dirty.map(|dirty| (seat, dirty)));
            }
        }
    }

    /// Number of the directory.
    #[must_use]
    pub const fn revision(&self) -> u64 {
        self.revision
    }

    /// The directory for who states these rules.
    pub fn directory(&self, stated: impl Iterator<Item = Counters>) -> Directory {
        let limits = stated.filter_map(|counters| {
            let limits = self.limits.get(&counters)?.clone();
            Some((counters, limits))
        });
        Directory {
            revision: self.revision,
            tables: self.tables.clone(),
            limits: limits.collect(),
        }
    }

    /// A replica has stated a rule anew, or is gone: its limit has to be looked at.
    pub fn look_at(&mut self, counters: Counters) {
        self.pending.insert(counters);
    }

    /// Publishes what has changed; it holds from [`PUBLISHED_AHEAD`] on.
    pub fn publish(&mut self, now: ServiceTime, members: &Members, rules: &Rules) {
        self.close_open(now);
        self.publish_table(now, members.seats_taken());
        for counters in std::mem::take(&mut self.pending) {
            let wanted = rules.limit(&counters.rule, counters.period);
            if !self.publish_limit(now, &counters, wanted) {
                self.pending.insert(counters);
            }
        }
    }

    fn publish_table(&mut self, now: ServiceTime, seats: u32) {
        let last = self.tables.last().copied();
        let effective = if trap::is_off(Trap::TableTooSoon) {
            now
        } else {
            now.plus(PUBLISHED_AHEAD)
        };
        let same = last.map_or(0, |last| last.seats) == seats;
        let soon = last.is_some_and(|last| effective < last.effective.plus(BETWEEN_TABLES));
        // A smaller table can wait: the shares of vacant seats are in the pool.
        let can_wait = last.is_some_and(|last| seats < last.seats && now < last.effective);
        if same || soon || can_wait {
            return;
        }
        prune(&mut self.tables, now, STANDING_PERIOD_MAX);
        if self.tables.len() >= TABLES_MAX {
            return;
        }
        self.tables.push(Table {
            effective,
            seats,
            short_part: SHORT_PART,
            long_part: LONG_PART,
        });
        self.revise();
    }

    /// Whether nothing is left to do for this rule.
    fn publish_limit(
        &mut self,
        now: ServiceTime,
        counters: &Counters,
        wanted: Option<Tokens>,
    ) -> bool {
        let Some(amount) = wanted else {
            return self.forget_limit(now, counters);
        };
        self.unstated.remove(counters);
        let limits = self.limits.entry(counters.clone()).or_default();
        if limits.last().is_some_and(|last| last.amount == amount) {
            return true;
        }
        prune(limits, now, counters.period.length());
        if limits.len() >= LIMITS_PER_RULE_MAX {
            return false;
        }
        let effective = now.plus(PUBLISHED_AHEAD);
        limits.push(Limit { effective, amount });
        let limits = limits.clone();
        self.changes
            .push(SeatingChange::Limits(counters.clone(), limits));
        self.revise();
        true
    }

    /// Nobody states a rule any more: its limits matter until the last window that a replica may
    /// have had a share of is over.
    fn forget_limit(&mut self, now: ServiceTime, counters: &Counters) -> bool {
        if !self.limits.contains_key(counters) {
            return true;
        }
        let since = *self.unstated.entry(counters.clone()).or_insert(now);
        if now < since.plus(counters.period.length()).plus(PUBLISHED_AHEAD) {
            return false;
        }
        self.unstated.remove(counters);
        self.limits.remove(counters);
        self.changes
            .push(SeatingChange::Limits(counters.clone(), Vec::new()));
        true
    }

    fn revise(&mut self) {
        self.revision = self.revision.saturating_add(1);
        let tables = self.tables.clone();
        self.changes
            .push(SeatingChange::Tables(self.revision, tables));
    }

    /// A tenancy has ended without returning what it had: its share of every window that began
    /// during it is spent. One seat has one interval, the hull of all: what it covers too much is
    /// short, never over.
    pub fn soil(&mut self, seat: Seat, joined: ServiceTime, ended: Option<ServiceTime>) {
        let to = ended.unwrap_or(ServiceTime::MAX);
        let before = self.dirty.get(&seat);
        let from = before.map_or(joined, |before| before.from.min(joined));
        let dirty = Dirty { from, to };
        self.dirty.insert(seat, dirty);
        self.changes.push(SeatingChange::Dirty(seat, Some(dirty)));
    }

    /// Intervals that ended while service time was not known end now at the latest; those that no
    /// running window began in are over.
    fn close_open(&mut self, now: ServiceTime) {
        let changes = &mut self.changes;
        self.dirty.retain(|seat, dirty| {
            if dirty.to == ServiceTime::MAX {
                dirty.to = now;
                changes.push(SeatingChange::Dirty(*seat, Some(*dirty)));
            }
            let kept = now < dirty.to.plus(STANDING_PERIOD_MAX);
            if !kept {
                changes.push(SeatingChange::Dirty(*seat, None));
            }
            kept
        });
    }

    /// What has to be stored since the last call.
    pub fn take_changes(&mut self) -> Vec<SeatingChange> {
        std::mem::take(&mut self.changes)
    }

    /// The limit of windows that begin at an instant, if one had been published by then.
    #[must_use]
    pub fn limit(&self, counters: &Counters, start: ServiceTime) -> Option<Tokens> {
        let published = self.limits.get(counters)?;
        in_force(published, start).map(|limit| limit.amount)
    }

    /// The ledger of a window in which the owner has heard nothing of the key yet: every seat holds
    /// its share, or its share is spent, or, where nobody sat when the window began, in the pool.
    #[must_use]
    pub fn begin(
        &self,
        (counters, key): (&Counters, KeyHash),
        window: Window,
        members: &Members,
        fallback: Tokens,
    ) -> Ledger {
        let start = window.start();
        let limit = self.limit(counters, start);
        let mut ledger = Ledger::new(window, limit.unwrap_or(fallback));
        let Some((limit, table)) = limit.zip(in_force(&self.tables, start)) else {
            return ledger;
        };
        if table.standing(limit, counters.period) == Tokens::ZERO {
            return ledger;
        }
        for number in 0..table.seats {
            let seat = Seat::new(number);
            let share = table.share(limit, counters.period, seat, (key, window));
            if share == Tokens::ZERO {
                continue;
            }
            match self.charged_for(seat, start, members) {
                Charged::Holder(tenancy) => ledger.stand(tenancy, share),
                Charged::Dead => ledger.soil(share),
                Charged::Nobody => {}
            }
        }
        ledger
    }

    fn charged_for(&self, seat: Seat, start: ServiceTime, members: &Members) -> Charged {
        let forgotten = trap::is_off(Trap::DirtySeatForgotten);
        let dirty = self.dirty.get(&seat).filter(|_| !forgotten);
        if dirty.is_some_and(|dirty| dirty.from <= start && start <= dirty.to) {
            return Charged::Dead;
        }
        match members.at(seat) {
            Some(member) if member.stored.joined <= start => Charged::Holder(member.stored.tenancy),
            _ => Charged::Nobody,
        }
    }
}

/// Whom a window's share of one seat is charged to.
enum Charged {
    Holder(Tenancy),
    Dead,
    Nobody,
}

/// Drops what no running window of at most this length began under.
fn prune<T: Effective>(published: &mut Vec<T>, now: ServiceTime, longest: Span) {
    let oldest = now.minus(longest).minus(PUBLISHED_AHEAD);
    let next_holds = |next: &T| next.effective() <= oldest;
    let over = published.iter().skip(1).take_while(|next| next_holds(next));
    let count = over.count();
    published.drain(..count);
}

/// The counters of a key.
#[must_use]
pub fn counters_of(rule: &crate::message::RuleId, period: Period) -> Counters {
    Counters {
        rule: rule.clone(),
        algorithm: crate::message::Algorithm::FixedWindow,
        period,
    }
}

#[cfg(test)]
mod tests;
