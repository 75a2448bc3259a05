//! Numbers that follow from a seed (SplitMix64: Steele, Lea, Flood, 2014).

pub(super) struct Random(u64);

impl Random {
    pub(super) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(super) const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// At least 0, less than `bound` (0 for a bound of 0). The bias does not matter here.
    pub(super) const fn below(&mut self, bound: u64) -> u64 {
        match self.next().checked_rem(bound) {
            Some(value) => value,
            None => 0,
        }
    }
}
