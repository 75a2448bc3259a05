//! The table of cells: the operations of [`super::bucket`] made atomic over shared memory. The
//! number of buckets is fixed for the life of a replica, since a key in two buckets would have two
//! leases.

use std::ops::Range;

use crate::key::KeyHash;
use crate::message::{Lease, LeaseAmounts, Recall, Return};
use crate::replica::bucket::{Bucket, Claim, Idle, Moment, Take, Taken};
use crate::replica::cell::{HeldProof, Tenant};
use crate::replica::shared::{Place, Shared, SharedError, update};
use crate::units::{Epoch, Generation, LocalTime, Rate, Tokens};
use crate::window::Window;

/// Buckets of the default table: 16,384 cells in some 9 MB of host memory when all are in use.
pub const BUCKETS_DEFAULT: u32 = 4_096;

/// The cells of one replica.
#[derive(Clone, Copy, Debug)]
pub struct Table<'a, S> {
    shared: &'a S,
    buckets: u32,
}

impl<'a, S: Shared> Table<'a, S> {
    /// Over this memory, with a number of buckets that never changes.
    pub const fn new(shared: &'a S, buckets: u32) -> Self {
        Self { shared, buckets }
    }

    fn change<T>(
        &self,
        key: KeyHash,
        mut change: impl FnMut(&mut Bucket) -> T,
    ) -> Result<T, SharedError> {
        self.change_bucket(key.bucket(self.buckets), &mut change)
    }

    fn change_bucket<T>(
        &self,
        index: u32,
        change: &mut impl FnMut(&mut Bucket) -> T,
    ) -> Result<T, SharedError> {
        update(self.shared, Place::Bucket(index), |bytes| {
            let before = Bucket::decode(bytes).ok_or(SharedError::Corrupt)?;
            let mut after = before.clone();
            let result = change(&mut after);
            Ok((to_write(&before, &after)?, result))
        })
    }

    /// Takes tokens for one request: the moment of admission.
    ///
    /// # Errors
    /// Shared memory failed; nothing was taken.
    pub fn take(
        &self,
        claim: Claim,
        cost: Tokens,
        how: Take,
        now: Moment,
    ) -> Result<Taken, SharedError> {
        self.change(claim.key, |bucket| bucket.take(claim, cost, how, now))
    }

    /// Takes in a standing share, then takes tokens for one request, in one go.
    ///
    /// # Errors
    /// Shared memory failed; nothing was taken.
    pub fn stand_and_take(
        &self,
        (claim, share): (Claim, Tokens),
        cost: Tokens,
        how: Take,
        now: Moment,
    ) -> Result<Taken, SharedError> {
        self.change(claim.key, |bucket| {
            bucket.stand(claim, share);
            bucket.take(claim, cost, how, now)
        })
    }

    /// A reservation becomes spent.
    ///
    /// # Errors
    /// Shared memory failed; the reservation expires as spent.
    pub fn commit(
        &self,
        key: KeyHash,
        window: Window,
        cost: Tokens,
    ) -> Result<Option<Return>, SharedError> {
        self.change(key, |bucket| bucket.commit(key, window, cost))
    }

    /// A reservation goes back.
    ///
    /// # Errors
    /// Shared memory failed; the reservation expires as spent.
    pub fn release(
        &self,
        key: KeyHash,
        window: Window,
        cost: Tokens,
    ) -> Result<Option<Return>, SharedError> {
        self.change(key, |bucket| bucket.release(key, window, cost))
    }

    /// The lease of a key and the rate at which it is asked for; `None` without a cell.
    ///
    /// # Errors
    /// Shared memory failed.
    pub fn lease(
        &self,
        key: KeyHash,
        window: Window,
        now: LocalTime,
    ) -> Result<Option<(LeaseAmounts, Rate)>, SharedError> {
        self.change(key, |bucket| {
            let cell = bucket.peek(key, window)?;
            Some((cell.amounts, cell.rate(now)))
        })
    }

    /// Takes a grant in; `false` if it no longer fits the cell.
    ///
    /// # Errors
    /// Shared memory failed; a later grant names the same absolute amount.
    pub fn grant(
        &self,
        claim: Claim,
        generation: Generation,
        granted: Tokens,
    ) -> Result<bool, SharedError> {
        self.change(claim.key, |bucket| bucket.grant(claim, generation, granted))
    }

