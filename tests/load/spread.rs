//! A fixed, even order in which parts take their turns by weight.

use anyhow::{Result, ensure};

/// Longest order: the sum of all weights.
const MAX_ROUND: u32 = 10_000;

/// The order of one round, repeated for ever.
#[derive(Debug)]
pub(super) struct Spread {
    order: Vec<usize>,
}

impl Spread {
    /// Smooth weighted round robin, so that turns of one part are apart as far as they can be.
    pub(super) fn new(weights: impl Iterator<Item = u32>) -> Result<Self> {
        let weights: Vec<i64> = weights.map(i64::from).collect();
        let total: i64 = weights.iter().sum();
        ensure!(
            (1..=i64::from(MAX_ROUND)).contains(&total),
            "the weights of a load must add up to 1 to {MAX_ROUND}, not {total}"
        );
        let mut credit = vec![0_i64; weights.len()];
        let mut order = Vec::new();
        for _ in 0..total {
            for (credit, weight) in credit.iter_mut().zip(&weights) {
                *credit += weight;
            }
            // The first of the richest.
            let richest = credit
                .iter_mut()
                .enumerate()
                .rev()
                .max_by_key(|(_, credit)| **credit);
            if let Some((part, credit)) = richest {
                *credit -= total;
                order.push(part);
            }
        }
        Ok(Self { order })
    }

    /// Turns in a round, at least 1.
    pub(super) fn round(&self) -> u64 {
        self.order.len() as u64
    }

    /// Whose turn it is.
    pub(super) fn at(&self, turn: u64) -> usize {
        let place = usize::try_from(turn % self.round()).unwrap_or(0);
        self.order.get(place).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::Spread;

    fn order(weights: &[u32]) -> Vec<usize> {
        let spread = Spread::new(weights.iter().copied()).expect("weights");
        (0..spread.round() * 2)
            .map(|turn| spread.at(turn))
            .collect()
    }

    #[test]
    fn equal_parts_take_turns() {
        assert_eq!(order(&[1, 1, 1]), [0, 1, 2, 0, 1, 2]);
    }

    #[test]
    fn unequal_parts_are_interleaved_and_a_weight_of_0_has_no_turn() {
        assert_eq!(order(&[3, 1, 0]), [0, 0, 1, 0, 0, 0, 1, 0]);
    }

    #[test]
    fn no_weight_at_all_and_too_much_are_refused() {
        assert!(Spread::new([0, 0].into_iter()).is_err());
        assert!(Spread::new([].into_iter()).is_err());
        assert!(Spread::new([10_001].into_iter()).is_err());
    }
}
