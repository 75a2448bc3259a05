//! A batch of changes that becomes durable as one, with its bounds.

use std::collections::BTreeMap;

pub use headgate_core::owner::effect::Change;

/// Longest key in bytes: a kind and a 16-byte key hash, with room for a replica's or an asker's
/// identity beside them, and within every store's own bound (Redis, etcd and NATS take more).
pub const MAX_KEY_BYTES: usize = 128;

/// Longest value in bytes: a key's ledger with a lease for each of some hundred replicas. Small
/// enough that dozens fit into one batch.
pub const MAX_VALUE_BYTES: usize = 64 * 1024;

/// Most keys and values in one batch, in bytes: three quarters of the largest message NATS takes
/// by default (1 MiB; etcd takes 1.5 MiB), which leaves room for any store's framing.
pub const MAX_BATCH_BYTES: usize = 768 * 1024;

/// Most changes in one batch: bounds how long one write keeps a store busy. At 100 writes a second,
/// a slow disk, this is still 200,000 changed records a second.
pub const MAX_BATCH_CHANGES: usize = 2048;

/// Bytes that each change costs beside its key and value, counted towards [`MAX_BATCH_BYTES`].
const CHANGE_OVERHEAD: usize = 16;

/// The changes did not fit: they are refused as a whole and the batch is as before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Full {
    /// They fit into an empty batch.
    #[error("the batch has no room left for these changes")]
    NextBatch,
    /// They fit into no batch.
    #[error(
        "the changes of one step are too large for the store (a key of {key_bytes} bytes at most \
         {MAX_KEY_BYTES}, a value of {value_bytes} at most {MAX_VALUE_BYTES}, together \
         {total_bytes} at most {MAX_BATCH_BYTES}, {changes} changes at most {MAX_BATCH_CHANGES})"
    )]
    Never {
        /// Length of the longest key.
        key_bytes: usize,
        /// Length of the longest value.
        value_bytes: usize,
        /// All keys and values with their overhead.
        total_bytes: usize,
        /// Number of changes.
        changes: usize,
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
    /// Adds the changes of one step, which must become durable together: all of them or, if they
    /// do not fit, none.
    pub fn add(&mut self, changes: Vec<Change>) -> Result<(), Full> {
        let size = Size::of(&changes);
        if !size.fits_beside(&Self::default()) {
            return Err(Full::Never {
                key_bytes: size.longest_key,
                value_bytes: size.longest_value,
                total_bytes: size.bytes,
                changes: size.changes,
            });
        }
        if !size.fits_beside(self) {
            return Err(Full::NextBatch);
        }
        for Change { key, value } in changes {
            self.set(key, value);
        }
        Ok(())
    }

    /// [`Self::add`] would take these changes.
    pub fn has_room_for(&self, changes: &[Change]) -> bool {
        Size::of(changes).fits_beside(self)
    }

    fn set(&mut self, key: Vec<u8>, value: Option<Vec<u8>>) {
        let key_bytes = key.len().saturating_add(CHANGE_OVERHEAD);
        let value_bytes = value.as_ref().map_or(0, Vec::len);
        self.bytes = match self.changes.insert(key, value) {
            Some(old) => self.bytes.saturating_sub(old.map_or(0, |old| old.len())),
            None => self.bytes.saturating_add(key_bytes),
        }
        .saturating_add(value_bytes);
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

/// What some changes take up.
#[derive(Default)]
struct Size {
    longest_key: usize,
    longest_value: usize,
    bytes: usize,
    changes: usize,
}

impl Size {
    fn of(changes: &[Change]) -> Self {
        let mut size = Self {
            changes: changes.len(),
            ..Self::default()
        };
        for change in changes {
            let (key, value) = (change.key.len(), change.value.as_ref().map_or(0, Vec::len));
            size.longest_key = size.longest_key.max(key);
            size.longest_value = size.longest_value.max(value);
            let change_bytes = key.saturating_add(value).saturating_add(CHANGE_OVERHEAD);
            size.bytes = size.bytes.saturating_add(change_bytes);
        }
        size
    }

    fn fits_beside(&self, batch: &Batch) -> bool {
        self.longest_key <= MAX_KEY_BYTES
            && self.longest_value <= MAX_VALUE_BYTES
            && self.bytes.saturating_add(batch.bytes) <= MAX_BATCH_BYTES
            && self.changes.saturating_add(batch.len()) <= MAX_BATCH_CHANGES
    }
}

#[cfg(test)]
mod tests;
