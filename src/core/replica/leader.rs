//! Work for the whole replica, done by one instance at a time: joining, the watch, the fences that
//! a new leader of the service or a new tenancy needs.
//!
//! Which instance it is, a lease in shared memory says. Two at once, for a moment, do no harm:
//! joins of one tenancy give one seat, and every change of a cell is a compare-and-swap.

use crate::message::call::{Join, WatchAnswer, Welcome};
use crate::message::{Lease, PROTOCOL_VERSION, Return, RuleSpec, SeatState, Sender};
use crate::replica::bucket::{Claim, Moment};
use crate::replica::cell::{HeldProof, Tenant};
use crate::replica::seat::{SeatRecord, Seated};
use crate::replica::shared::{Place, Shared, SharedError, update};
use crate::replica::table::Table;
use crate::units::{Epoch, LocalTime, ReplicaId, Span};
use crate::words::{WordReader, WordWriter};

/// How long an instance that says nothing more keeps the watch. A crashed one never says goodbye;
/// recalls wait that long at most for another to take over.
pub const WATCH_LEASE: Span = Span::from_millis(1_000);

/// Pause after a call that brought no answer, so that a service that refuses connections is not
/// asked thousands of times a second.
pub const PAUSE_AFTER_FAILURE: Span = Span::from_millis(50);

/// How long Join may take. It carries every lease, and a new leader answers it before all else.
pub const JOIN_TIMEOUT: Span = Span::from_millis(1_000);

/// How long a poll may take: the service answers after one second at the latest.
pub const WATCH_TIMEOUT: Span = Span::from_millis(2_000);

/// Time beyond its timeout after which a call whose end was never reported counts as failed.
const OVERDUE: Span = Span::from_millis(1_000);

/// A call to make for the replica.
#[derive(Debug)]
pub enum LeaderCall {
    /// Its answer goes to [`Leader::joined`].
    Join(Join),
    /// Its answer goes to [`Leader::watched`].
    Watch(Sender),
}

impl LeaderCall {
    /// How long to wait for the answer.
    #[must_use]
    pub const fn timeout(&self) -> Span {
        match self {
            Self::Join(_) => JOIN_TIMEOUT,
            Self::Watch(_) => WATCH_TIMEOUT,
        }
    }
}

/// What has to happen next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Next {
    /// State the rules: nothing is known of the seat, or this instance has not stated its rules.
    Join,
    /// Poll.
    Watch,
    /// Fence all leases for this leader and register them.
    Register(Epoch),
    /// Fence all leases and join as a new tenancy.
    Rejoin,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct InFlight {
    is_join: bool,
    sender: Sender,
    sent: LocalTime,
    timeout: Span,
}

/// One instance's part in the work for the replica.
#[derive(Debug)]
pub struct Leader {
    /// Random; tells instances apart.
    holder: u64,
    buckets: u32,
    rules: Vec<RuleSpec>,
    next: Next,
    in_flight: Option<InFlight>,
    not_before: LocalTime,
}

impl Leader {
    /// An instance with a random number of its own.
    #[must_use]
    pub const fn new(holder: u64, rules: Vec<RuleSpec>, buckets: u32) -> Self {
        Self {
            holder,
            buckets,
            rules,
            next: Next::Join,
            in_flight: None,
            not_before: LocalTime::ZERO,
        }
    }

    /// The next call to make, if this instance holds the watch and none is out. `fresh` becomes the
    /// replica's identity if shared memory holds none yet.
    ///
    /// # Errors
    /// Shared memory failed; the next tick tries again.
    pub fn next_call(
        &mut self,
        shared: &impl Shared,
        now: LocalTime,
        fresh: ReplicaId,
    ) -> Result<Option<LeaderCall>, SharedError> {
        let overdue = |call: &InFlight| call.sent.plus(call.timeout).plus(OVERDUE) <= now;
        self.in_flight.take_if(|call| overdue(call));
        if !self.holds_watch(shared, now, false)? {
            self.next = Next::Join;
            return Ok(None);
        }
        if self.in_flight.is_some() || now < self.not_before {
            return Ok(None);
        }
        let record = SeatRecord::load_or_create(shared, fresh)?;
        let call = self.call_for(shared, now, record)?;
        let (is_join, sender) = match &call {
            LeaderCall::Join(join) => (true, join.sender),
            LeaderCall::Watch(sender) => (false, *sender),
        };
        self.in_flight = Some(InFlight {
            is_join,
            sender,
            sent: now,
            timeout: call.timeout(),
        });
        Ok(Some(call))
    }

