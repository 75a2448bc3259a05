//! The members: replicas with a seat, their heartbeat, and what there is to push to each.

use std::collections::{BTreeMap, VecDeque};

use crate::key::KeyHash;
use crate::message::{ASKS_PER_CALL_MAX, Exhausted, Lease, Recall};
use crate::owner::effect::ReplyTo;
use crate::owner::record::StoredMember;
use crate::trap::{self, Trap};
use crate::units::{Incarnation, LocalTime, ReplicaId, Seat, ServiceTime, Span, Tenancy};

/// Most keys of which a member is told that they are exhausted, between two polls. What is dropped
/// costs one ask each.
const EXHAUSTED_MAX: usize = 4_096;

/// Most keys of which a member is told that its lease has grown, between two polls. What is dropped
/// comes with the answer to the next ask.
pub(super) const LEASES_MAX: usize = 4_096;

/// A pending recall is told again, in whatever answer comes next, after so long without a return:
/// ten times a round trip inside a cluster.
const RECALL_REPEAT: Span = Span::from_millis(10);

/// An open poll.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OpenWatch {
    /// Which call.
    pub reply: ReplyTo,
    /// When it came, in service time.
    pub received: ServiceTime,
    /// When it is answered at the latest.
    pub until: LocalTime,
    /// The directory that the replica knew.
    pub directory: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct PendingRecall {
    recall: Recall,
    told: Option<LocalTime>,
}

/// One replica's tenancy of a seat.
#[derive(Clone, Debug)]
pub struct Member {
    /// What is stored of it.
    pub stored: StoredMember,
    /// It has registered with this leader: its word on leases counts.
    pub registered: bool,
    /// When the last message from it came.
    pub heard: LocalTime,
    /// The open poll.
    pub watch: Option<OpenWatch>,
    recalls: BTreeMap<KeyHash, PendingRecall>,
    exhausted: VecDeque<Exhausted>,
    leases: BTreeMap<KeyHash, Lease>,
}

impl Member {
    /// A member heard of at an instant.
    #[must_use]
    pub const fn new(stored: StoredMember, heard: LocalTime, registered: bool) -> Self {
        Self {
            stored,
            registered,
            heard,
            watch: None,
            recalls: BTreeMap::new(),
            exhausted: VecDeque::new(),
            leases: BTreeMap::new(),
        }
    }

    /// Has to be told of a recall, until it is returned.
    pub fn recall(&mut self, recall: Recall) {
        self.recalls
            .insert(recall.key, PendingRecall { recall, told: None });
    }

    /// A recall has been returned.
    pub fn recall_ended(&mut self, key: KeyHash) {
        self.recalls.remove(&key);
    }

    /// May be told that a key is exhausted; `false` if something had to be dropped for it.
    pub fn push_exhausted(&mut self, exhausted: Exhausted) -> bool {
        let full = self.exhausted.len() >= EXHAUSTED_MAX;
        if full {
            self.exhausted.pop_front();
        }
        self.exhausted.push_back(exhausted);
        !full
    }

    /// May be told that its lease has grown; `false` if something had to be dropped for it.
    pub fn push_lease(&mut self, lease: Lease) -> bool {
        let full = self.leases.len() >= LEASES_MAX && !self.leases.contains_key(&lease.key);
        if full {
            self.leases.pop_first();
        }
        self.leases.insert(lease.key, lease);
        !full
    }

    /// The leases to tell now.
    pub fn take_leases(&mut self) -> Vec<Lease> {
        let mut taken = Vec::new();
        while taken.len() < ASKS_PER_CALL_MAX
            && let Some((_, lease)) = self.leases.pop_first()
        {
            taken.push(lease);
        }
        taken
    }

    /// The recalls to tell now; each is marked as told.
    pub fn take_recalls(&mut self, now: LocalTime) -> Vec<Recall> {
        let due = self
            .recalls
            .values_mut()
            .filter(|pending| is_due(pending, now));
        let told = due.take(ASKS_PER_CALL_MAX).map(|pending| {
            pending.told = Some(now);
            pending.recall
        });
        let told = told.collect();
        if trap::is_off(Trap::RecallToldOnce) {
            self.recalls.retain(|_, pending| pending.told.is_none());
        }
        told
    }

