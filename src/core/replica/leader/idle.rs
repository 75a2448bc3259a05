//! An idle replica's leases go back by themselves: Envoy gives no last word when it ends, so a
//! replica that is drained has to have given back before.

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

impl Leader {
    /// Another time than [`IDLE_AFTER`].
    #[must_use]
    pub fn idle_after(self, after: Span) -> Self {
        Self {
            idle_after: after,
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
        if self.next != Next::Watch || !self.walk.take_turn(now) {
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
        let idle = if now.since(last) < self.idle_after {
            Idle::Cells(self.idle_after)
        } else {
            Idle::Replica
        };
        // What one step can give back fits in half a call.
        let buckets = self.walk.next_buckets(self.buckets);
        self.walk.advance(self.buckets);
        let who = (record.tenant(), seated.moment(now));
        Table::new(shared, self.buckets).give_back_idle(buckets, idle, who)
    }
}
