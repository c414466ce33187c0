//! Random numbers for the hot path.

/// `SplitMix64` (Steele, Lea, Flood 2014): 64 uniform bits from a counter and two multiplications.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// A stream of its own for every seed and pair of keys.
    pub fn new(seed: u64, major: u64, minor: u64) -> Self {
        let mut mixer = Self(seed);
        mixer.0 = mixer.next() ^ major;
        mixer.0 = mixer.next() ^ minor;
        Self(mixer.next())
    }

    #[inline]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mix(self.0)
    }

    /// Uniform below `bound` (Lemire's reduction without the rejection step: off by less than bound / 2^64).
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    /// Uniform above 0 and up to 1, in steps of 2^-53.
    #[inline]
    #[expect(clippy::cast_precision_loss, reason = "53 bits are all a float holds")]
    pub fn fraction(&mut self) -> f64 {
        ((self.next() >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }
}

/// The finaliser of `SplitMix64`: a bijection of 64 bits.
#[inline]
pub fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_below_a_bound_are_uniform() {
        let mut rng = Rng::new(7, 1, 2);
        let mut hits = [0_u32; 64];
        for _ in 0..64_000 {
            hits[usize::try_from(rng.below(64)).unwrap()] += 1;
        }
        // 63 degrees of freedom: chi square above 120 has a probability below 1e-5.
        let chi_square: f64 = hits
            .iter()
            .map(|hit| (f64::from(*hit) - 1000.0).powi(2) / 1000.0)
            .sum();
        assert!(chi_square < 120.0, "{chi_square}");
    }

    #[test]
    fn fractions_fill_the_unit_interval() {
        let mut rng = Rng::new(1, 0, 0);
        let drawn: Vec<f64> = (0..10_000).map(|_| rng.fraction()).collect();
        assert!(drawn.iter().all(|value| *value > 0.0 && *value <= 1.0));
        let mean = drawn.iter().sum::<f64>() / 10_000.0;
        // Five times the standard error of 0.0029.
        assert!((mean - 0.5).abs() < 0.0145, "{mean}");
    }

    #[test]
    fn streams_repeat_by_seed_and_differ_by_key() {
        let stream = |seed, major, minor| {
            let mut rng = Rng::new(seed, major, minor);
            (0..8).map(|_| rng.next()).collect::<Vec<_>>()
        };
        assert_eq!(stream(1, 2, 3), stream(1, 2, 3));
        let others = [
            stream(2, 2, 3),
            stream(1, 3, 3),
            stream(1, 2, 4),
            stream(1, 3, 2),
        ];
        assert!(others.iter().all(|other| *other != stream(1, 2, 3)));
    }
}
