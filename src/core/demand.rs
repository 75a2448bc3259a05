//! How fast a key's tokens are asked for at one replica: the larger of a fast and a slow average,
//! as the protocol's section 10 has it. Only the fast one sees a burst in time, only the slow one
//! knows a key that is asked for now and then.
//!
//! Both are exponential averages: tokens that count for half after a half-life. What is asked for
//! and refused counts too, without a write for each refusal: over a time in which the key was known
//! to be exhausted, demand is taken to have gone on as before ([`Demand::resume`]).

use crate::units::{LocalTime, Rate, Span, Tokens};

/// Half-life of the fast average: that of a time constant of 200 ms.
const FAST_HALF_LIFE: Span = Span::from_millis(139);

/// Half-life of the slow average, in thousandths of the window: that of a fifth of it.
const SLOW_HALF_LIFE_PER_MILLE: u64 = 139;

/// Averages fall in steps not shorter than this: rounding would keep them up if each of many
/// requests let them fall by a part of their last digit.
const STEP: Span = Span::from_millis(2);

/// Averages count millionths of a token.
const PARTS: u64 = 1_000_000;

/// The natural logarithm of 2, in millionths.
const LN_2_MILLIONTHS: u128 = 693_147;

/// The same in billionths, for [`halved`], and how much of it is above one half.
const LN_2_BILLIONTHS: u64 = 693_147_181;
const LN_2_ABOVE_HALF: u64 = 193_147_181;
const BILLION: u64 = 1_000_000_000;

/// Tokens asked for lately, weighted by age. Three words in shared memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Demand {
    /// The fast average's weighted sum, in millionths of a token.
    pub fast: u64,
    /// The slow average's.
    pub slow: u64,
    /// Until when both have fallen: when a token was last asked for, give or take 2 ms.
    pub at: LocalTime,
}

impl Demand {
    /// Counts tokens that are asked for, of a key with windows of this length.
    pub fn note(&mut self, cost: Tokens, now: LocalTime, window: Span) {
        if now.since(self.at) >= STEP {
            *self = self.fallen(now, window);
        }
        let parts = cost.get().saturating_mul(PARTS);
        self.fast = self.fast.saturating_add(parts);
        self.slow = self.slow.saturating_add(parts);
    }

    /// The rate at an instant.
    #[must_use]
    pub fn rate(&self, now: LocalTime, window: Span) -> Rate {
        let fallen = self.fallen(now, window);
        rate(fallen.fast, FAST_HALF_LIFE).max(rate(fallen.slow, slow_half_life(window)))
    }

    /// Goes on after a time without a count, of which only the last part was without demand.
    pub fn resume(&mut self, now: LocalTime, idle: Span) {
        self.at = self.at.max(now.minus(idle));
    }

    fn fallen(&self, now: LocalTime, window: Span) -> Self {
        let age = now.since(self.at);
        Self {
            fast: halved(self.fast, age, FAST_HALF_LIFE),
            slow: halved(self.slow, age, slow_half_life(window)),
            at: self.at.max(now),
        }
    }
}

fn slow_half_life(window: Span) -> Span {
    let length = Tokens::new(window.get());
    Span::new(length.scaled(SLOW_HALF_LIFE_PER_MILLE, 1_000).get().max(1))
}

/// What is left of a sum after some time: halved for each half-life, and between on a curve that
/// begins as steeply as the true one. A straight line would let many short steps fall too slowly.
fn halved(sum: u64, age: Span, half_life: Span) -> u64 {
    let whole = age.get().checked_div(half_life.get()).unwrap_or(0);
    let rest = age.get().checked_rem(half_life.get()).unwrap_or(0);
    let whole = u32::try_from(whole).unwrap_or(u32::MAX);
    let base = sum.checked_shr(whole).unwrap_or(0);
    let x = Tokens::new(rest).scaled(BILLION, half_life.get());
    let square = x.scaled(x.get(), BILLION);
    let steep = x.scaled(LN_2_BILLIONTHS, BILLION);
    let part = steep.minus(square.scaled(LN_2_ABOVE_HALF, BILLION));
    let fallen = Tokens::new(base).scaled(part.get(), BILLION);
    base.saturating_sub(fallen.get())
}

/// A constant rate keeps its weighted sum at the rate times the time constant.
fn rate(sum: u64, half_life: Span) -> Rate {
    let scaled = u128::from(sum).saturating_mul(LN_2_MILLIONTHS);
    let rate = scaled.checked_div(u128::from(half_life.get())).unwrap_or(0);
    Rate::new(u64::try_from(rate).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests;
