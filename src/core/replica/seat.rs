//! The seat record: what all workers of a replica know about its place in the fleet. It is one
//! value of shared memory; workers keep copies, which are safe to use when old: an old copy ends
//! earlier, its bounds on service time are wider, and cells fence what it no longer may spend.

use crate::clock::{OffsetEstimate, Stamps};
use crate::key::HashKey;
use crate::message::Sender;
use crate::replica::bucket::Moment;
use crate::replica::cell::Tenant;
use crate::replica::shared::{Place, Shared, SharedError, update};
use crate::units::{Epoch, Incarnation, LocalTime, ReplicaId, Seat, Span};
use crate::words::{WordReader, WordWriter};

const SEAT_WORDS: usize = 14;

/// An answer comes at least once a poll, which takes a second. After so much longer without one the
/// service may have been restarted, though no call has failed yet.
const SILENCE_MAX: Span = Span::from_millis(1_200);

/// How much later than here another replica may put service time, besides what this one's own
/// bounds are wide: two round trips of a slow network. A new leader continues from the upper bound
/// of whichever replica it hears first.
const OTHERS_AHEAD: Span = Span::from_millis(5);

/// A replica's identity, and its seat once it has one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SeatRecord {
    /// Random, made when shared memory was first seen empty.
    pub replica: ReplicaId,
    /// The present tenancy, or the one to join with.
    pub incarnation: Incarnation,
    /// From Welcome.
    pub seated: Option<Seated>,
}

/// What Welcome gave.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seated {
    /// The place in the fleet.
    pub seat: Seat,
    /// The leader that gave it, or the last one it was registered with.
    pub epoch: Epoch,
    /// End of the time-to-live: from then on no lease may be spent.
    pub alive_until: LocalTime,
    /// How long the seat lives after the sending of an answered message.
    pub time_to_live: Span,
    /// Secret of the keyed hash.
    pub hash_key: HashKey,
    /// The estimate of service time.
    pub offset: OffsetEstimate,
    /// When a call failed, if none sent since then was answered; else zero.
    pub failed_at: LocalTime,
}

impl Seated {
    /// The present, on both clocks. Where the service may have been restarted, its time may be
    /// ahead by what another replica's bounds are wide, because a new leader continues from one of
    /// them. What is told to the service is not widened, or it would grow from leader to leader.
    #[must_use]
    pub fn moment(&self, now: LocalTime) -> Moment {
        let mut service = self.offset.at(now);
        let silent = now.since(self.offset.taken()) > SILENCE_MAX;
        if silent || self.failed_at > LocalTime::ZERO {
            let width = service.latest.since(service.earliest);
            service.latest = service.latest.plus(width).plus(OTHERS_AHEAD);
        }
        Moment {
            local: now,
            service,
        }
    }

    /// Takes in that a call had no answer.
    pub fn call_failed(&mut self, now: LocalTime) {
        self.failed_at = self.failed_at.max(now);
    }

    /// Takes in that a message sent at `sent` was answered at `received` with these stamps: the
    /// seat lives on from the sending, and the estimate narrows.
    pub fn heard(&mut self, sent: LocalTime, received: LocalTime, stamps: Stamps) {
        self.alive_until = self.alive_until.max(sent.plus(self.time_to_live));
        if self.failed_at <= sent {
            self.failed_at = LocalTime::ZERO;
        }
        if let Some(newer) = OffsetEstimate::from_echo(sent, received, stamps) {
            self.offset = self.offset.narrowed_by(newer);
        }
    }

    /// Whether leases may be spent.
    #[must_use]
    pub fn is_alive(&self, now: LocalTime) -> bool {
        now < self.alive_until
    }
}

impl SeatRecord {
    /// The tenancy and epoch that claims are made under.
    #[must_use]
    pub fn tenant(&self) -> Tenant {
        let epoch = self.seated.map_or(Epoch::default(), |seated| seated.epoch);
        Tenant {
            incarnation: self.incarnation,
            epoch,
        }
    }

    /// How this replica presents itself.
    #[must_use]
    pub fn sender(&self, now: LocalTime) -> Sender {
        Sender {
            replica: self.replica,
            incarnation: self.incarnation,
            seat: self.seated.map_or(Seat::default(), |seated| seated.seat),
            epoch: self.seated.map_or(Epoch::default(), |seated| seated.epoch),
            service_time: self.seated.map(|seated| seated.offset.at(now)),
            directory: 0,
        }
    }

    /// Reads the record; `None` if there is none yet.
    ///
    /// # Errors
    /// Shared memory failed.
    pub fn load(shared: &impl Shared) -> Result<Option<Self>, SharedError> {
        let stored = shared.get(Place::Seat)?;
        if stored.value.is_empty() {
            return Ok(None);
        }
        Self::decode(&stored.value)
            .map(Some)
            .ok_or(SharedError::Corrupt)
    }

    /// Reads the record, or makes the first one with this identity.
    ///
    /// # Errors
    /// Shared memory failed.
    pub fn load_or_create(shared: &impl Shared, fresh: ReplicaId) -> Result<Self, SharedError> {
        update(shared, Place::Seat, |bytes| {
            if bytes.is_empty() {
                let first = Self {
                    replica: fresh,
                    incarnation: Incarnation::new(1),
                    seated: None,
                };
                return Ok((Some(first.encode()), first));
            }
            let record = Self::decode(bytes).ok_or(SharedError::Corrupt)?;
            Ok((None, record))
        })
    }

