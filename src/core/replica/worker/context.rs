//! What a request needs besides itself.

use super::Rule;
use super::counts::Counts;
use super::outbox::Outbox;
use crate::message::Counters;
use crate::replica::bucket::{Claim, Moment, Take, Taken};
use crate::replica::seat::SeatRecord;
use crate::replica::shared::{Shared, SharedError};
use crate::replica::standing::{StandingRecord, Wanted, counters_id, share_now};
use crate::replica::table::Table;
use crate::units::{LocalTime, Tokens};

/// What a request needs to go on.
pub(super) struct Context<'a, S> {
    pub(super) table: Table<'a, S>,
    pub(super) shared: &'a S,
    pub(super) standing: &'a mut Option<StandingRecord>,
    pub(super) seat: &'a SeatRecord,
    pub(super) now: LocalTime,
    pub(super) rules: &'a [Rule],
    pub(super) outbox: &'a mut Outbox,
    pub(super) counts: &'a mut Counts,
}

impl<S: Shared> Context<'_, S> {
    /// Takes tokens of a cell; one that was claimed just now gets its standing share first.
    pub(super) fn take(
        &mut self,
        rule: &Rule,
        claim: Claim,
        (cost, how): (Tokens, Take),
        now: Moment,
    ) -> Result<Taken, SharedError> {
        let taken = self.table.take(claim, cost, how, now)?;
        if taken != Taken::Unclaimed {
            return Ok(taken);
        }
        match self.standing_share(&rule.spec.counters(), claim)? {
            Some(share) => self.table.stand_and_take((claim, share), cost, how, now),
            None => Ok(taken),
        }
    }

    /// The standing share for a cell that has been claimed; `None` if it cannot be known.
    fn standing_share(
        &mut self,
        counters: &Counters,
        claim: Claim,
    ) -> Result<Option<Tokens>, SharedError> {
        let Some(seated) = self.seat.seated else {
            return Ok(None);
        };
        let wanted = Wanted {
            counters: counters_id(counters, seated.hash_key),
            period: counters.period,
            key: claim.key,
            window: claim.window,
        };
        let mine = self.seat.incarnation;
        let knows =
            |record: &StandingRecord| record.incarnation == mine && record.share(wanted).is_some();
        if !self.standing.as_ref().is_some_and(knows) {
            *self.standing = StandingRecord::load(self.shared)?;
        }
        share_now(self.shared, self.standing.as_ref(), self.now, wanted)
    }
}
