//! Work for the whole replica, done by one instance at a time: joining, the watch, the fences that
//! a new leader of the service or a new tenancy needs.
//!
//! Which instance it is, a lease in shared memory says. Two at once, for a moment, do no harm:
//! joins of one tenancy give one seat, and every change of a cell is a compare-and-swap.

use crate::message::call::{Join, Leave, WatchAnswer, Welcome};
use crate::message::{Lease, PROTOCOL_VERSION, Return, RuleSpec, SeatState, Sender};
use crate::replica::cell::Tenant;
use crate::replica::departure;
use crate::replica::seat::{SeatRecord, Seated};
use crate::replica::shared::{Place, Shared, SharedError, update};
use crate::replica::standing::StandingRecord;
use crate::replica::table::Table;
use crate::replica::walk::Walk;
use crate::units::{Epoch, Incarnation, LocalTime, ReplicaId, Span};
use crate::words::{WordReader, WordWriter};

mod idle;
mod pushes;

pub use idle::IDLE_AFTER;

/// How long an instance that says nothing more keeps the watch. A crashed one never says goodbye;
/// recalls wait that long at most for another to take over.
pub const WATCH_LEASE: Span = Span::from_millis(1_000);

/// Pause after a call that brought no answer, so that a service that refuses connections is not
/// asked thousands of times a second.
pub const PAUSE_AFTER_FAILURE: Span = Span::from_millis(50);

/// A poll that is answered before this with nothing to say was ended by another poll: for a moment
/// two instances hold the watch. Each would end the other's at the speed of the network.
const POLL_ENDED_EARLY: Span = Span::from_millis(100);

/// Pause after such a poll. One of the two loses the watch within [`WATCH_LEASE`].
const PAUSE_AFTER_EARLY_END: Span = Span::from_millis(20);

/// How long Join may take. It carries every lease, and a new leader answers it before all else.
pub const JOIN_TIMEOUT: Span = Span::from_millis(1_000);

/// How long a poll may take: the service answers after one second at the latest.
pub const WATCH_TIMEOUT: Span = Span::from_millis(2_000);

/// Time beyond its timeout after which a call whose end was never reported counts as failed.
const OVERDUE: Span = Span::from_millis(1_000);

/// Goes with a call and comes back with its answer, so that an answer is never taken for that of a
/// later call: its stamps would then narrow the estimate of service time wrongly.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ticket {
    number: u64,
    sent: LocalTime,
    incarnation: Incarnation,
}

/// A call to make for the replica.
#[derive(Clone, Debug)]
pub enum LeaderCall {
    /// Its answer goes to [`Leader::joined`].
    Join(Ticket, Join),
    /// Its answer goes to [`Leader::watched`].
    Watch(Ticket, Sender),
}

impl LeaderCall {
    /// How long to wait for the answer.
    #[must_use]
    pub const fn timeout(&self) -> Span {
        match self {
            Self::Join(..) => JOIN_TIMEOUT,
            Self::Watch(..) => WATCH_TIMEOUT,
        }
    }
}

/// What a call asks for.
enum Request {
    Join(Join),
    Watch(Sender),
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

/// One instance's part in the work for the replica.
#[derive(Clone, Debug)]
pub struct Leader {
    /// Random; tells instances apart.
    holder: u64,
    buckets: u32,
    rules: Vec<RuleSpec>,
    next: Next,
    /// The call that is out, and when it counts as failed if nothing is reported.
    in_flight: Option<(Ticket, LocalTime)>,
    next_number: u64,
    not_before: LocalTime,
    /// Gives back what is idle for so long.
    walk: Walk,
    idle_after: Span,
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
            next_number: 0,
            not_before: LocalTime::ZERO,
            walk: Walk::new(),
            idle_after: IDLE_AFTER,
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
        self.in_flight.take_if(|(_, overdue)| *overdue <= now);
        if !self.holds_watch(shared, now, false)? {
            self.next = Next::Join;
            return Ok(None);
        }
        if self.in_flight.is_some() || now < self.not_before {
            return Ok(None);
        }
        let record = SeatRecord::load_or_create(shared, fresh)?;
        let (incarnation, request) = self.request(shared, now, record)?;
        let ticket = Ticket {
            number: self.next_number,
            sent: now,
            incarnation,
        };
        self.next_number = self.next_number.wrapping_add(1);
        let call = match request {
            Request::Join(join) => LeaderCall::Join(ticket, join),
            Request::Watch(sender) => LeaderCall::Watch(ticket, sender),
        };
        self.in_flight = Some((ticket, now.plus(call.timeout()).plus(OVERDUE)));
        Ok(Some(call))
    }

