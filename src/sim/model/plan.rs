//! What a model is made of: a small world whose every history is looked at.

use headgate_core::trap::Trap;
use headgate_core::units::Span;

use super::memory::Grain;

/// A rule with one key that everybody uses.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limit {
    /// Its name; requests over several rules take them in the order of their names.
    pub(super) name: &'static str,
    /// Tokens per window.
    pub(super) amount: u64,
}

/// What a request wants of one rule.
#[derive(Clone, Copy, Debug)]
pub(super) struct Want {
    /// Index of the rule.
    pub(super) rule: usize,
    /// Tokens.
    pub(super) cost: u64,
}

/// A request, and the instance that it comes to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Visit {
    pub(super) instance: usize,
    pub(super) wants: &'static [Want],
}

/// What happens before the search begins, one after the other, each to its end.
#[derive(Clone, Copy, Debug)]
pub(super) enum Before {
    /// Time goes on until the next window has begun: by then every replica knows the directory, so
    /// that every seat has its standing share.
    NextWindow,
    Visit(Visit),
}

/// How often something may go wrong, or happen at all, in one history.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Budget {
    /// A caller gives up a call. Its request may still arrive, or never; its answer is lost.
    pub(super) given_up: u8,
    /// A request arrives twice.
    pub(super) duplicated: u8,
    /// A replica dies.
    pub(super) replicas_killed: u8,
    /// The service dies, with all that was not durable, and starts again.
    pub(super) service_killed: u8,
    /// A client goes away.
    pub(super) clients_gone: u8,
}

/// What the search must have come across: a model in which nothing happens shows nothing.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Seen {
    /// A request was admitted without a call.
    AdmittedHere,
    /// A request was admitted by the owner.
    AdmittedByOwner,
    /// A request was refused without a call.
    RefusedHere,
    /// A request was refused by the owner.
    RefusedByOwner,
    /// A request was undecided.
    Undecided,
    /// A token was granted.
    Granted,
    /// A recall was answered.
    Returned,
    /// A recall found tokens reserved.
    ReturnedReserved,
    /// A recall was answered for a key without a cell.
    ReturnedWithoutCell,
    /// An ask was repeated and answered from what was kept.
    Repeated,
    /// A provisional charge went back.
    Released,
    /// A write to shared memory came too late.
    RaceLost,
    /// Tokens died with a replica.
    Died,
    /// Leases were registered with a new leader.
    Registered,
    /// An ask named a window that was over.
    WrongWindow,
}

/// How a model is broken on purpose. A model that cannot convict proves nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Broken {
    /// Shared memory writes whatever was there.
    BlindWrites,
    /// A grant counts whatever its generation.
    OldGrants,
    /// What a recall takes back is returned without being recorded.
    UnrecordedReturns,
    /// Whoever is granted tokens is told that nothing is left.
    InventedProofs,
    /// Every commit is taken for a release.
    CommitsLost,
    /// Replies leave before their writes are durable.
    EarlyReplies,
    /// Replicas never notice that their time-to-live is over.
    EndlessSeats,
    /// The first rule's refusals become admissions on their way.
    AdmitsRefused,
    /// A rule of core is off.
    Rule(Trap),
}

/// A model.
#[derive(Clone, Debug)]
pub struct Model {
    /// Its name.
    pub name: &'static str,
    /// What it shows.
    pub what: &'static str,
    pub(super) limits: Vec<Limit>,
    /// Instances of each replica.
    pub(super) workers: Vec<usize>,
    pub(super) before: Vec<Before>,
    pub(super) visits: Vec<Visit>,
    /// How far time goes on each time it does; it may at any moment.
    pub(super) passes: Vec<Span>,
    /// How far it goes on after that, each time when nothing comes by itself any more. After the
    /// last one no client and no fault begins anything, and every deadline has ended.
    pub(super) rests: Vec<Span>,
    pub(super) budget: Budget,
    /// How finely operations are interleaved in replicas with several instances.
    pub(super) grain: Grain,
    /// How long a request waits at most.
    pub(super) deadline: Span,
    /// Length of the windows.
    pub(super) period: Span,
    /// More states than this are a failure: then not all were looked at.
    pub(super) states_max: usize,
    pub(super) must_see: Vec<Seen>,
    /// What must be convicted.
    pub(super) convicts: Vec<Broken>,
    pub(super) broken: Option<Broken>,
}

impl Model {
    /// What must be convicted in it.
    #[must_use]
    pub fn convicts(&self) -> &[Broken] {
        &self.convicts
    }

    /// The same, broken on purpose.
    #[must_use]
    pub fn broken(mut self, how: Broken) -> Self {
        self.broken = Some(how);
        self
    }

    pub(super) fn is_broken(&self, how: Broken) -> bool {
        self.broken == Some(how)
    }

    /// The rule of core that is off.
    pub(super) const fn rule_off(&self) -> Option<Trap> {
        match self.broken {
            Some(Broken::Rule(trap)) => Some(trap),
            _ => None,
        }
    }

    /// Whether seats have standing shares in the window of the search.
    pub(super) fn has_standing(&self) -> bool {
        let begins = |before: &Before| matches!(before, Before::NextWindow);
        self.before.iter().any(begins)
    }

    /// Whether time goes on so far that seats end.
    pub(super) fn ends_tenancies(&self) -> bool {
        let passes = self.passes.iter().chain(&self.rests);
        passes
            .max()
            .is_some_and(|longest| *longest >= Span::from_secs(5))
    }

    /// The replica of an instance.
    pub(super) fn replica_of(&self, instance: usize) -> usize {
        let mut before = 0_usize;
        for (replica, workers) in self.workers.iter().enumerate() {
            before = before.saturating_add(*workers);
            if instance < before {
                return replica;
            }
        }
        self.workers.len()
    }

    /// Whether an instance is the first one of its replica.
    pub(super) fn is_first(&self, instance: usize) -> bool {
        let replica = self.replica_of(instance);
        instance
            .checked_sub(1)
            .is_none_or(|before| self.replica_of(before) != replica)
    }
}
