//! Pareto: a share h of the space gets the share 1 - h of the I/Os, and so on within that share.

use super::rng::Rng;

/// Self-similar skew (Gray et al.: Quickly generating billion-record synthetic databases, 1994): 0.2 is 80 to 20.
#[derive(Clone, Copy, Debug)]
pub struct Pareto {
    power: f64,
}

impl Pareto {
    /// `hot_share` is above 0 and below 1.
    pub fn new(hot_share: f64) -> Self {
        Self {
            power: hot_share.ln() / (1.0 - hot_share).ln(),
        }
    }

    /// A rank below `count`, 0 the most frequent.
    #[inline]
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "ranks are below 2^53: devices are far smaller"
    )]
    pub fn rank(self, rng: &mut Rng, count: u64) -> u64 {
        ((count as f64 * rng.fraction().powf(self.power)) as u64).min(count - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hot_share_gets_the_rest_of_the_draws_at_every_scale() {
        let (pareto, mut rng) = (Pareto::new(0.2), Rng::new(3, 0, 0));
        let drawn: Vec<u64> = (0..100_000)
            .map(|_| pareto.rank(&mut rng, 1_000_000))
            .collect();
        let below = |bound: u64| drawn.iter().filter(|rank| **rank < bound).count();
        // Five standard deviations of a binomial share are at most 0.8 %.
        assert!(
            (79_300..80_700).contains(&below(200_000)),
            "{}",
            below(200_000)
        );
        assert!(
            (63_200..64_800).contains(&below(40_000)),
            "{}",
            below(40_000)
        );
        assert!(drawn.iter().all(|rank| *rank < 1_000_000));
        assert!(drawn.iter().any(|rank| *rank > 990_000));
    }
}
