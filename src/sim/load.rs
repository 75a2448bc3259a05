//! What the clients do: how many requests come when, where, for which keys, at which cost.

use std::sync::Arc;

use headgate_core::units::{Span, Tokens};

use crate::random::{PER_MILLE, Random};
use crate::time::Truth;

/// When requests come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shape {
    /// At random.
    Steady,
    /// So many at once, for one replica, spread over a length of time.
    Bursts(u32, Span),
}

/// Where they come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Spread {
    /// Anywhere.
    Even,
    /// So many thousandths at one replica, the others anywhere.
    Hot(u64),
    /// The same, and it is another replica after each length of time.
    Moving(u64, Span),
}

/// Which values a rule counts by.
#[derive(Clone, Debug)]
pub enum Keys {
    /// So many, all alike.
    Even(u64),
    /// The k-th is asked for 1/k as often as the first.
    Zipf(Arc<[u64]>),
}

/// What a request costs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Costs {
    /// 1.
    One,
    /// Between these, ends included.
    Between(u64, u64),
}

/// What the clients do.
#[derive(Clone, Debug)]
pub struct Load {
    /// From one request to the next on average.
    pub gap: Span,
    /// When they come.
    pub shape: Shape,
    /// Where they come.
    pub spread: Spread,
    /// Which values, by rule.
    pub keys: Vec<Keys>,
    /// What they cost.
    pub costs: Costs,
    /// How many in a thousand are followed at once by two more for the same keys, at other workers
    /// of the same replica.
    pub crowd: u64,
    /// How many in a thousand lose patience after some milliseconds.
    pub impatient: u64,
}

/// One request to come.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Arrival {
    /// When.
    pub at: Truth,
    /// At which replica.
    pub replica: usize,
    /// At which worker of it.
    pub worker: usize,
    /// Which of its keys, by rule.
    pub keys: Vec<u64>,
    /// Tokens, on every rule.
    pub cost: Tokens,
    /// The client goes away after so long.
    pub patience: Option<Span>,
}

/// The scale of Zipf weights: large enough that the millionth key still has one.
const ZIPF_SCALE: u64 = 1 << 40;

impl Keys {
    /// So many keys after Zipf's law with exponent 1.
    #[must_use]
    pub fn zipf(count: u64) -> Self {
        let mut sum = 0_u64;
        let weights = (1..=count.max(1)).map(|rank| {
            sum = sum.saturating_add(ZIPF_SCALE.checked_div(rank).unwrap_or(0));
            sum
        });
        Self::Zipf(weights.collect())
    }

    fn draw(&self, random: &mut Random) -> u64 {
        match self {
            Self::Even(count) => random.below(*count),
            Self::Zipf(sums) => {
                let point = random.below(sums.last().copied().unwrap_or(0));
                let rank = sums.partition_point(|sum| *sum <= point);
                u64::try_from(rank).unwrap_or(0)
            }
        }
    }
}

/// The stream of requests that a load makes.
#[derive(Debug)]
pub(crate) struct Clients {
    load: Load,
    random: Random,
    next: Truth,
    workers: usize,
}

impl Clients {
    pub(crate) fn new(load: Load, random: Random, start: Truth, workers: usize) -> Self {
        let mut clients = Self {
            load,
            random,
            next: start,
            workers,
        };
        clients.advance();
        clients
    }

    fn advance(&mut self) {
        let size = match self.load.shape {
            Shape::Steady => 1,
            Shape::Bursts(size, _) => u64::from(size),
        };
        let mean = Span::new(self.load.gap.get().saturating_mul(size));
        let gap = self.random.exponential(mean);
        self.next = self.next.plus(gap).plus(Span::new(1));
    }

    /// All requests before an instant that have not been given yet; `replicas` of them are there.
    pub(crate) fn until(&mut self, end: Truth, replicas: usize) -> Vec<Arrival> {
        let mut arrivals = Vec::new();
        while self.next < end {
            let at = self.next;
            match self.load.shape {
                Shape::Steady => self.crowd(at, replicas, &mut arrivals),
                Shape::Bursts(size, within) => {
                    let replica = self.random.place(replicas).unwrap_or(0);
                    for _ in 0..size {
                        let at = at.plus(self.random.span(within));
                        arrivals.push(self.request(at, replica));
                    }
                }
            }
            self.advance();
        }
        arrivals
    }

    fn crowd(&mut self, at: Truth, replicas: usize, arrivals: &mut Vec<Arrival>) {
        let replica = self.replica(at, replicas);
        let first = self.request(at, replica);
        if self.random.chance(self.load.crowd) {
            for other in 1..=2 {
                let worker = first.worker.saturating_add(other);
                arrivals.push(Arrival {
                    worker: worker.checked_rem(self.workers).unwrap_or(0),
                    ..first.clone()
                });
            }
        }
        arrivals.push(first);
    }

    fn replica(&mut self, at: Truth, replicas: usize) -> usize {
        let hot = match self.load.spread {
            Spread::Even => None,
            Spread::Hot(share) => Some((share, 0)),
            Spread::Moving(share, every) => {
                Some((share, at.get().checked_div(every.get()).unwrap_or(0)))
            }
        };
        let Some((_, turn)) = hot.filter(|(share, _)| self.random.below(PER_MILLE) < *share) else {
            return self.random.place(replicas).unwrap_or(0);
        };
        Random::new(turn).place(replicas).unwrap_or(0)
    }

    fn request(&mut self, at: Truth, replica: usize) -> Arrival {
        let random = &mut self.random;
        let cost = match self.load.costs {
            Costs::One => 1,
            Costs::Between(least, most) => random.between(least, most),
        };
        let patience = random
            .chance(self.load.impatient)
            .then(|| random.span(Span::from_millis(5)));
        Arrival {
            at,
            replica,
            worker: random.place(self.workers).unwrap_or(0),
            keys: self
                .load
                .keys
                .iter()
                .map(|keys| keys.draw(random))
                .collect(),
            cost: Tokens::new(cost),
            patience,
        }
    }
}

#[cfg(test)]
mod tests;
