//! The service's store: what was durable survives a crash, what was under way may or may not.
//!
//! Steps that come while a write is under way are written together after it, as the service does;
//! a step's replies leave when its changes, and all that came before them, are durable.

use std::collections::{BTreeMap, VecDeque};

use headgate_core::owner::effect::{Change, Outcome, Reply, ReplyTo};
use headgate_core::units::Span;

use crate::random::Random;
use crate::time::Truth;

/// Records as they are stored.
pub(crate) type Records = BTreeMap<Vec<u8>, Vec<u8>>;

#[derive(Debug)]
struct Write {
    done: Truth,
    changes: Vec<Change>,
    replies: Vec<(ReplyTo, Reply)>,
}

/// Durable records and the writes under way.
#[derive(Debug, Default)]
pub(crate) struct Store {
    records: Records,
    writes: VecDeque<Write>,
    /// Broken on purpose: what a crash brings back, although later writes were reported done.
    rolled_back_to: Option<Records>,
}

impl Store {
    pub(crate) const fn records(&self) -> &Records {
        &self.records
    }

    /// Takes in a step; gives when its replies may leave: [`Self::take_durable`] is due then.
    pub(crate) fn write(&mut self, now: Truth, outcome: Outcome, sync: Span) -> Truth {
        let Outcome { changes, replies } = outcome;
        let done = match self.writes.back() {
            // A group gathers behind the write under way. Its time was drawn by its first step.
            Some(last) if self.has_group_behind(now) => last.done,
            Some(last) => last.done.plus(sync),
            None if changes.is_empty() => now,
            None => now.plus(sync),
        };
        self.writes.push_back(Write {
            done,
            changes,
            replies,
        });
        done
    }

    /// Whether the last steps wait for a write that has not begun: it begins when the first ends.
    fn has_group_behind(&self, now: Truth) -> bool {
        let first = self.writes.front().map(|write| write.done);
        let last = self.writes.back().map(|write| write.done);
        first < last && first.is_some_and(|first| now < first)
    }

    /// What has become durable lets its replies out.
    pub(crate) fn take_durable(&mut self, now: Truth) -> Vec<(ReplyTo, Reply)> {
        let mut replies = Vec::new();
        while let Some(write) = self.writes.pop_front_if(|write| write.done <= now) {
            apply(&mut self.records, write.changes);
            replies.extend(write.replies);
        }
        replies
    }

    /// The service dies: of the changes under way, in their order, some first ones are kept.
    pub(crate) fn crash(&mut self, random: &mut Random) {
        let mut changes: Vec<Change> = Vec::new();
        for write in std::mem::take(&mut self.writes) {
            changes.extend(write.changes);
        }
        let kept = random.place(changes.len().saturating_add(1)).unwrap_or(0);
        changes.truncate(kept);
        apply(&mut self.records, changes);
        if let Some(before) = self.rolled_back_to.take() {
            self.records = before;
        }
    }

    /// From now on nothing is really durable (sabotage).
    pub(crate) fn forget_later_writes(&mut self) {
        if self.rolled_back_to.is_none() {
            self.rolled_back_to = Some(self.records.clone());
        }
    }
}

fn apply(records: &mut Records, changes: Vec<Change>) {
    for change in changes {
        match change.value {
            Some(value) => records.insert(change.key, value),
            None => records.remove(&change.key),
        };
    }
}

#[cfg(test)]
mod tests;
