//! Knobs as they were given, checked against the targets and made ready for the hot path.

mod checks;
#[cfg(test)]
mod tests;

use std::num::NonZeroU64;
use std::sync::Arc;

use self::checks::{check_block, check_depth, check_policy, checked_rate, checked_threads};
use super::arrival::Arrival;
use super::fsyncs::Flush;
use super::mode::Mode;
use super::pattern::{BlockShare, CERTAIN, Distribution, Mix, Order, Passes, chance};
use super::policy::PolicyName;
use super::stats::Direction;
use super::stripe::Layout;
use super::target::Target;

/// Largest number of threads the `threads` backend starts (`engine.job.spec.MAX_THREADS`).
pub const MAX_THREADS: usize = 1000;

/// `engine.job.spec.Knobs`.
#[derive(Clone, Debug)]
pub struct Knobs {
    pub queue_depth: usize,
    pub stripe_width: usize,
    /// Of reads, and of writes where those have none of their own.
    pub blocks: Vec<BlockShare>,
    pub write_blocks: Option<Vec<BlockShare>>,
    pub read_pct: f64,
    pub rate_iops: Option<f64>,
    pub policy: PolicyName,
    /// Of reads and of writes.
    pub distributions: [Distribution; 2],
    pub mode: Mode,
    /// Workers with a ring each; unused where every I/O has a thread of its own.
    pub threads: usize,
    /// Writes of a target after which it is flushed.
    pub fsync_every: Option<NonZeroU64>,
    pub flush: Flush,
}

/// What threads with rings do while they have nothing to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RingUse {
    /// Sleep until a completion wakes them.
    Sleep,
    /// Watch for completions.
    Poll,
    /// As the first, with no-ops in place of I/Os.
    Dry,
}

/// What is fixed for a run and bounds the knobs.
#[derive(Clone, Debug)]
pub struct Limits {
    pub max_queue_depth: usize,
    pub stripe_unit_bytes: u64,
    pub thread_per_io: bool,
    /// Targets with the same data; 1 without a mirror.
    pub copies: usize,
    /// Whether the queue depth is shared out over the targets.
    pub total_depth: bool,
    pub arrival: Arrival,
    pub ring_use: RingUse,
    /// Sequential streams through each address space; None where the order is random.
    pub streams: Option<usize>,
    /// With --verify: what every write is a multiple of.
    pub grain_bytes: Option<u64>,
}

/// Checked knobs.
#[derive(Debug)]
pub struct Settings {
    /// Of each target, or of all together.
    queue_depth: usize,
    total_depth: bool,
    pub width: usize,
    pub rate_iops: Option<f64>,
    pub policy: PolicyName,
    /// Set when a block is larger than the stripe unit or has copies, so that I/Os fan out over targets.
    pub layout: Option<Layout>,
    pub mode: Mode,
    pub threads: usize,
    fsync_every: Option<NonZeroU64>,
    pub flush: Flush,
    /// Largest I/O on one target.
    pub part_bytes: u64,
    /// Of reads and of writes.
    mixes: [Mix; 2],
    distributions: [Distribution; 2],
    /// One per target and, last, one of the striped address space.
    passes: Arc<[Passes]>,
    read_bound: u64,
    /// Set when every I/O has the same direction and size.
    always: Option<(Direction, u32)>,
}

