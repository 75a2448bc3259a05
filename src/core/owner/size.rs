//! How many tokens to lease at once, and how many to leave with whom in a recall: the protocol's
//! section 10. Large leases are cheap because a recall exists; small ones near the end of a window
//! leave fewer to recall.

use crate::units::{Rate, Span, Tokens};

/// Part of an even share that a lease has at least: x of section 10.
const EVEN_SHARE: (u64, u64) = (3, 10);

/// Part of what remains that demand's share of it is leased at most: f.
const LEASED_AT_ONCE: (u64, u64) = (3, 4);

/// A lease lasts for so long at least, if there is enough: t.
const LASTS_MIN: Span = Span::from_millis(100);

/// The same as a part of the window.
const LASTS_OF_WINDOW: (u64, u64) = (3, 100);

/// No lease has to last for longer: of a long window a crash would cost more than it saves calls.
const LASTS_MAX: Span = Span::from_secs(5);

/// Part of a fair share that the first round of a recall leaves: s.
const FIRST_ROUND_KEEPS: (u64, u64) = (3, 4);

/// Part of a fair share that a recall in the background leaves.
const BACKGROUND_KEEPS: (u64, u64) = (4, 5);

/// A holder is far above its fair share beyond this part of it, and one token more.
const FAR_ABOVE: (u64, u64) = (3, 2);

/// Holders asked in the first round at least.
const FIRST_ROUND_MIN: usize = 5;

/// What sizes follow from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Needs {
    /// The pool and an upper bound of what is unused outside: R.
    pub remaining: Tokens,
    /// Replicas alive: N.
    pub replicas: u64,
    /// Length of the window: W.
    pub window: Span,
    /// The holder's demand: rate_i.
    pub rate: Rate,
    /// Demand of all holders.
    pub all: Rate,
}

impl Needs {
    /// The holder's share of what remains, by demand: p_i R.
    fn by_demand(&self) -> Tokens {
        if self.all == Rate::ZERO {
            return self.remaining.scaled(1, self.replicas.max(1));
        }
        self.remaining.scaled(self.rate.get(), self.all.get())
    }

    /// A part of an even share of what remains: x R / N.
    fn of_even_share(&self) -> Tokens {
        let parts = EVEN_SHARE.1.saturating_mul(self.replicas.max(1));
        self.remaining.scaled(EVEN_SHARE.0, parts)
    }
}

/// Tokens of the next lease: `max(min(rate t, f p R), x R / N)`, at most `f max(p, x / N) R`.
#[must_use]
pub fn lease(needs: &Needs) -> Tokens {
    let part = |tokens: Tokens| tokens.scaled(LEASED_AT_ONCE.0, LEASED_AT_ONCE.1);
    let length = Tokens::new(needs.window.get());
    let of_window = length.scaled(LASTS_OF_WINDOW.0, LASTS_OF_WINDOW.1);
    let lasts = LASTS_MIN.max(LASTS_MAX.min(Span::new(of_window.get())));
    let (share, even) = (needs.by_demand(), needs.of_even_share());
    let wanted = needs.rate.over(lasts).min(part(share)).max(even);
    wanted.min(part(share.max(even)))
}

/// A holder's fair share of what remains, by demand, but not below a part of an even share.
#[must_use]
pub fn fair(needs: &Needs) -> Tokens {
    needs.by_demand().max(needs.of_even_share())
}

/// Whether a holder has so much more than its fair share that it is called back in the background.
#[must_use]
pub fn far_above(free: Tokens, fair: Tokens) -> bool {
    fair.scaled(FAR_ABOVE.0, FAR_ABOVE.1).plus(Tokens::new(1)) < free
}

/// Unused tokens that a holder keeps in a recall in the background.
#[must_use]
pub fn background_keeps(fair: Tokens) -> Tokens {
    fair.scaled(BACKGROUND_KEEPS.0, BACKGROUND_KEEPS.1)
}

/// How long a holder's unused tokens last, to compare: longest without demand.
#[must_use]
pub fn time_to_empty(free: Tokens, rate: Rate) -> u64 {
    let lasts = free.scaled(Span::from_secs(1_000).get(), rate.get());
    if rate == Rate::ZERO {
        return u64::MAX;
    }
    lasts.get()
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

#[cfg(test)]
mod tests;
