//! Full coverage without a map: a bijection of block numbers, computed for every number.

use super::rng::mix;

const ROUNDS: usize = 4;

/// A pseudo-random order of the numbers below `count`; one key gives one order.
///
/// Numbers of as many bits as `count` needs are mixed by steps that each can be undone (an odd multiplication, a shift
/// folded in by exclusive or), and mixed again until they fall below `count`: less than twice on average.
pub struct Permutation {
    count: u64,
    mask: u64,
    shift: u32,
    keys: [u64; ROUNDS],
}

impl Permutation {
    #[inline]
    pub fn new(count: u64, key: u64) -> Self {
        let bits = (u64::BITS - (count.max(2) - 1).leading_zeros()).max(1);
        let mut state = key;
        Self {
            count,
            mask: u64::MAX >> (u64::BITS - bits),
            shift: bits.div_ceil(2),
            keys: std::array::from_fn(|_| {
                state = mix(state.wrapping_add(0x9E37_79B9_7F4A_7C15));
                state
            }),
        }
    }

    /// The number at this index of the order; `index` is below `count`.
    #[inline]
    pub fn at(&self, index: u64) -> u64 {
        let mut value = self.mixed(index);
        while value >= self.count {
            value = self.mixed(value);
        }
        value
    }

    #[inline]
    fn mixed(&self, value: u64) -> u64 {
        self.keys.iter().fold(value, |value, key| {
            let value = (value ^ (key >> 32)) & self.mask;
            let value = value.wrapping_mul(key | 1) & self.mask;
            value ^ (value >> self.shift)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_comes_exactly_once() {
        for count in (1..200).chain([255, 256, 257, 1000, 65_535, 65_537]) {
            let order = Permutation::new(count, count * 7);
            let mut seen = vec![false; usize::try_from(count).unwrap()];
            for index in 0..count {
                let number = usize::try_from(order.at(index)).unwrap();
                assert!(!seen[number], "{number} of {count} came twice");
                seen[number] = true;
            }
        }
    }

    #[test]
    fn the_order_depends_on_the_key() {
        let order = |key| {
            let order = Permutation::new(1000, key);
            (0..1000).map(|index| order.at(index)).collect::<Vec<_>>()
        };
        assert_eq!(order(1), order(1));
        let same = order(1)
            .iter()
            .zip(order(2))
            .filter(|(one, other)| **one == *other)
            .count();
        // One is expected; above 12 has a probability below 1e-9.
        assert!(same <= 12, "{same}");
    }

    #[test]
    fn any_stretch_of_the_order_is_spread_over_the_space() {
        let count = 1_000_003;
        for key in 0..8 {
            let order = Permutation::new(count, key);
            let mut hits = [0_u32; 64];
            for index in 500_000..564_000 {
                hits[usize::try_from(order.at(index) * 64 / count).unwrap()] += 1;
            }
            // 63 degrees of freedom: chi square above 130 has a probability below 1e-6.
            let chi_square: f64 = hits
                .iter()
                .map(|hit| (f64::from(*hit) - 1000.0).powi(2) / 1000.0)
                .sum();
            assert!(chi_square < 130.0, "key {key}: {chi_square}");
        }
    }

    #[test]
    fn neighbours_in_the_order_are_strangers_in_the_space() {
        let count = 1_u64 << 20;
        let order = Permutation::new(count, 3);
        let near = (1..100_000)
            .filter(|index| order.at(*index).abs_diff(order.at(index - 1)) < count / 100)
            .count();
        // Two in a hundred of random pairs are that near: 1,990 expected, a standard deviation of 44.
        assert!((1700..2300).contains(&near), "{near}");
    }
}
