//! The network between replicas and the service: every message travels by itself, so that each may
//! be late, lost, doubled or overtaken, as unary calls are.

use headgate_core::units::Span;

use crate::random::Random;

/// How messages travel, one way. Chances are in thousandths.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Network {
    /// Every message takes at least so long.
    pub delay: Span,
    /// And up to so much more.
    pub jitter: Span,
    /// Some are slow: other messages overtake them.
    pub slow: u64,
    /// Up to so slow.
    pub slow_by: Span,
    /// Some are lost. The caller waits for its timeout, or notices that the connection broke before
    /// the answer came.
    pub lost: u64,
    /// Some requests are delivered twice.
    pub doubled: u64,
}

impl Network {
    /// The reference scenarios' network: a round trip of 0.6 ms on average, at most 0.85 ms.
    pub const CLUSTER: Self = Self {
        delay: Span::new(175_000),
        jitter: Span::new(250_000),
        slow: 0,
        slow_by: Span::ZERO,
        lost: 0,
        doubled: 0,
    };

    pub(crate) fn travel(&self, random: &mut Random) -> Span {
        let slow = if random.chance(self.slow) {
            random.span(self.slow_by)
        } else {
            Span::ZERO
        };
        let jitter = random.span(self.jitter);
        let late = jitter.get().saturating_add(slow.get());
        Span::new(self.delay.get().saturating_add(late))
    }

    /// How often a request arrives.
    pub(crate) fn copies(&self, random: &mut Random) -> usize {
        if random.chance(self.lost) {
            0
        } else if random.chance(self.doubled) {
            2
        } else {
            1
        }
    }
}
