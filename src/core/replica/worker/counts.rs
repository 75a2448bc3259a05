//! What a worker counts, for the caller to turn into metrics.

use crate::replica::shared::SharedError;

/// Counts since they were last taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Asks ahead of need.
    pub asked_ahead: u64,
    /// Requests that found no free cell for their key.
    pub cells_missed: u64,
    /// Requests undecided because too many waited.
    pub waiting_full: u64,
    /// Returns or resolutions dropped because too many waited to be sent. The owner repeats its
    /// recalls; a provisional charge expires as spent.
    pub outbox_full: u64,
    /// Calls that brought no answer.
    pub calls_failed: u64,
    /// Failures of shared memory.
    pub shared_failed: u64,
    /// Values in shared memory that broke an invariant.
    pub invariants_broken: u64,
}

impl Counts {
    pub(super) fn shared_failed(&mut self, error: SharedError) {
        let count = match error {
            SharedError::Corrupt => &mut self.invariants_broken,
            SharedError::Host | SharedError::Contended => &mut self.shared_failed,
        };
        *count = count.saturating_add(1);
    }
}