    /// Changes the record of one tenancy; nothing happens if another one has begun since. Gives the
    /// record as it is then.
    ///
    /// # Errors
    /// Shared memory failed, or there is no record.
    pub fn change(
        shared: &impl Shared,
        incarnation: Incarnation,
        mut change: impl FnMut(&mut Self),
    ) -> Result<Self, SharedError> {
        update(shared, Place::Seat, |bytes| {
            let before = Self::decode(bytes).ok_or(SharedError::Corrupt)?;
            let mut after = before;
            if before.incarnation == incarnation {
                change(&mut after);
            }
            Ok(((after != before).then(|| after.encode()), after))
        })
    }

    /// Nobody may spend under this tenancy any more.
    pub fn void(&mut self) {
        if let Some(seated) = &mut self.seated {
            seated.alive_until = LocalTime::ZERO;
            seated.time_to_live = Span::ZERO;
        }
    }

    /// The next tenancy begins. It has no seat yet: its Join says so by naming no epoch.
    pub fn begin_next(&mut self) {
        self.incarnation = self.incarnation.next();
        if let Some(seated) = &mut self.seated {
            seated.epoch = Epoch::default();
        }
    }

    /// Ends a tenancy: nobody may spend under it any more, and the next one has no seat yet.
    /// `false` if it is not the present one.
    ///
    /// # Errors
    /// Shared memory failed, or there is no record; nothing has changed.
    pub fn end(shared: &impl Shared, incarnation: Incarnation) -> Result<bool, SharedError> {
        update(shared, Place::Seat, |bytes| {
            let mut record = Self::decode(bytes).ok_or(SharedError::Corrupt)?;
            if record.incarnation != incarnation {
                return Ok((None, false));
            }
            record.void();
            record.begin_next();
            Ok((Some(record.encode()), true))
        })
    }

    /// Takes in that a message of this tenancy, sent at `sent`, was answered now by the leader of
    /// an epoch; nothing if the seat is registered with another one.
    ///
    /// # Errors
    /// Shared memory failed, or there is no record.
    pub fn heard(
        shared: &impl Shared,
        incarnation: Incarnation,
        (sent, now): (LocalTime, LocalTime),
        (epoch, stamps): (Epoch, Stamps),
    ) -> Result<Self, SharedError> {
        Self::change(shared, incarnation, |record| {
            let seated = record.seated.as_mut();
            if let Some(seated) = seated.filter(|seated| seated.epoch == epoch) {
                seated.heard(sent, now, stamps);
            }
        })
    }

    /// Takes in that a call of this tenancy had no answer.
    ///
    /// # Errors
    /// Shared memory failed.
    pub fn call_failed(
        shared: &impl Shared,
        incarnation: Incarnation,
        now: LocalTime,
    ) -> Result<Self, SharedError> {
        Self::change(shared, incarnation, |record| {
            if let Some(seated) = &mut record.seated {
                seated.call_failed(now);
            }
        })
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let mut words = WordReader::new(bytes);
        let replica = ReplicaId::new(words.double()?);
        let incarnation = Incarnation::new(words.word()?);
        let seated = words.word()? != 0;
        let seat = Seat::new(u32::try_from(words.word()?).ok()?);
        let epoch = Epoch::new(words.word()?);
        let alive_until = LocalTime::new(words.word()?);
        let time_to_live = Span::new(words.word()?);
        let hash_key = HashKey::new(words.double()?.to_le_bytes());
        let (lowest, highest) = (words.signed()?, words.signed()?);
        let offset = OffsetEstimate::from_parts(lowest, highest, LocalTime::new(words.word()?));
        let failed_at = LocalTime::new(words.word()?);
        let seated = seated.then_some(Seated {
            seat,
            epoch,
            alive_until,
            time_to_live,
            hash_key,
            offset,
            failed_at,
        });
        words.is_done().then_some(Self {
            replica,
            incarnation,
            seated,
        })
    }

    fn encode(&self) -> Vec<u8> {
        let mut words = WordWriter::with_words(SEAT_WORDS);
        words.double(self.replica.get());
        words.word(self.incarnation.get());
        words.word(u64::from(self.seated.is_some()));
        let seated = self.seated.unwrap_or(Seated {
            seat: Seat::default(),
            epoch: Epoch::default(),
            alive_until: LocalTime::ZERO,
            time_to_live: Span::ZERO,
            hash_key: HashKey::new([0; 16]),
            offset: OffsetEstimate::from_parts(0, 0, LocalTime::ZERO),
            failed_at: LocalTime::ZERO,
        });
        words.word(u64::from(seated.seat.get()));
        words.word(seated.epoch.get());
        words.word(seated.alive_until.get());
        words.word(seated.time_to_live.get());
        words.double(u128::from_le_bytes(seated.hash_key.bytes()));
        let (lowest, highest, taken) = seated.offset.parts();
        words.signed(lowest);
        words.signed(highest);
        words.word(taken.get());
        words.word(seated.failed_at.get());
        words.into_bytes()
    }
}