    fn request(
        &self,
        shared: &impl Shared,
        now: LocalTime,
        record: SeatRecord,
    ) -> Result<(Incarnation, Request), SharedError> {
        let join = |record: SeatRecord, leases, fenced_for| {
            let join = self.join(record.sender(now), leases, fenced_for);
            Ok((record.incarnation, Request::Join(join)))
        };
        match (self.next, record.seated) {
            (Next::Watch, Some(_)) => {
                let standing = StandingRecord::load(shared)?;
                let mine = standing.filter(|standing| standing.incarnation == record.incarnation);
                let sender = Sender {
                    directory: mine.map_or(0, |standing| standing.revision),
                    ..record.sender(now)
                };
                Ok((record.incarnation, Request::Watch(sender)))
            }
            (Next::Register(epoch), Some(seated)) => {
                let table = Table::new(shared, self.buckets);
                let leases = table.fence_all(epoch, seated.moment(now))?;
                join(record, leases, Some(epoch))
            }
            (Next::Rejoin, Some(seated)) => join(
                self.renounce(shared, now, record, seated)?,
                Vec::new(),
                None,
            ),
            _ => join(record, Vec::new(), None),
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
        SeatRecord::change(shared, record.incarnation, SeatRecord::void)?;
        let tenant = Tenant {
            incarnation: record.incarnation.next(),
            epoch: seated.epoch,
        };
        Table::new(shared, self.buckets).renounce_all(tenant, seated.moment(now))?;
        SeatRecord::change(shared, record.incarnation, SeatRecord::begin_next)
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

    /// The last word of the replica, for its last instance: fences everything and gives what to
    /// say; `None` if there is no seat.
    ///
    /// # Errors
    /// Shared memory failed before anything has changed.
    pub fn leave(
        &self,
        shared: &impl Shared,
        now: LocalTime,
    ) -> Result<Option<Leave>, SharedError> {
        let mut leave = departure::leave(shared, self.buckets, now)?;
        if let Some(leave) = &mut leave {
            // Anything but a poll to come next means that cells may have been given up.
            leave.complete &= self.is_watching();
        }
        Ok(leave)
    }

    /// Whether this instance has joined and knows of nothing against its seat.
    #[must_use]
    pub fn is_watching(&self) -> bool {
        self.next == Next::Watch
    }

    /// Whether this is the end of the call that is out.
    fn takes(&mut self, ticket: Ticket) -> bool {
        self.in_flight.take_if(|(out, _)| *out == ticket).is_some()
    }

    /// Takes in the answer to Join; `None` if there was none.
    ///
    /// # Errors
    /// Shared memory failed; the join is repeated.
    pub fn joined(
        &mut self,
        shared: &impl Shared,
        now: LocalTime,
        ticket: Ticket,
        welcome: Option<Welcome>,
    ) -> Result<(), SharedError> {
        if !self.takes(ticket) {
            return Ok(());
        }
        let Some(welcome) = welcome else {
            self.not_before = now.plus(PAUSE_AFTER_FAILURE);
            SeatRecord::call_failed(shared, ticket.incarnation, now)?;
            return Ok(());
        };
        if welcome.seat_state == SeatState::Unknown {
            self.next = Next::Rejoin;
            return Ok(());
        }
        let echo = crate::clock::OffsetEstimate::from_echo(ticket.sent, now, welcome.stamps);
        let Some(offset) = echo else {
            self.not_before = now.plus(PAUSE_AFTER_FAILURE);
            return Ok(());
        };
        let mut went_back = false;
        let record = SeatRecord::change(shared, ticket.incarnation, |record| {
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
                alive_until: ticket.sent.plus(welcome.time_to_live),
                time_to_live: welcome.time_to_live,
                hash_key: welcome.hash_key,
                offset: known,
                failed_at: LocalTime::ZERO,
            });
        })?;
        if went_back {
            // Cells were given up because their windows seemed to be over. What they had used is
            // forgotten, so that nothing true can be returned for them: this tenancy ends.
            self.next = Next::Rejoin;
            return Ok(());
        }
        // A tenancy that has ended meanwhile joins again, as the next one.
        let current = record.incarnation == ticket.incarnation;
        if let (true, Some(directory)) = (current, &welcome.directory) {
            let tenancy = (record.incarnation, welcome.seat, welcome.joined);
            let heard = welcome.stamps.received;
            StandingRecord::of(tenancy, heard, directory, welcome.hash_key).store(shared)?;
        }
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
        ticket: Ticket,
        answer: Option<WatchAnswer>,
    ) -> Result<Vec<Return>, SharedError> {
        if !self.takes(ticket) {
            return Ok(Vec::new());
        }
        let Some(answer) = answer else {
            self.not_before = now.plus(PAUSE_AFTER_FAILURE);
            SeatRecord::call_failed(shared, ticket.incarnation, now)?;
            return Ok(Vec::new());
        };
        match answer.seat_state {
            SeatState::Register => self.next = Next::Register(answer.epoch),
            SeatState::Unknown => self.next = Next::Rejoin,
            SeatState::Ok => return self.take_pushes(shared, now, ticket, &answer),
        }
        Ok(Vec::new())
    }
}

#[cfg(test)]
mod tests;
