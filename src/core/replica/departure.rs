//! The end of a replica whose plugin is removed: the last instance of the process gives everything
//! back. (When Envoy itself ends, nothing that is sent arrives; what lies idle has gone back
//! before.)
//!
//! Order matters: first the seat is void, so that nobody takes a standing share any more; then
//! every cell is fenced, so that nothing can be spent from it; only then it is said.

use crate::message::call::Leave;
use crate::replica::cell::Tenant;
use crate::replica::seat::SeatRecord;
use crate::replica::shared::{Place, Shared, SharedError, update};
use crate::replica::table::Table;
use crate::units::{Epoch, LocalTime, Span};
use crate::words::{WordReader, WordWriter};

/// How long an instance that says nothing more counts as alive. A crashed one never says goodbye;
/// ticks come at least once a second.
pub const ALIVE_FOR: Span = Span::from_secs(5);

/// How often an instance says that it is alive.
const SAID_EVERY: Span = Span::from_secs(1);

/// How long an instance that ends waits before it looks whether it is the last one: those of a new
/// configuration say that they are alive at their first tick.
pub const LOOKS_AFTER: Span = Span::from_millis(1_500);

/// Most instances that are told apart: workers and main thread, a few configurations each. An
/// instance that finds no place is not counted; at worst the seat is left while it is there, and
/// it joins again.
const INSTANCES_MAX: usize = 1_024;

/// One instance's part in knowing who is alive.
#[derive(Debug)]
pub struct Presence {
    /// Random; tells instances apart.
    holder: u64,
    said: Option<LocalTime>,
}

impl Presence {
    /// An instance with a random number of its own.
    #[must_use]
    pub const fn new(holder: u64) -> Self {
        Self { holder, said: None }
    }

    /// Says that this instance is alive, if it is time; for every tick.
    ///
    /// # Errors
    /// Shared memory failed; the next tick tries again.
    pub fn tick(&mut self, shared: &impl Shared, now: LocalTime) -> Result<(), SharedError> {
        if self.said.is_some_and(|said| now.since(said) < SAID_EVERY) {
            return Ok(());
        }
        self.write(shared, now, Some(now.plus(ALIVE_FOR)))?;
        self.said = Some(now);
        Ok(())
    }

    /// This instance ends; whether no other one is alive.
    ///
    /// # Errors
    /// Shared memory failed: nobody knows.
    pub fn end(&self, shared: &impl Shared, now: LocalTime) -> Result<bool, SharedError> {
        self.write(shared, now, None)
    }

    /// Keeps the others that are alive, and this one until an instant; whether there are no others.
    fn write(
        &self,
        shared: &impl Shared,
        now: LocalTime,
        until: Option<LocalTime>,
    ) -> Result<bool, SharedError> {
        update(shared, Place::Instances, |bytes| {
            let mut alive = read(bytes);
            alive.retain(|(holder, until)| *holder != self.holder && now < *until);
            let alone = alive.is_empty();
            if let Some(until) = until.filter(|_| alive.len() < INSTANCES_MAX) {
                alive.push((self.holder, until));
            }
            let mut words = WordWriter::with_words(alive.len().saturating_mul(2));
            for (holder, until) in alive {
                words.word(holder);
                words.word(until.get());
            }
            Ok((Some(words.into_bytes()), alone))
        })
    }
}

fn read(bytes: &[u8]) -> Vec<(u64, LocalTime)> {
    let mut words = WordReader::new(bytes);
    let mut alive = Vec::new();
    while let (Some(holder), Some(until)) = (words.word(), words.word()) {
        alive.push((holder, LocalTime::new(until)));
    }
    alive
}

/// Ends the tenancy and gives the last word of it; `None` if there is no seat. Whoever comes after
/// joins as the next tenancy.
///
/// # Errors
/// Shared memory failed before the seat was void; nothing has changed.
pub(super) fn leave(
    shared: &impl Shared,
    buckets: u32,
    now: LocalTime,
) -> Result<Option<Leave>, SharedError> {
    let Some(record) = SeatRecord::load(shared)? else {
        return Ok(None);
    };
    let Some(seated) = record.seated.filter(|it| it.epoch != Epoch::default()) else {
        return Ok(None);
    };
    if !SeatRecord::end(shared, record.incarnation)? {
        return Ok(None);
    }
    let tenant = Tenant {
        incarnation: record.incarnation,
        epoch: seated.epoch,
    };
    let (leases, all) = Table::new(shared, buckets).empty_all(tenant, seated.moment(now));
    let complete = all && seated.is_alive(now);
    let sender = record.sender(now);
    Ok(Some(Leave {
        sender,
        leases,
        complete,
    }))
}

#[cfg(test)]
mod tests;
