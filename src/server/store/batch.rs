//! A batch of changes that becomes durable as one, with its bounds.

use std::collections::BTreeMap;

pub use headgate_core::owner::effect::Change;

/// Longest key in bytes: a kind and a 16-byte key hash, with room for a replica's or an asker's
/// identity beside them, and within every store's own bound (Redis, etcd and NATS take more).
pub const MAX_KEY_BYTES: usize = 128;

/// Longest value in bytes: a key's ledger with a lease and the last answers of each of a thousand
/// replicas, with room to spare, and still within one batch.
pub const MAX_VALUE_BYTES: usize = 512 * 1024;

/// Most keys and values in one batch, in bytes: three quarters of the largest message NATS takes
/// by default (1 MiB; etcd takes 1.5 MiB), which leaves room for any store's framing.
pub const MAX_BATCH_BYTES: usize = 768 * 1024;

/// Most changes in one batch: bounds how long one write keeps a store busy. At 100 writes a second,
/// a slow disk, this is still 200,000 changed records a second.
pub const MAX_BATCH_CHANGES: usize = 2048;

const _: () = assert!(MAX_KEY_BYTES + MAX_VALUE_BYTES + CHANGE_OVERHEAD <= MAX_BATCH_BYTES);

/// Bytes that each change costs beside its key and value, counted towards [`MAX_BATCH_BYTES`].
const CHANGE_OVERHEAD: usize = 16;

/// A change that was not added; the batch is as before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Full {
    /// It fits into the next batch.
    #[error("the batch has no room left for this change")]
    NextBatch,
    /// It fits into no batch.
    #[error(
        "a record is too large for the store: its key has {key_bytes} bytes of at most \
         {MAX_KEY_BYTES}, its value {value_bytes} of at most {MAX_VALUE_BYTES}"
    )]
    Never {
        /// Length of the key.
        key_bytes: usize,
        /// Length of the value.
        value_bytes: usize,
    },
}

/// Changes that become durable together, within the bounds of this module. At most one change per
/// key: a later one replaces an earlier one, since nobody can see the state between them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    changes: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
    bytes: usize,
}

impl Batch {
    /// Adds a change.
    pub fn add(&mut self, change: Change) -> Result<(), Full> {
        let (key_bytes, value_bytes) = lengths(&change);
        if key_bytes > MAX_KEY_BYTES || value_bytes > MAX_VALUE_BYTES {
            return Err(Full::Never {
                key_bytes,
                value_bytes,
            });
        }
        if !self.has_room_for(std::slice::from_ref(&change)) {
            return Err(Full::NextBatch);
        }
        let Change { key, value } = change;
        let bytes = match self.changes.insert(key, value) {
            Some(old) => self.bytes.saturating_sub(old.map_or(0, |old| old.len())),
            None => self
                .bytes
                .saturating_add(key_bytes)
                .saturating_add(CHANGE_OVERHEAD),
        };
        self.bytes = bytes.saturating_add(value_bytes);
        Ok(())
    }

    /// All these changes can be added.
    pub fn has_room_for(&self, changes: &[Change]) -> bool {
        let bytes = changes.iter().fold(self.bytes, |sum, change| {
            let (key, value) = lengths(change);
            sum.saturating_add(key)
                .saturating_add(value)
                .saturating_add(CHANGE_OVERHEAD)
        });
        let count = self.changes.len().saturating_add(changes.len());
        bytes <= MAX_BATCH_BYTES && count <= MAX_BATCH_CHANGES
    }

    /// Each changed key with its new value, `None` for a deletion; by key.
    pub fn changes(&self) -> impl Iterator<Item = (&[u8], Option<&[u8]>)> {
        self.changes
            .iter()
            .map(|(key, value)| (key.as_slice(), value.as_deref()))
    }

    /// Number of changed keys.
    pub fn len(&self) -> usize {
        self.changes.len()
    }

    /// Nothing changes.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }
}

/// Takes the same changes as [`Batch::changes`] gives, by value.
impl IntoIterator for Batch {
    type Item = (Vec<u8>, Option<Vec<u8>>);
    type IntoIter = std::collections::btree_map::IntoIter<Vec<u8>, Option<Vec<u8>>>;

    fn into_iter(self) -> Self::IntoIter {
        self.changes.into_iter()
    }
}

/// Of key and value, in bytes.
fn lengths(change: &Change) -> (usize, usize) {
    (change.key.len(), change.value.as_ref().map_or(0, Vec::len))
}

#[cfg(test)]
mod tests;
