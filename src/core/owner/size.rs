//! How many tokens to lease at once, and how many to leave with whom in a recall. Large leases are
//! cheap because a recall exists; small ones near the end of a window leave fewer to recall.

use crate::units::Tokens;

/// Part of an even share that a lease has at least: x of the protocol's section 10.
const EVEN_SHARE: (u64, u64) = (3, 10);

/// Part of a fair share that the first round of a recall leaves: s of section 10.
const FIRST_ROUND_KEEPS: (u64, u64) = (3, 4);

/// Holders asked in the first round at least.
const FIRST_ROUND_MIN: usize = 5;

/// Tokens of the next lease: a part of an even share of what remains.
#[must_use]
pub fn lease(remaining: Tokens, replicas: u64) -> Tokens {
    let parts = EVEN_SHARE.1.saturating_mul(replicas.max(1));
    remaining.scaled(EVEN_SHARE.0, parts)
}

/// An even share of what is unused outside.
#[must_use]
pub fn fair_share(free_outside: Tokens, replicas: u64) -> Tokens {
    free_outside.scaled(1, replicas.max(1))
}

/// Unused tokens that a holder keeps in the first round.
#[must_use]
pub fn first_round_keeps(fair: Tokens) -> Tokens {
    fair.scaled(FIRST_ROUND_KEEPS.0, FIRST_ROUND_KEEPS.1)
}

/// How many of the richest holders the first round asks: a fifth, but not fewer than five.
#[must_use]
pub fn first_round_width(replicas: u64) -> usize {
    usize::try_from(replicas / 5)
        .unwrap_or(usize::MAX)
        .max(FIRST_ROUND_MIN)
}