    /// The call that this answers. An answer may come after its call was given up: with the sending
    /// of a later one it would bend the estimate of service time and prolong the seat's life.
    fn end_call(&mut self, is_join: bool, sender: Sender) -> Option<InFlight> {
        self.in_flight
            .take_if(|call| (call.is_join, call.sender) == (is_join, sender))
    }

    fn call_for(
        &self,
        shared: &impl Shared,
        now: LocalTime,
        record: SeatRecord,
    ) -> Result<LeaderCall, SharedError> {
        match (self.next, record.seated) {
            (Next::Watch, Some(_)) => Ok(LeaderCall::Watch(record.sender(now))),
            (Next::Register(epoch), Some(seated)) => {
                let table = Table::new(shared, self.buckets);
                let leases = table.fence_all(epoch, seated.moment(now))?;
                Ok(LeaderCall::Join(self.join(
                    record.sender(now),
                    leases,
                    Some(epoch),
                )))
            }
            (Next::Rejoin, Some(seated)) => {
                let record = self.renounce(shared, now, record, seated)?;
                Ok(LeaderCall::Join(self.join(
                    record.sender(now),
                    Vec::new(),
                    None,
                )))
            }
            _ => Ok(LeaderCall::Join(self.join(
                record.sender(now),
                Vec::new(),
                None,
            ))),
        }
    }

    fn join(&self, sender: Sender, leases: Vec<Lease>, fenced_for: Option<Epoch>) -> Join {
        let rules = self.rules.clone();
        Join {
            protocol_version: PROTOCOL_VERSION,
            sender,
            rules,
            leases,
            fenced_for,
        }
    }

    /// Ends the tenancy: first nobody may spend any more, then every cell is emptied, then the next
    /// tenancy may join.
    fn renounce(
        &self,
        shared: &impl Shared,
        now: LocalTime,
        record: SeatRecord,
        seated: Seated,
    ) -> Result<SeatRecord, SharedError> {
        SeatRecord::change(shared, record.incarnation, |record| {
            if let Some(seated) = &mut record.seated {
                seated.alive_until = LocalTime::ZERO;
                seated.time_to_live = Span::ZERO;
            }
        })?;
        let next = record.incarnation.next();
        let tenant = Tenant {
            incarnation: next,
            epoch: seated.epoch,
        };
        Table::new(shared, self.buckets).renounce_all(tenant, seated.moment(now))?;
        SeatRecord::change(shared, record.incarnation, |record| {
            record.incarnation = next;
            if let Some(seated) = &mut record.seated {
                // This tenancy has no seat yet: its Join says so by naming no epoch.
                seated.epoch = Epoch::default();
            }
        })
    }

    /// Takes the watch if it is free, keeps it if it is held; `force` takes it in any case.
    ///
    /// # Errors
    /// Shared memory failed.
    pub fn holds_watch(
        &self,
        shared: &impl Shared,
        now: LocalTime,
        force: bool,
    ) -> Result<bool, SharedError> {
        update(shared, Place::Watch, |bytes| {
            let mut words = WordReader::new(bytes);
            let holder = words.word();
            let until = LocalTime::new(words.word().unwrap_or(0));
            let mine = holder == Some(self.holder);
            if !mine && !force && now < until {
                return Ok((None, false));
            }
            // Renewing at half time spares a write at most ticks.
            let fresh = until.since(now).get() > WATCH_LEASE.get() / 2;
            if mine && fresh {
                return Ok((None, true));
            }
            let mut words = WordWriter::with_words(2);
            words.word(self.holder);
            words.word(now.plus(WATCH_LEASE).get());
            Ok((Some(words.into_bytes()), true))
        })
    }