    /// What to tell of exhausted keys.
    pub fn take_exhausted(&mut self) -> Vec<Exhausted> {
        let count = self.exhausted.len().min(ASKS_PER_CALL_MAX);
        self.exhausted.drain(..count).collect()
    }

    /// Whether a poll has something to say now.
    #[must_use]
    pub fn has_pushes(&self, now: LocalTime) -> bool {
        let news = !self.exhausted.is_empty() || !self.leases.is_empty();
        news || self.recalls.values().any(|pending| is_due(pending, now))
    }

    /// When a recall is to be told again.
    #[must_use]
    pub fn next_repeat(&self) -> Option<LocalTime> {
        let told = self.recalls.values().filter_map(|pending| pending.told);
        told.map(|told| told.plus(RECALL_REPEAT)).min()
    }

    /// Whether its time-to-live is over.
    #[must_use]
    pub fn is_gone(&self, now: LocalTime, time_to_live: Span) -> bool {
        self.heard.plus(time_to_live) <= now
    }
}

fn is_due(pending: &PendingRecall, now: LocalTime) -> bool {
    pending
        .told
        .is_none_or(|told| told.plus(RECALL_REPEAT) <= now)
}

/// All members.
#[derive(Clone, Debug, Default)]
pub struct Members {
    all: BTreeMap<Tenancy, Member>,
    by_replica: BTreeMap<ReplicaId, Tenancy>,
    by_seat: BTreeMap<Seat, Tenancy>,
}

impl Members {
    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The present tenancy of a replica.
    #[must_use]
    pub fn of(&self, replica: ReplicaId) -> Option<&Member> {
        self.by_replica
            .get(&replica)
            .and_then(|tenancy| self.all.get(tenancy))
    }

    /// The tenancy of a replica, if it is the one the replica speaks of.
    #[must_use]
    pub fn find(&self, replica: ReplicaId, incarnation: Incarnation) -> Option<Tenancy> {
        let member = self.of(replica)?;
        (member.stored.incarnation == incarnation).then_some(member.stored.tenancy)
    }

    /// A member.
    #[must_use]
    pub fn get(&self, tenancy: Tenancy) -> Option<&Member> {
        self.all.get(&tenancy)
    }

    /// A member, to change.
    pub fn get_mut(&mut self, tenancy: Tenancy) -> Option<&mut Member> {
        self.all.get_mut(&tenancy)
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Member> {
        self.all.values()
    }

    /// All of them, to change.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Member> {
        self.all.values_mut()
    }

    /// Adds a member.
    pub fn add(&mut self, member: Member) {
        self.by_replica
            .insert(member.stored.replica, member.stored.tenancy);
        self.by_seat
            .insert(member.stored.seat, member.stored.tenancy);
        self.all.insert(member.stored.tenancy, member);
    }

    /// Takes a member out.
    pub fn remove(&mut self, tenancy: Tenancy) -> Option<Member> {
        let member = self.all.remove(&tenancy)?;
        if self.by_replica.get(&member.stored.replica) == Some(&tenancy) {
            self.by_replica.remove(&member.stored.replica);
        }
        if self.by_seat.get(&member.stored.seat) == Some(&tenancy) {
            self.by_seat.remove(&member.stored.seat);
        }
        Some(member)
    }

    /// Who sits there.
    #[must_use]
    pub fn at(&self, seat: Seat) -> Option<&Member> {
        let tenancy = self.by_seat.get(&seat)?;
        self.all.get(tenancy)
    }

    /// The highest seat that is taken, and one.
    #[must_use]
    pub fn seats_taken(&self) -> u32 {
        let last = self.by_seat.last_key_value();
        last.map_or(0, |(seat, _)| seat.get().saturating_add(1))
    }

    /// The lowest seat that nobody has.
    #[must_use]
    pub fn vacant_seat(&self) -> Seat {
        let vacant = (0..u32::MAX).find(|seat| !self.by_seat.contains_key(&Seat::new(*seat)));
        Seat::new(vacant.unwrap_or(u32::MAX))
    }
}

#[cfg(test)]
mod tests;
