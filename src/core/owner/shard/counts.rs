//! What a shard counts.

use crate::units::Tokens;

/// Figures of a shard, for metrics.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ShardCounts {
    /// Asks received.
    pub asks: u64,
    /// Waiting costs admitted, refused, undecided by the owner.
    pub decisions: [u64; 3],
    /// Recalls sent out (first tellings).
    pub recalls: u64,
    /// Returns received.
    pub returns: u64,
    /// Asks for new keys that were undecided because there are as many keys as may be.
    pub keys_full: u64,
    /// Calls rejected because as many asks waited as may.
    pub waiting_full: u64,
    /// Joins rejected because there are as many members as may be.
    pub members_full: u64,
    /// Pushes dropped because a member did not fetch them.
    pub pushes_dropped: u64,
    /// Members whose time-to-live ended.
    pub members_lost: u64,
    /// Tokens that died with them.
    pub tokens_dead: u64,
    /// Rules not kept because there are as many as may be.
    pub rules_full: u64,
    /// Asks undecided because a key keeps as many last answers as it may.
    pub askers_full: u64,
    /// Reports of leases that were never granted.
    pub reports_refused: u64,
    /// Steps after which an invariant did not hold.
    pub invariants_broken: u64,
}

impl ShardCounts {
    pub(super) fn died(&mut self, tokens: Tokens) {
        self.tokens_dead = self.tokens_dead.saturating_add(tokens.get());
    }
}
