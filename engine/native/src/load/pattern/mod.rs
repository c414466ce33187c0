//! Chooses the next offset, direction and size.

mod chance;
mod distribution;
mod mix;
mod normal;
mod pareto;
mod passes;
mod permutation;
mod rng;
mod streams;
mod zipf;
mod zones;

use super::counts::logical::ALONE;
use super::counts::stats::Direction;

pub use chance::{CERTAIN, chance};
pub use distribution::Distribution;
pub use mix::{BlockShare, Mix};
pub use passes::Passes;
pub use rng::{Rng, mix};
pub use streams::{StreamPlan, Streams};

/// One I/O on one target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    pub target: usize,
    pub direction: Direction,
    pub offset: u64,
    pub length: u32,
    /// File of the path that was chosen of the target's.
    pub file: u32,
    /// The logical I/O it is a part of.
    pub logical: u32,
    /// Intended start in an open loop; 0: it starts when it is issued.
    pub intended_ticks: u64,
}

impl Part {
    /// Makes an I/O that is not part of a logical one.
    #[inline]
    pub fn alone(target: usize, direction: Direction, offset: u64, length: u32) -> Self {
        Self {
            target,
            direction,
            offset,
            length,
            file: 0,
            logical: ALONE,
            intended_ticks: 0,
        }
    }

    /// An fsync of a target, which is a write of no bytes.
    pub fn fsync(target: usize) -> Self {
        Self::alone(target, Direction::Write, 0, 0)
    }

    /// Whether this is a read, and the kernel's result says that it returned all the bytes asked for.
    #[inline]
    pub fn is_whole_read(&self, result: i32) -> bool {
        self.direction == Direction::Read && u32::try_from(result) == Ok(self.length)
    }

    #[inline]
    pub fn is_fsync(&self) -> bool {
        self.length == 0
    }
}

/// Order in which an address space is visited; state is shared by all workers.
pub enum Order<'a> {
    /// Drawn from the distribution of the direction; the key says which blocks are the hot ones. Offsets are multiples of
    /// the third, or of the block.
    Random(&'a [Distribution; 2], u64, Option<u64>),
    Permutation(&'a Passes, u64),
    Sequential(&'a Streams),
}

impl Order<'_> {
    /// Offset of the next block inside the space: a multiple of the block, unless the order says of what.
    #[inline]
    pub fn next(
        &self,
        rng: &mut Rng,
        direction: Direction,
        space_bytes: u64,
        block_bytes: u64,
    ) -> u64 {
        match self {
            Self::Random(distributions, key, align_bytes) => {
                let step = align_bytes.unwrap_or(block_bytes);
                let starts = (space_bytes - block_bytes) / step + 1;
                distributions[direction as usize].block(rng, starts, *key) * step
            }
            Self::Permutation(passes, key) => passes.next(space_bytes, block_bytes, *key),
            Self::Sequential(streams) => streams.next(direction, space_bytes, block_bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_offsets_are_aligned_inside_and_reach_both_ends() {
        let distributions = [Distribution::Uniform, Distribution::Uniform];
        let (mut rng, order) = (Rng::new(1, 0, 0), Order::Random(&distributions, 0, None));
        let offsets: Vec<u64> = (0..10_000)
            .map(|_| order.next(&mut rng, Direction::Read, 100 * 4096 + 17, 4096))
            .collect();
        assert!(
            offsets
                .iter()
                .all(|offset| offset % 4096 == 0 && offset + 4096 <= 100 * 4096)
        );
        assert!(offsets.contains(&0) && offsets.contains(&(99 * 4096)));
    }

    #[test]
    fn an_alignment_of_its_own_lets_blocks_overlap() {
        let distributions = [Distribution::Uniform, Distribution::Uniform];
        let order = Order::Random(&distributions, 0, Some(512));
        let mut rng = Rng::new(1, 0, 0);
        let offsets: Vec<u64> = (0..10_000)
            .map(|_| order.next(&mut rng, Direction::Read, 3 * 4096, 4096))
            .collect();
        assert!(
            offsets
                .iter()
                .all(|offset| offset % 512 == 0 && *offset <= 2 * 4096)
        );
        assert!((0..=16).all(|start| offsets.contains(&(start * 512))));
    }

    #[test]
    fn each_direction_has_its_own_distribution() {
        let zones = |numbers: &[f64]| Distribution::new("zones", numbers).unwrap();
        let distributions = [
            zones(&[100.0, 50.0, 0.0, 50.0]),
            zones(&[0.0, 50.0, 100.0, 50.0]),
        ];
        let (mut rng, order) = (Rng::new(1, 0, 0), Order::Random(&distributions, 0, None));
        let mut block = |direction| order.next(&mut rng, direction, 100 * 4096, 4096) / 4096;
        assert!((0..1000).all(|_| block(Direction::Read) < 50));
        assert!((0..1000).all(|_| block(Direction::Write) >= 50));
    }
}
