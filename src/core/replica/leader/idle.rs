//! An idle replica's leases go back by themselves: Envoy gives no last word when it ends, so a
//! replica that is drained has to have given back before.

use std::ops::Range;

use super::{Leader, Next};
use crate::message::Return;
use crate::replica::activity;
use crate::replica::bucket::Idle;
use crate::replica::seat::SeatRecord;
use crate::replica::shared::{Shared, SharedError};
use crate::replica::table::Table;
use crate::units::{LocalTime, Span};

/// A replica that has seen no request for so long returns all its leases; a single lease needs at
/// least as long. Returning each idle lease by itself, and sooner, costs far more asks than it
/// spares recalls.
pub const IDLE_AFTER: Span = Span::from_secs(10);

/// Time between two steps of the walk over the table.
const STEP: Span = Span::from_millis(100);

/// Buckets of one step, each about a microsecond of a worker's time: the default table takes 6.4
/// seconds. What they can give back fits in half a call.
const SLICE: u32 = 64;

/// Where the walk is.
#[derive(Clone, Debug)]
pub(super) struct Walk {
    after: Span,
    due: LocalTime,
    next: u32,
}

impl Walk {
    pub(super) const fn new(after: Span) -> Self {
        Self {
            after,
            due: LocalTime::ZERO,
            next: 0,
        }
    }

    fn take_turn(&mut self, now: LocalTime) -> bool {
        let is_due = self.due <= now;
        if is_due {
            self.due = now.plus(STEP);
        }
        is_due
    }

    fn next_buckets(&mut self, buckets: u32) -> Range<u32> {
        let start = if self.next < buckets { self.next } else { 0 };
        let end = start.saturating_add(SLICE).min(buckets);
        self.next = end;
        start..end
    }
}

impl Leader {
    /// Another time than [`IDLE_AFTER`].
    #[must_use]
    pub fn idle_after(self, after: Span) -> Self {
        Self {
            idle: Walk::new(after),
            ..self
        }
    }

    /// One step of giving back what is idle, if this instance holds the watch; for every tick.
    ///
    /// # Errors
    /// Shared memory failed; the next walk tries again.
    pub fn return_idle(
        &mut self,
        shared: &impl Shared,
        now: LocalTime,
    ) -> Result<Vec<Return>, SharedError> {
        // Before it has registered with a new leader, its word does not count there.
        if self.next != Next::Watch || !self.idle.take_turn(now) {
            return Ok(Vec::new());
        }
        if !self.holds_watch(shared, now, false)? {
            return Ok(Vec::new());
        }
        let (Some(last), Some(record)) = (activity::last(shared)?, SeatRecord::load(shared)?)
        else {
            return Ok(Vec::new());
        };
        let Some(seated) = record.seated.filter(|seated| seated.is_alive(now)) else {
            return Ok(Vec::new());
        };
        let idle = if now.since(last) < self.idle.after {
            Idle::Cells(self.idle.after)
        } else {
            Idle::Replica
        };
        let buckets = self.idle.next_buckets(self.buckets);
        let who = (record.tenant(), seated.moment(now));
        Table::new(shared, self.buckets).give_back_idle(buckets, idle, who)
    }
}
