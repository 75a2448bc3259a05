//! What the owner pushes with the answer to a poll.

use super::{Leader, PAUSE_AFTER_EARLY_END, POLL_ENDED_EARLY, Ticket};
use crate::message::call::WatchAnswer;
use crate::message::{Lease, Return};
use crate::replica::bucket::{Claim, Moment};
use crate::replica::cell::{HeldProof, Tenant};
use crate::replica::seat::SeatRecord;
use crate::replica::shared::{Shared, SharedError};
use crate::replica::standing::StandingRecord;
use crate::replica::table::Table;
use crate::units::LocalTime;

impl Leader {
    /// Takes in the answer to a poll: the seat lives on, tokens go back, proofs are kept.
    pub(super) fn take_pushes(
        &mut self,
        shared: &impl Shared,
        now: LocalTime,
        ticket: Ticket,
        answer: &WatchAnswer,
    ) -> Result<Vec<Return>, SharedError> {
        let times = (ticket.sent, now);
        let said = (answer.epoch, answer.stamps);
        let record = SeatRecord::heard(shared, ticket.incarnation, times, said)?;
        let Some(seated) = record.seated else {
            return Ok(Vec::new());
        };
        // All that was published until the poll came is in the answer, or was known.
        let heard = answer.stamps.received;
        let directory = answer.directory.as_ref();
        if seated.epoch == answer.epoch {
            StandingRecord::change(shared, ticket.incarnation, |record| {
                record.hear(heard, directory, seated.hash_key);
            })?;
        }
        let nothing = answer.recalls.is_empty()
            && answer.exhausted.is_empty()
            && answer.leases.is_empty()
            && answer.directory.is_none();
        if nothing && now.since(ticket.sent) < POLL_ENDED_EARLY {
            self.not_before = now.plus(PAUSE_AFTER_EARLY_END);
        }
        let tenant = Tenant {
            incarnation: ticket.incarnation,
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
            let until = ticket.sent.plus(exhausted.total.time_to_live);
            table.prove(
                claim,
                HeldProof {
                    left: exhausted.total.left,
                    until,
                },
                moment,
            )?;
        }
        take_leases(&table, tenant, &answer.leases)?;
        let mut returns = Vec::new();
        for recall in &answer.recalls {
            returns.extend(table.recall(*recall, tenant, moment)?);
        }
        Ok(returns)
    }
}

/// Takes in what the replica asked for ahead of need, and the owner did not have then.
fn take_leases<S: Shared>(
    table: &Table<'_, S>,
    tenant: Tenant,
    leases: &[Lease],
) -> Result<(), SharedError> {
    for lease in leases {
        let claim = Claim {
            key: lease.key,
            window: lease.window,
            tenant,
        };
        let amounts = lease.amounts;
        table.grant(claim, amounts.generation, amounts.granted)?;
    }
    Ok(())
}