impl Settings {
    /// Checks knobs; the error says which is out of range and why.
    pub fn new(knobs: &Knobs, limits: &Limits, targets: &[Arc<Target>]) -> Result<Self, String> {
        check_depth(knobs, limits, targets.len())?;
        let active = &targets[..knobs.stripe_width];
        check_policy(knobs.policy, active)?;
        let mixes = mixes(knobs)?;
        let read_bound = chance(knobs.read_pct)
            .ok_or(format!("read_pct {} is not in 0..100", knobs.read_pct))?;
        let sizes: Vec<u64> = used(read_bound)
            .flat_map(|direction| mixes[direction as usize].sizes())
            .collect();
        for block_bytes in &sizes {
            active
                .iter()
                .try_for_each(|target| check_block(*block_bytes, target, knobs.mode))?;
        }
        let layout = layout(knobs, limits, active, &sizes)?;
        let largest = sizes.iter().copied().max().unwrap_or(0);
        let settings = Self {
            queue_depth: knobs.queue_depth,
            total_depth: limits.total_depth,
            width: knobs.stripe_width,
            policy: knobs.policy,
            rate_iops: checked_rate(knobs.rate_iops, limits.arrival)?,
            part_bytes: layout.map_or(largest, |layout| layout.largest_part_bytes(largest)),
            layout,
            mode: knobs.mode,
            threads: checked_threads(knobs.threads)?,
            fsync_every: knobs.fsync_every,
            flush: knobs.flush,
            always: always(&mixes, read_bound),
            mixes,
            distributions: knobs.distributions.clone(),
            passes: (0..=targets.len()).map(|_| Passes::default()).collect(),
            read_bound,
        };
        settings.check_writing(active)?;
        settings.check_verifying(limits, &sizes)?;
        settings.check_order(limits, active, &sizes)?;
        Ok(settings)
    }

    /// Outstanding I/Os to keep on a target.
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

    /// The most that any target keeps outstanding.
    pub fn deepest(&self) -> usize {
        self.depth_of(0)
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

    /// Direction and size of every I/O, where there is no choice.
    #[inline]
    pub fn always(&self) -> Option<(Direction, u32)> {
        self.always
    }

    /// Order of random offsets in an address space.
    #[inline]
    pub fn order(&self, space: usize, key: u64) -> Order<'_> {
        if self.is_permutation() {
            Order::Permutation(&self.passes[space], key)
        } else {
            Order::Random(&self.distributions, key)
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
    pub fn direction(&self, bits: u64) -> Direction {
        if bits < self.read_bound {
            Direction::Read
        } else {
            Direction::Write
        }
    }

    /// Block size for 32 random bits.
    #[inline]
    pub fn block_bytes(&self, direction: Direction, bits: u64) -> u32 {
        self.mixes[direction as usize].block_bytes(bits)
    }
}

/// Block sizes of reads and of writes.
fn mixes(knobs: &Knobs) -> Result<[Mix; 2], String> {
    let writes = knobs.write_blocks.as_ref().unwrap_or(&knobs.blocks);
    Ok([Mix::new(&knobs.blocks)?, Mix::new(writes)?])
}

/// The directions that are ever drawn.
fn used(read_bound: u64) -> impl Iterator<Item = Direction> {
    let is_used = move |direction: &Direction| match direction {
        Direction::Read => read_bound > 0,
        Direction::Write => read_bound < CERTAIN,
    };
    Direction::ALL.into_iter().filter(is_used)
}

fn always(mixes: &[Mix; 2], read_bound: u64) -> Option<(Direction, u32)> {
    let mut directions = used(read_bound);
    let (direction, other) = (directions.next()?, directions.next());
    let mix = &mixes[direction as usize];
    (other.is_none() && mix.is_single()).then(|| (direction, mix.block_bytes(0)))
}

/// The fan-out layout, when some block does not lie within one stripe unit.
fn layout(
    knobs: &Knobs,
    limits: &Limits,
    active: &[Arc<Target>],
    sizes: &[u64],
) -> Result<Option<Layout>, String> {
    let unit = limits.stripe_unit_bytes;
    let columns = knobs.stripe_width / limits.copies;
    let within_unit = sizes.iter().all(|block| unit % block == 0);
    if limits.copies == 1 && (columns == 1 || within_unit) {
        return Ok(None);
    }
    let misaligned = |target: &&Arc<Target>| unit % target.align_bytes(knobs.mode) != 0;
    if let Some(target) = active.iter().find(misaligned) {
        return Err(format!(
            "stripe_unit_bytes {unit} is not a multiple of the alignment of {}",
            target.name
        ));
    }
    let smallest = active
        .iter()
        .map(|target| target.size_bytes)
        .min()
        .unwrap_or(0);
    let layout = Layout::new(columns, limits.copies, unit, smallest);
    match sizes.iter().find(|block| **block > layout.capacity_bytes()) {
        Some(block) => Err(format!(
            "block {block} is larger than the stripe of {} bytes over {} targets",
            layout.capacity_bytes(),
            knobs.stripe_width
        )),
        None => Ok(Some(layout)),
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
