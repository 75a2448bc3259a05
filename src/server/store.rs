//! Where the state of the counter service becomes durable, and who may write it.
//!
//! A store keeps the records of one shard: opaque keys with opaque values. One candidate at a time
//! leads the shard; it takes an epoch, loads every record once, and from then on appends batches
//! while it answers from memory. The store is never read on the way of a request.
//!
//! **Invariant**: once [`Store::lead`] has returned an epoch, no append of a lower epoch takes
//! effect any more. A deposed leader cannot persist, hence cannot grant.

mod batch;
pub mod embedded;
pub mod memory;

#[cfg(test)]
mod conformance;

use std::{future::Future, time::Duration};

pub use headgate_core::units::Epoch;

pub use batch::{
    Batch, Change, Full, MAX_BATCH_BYTES, MAX_BATCH_CHANGES, MAX_KEY_BYTES, MAX_VALUE_BYTES,
};

/// One that wants to lead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Random identity of this process. A restarted process is another candidate.
    pub id: u128,
    /// Where standbys reach it to forward calls, `host:port`.
    pub address: String,
}

/// A leadership that was won or renewed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leadership {
    /// Goes with every append. Higher than all before it; the first is 1.
    pub epoch: Epoch,
    /// How long nobody else can lead, counted from the moment the call was made; `None` as long
    /// as this process holds the store.
    pub lease: Option<Duration>,
}

/// Outcome of an attempt to lead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Election {
    /// The candidate leads.
    Won(Leadership),
    /// Somebody else does.
    Lost {
        /// The leader's [`Candidate::address`].
        leader: String,
        /// When it makes sense to try again.
        retry_after: Duration,
    },
}

/// One record of the shard.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Record {
    /// At most [`MAX_KEY_BYTES`].
    pub key: Vec<u8>,
    /// At most [`MAX_VALUE_BYTES`].
    pub value: Vec<u8>,
}

/// Why a call on a store failed, and whether it took effect.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// It did not take effect and never will: another epoch rules. This leader is over.
    #[error(
        "epoch {epoch} no longer leads (epoch {current} does); nothing was written under the old"
    )]
    Fenced {
        /// The epoch of the call.
        epoch: Epoch,
        /// The epoch in force.
        current: Epoch,
    },
    /// It did not take effect and never will; the same call may succeed later.
    #[error("the store wrote nothing: {0}")]
    NotWritten(String),
    /// It took effect, or did not, or will. Whoever gets this must not answer from memory any
    /// more: the way on is to lead again and to load.
    #[error("the store cannot tell whether the last write is durable: {0}")]
    Unknown(String),
    /// It did not take effect: what the store holds cannot be trusted, or it cannot be written any
    /// more. No call will help; a restart may, or a person must.
    #[error("{0}")]
    Damaged(String),
}

/// A store of one shard. All methods may be called from many tasks at once; a call whose future is
/// dropped half way has an unknown outcome.
pub trait Store: Send + Sync + 'static {
    /// Tries to lead. A candidate that leads already gets a new, higher epoch. Atomic: of
    /// candidates that try at the same time one wins. After an error the outcome does not matter,
    /// since an epoch nobody knows of writes nothing: try again.
    fn lead(
        &self,
        candidate: &Candidate,
    ) -> impl Future<Output = Result<Election, StoreError>> + Send;

    /// All records, in any order, one per key: the effect of every append that returned `Ok` under
    /// this or an earlier epoch, and of those that returned [`StoreError::Unknown`] or did not
    /// return, each wholly or not at all. Changes nothing, so every error means "not done".
    fn load(&self, epoch: Epoch) -> impl Future<Output = Result<Vec<Record>, StoreError>> + Send;

    /// Writes a batch if `epoch` still rules.
    ///
    /// - Atomic: all its changes, or none, also after a crash.
    /// - `Ok`: durable. It outlives the crash of this process and, where the store's own set-up
    ///   promises that, of the machine.
    /// - Ordered: a batch that is sent after another one's `Ok` is applied after it. Two that are
    ///   on their way at the same time are applied in either order.
    /// - Idempotent: changes are absolute, so the same batch again changes nothing, unless another
    ///   one with the same keys came between.
    /// - An empty batch writes nothing, but checks the epoch.
    fn append(
        &self,
        epoch: Epoch,
        batch: Batch,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Prolongs a leadership. Fails with [`StoreError::Fenced`] once it is lost; after any other
    /// error the lease of the last success still counts.
    fn renew(&self, epoch: Epoch) -> impl Future<Output = Result<Leadership, StoreError>> + Send;

    /// Gives the leadership up, so that another candidate can win at once. Waits for appends that
    /// are under way. Repeating it, or resigning from an epoch that is over, is `Ok`.
    fn resign(&self, epoch: Epoch) -> impl Future<Output = Result<(), StoreError>> + Send;
}
