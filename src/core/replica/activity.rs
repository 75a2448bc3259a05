//! When a request last came to a replica, whichever worker it came to: one value of shared memory,
//! written by each worker at most once in [`NOTED_EVERY`], so that it costs requests nothing.

use crate::replica::shared::{Place, Shared, SharedError, update};
use crate::units::{LocalTime, Span};
use crate::words::{WordReader, WordWriter};

/// How exact the time is.
pub const NOTED_EVERY: Span = Span::from_secs(1);

/// When a request last came, give or take [`NOTED_EVERY`]; `None` if none ever did.
///
/// # Errors
/// Shared memory failed.
pub fn last(shared: &impl Shared) -> Result<Option<LocalTime>, SharedError> {
    let stored = shared.get(Place::Activity)?;
    Ok(read(&stored.value))
}

fn read(bytes: &[u8]) -> Option<LocalTime> {
    WordReader::new(bytes).word().map(LocalTime::new)
}

/// One worker's part: it remembers that a request came until it is written down.
#[derive(Clone, Debug, Default)]
pub struct Activity {
    seen: bool,
    noted: LocalTime,
}

impl Activity {
    /// A request came.
    pub const fn saw_request(&mut self) {
        self.seen = true;
    }

    /// Writes it down if it is time; for every tick.
    ///
    /// # Errors
    /// Shared memory failed; the next tick tries again.
    pub fn tick(&mut self, shared: &impl Shared, now: LocalTime) -> Result<(), SharedError> {
        let is_due = self.noted == LocalTime::ZERO || now.since(self.noted) >= NOTED_EVERY;
        if !self.seen || !is_due {
            return Ok(());
        }
        update(shared, Place::Activity, |bytes| {
            if read(bytes).is_some_and(|known| now <= known) {
                return Ok((None, ()));
            }
            let mut words = WordWriter::with_words(1);
            words.word(now.get());
            Ok((Some(words.into_bytes()), ()))
        })?;
        self.seen = false;
        self.noted = now;
        Ok(())
    }
}