    /// Takes in the answer to Join; `None` if there was none.
    ///
    /// # Errors
    /// Shared memory failed; the join is repeated.
    pub fn joined(
        &mut self,
        shared: &impl Shared,
        now: LocalTime,
        sender: Sender,
        welcome: Option<Welcome>,
    ) -> Result<(), SharedError> {
        let Some(in_flight) = self.end_call(true, sender) else {
            return Ok(());
        };
        let Some(welcome) = welcome else {
            self.not_before = now.plus(PAUSE_AFTER_FAILURE);
            return Ok(());
        };
        if welcome.seat_state == SeatState::Unknown {
            self.next = Next::Rejoin;
            return Ok(());
        }
        let echo = crate::clock::OffsetEstimate::from_echo(in_flight.sent, now, welcome.stamps);
        let Some(offset) = echo else {
            self.not_before = now.plus(PAUSE_AFTER_FAILURE);
            return Ok(());
        };
        let mut went_back = false;
        let record = SeatRecord::change(shared, sender.incarnation, |record| {
            let before = record.seated;
            let held = before.filter(|seat| seat.epoch != Epoch::default());
            went_back = held.is_some_and(|seat| seat.offset.is_ahead_of(offset));
            if went_back {
                return;
            }
            let known = before.map_or(offset, |seat| seat.offset.narrowed_by(offset));
            record.seated = Some(Seated {
                seat: welcome.seat,
                epoch: welcome.epoch,
                alive_until: in_flight.sent.plus(welcome.time_to_live),
                time_to_live: welcome.time_to_live,
                hash_key: welcome.hash_key,
                offset: known,
            });
        })?;
        if went_back {
            // Cells were given up because their windows seemed to be over. What they had used is
            // forgotten, so that nothing true can be returned for them: this tenancy ends.
            self.next = Next::Rejoin;
            return Ok(());
        }
        // A tenancy that has ended meanwhile joins again, as the next one.
        let current = record.incarnation == sender.incarnation;
        self.next = if current { Next::Watch } else { Next::Join };
        Ok(())
    }

    /// Takes in the answer to a poll; `None` if there was none. Gives what to return.
    ///
    /// # Errors
    /// Shared memory failed; the service repeats what matters.
    pub fn watched(
        &mut self,
        shared: &impl Shared,
        now: LocalTime,
        sender: Sender,
        answer: Option<WatchAnswer>,
    ) -> Result<Vec<Return>, SharedError> {
        let Some(in_flight) = self.end_call(false, sender) else {
            return Ok(Vec::new());
        };
        let Some(answer) = answer else {
            self.not_before = now.plus(PAUSE_AFTER_FAILURE);
            return Ok(Vec::new());
        };
        match answer.seat_state {
            SeatState::Register => self.next = Next::Register(answer.epoch),
            SeatState::Unknown => self.next = Next::Rejoin,
            SeatState::Ok => return self.take_pushes(shared, now, sender, in_flight, &answer),
        }
        Ok(Vec::new())
    }

    fn take_pushes(
        &self,
        shared: &impl Shared,
        now: LocalTime,
        sender: Sender,
        in_flight: InFlight,
        answer: &WatchAnswer,
    ) -> Result<Vec<Return>, SharedError> {
        let record = SeatRecord::change(shared, sender.incarnation, |record| {
            if let Some(seated) = record
                .seated
                .as_mut()
                .filter(|seat| seat.epoch == answer.epoch)
            {
                seated.heard(in_flight.sent, now, answer.stamps);
            }
        })?;
        let Some(seated) = record.seated else {
            return Ok(Vec::new());
        };
        let tenant = Tenant {
            incarnation: sender.incarnation,
            epoch: answer.epoch,
        };
        let moment: Moment = seated.moment(now);
        let table = Table::new(shared, self.buckets);
        for exhausted in &answer.exhausted {
            let claim = Claim {
                key: exhausted.key,
                window: exhausted.window,
                tenant,
            };
            let until = in_flight.sent.plus(exhausted.total.time_to_live);
            table.prove(
                claim,
                HeldProof {
                    left: exhausted.total.left,
                    until,
                },
                moment,
            )?;
        }
        let mut returns = Vec::new();
        for recall in &answer.recalls {
            returns.extend(table.recall(*recall, tenant, moment)?);
        }
        Ok(returns)
    }
}

#[cfg(test)]
mod tests;