    /// Counts what the owner decided as spent from the lease (trap 10).
    ///
    /// # Errors
    /// Shared memory failed.
    pub fn merge_used(
        &self,
        key: KeyHash,
        window: Window,
        used: Tokens,
    ) -> Result<(), SharedError> {
        self.change(key, |bucket| bucket.merge_used(key, window, used))
    }

    /// No asking ahead for this key until an instant.
    ///
    /// # Errors
    /// Shared memory failed.
    pub fn hold_ask_ahead(
        &self,
        key: KeyHash,
        window: Window,
        until: LocalTime,
    ) -> Result<(), SharedError> {
        self.change(key, |bucket| bucket.hold_ask_ahead(key, window, until))
    }

    /// Keeps a proof.
    ///
    /// # Errors
    /// Shared memory failed; the next request asks.
    pub fn prove(&self, claim: Claim, proof: HeldProof, now: Moment) -> Result<(), SharedError> {
        self.change(claim.key, |bucket| bucket.prove(claim, proof, now))
    }

    /// Answers a recall; `None` if its window has not certainly begun here.
    ///
    /// # Errors
    /// Shared memory failed; the owner repeats the recall.
    pub fn recall(
        &self,
        recall: Recall,
        tenant: Tenant,
        now: Moment,
    ) -> Result<Option<Return>, SharedError> {
        self.change(recall.key, |bucket| bucket.recall(recall, tenant, now))
    }

    /// Fences every lease for a new leader and gives them all.
    ///
    /// # Errors
    /// Shared memory failed: some are fenced, none may be registered; do it again.
    pub fn fence_all(&self, epoch: Epoch, now: Moment) -> Result<Vec<Lease>, SharedError> {
        let mut leases = Vec::new();
        for index in 0..self.buckets {
            leases.extend(self.change_bucket(index, &mut |bucket| bucket.fence_all(epoch, now))?);
        }
        Ok(leases)
    }

    /// Fences every lease of a tenancy that ends and gives them; whether none is missing, because
    /// shared memory never failed.
    pub fn empty_all(&self, tenant: Tenant, now: Moment) -> (Vec<Lease>, bool) {
        let mut leases = Vec::new();
        let mut complete = true;
        for index in 0..self.buckets {
            match self.change_bucket(index, &mut |bucket| bucket.empty_all(tenant, now)) {
                Ok(emptied) => leases.extend(emptied),
                Err(_) => complete = false,
            }
        }
        (leases, complete)
    }

    /// Empties every lease for a new tenancy.
    ///
    /// # Errors
    /// Shared memory failed: some are emptied; do it again before joining.
    pub fn renounce_all(&self, tenant: Tenant, now: Moment) -> Result<(), SharedError> {
        for index in 0..self.buckets {
            self.change_bucket(index, &mut |bucket| bucket.renounce_all(tenant, now))?;
        }
        Ok(())
    }

    /// Fences what is idle in some of the buckets and gives what to say of it.
    ///
    /// # Errors
    /// Shared memory failed: some are fenced and not said; the owner finds them by recalls.
    pub fn give_back_idle(
        &self,
        buckets: Range<u32>,
        idle: Idle,
        (tenant, now): (Tenant, Moment),
    ) -> Result<Vec<Return>, SharedError> {
        let mut returns = Vec::new();
        for index in buckets {
            let give_back = &mut |bucket: &mut Bucket| bucket.give_back_idle(idle, tenant, now);
            returns.extend(self.change_bucket(index, give_back)?);
        }
        Ok(returns)
    }

    /// Counts the cells in use in some of the buckets. A walk over all of them at once would stall
    /// a worker for milliseconds.
    ///
    /// # Errors
    /// Shared memory failed.
    pub fn cells_in_use(&self, buckets: Range<u32>, now: Moment) -> Result<u64, SharedError> {
        let mut count = 0_u64;
        for index in buckets {
            let live = self.change_bucket(index, &mut |bucket| bucket.live_cells(now).count())?;
            count = count.saturating_add(u64::try_from(live).unwrap_or(u64::MAX));
        }
        Ok(count)
    }
}

/// The bytes of a changed bucket; none if nothing changed. A broken invariant is not written;
/// whoever asked is undecided and counts it.
fn to_write(before: &Bucket, after: &Bucket) -> Result<Option<Vec<u8>>, SharedError> {
    if !after.is_sound() {
        return Err(SharedError::Corrupt);
    }
    Ok((after != before).then(|| after.encode()))
}
