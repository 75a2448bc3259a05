//! What a replica knows of its standing shares: one value of shared memory, written by whoever
//! holds the watch, read by all workers. A copy of it may be old: it then says less, never
//! something else, because what is in force from an instant on was published well before
//! ([`crate::standing`]).

use crate::key::{HashKey, KeyHash, KeyParts};
use crate::message::{Counters, Directory};
use crate::replica::seat::SeatRecord;
use crate::replica::shared::{Place, Shared, SharedError, update};
use crate::standing::{Limit, Table, in_force, is_known};
use crate::units::{Incarnation, LocalTime, Seat, ServiceTime, Tokens};
use crate::window::{Period, Window};
use crate::words::{WordReader, WordWriter};

/// What standing shares are computed from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StandingRecord {
    /// The tenancy that it is about.
    pub incarnation: Incarnation,
    /// Its seat.
    pub seat: Seat,
    /// When it began.
    pub joined: ServiceTime,
    /// All that was published until then is known.
    pub heard: ServiceTime,
    /// Revision of the directory.
    pub revision: u64,
    tables: Vec<Table>,
    limits: Vec<(KeyHash, Vec<Limit>)>,
}

/// Which share is looked for.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// The rule's counters, as [`counters_id`] names them.
    pub counters: KeyHash,
    /// Length of its windows.
    pub period: Period,
    /// The key.
    pub key: KeyHash,
    /// The window.
    pub window: Window,
}

/// Names the counters of a rule in a fixed size: the key without values.
#[must_use]
pub fn counters_id(counters: &Counters, secret: HashKey) -> KeyHash {
    KeyParts {
        domain: &counters.rule.domain,
        rule: &counters.rule.name,
        algorithm: counters.algorithm.number(),
        period: counters.period.length(),
        values: &[],
    }
    .hash(secret)
}

impl StandingRecord {
    /// Of a tenancy that has just begun, or has registered with a new leader. `heard` is the
    /// earliest that service time can have been when the message left that was answered by this.
    #[must_use]
    pub fn of(
        (incarnation, seat, joined): (Incarnation, Seat, ServiceTime),
        heard: ServiceTime,
        directory: &Directory,
        secret: HashKey,
    ) -> Self {
        let mut record = Self {
            incarnation,
            seat,
            joined,
            heard,
            revision: 0,
            tables: Vec::new(),
            limits: Vec::new(),
        };
        record.take(directory, secret);
        record
    }

    fn take(&mut self, directory: &Directory, secret: HashKey) {
        self.revision = directory.revision;
        self.tables.clone_from(&directory.tables);
        let limits = directory.limits.iter();
        self.limits = limits
            .map(|(counters, limits)| (counters_id(counters, secret), limits.clone()))
            .collect();
    }

    /// Takes in that the owner, asked at `heard`, had nothing new to say but this.
    pub fn hear(&mut self, heard: ServiceTime, directory: Option<&Directory>, secret: HashKey) {
        self.heard = self.heard.max(heard);
        if let Some(directory) = directory.filter(|directory| self.revision < directory.revision) {
            self.take(directory, secret);
        }
    }

    /// The share of a key in a window, if all that it depends on is known; zero where the seat has
    /// none.
    #[must_use]
    pub fn share(&self, wanted: Wanted) -> Option<Tokens> {
        let start = wanted.window.start();
        if !is_known(wanted.window, self.heard) {
            return None;
        }
        if start < self.joined {
            return Some(Tokens::ZERO);
        }
        let limits = self.limits.iter();
        let share = limits
            .filter(|(counters, _)| *counters == wanted.counters)
            .find_map(|(_, limits)| in_force(limits, start))
            .zip(in_force(&self.tables, start))
            .map(|(limit, table)| {
                let of = (wanted.key, wanted.window);
                table.share(limit.amount, wanted.period, self.seat, of)
            });
        Some(share.unwrap_or(Tokens::ZERO))
    }

