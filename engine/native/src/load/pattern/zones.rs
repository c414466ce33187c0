//! Locality: each zone of the space gets its share of the I/Os, evenly within; two zones make hot and cold.

use super::rng::Rng;

/// Shares are counted in parts of this.
const WHOLE: u64 = 1 << 32;

/// One zone: its share of the I/Os and of the space, in percent.
#[derive(Clone, Copy, Debug)]
pub struct ZoneShare {
    pub ios_percent: f64,
    pub space_percent: f64,
}

/// Upper bounds of the zones' shares of the I/Os and of the space, cumulated.
#[derive(Clone, Debug)]
pub struct Zones(Box<[(u64, u64)]>);

impl Zones {
    /// Zones that follow each other from the start of the space; their shares add up to about 100 each.
    pub fn new(shares: &[ZoneShare]) -> Self {
        let ios = bounds(shares.iter().map(|share| share.ios_percent));
        let space = bounds(shares.iter().map(|share| share.space_percent));
        Self(ios.into_iter().zip(space).collect())
    }

    /// A block below `count`. A zone smaller than a block gets the block in which it begins.
    #[inline]
    pub fn block(&self, rng: &mut Rng, count: u64) -> u64 {
        let drawn = rng.next() >> 32;
        let zone = self
            .0
            .partition_point(|(ios, _)| *ios <= drawn)
            .min(self.0.len() - 1);
        let begin = if zone == 0 {
            0
        } else {
            edge(self.0[zone - 1].1, count)
        };
        let begin = begin.min(count - 1);
        let end = edge(self.0[zone].1, count).max(begin + 1);
        begin + rng.below(end - begin)
    }
}

#[inline]
#[expect(
    clippy::cast_possible_truncation,
    reason = "a bound is at most 2^32, so the edge is at most the count"
)]
fn edge(bound: u64, count: u64) -> u64 {
    ((u128::from(count) * u128::from(bound)) >> 32) as u64
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "0..=2^32"
)]
fn bounds(percents: impl Iterator<Item = f64> + Clone) -> Vec<u64> {
    let total: f64 = percents.clone().sum();
    let cumulated = percents.scan(0.0, |below, percent| {
        *below += percent;
        Some((*below / total * WHOLE as f64).round() as u64)
    });
    cumulated.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zones(shares: &[(f64, f64)]) -> Zones {
        let share = |(ios_percent, space_percent): &(f64, f64)| ZoneShare {
            ios_percent: *ios_percent,
            space_percent: *space_percent,
        };
        Zones::new(&shares.iter().map(share).collect::<Vec<_>>())
    }

    #[test]
    fn every_zone_gets_its_share_evenly() {
        let (zones, mut rng) = (
            zones(&[(50.0, 20.0), (0.0, 30.0), (50.0, 50.0)]),
            Rng::new(1, 0, 0),
        );
        let mut hits = [0_u32; 10];
        for _ in 0..100_000 {
            hits[usize::try_from(zones.block(&mut rng, 1000) / 100).unwrap()] += 1;
        }
        // Five standard deviations: 685 of 25,000 and 475 of 10,000.
        assert!(
            hits[..2].iter().all(|hit| (24_300..25_700).contains(hit)),
            "{hits:?}"
        );
        assert_eq!(hits[2..5], [0, 0, 0]);
        assert!(
            hits[5..].iter().all(|hit| (9_500..10_500).contains(hit)),
            "{hits:?}"
        );
    }

    #[test]
    fn zones_smaller_than_a_block_stay_inside() {
        let (zones, mut rng) = (
            zones(&[(90.0, 0.001), (9.0, 99.998), (1.0, 0.001)]),
            Rng::new(1, 0, 0),
        );
        let drawn: Vec<u64> = (0..1000).map(|_| zones.block(&mut rng, 3)).collect();
        assert!(drawn.iter().all(|block| *block < 3));
        assert!(drawn.iter().filter(|block| **block == 0).count() > 850);
        assert!((0..100).all(|_| zones.block(&mut rng, 1) == 0));
    }

    #[test]
    fn thirds_written_as_33_cover_the_whole_space() {
        let (zones, mut rng) = (
            zones(&[(33.0, 33.0), (33.0, 33.0), (33.0, 33.0)]),
            Rng::new(1, 0, 0),
        );
        assert!(
            (0..100_000)
                .map(|_| zones.block(&mut rng, 1000))
                .any(|block| block == 999)
        );
    }
}
