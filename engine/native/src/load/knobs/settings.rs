//! Checked knobs, ready for the hot path.

use std::num::NonZeroU64;
use std::sync::Arc;

use crate::load::counts::stats::Direction;
use crate::load::pace::fsyncs::Flush;
use crate::load::pattern::{CERTAIN, Distribution, Mix, Order, Passes, Rng};
use crate::load::policy::PolicyName;
use crate::load::targets::mode::Mode;
use crate::load::targets::stripe::Layout;

/// Checked knobs; `Settings::new` in `checked.rs` checks them.
#[derive(Debug)]
pub struct Settings {
    /// Depth of each target, or of all together.
    pub(super) queue_depth: usize,
    pub(super) total_depth: bool,
    pub width: usize,
    pub rate_iops: Option<f64>,
    pub policy: PolicyName,
    /// Set when a block is larger than the stripe unit or has copies, so that I/Os fan out over targets.
    pub layout: Option<Layout>,
    pub mode: Mode,
    /// Offset at which the address space of a target begins.
    pub offset_bytes: u64,
    pub(super) align_bytes: Option<u64>,
    pub threads: usize,
    pub(super) fsync_every: Option<NonZeroU64>,
    pub flush: Flush,
    /// Largest I/O on one target.
    pub part_bytes: u64,
    /// Block sizes of reads and of writes.
    pub(super) mixes: [Mix; 2],
    pub(super) distributions: [Distribution; 2],
    /// One per target and, last, one of the striped address space.
    pub(super) passes: Arc<[Passes]>,
    pub(super) read_bound: u64,
    /// Set when every I/O has the same direction and size.
    pub(super) always: Option<(Direction, u32)>,
}

impl Settings {
    /// Outstanding I/Os to keep on a target; parts of one queue over all targets add up to its depth.
    #[inline]
    pub fn depth_of(&self, target: usize) -> usize {
        if target >= self.width {
            0
        } else if self.total_depth {
            self.queue_depth / self.width + usize::from(target < self.queue_depth % self.width)
        } else {
            self.queue_depth
        }
    }

    /// The depth of the one queue that serves all targets in turn, where a total depth is less than one I/O for each.
    #[inline]
    pub fn one_queue(&self) -> Option<usize> {
        (self.total_depth && self.queue_depth < self.width).then_some(self.queue_depth)
    }

    /// The most that any target keeps outstanding.
    pub fn deepest(&self) -> usize {
        self.one_queue().unwrap_or_else(|| self.depth_of(0))
    }

    /// What all targets keep outstanding together.
    pub fn outstanding(&self) -> usize {
        if self.total_depth {
            self.queue_depth
        } else {
            self.queue_depth * self.width
        }
    }

    /// Goes on with the passes of the settings before, where they visit the same blocks.
    pub fn follow(&mut self, before: &Self) {
        if self.is_permutation()
            && before.is_permutation()
            && self.layout == before.layout
            && self.part_bytes == before.part_bytes
        {
            self.passes = Arc::clone(&before.passes);
        }
    }

    fn is_permutation(&self) -> bool {
        self.distributions[0].is_permutation()
    }

    /// Direction and size of the next I/O.
    #[inline]
    pub fn draw(&self, rng: &mut Rng) -> (Direction, u32) {
        if let Some(always) = self.always {
            return always;
        }
        let bits = rng.next();
        let direction = self.direction(bits & 0xFFFF_FFFF);
        (direction, self.block_bytes(direction, bits >> 32))
    }

    /// Order of random offsets in an address space.
    #[inline]
    pub fn order(&self, space: usize, key: u64) -> Order<'_> {
        if self.is_permutation() {
            Order::Permutation(&self.passes[space], key)
        } else {
            Order::Random(&self.distributions, key, self.align_bytes)
        }
    }

    pub fn writes(&self) -> bool {
        self.read_bound < CERTAIN
    }

    /// Writes of a target after which it is flushed, if there are any.
    pub fn fsync_due(&self) -> Option<u64> {
        let every = self.fsync_every.filter(|_| self.writes())?;
        Some(every.get())
    }

    /// Direction for 32 random bits.
    #[inline]
    pub(super) fn direction(&self, bits: u64) -> Direction {
        if bits < self.read_bound {
            Direction::Read
        } else {
            Direction::Write
        }
    }

    /// The largest size of a direction that fits; None if none does.
    pub fn fitting(&self, direction: Direction, bytes: u64) -> Option<u32> {
        self.mixes[direction as usize].largest_within(bytes)
    }

    /// Block size for 32 random bits.
    #[inline]
    pub(super) fn block_bytes(&self, direction: Direction, bits: u64) -> u32 {
        self.mixes[direction as usize].block_bytes(bits)
    }
}

/// How many of a target's outstanding I/Os one worker keeps; over all workers they add up to the queue depth. Those
/// started for more threads than there are now keep none.
///
/// The remainder starts at another worker for every target, so that workers carry alike. The share of a worker never
/// falls when the depth grows: otherwise a turn could for a moment exceed both depths.
pub fn share(queue_depth: usize, target: usize, worker: usize, workers: usize) -> usize {
    if worker >= workers {
        return 0;
    }
    let position = (worker + workers - target % workers) % workers;
    queue_depth / workers + usize::from(position < queue_depth % workers)
}