    /// Reads the record; `None` if there is none yet.
    ///
    /// # Errors
    /// Shared memory failed.
    pub fn load(shared: &impl Shared) -> Result<Option<Self>, SharedError> {
        let stored = shared.get(Place::Standing)?;
        if stored.value.is_empty() {
            return Ok(None);
        }
        Self::decode(&stored.value)
            .map(Some)
            .ok_or(SharedError::Corrupt)
    }

    /// Writes this record, unless there is one of a later tenancy.
    ///
    /// # Errors
    /// Shared memory failed.
    pub fn store(&self, shared: &impl Shared) -> Result<(), SharedError> {
        update(shared, Place::Standing, |bytes| {
            let before = Self::decode(bytes);
            let later = before.is_some_and(|before| self.incarnation < before.incarnation);
            Ok(((!later).then(|| self.encode()), ()))
        })
    }

    /// Changes the record of one tenancy, if there is one.
    ///
    /// # Errors
    /// Shared memory failed.
    pub fn change(
        shared: &impl Shared,
        incarnation: Incarnation,
        mut change: impl FnMut(&mut Self),
    ) -> Result<(), SharedError> {
        update(shared, Place::Standing, |bytes| {
            let mut record = match Self::decode(bytes) {
                Some(record) if record.incarnation == incarnation => record,
                _ => return Ok((None, ())),
            };
            change(&mut record);
            let bytes_after = record.encode();
            Ok(((bytes_after != bytes).then_some(bytes_after), ()))
        })
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let mut words = WordReader::new(bytes);
        let mut record = Self {
            incarnation: Incarnation::new(words.word()?),
            seat: Seat::new(u32::try_from(words.word()?).ok()?),
            joined: ServiceTime::new(words.word()?),
            heard: ServiceTime::new(words.word()?),
            revision: words.word()?,
            tables: Vec::new(),
            limits: Vec::new(),
        };
        for _ in 0..words.word()? {
            record.tables.push(Table {
                effective: ServiceTime::new(words.word()?),
                seats: u32::try_from(words.word()?).ok()?,
                short_part: u32::try_from(words.word()?).ok()?,
                long_part: u32::try_from(words.word()?).ok()?,
            });
        }
        for _ in 0..words.word()? {
            let counters = KeyHash::new(words.double()?);
            let mut limits = Vec::new();
            for _ in 0..words.word()? {
                limits.push(Limit {
                    effective: ServiceTime::new(words.word()?),
                    amount: Tokens::new(words.word()?),
                });
            }
            record.limits.push((counters, limits));
        }
        words.is_done().then_some(record)
    }

    fn encode(&self) -> Vec<u8> {
        let mut words = WordWriter::default();
        words.word(self.incarnation.get());
        words.word(u64::from(self.seat.get()));
        words.word(self.joined.get());
        words.word(self.heard.get());
        words.word(self.revision);
        words.length(self.tables.len());
        for table in &self.tables {
            words.word(table.effective.get());
            words.word(u64::from(table.seats));
            words.word(u64::from(table.short_part));
            words.word(u64::from(table.long_part));
        }
        words.length(self.limits.len());
        for (counters, limits) in &self.limits {
            words.double(counters.get());
            words.length(limits.len());
            for limit in limits {
                words.word(limit.effective.get());
                words.word(limit.amount.get());
            }
        }
        words.into_bytes()
    }
}

/// The second half of claiming a cell. The first made a cell without tokens; only then is the seat
/// looked at again: if its tenancy has ended by now, it gives nothing; if it ends after this, the
/// fence that follows finds the cell. `None` where it cannot be known yet.
///
/// # Errors
/// Shared memory failed.
pub fn share_now(
    shared: &impl Shared,
    copy: Option<&StandingRecord>,
    now: LocalTime,
    wanted: Wanted,
) -> Result<Option<Tokens>, SharedError> {
    let Some(record) = copy else {
        return Ok(None);
    };
    let seat = SeatRecord::load(shared)?;
    let alive = seat.is_some_and(|seat| {
        let seated = seat.seated.filter(|seated| seated.is_alive(now));
        seat.incarnation == record.incarnation && seated.is_some()
    });
    Ok(if alive { record.share(wanted) } else { None })
}

#[cfg(test)]
mod tests;
