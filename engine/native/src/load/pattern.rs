//! Which offset, direction and size comes next.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::knobs::Settings;
use super::stats::Direction;

/// One I/O on one target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    pub target: usize,
    pub direction: Direction,
    pub offset: u64,
    pub length: u32,
    /// When it was meant to be issued, where I/Os arrive by a schedule; 0 is when it is.
    pub intended_ticks: u64,
}

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
}

/// The finaliser of `SplitMix64`: a bijection of 64 bits.
#[inline]
pub fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ (value >> 31)
}

/// Order in which an address space is visited.
pub enum Order<'a> {
    Random,
    /// One cursor, shared by all who visit the space.
    Sequential(&'a AtomicU64),
}

impl Order<'_> {
    /// Offset of the next block: a multiple of the block inside the space.
    #[inline]
    pub fn next(&self, rng: &mut Rng, space_bytes: u64, block_bytes: u64) -> u64 {
        match self {
            Self::Random => rng.below(space_bytes / block_bytes) * block_bytes,
            Self::Sequential(cursor) => advance(cursor, space_bytes, block_bytes),
        }
    }
}

/// Takes the next block of a sequential stream, wrapping at the end of the space.
fn advance(cursor: &AtomicU64, space_bytes: u64, block_bytes: u64) -> u64 {
    let aligned = |position: u64| {
        let offset = position.next_multiple_of(block_bytes);
        if offset + block_bytes > space_bytes {
            0
        } else {
            offset
        }
    };
    let taken = cursor.fetch_update(Relaxed, Relaxed, |position| {
        Some(aligned(position) + block_bytes)
    });
    aligned(taken.unwrap_or_else(|position| position))
}

/// Direction and size of the next I/O.
#[inline]
pub fn draw(settings: &Settings, rng: &mut Rng) -> (Direction, u32) {
    if settings.is_uniform() {
        return (settings.direction(0), settings.block_bytes(0));
    }
    let bits = rng.next();
    (
        settings.direction(bits & 0xFFFF_FFFF),
        settings.block_bytes(bits >> 32),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_offsets_are_aligned_inside_and_reach_both_ends() {
        let mut rng = Rng::new(1, 0, 0);
        let offsets: Vec<u64> = (0..10_000)
            .map(|_| Order::Random.next(&mut rng, 100 * 4096 + 17, 4096))
            .collect();
        assert!(
            offsets
                .iter()
                .all(|offset| offset % 4096 == 0 && offset + 4096 <= 100 * 4096)
        );
        assert!(offsets.contains(&0) && offsets.contains(&(99 * 4096)));
    }

    #[test]
    fn random_offsets_are_uniform() {
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

    #[test]
    fn a_sequential_stream_visits_every_block_in_order_and_wraps() {
        let (cursor, mut rng) = (AtomicU64::new(0), Rng::new(1, 0, 0));
        let order = Order::Sequential(&cursor);
        let offsets: Vec<u64> = (0..7)
            .map(|_| order.next(&mut rng, 3 * 4096, 4096))
            .collect();
        assert_eq!(offsets, [0, 4096, 8192, 0, 4096, 8192, 0]);
    }

    #[test]
    fn a_sequential_mix_keeps_every_block_aligned_and_inside() {
        let (cursor, mut rng) = (AtomicU64::new(0), Rng::new(1, 0, 0));
        let order = Order::Sequential(&cursor);
        for block in [4096, 65536, 12288, 4096, 65536, 65536, 12288] {
            let offset = order.next(&mut rng, 200_000, block);
            assert_eq!(offset % block, 0);
            assert!(offset + block <= 200_000);
        }
    }
}
