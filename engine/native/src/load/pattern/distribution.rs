//! Offsets of random I/Os in an address space.

use super::normal::Normal;
use super::pareto::Pareto;
use super::permutation::Permutation;
use super::rng::Rng;
use super::zipf::Zipf;
use super::zones::{ZoneShare, Zones};

const MOST_ZONES: usize = 256;
const LARGEST_EXPONENT: f64 = 10.0;
const TOLERANCE_PERCENT: f64 = 0.5;

/// `engine.job.distribution.Distribution`.
#[derive(Clone, Debug)]
pub enum Distribution {
    Uniform,
    /// Every block once per pass.
    Permutation,
    Zipf(Zipf),
    Pareto(Pareto),
    Normal(Normal),
    Zones(Zones),
}

impl Distribution {
    /// Makes a distribution of the name and numbers that `engine.job.distribution` gives it.
    pub fn new(kind: &str, numbers: &[f64]) -> Result<Self, String> {
        let outside = || Err(format!("distribution {kind} {numbers:?} is out of range"));
        match (kind, numbers) {
            ("uniform", []) => Ok(Self::Uniform),
            ("permutation", []) => Ok(Self::Permutation),
            ("zipf", [exponent]) if *exponent > 0.0 && *exponent <= LARGEST_EXPONENT => {
                Ok(Self::Zipf(Zipf::new(*exponent)))
            }
            ("pareto", [hot_share]) if *hot_share > 0.0 && *hot_share < 1.0 => {
                Ok(Self::Pareto(Pareto::new(*hot_share)))
            }
            ("normal", [deviation, centre])
                if *deviation > 0.0 && *deviation <= 100.0 && (0.0..=100.0).contains(centre) =>
            {
                Ok(Self::Normal(Normal::new(centre / 100.0, deviation / 100.0)))
            }
            ("zones", flat) => zones(flat).map_or_else(outside, |zones| Ok(Self::Zones(zones))),
            _ => outside(),
        }
    }

    pub fn is_permutation(&self) -> bool {
        matches!(self, Self::Permutation)
    }

    /// A block below `count`. The ranks of skewed distributions are scattered over the space by the key, as hot blocks
    /// side by side would be hot tracks.
    #[inline]
    pub fn block(&self, rng: &mut Rng, count: u64, key: u64) -> u64 {
        match self {
            Self::Uniform | Self::Permutation => rng.below(count),
            other => other.skewed(rng, count, key),
        }
    }

    fn skewed(&self, rng: &mut Rng, count: u64, key: u64) -> u64 {
        let scattered = |rank| Permutation::new(count, key).at(rank);
        match self {
            Self::Uniform | Self::Permutation => rng.below(count),
            Self::Zipf(zipf) => scattered(zipf.rank(rng, count)),
            Self::Pareto(pareto) => scattered(pareto.rank(rng, count)),
            Self::Normal(normal) => normal.block(rng, count),
            Self::Zones(zones) => zones.block(rng, count),
        }
    }
}

/// Pairs of shares, of the I/Os and of the space, that each add up to 100.
fn zones(flat: &[f64]) -> Option<Zones> {
    let shares: Vec<ZoneShare> = flat
        .chunks_exact(2)
        .map(|pair| ZoneShare {
            ios_percent: pair[0],
            space_percent: pair[1],
        })
        .collect();
    let is_whole = |share: fn(&ZoneShare) -> f64| {
        let total: f64 = shares.iter().map(share).sum();
        (total - 100.0).abs() <= TOLERANCE_PERCENT
    };
    let sound = (1..=MOST_ZONES).contains(&shares.len())
        && flat.len() % 2 == 0
        && shares
            .iter()
            .all(|share| share.ios_percent >= 0.0 && share.space_percent > 0.0)
        && is_whole(|share| share.ios_percent)
        && is_whole(|share| share.space_percent);
    sound.then(|| Zones::new(&shares))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_distribution_stays_inside_and_repeats_by_seed() {
        for (kind, numbers) in [
            ("uniform", &[][..]),
            ("zipf", &[1.1]),
            ("pareto", &[0.2]),
            ("normal", &[10.0, 90.0]),
            ("zones", &[90.0, 10.0, 10.0, 90.0]),
        ] {
            let distribution = Distribution::new(kind, numbers).unwrap();
            let drawn = |seed| {
                let mut rng = Rng::new(seed, 0, 0);
                (0..1000)
                    .map(|_| distribution.block(&mut rng, 1001, 9))
                    .collect::<Vec<_>>()
            };
            assert!(drawn(1).iter().all(|block| *block < 1001), "{kind}");
            assert_eq!(drawn(1), drawn(1), "{kind}");
            assert_ne!(drawn(1), drawn(2), "{kind}");
        }
    }

    #[test]
    fn hot_blocks_are_scattered_by_the_key() {
        let zipf = Distribution::new("zipf", &[1.5]).unwrap();
        let hottest = |key| {
            let (mut rng, mut hits) = (Rng::new(1, 0, 0), vec![0_u32; 1000]);
            for _ in 0..10_000 {
                hits[usize::try_from(zipf.block(&mut rng, 1000, key)).unwrap()] += 1;
            }
            let mut order: Vec<usize> = (0..1000).collect();
            order.sort_by_key(|block| std::cmp::Reverse(hits[*block]));
            (order[0], order[1])
        };
        assert_eq!(hottest(1), hottest(1));
        assert_ne!(hottest(1), hottest(2));
        assert!(hottest(1).0.abs_diff(hottest(1).1) > 1);
    }

    #[test]
    fn what_is_out_of_range_is_refused() {
        for (kind, numbers) in [
            ("zipf", &[0.0][..]),
            ("zipf", &[f64::NAN]),
            ("zipf", &[11.0]),
            ("pareto", &[1.0]),
            ("pareto", &[]),
            ("normal", &[0.0, 50.0]),
            ("normal", &[10.0, 101.0]),
            ("zones", &[]),
            ("zones", &[50.0, 50.0, 40.0, 50.0]),
            ("zones", &[100.0, 100.0, 0.0, 0.0]),
            ("zones", &[100.0]),
            ("uniform", &[1.0]),
            ("cauchy", &[]),
        ] {
            let refusal = Distribution::new(kind, numbers).unwrap_err();
            assert!(refusal.contains(kind), "{refusal}");
        }
    }
}
