//! Normal: a bell curve around one position in the space.

use std::f64::consts::TAU;

use super::rng::Rng;

/// Draws outside the space are drawn again; with the centre inside and a deviation up to the whole space at least a
/// third falls inside, so this bound is never met by chance.
const MOST_TRIES: u32 = 256;

/// Centre and standard deviation are shares of the space.
#[derive(Clone, Copy, Debug)]
pub struct Normal {
    centre: f64,
    deviation: f64,
}

impl Normal {
    pub fn new(centre: f64, deviation: f64) -> Self {
        Self { centre, deviation }
    }

    /// A block below `count`.
    #[inline]
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "blocks are below 2^53: devices are far smaller"
    )]
    pub fn block(&self, rng: &mut Rng, count: u64) -> u64 {
        for _ in 0..MOST_TRIES {
            // Box and Muller 1958; the sine, which would be a second draw, is left unused.
            let radius = (-2.0 * rng.fraction().ln()).sqrt();
            let position = self.centre + self.deviation * radius * (TAU * rng.fraction()).cos();
            if (0.0..1.0).contains(&position) {
                return ((position * count as f64) as u64).min(count - 1);
            }
        }
        rng.below(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bell_has_its_centre_and_deviation() {
        let (normal, mut rng) = (Normal::new(0.5, 0.1), Rng::new(2, 0, 0));
        let drawn: Vec<u64> = (0..100_000)
            .map(|_| normal.block(&mut rng, 1_000_000))
            .collect();
        let within = |share: u64| {
            let near = |block: &&u64| block.abs_diff(500_000) < share;
            drawn.iter().filter(near).count()
        };
        // 68.27 % within one deviation and 95.45 % within two; five standard errors are 740 and 330.
        assert!(
            (67_500..69_000).contains(&within(100_000)),
            "{}",
            within(100_000)
        );
        assert!(
            (95_100..95_800).contains(&within(200_000)),
            "{}",
            within(200_000)
        );
    }

    #[test]
    fn what_would_fall_outside_is_drawn_again() {
        let (normal, mut rng) = (Normal::new(0.0, 1.0), Rng::new(2, 0, 0));
        let drawn: Vec<u64> = (0..100_000).map(|_| normal.block(&mut rng, 1000)).collect();
        assert!(drawn.iter().all(|block| *block < 1000));
        let lower = drawn.iter().filter(|block| **block < 500).count();
        // (erf(0.5/sqrt 2)) / erf(1/sqrt 2) = 0.5609; five standard errors are 785.
        assert!((55_300..56_900).contains(&lower), "{lower}");
    }
}
