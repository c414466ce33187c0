//! Zipf: the block of rank k is chosen k^-exponent times as often as the first.

use super::rng::Rng;

/// Draws ranks by rejection-inversion (Hörmann, Derflinger: Rejection-inversion to generate variates from monotone
/// discrete distributions, 1996): exact for every positive exponent, with no table and less than 1.2 tries on average.
#[derive(Clone, Copy, Debug)]
pub struct Zipf {
    exponent: f64,
    first: f64,
    squeeze: f64,
}

impl Zipf {
    pub fn new(exponent: f64) -> Self {
        let mut zipf = Self {
            exponent,
            first: 0.0,
            squeeze: 0.0,
        };
        zipf.first = zipf.area(1.5) - 1.0;
        zipf.squeeze = 2.0 - zipf.area_inverse(zipf.area(2.5) - zipf.height(2.0));
        zipf
    }

    /// A rank below `count`, 0 the most frequent.
    #[inline]
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "ranks are below 2^53: devices are far smaller"
    )]
    pub fn rank(&self, rng: &mut Rng, count: u64) -> u64 {
        let last = self.area(count as f64 + 0.5);
        loop {
            let area = last + rng.fraction() * (self.first - last);
            let exact = self.area_inverse(area);
            let rank = exact.round().clamp(1.0, count as f64);
            if rank - exact <= self.squeeze || area >= self.area(rank + 0.5) - self.height(rank) {
                return rank as u64 - 1;
            }
        }
    }

    fn height(&self, at: f64) -> f64 {
        (-self.exponent * at.ln()).exp()
    }

    /// Integral of `height` from 1.
    fn area(&self, to: f64) -> f64 {
        let log = to.ln();
        let power = (1.0 - self.exponent) * log;
        log * if power.abs() > 1e-8 {
            power.exp_m1() / power
        } else {
            1.0 + power / 2.0
        }
    }

    fn area_inverse(&self, area: f64) -> f64 {
        let power = (area * (1.0 - self.exponent)).max(-1.0);
        let log = area
            * if power.abs() > 1e-8 {
                power.ln_1p() / power
            } else {
                1.0 - power / 2.0
            };
        log.exp()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_as_frequent_as_their_powers() {
        const DRAWS: u32 = 200_000;
        for exponent in [0.3, 0.99, 1.0, 1.2, 2.5] {
            let (zipf, mut rng) = (Zipf::new(exponent), Rng::new(5, 0, 0));
            let mut hits = [0_u32; 50];
            for _ in 0..DRAWS {
                hits[usize::try_from(zipf.rank(&mut rng, 50)).unwrap()] += 1;
            }
            let weight = |rank: u32| f64::from(rank + 1).powf(-exponent);
            let all: f64 = (0..50).map(weight).sum();
            let chi_square: f64 = (0..50)
                .zip(hits)
                .map(|(rank, hit)| {
                    let expected = f64::from(DRAWS) * weight(rank) / all;
                    (f64::from(hit) - expected).powi(2) / expected
                })
                .sum();
            // 49 degrees of freedom: above 110 has a probability below 1e-6.
            assert!(chi_square < 110.0, "{exponent}: {chi_square}");
        }
    }

    #[test]
    fn the_ends_of_a_large_space_are_reached() {
        let (zipf, mut rng) = (Zipf::new(0.5), Rng::new(1, 0, 0));
        let count = 1_u64 << 40;
        let drawn: Vec<u64> = (0..10_000).map(|_| zipf.rank(&mut rng, count)).collect();
        assert!(drawn.iter().all(|rank| *rank < count));
        assert!(drawn.iter().any(|rank| *rank > count / 10 * 9));
        assert_eq!(Zipf::new(1.2).rank(&mut rng, 1), 0);
    }
}
