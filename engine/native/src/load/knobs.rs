//! Knobs as they were given, checked against the targets and made ready for the hot path.

use std::sync::Arc;

use super::arrival::Arrival;
use super::mode::Mode;
use super::pattern::{BlockShare, CERTAIN, Distribution, Mix, Order, Passes, chance};
use super::policy::PolicyName;
use super::stats::Direction;
use super::stripe::Layout;
use super::target::Target;

/// Largest number of threads the `threads` backend starts (`engine.job.spec.MAX_THREADS`).
pub const MAX_THREADS: usize = 1000;
/// Writes never share a buffer, as one in flight must not change.
const MAX_WRITE_BUFFER_BYTES: u64 = 4 << 30;
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
    /// Workers with a ring each; where every I/O has a thread of its own it says nothing.
    pub threads: usize,
    /// Writes of a target after which it is flushed.
    pub fsync_every: Option<u64>,
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
    fsync_every: Option<u64>,
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
            fsync_every: checked_fsync_every(knobs.fsync_every)?,
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
        self.fsync_every.filter(|_| self.writes())
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

    fn check_writing(&self, active: &[Arc<Target>]) -> Result<(), String> {
        if !self.writes() {
            return Ok(());
        }
        if let Some(target) = active.iter().find(|target| !target.writable) {
            return Err(format!(
                "read_pct below 100 would write to {}, which is not open for writing",
                target.name
            ));
        }
        let needed = self.part_bytes * self.outstanding() as u64;
        if needed > MAX_WRITE_BUFFER_BYTES {
            return Err(format!(
                "writing {} bytes at queue_depth {} on {} targets needs {} MiB of buffers, above {}: lower one of them",
                self.part_bytes,
                self.queue_depth,
                self.width,
                needed >> 20,
                MAX_WRITE_BUFFER_BYTES >> 20
            ));
        }
        Ok(())
    }
}

impl Settings {
    /// Whether books can be kept of I/Os of these sizes, and each can have a buffer of its own.
    fn check_verifying(&self, limits: &Limits, sizes: &[u64]) -> Result<(), String> {
        let Some(grain_bytes) = limits.grain_bytes else {
            return Ok(());
        };
        let unit = self.layout.map(|_| limits.stripe_unit_bytes);
        if let Some(odd) = sizes
            .iter()
            .chain(&unit)
            .find(|size| *size % grain_bytes != 0)
        {
            return Err(format!(
                "{odd} is not a multiple of {grain_bytes}, in which this verified run keeps its books since it began"
            ));
        }
        let needed = self.part_bytes * self.outstanding() as u64;
        if needed > MAX_WRITE_BUFFER_BYTES {
            return Err(format!(
                "--verify of {} bytes at queue_depth {} on {} targets needs {} MiB of buffers, above {}: lower one of them",
                self.part_bytes,
                self.queue_depth,
                self.width,
                needed >> 20,
                MAX_WRITE_BUFFER_BYTES >> 20
            ));
        }
        Ok(())
    }

    /// Whether the order of offsets can be had with these block sizes.
    fn check_order(
        &self,
        limits: &Limits,
        active: &[Arc<Target>],
        sizes: &[u64],
    ) -> Result<(), String> {
        if let Some(streams) = limits.streams {
            return self.check_streams(streams as u64, active, sizes);
        }
        let whole = self.distributions.iter().filter(|one| one.is_permutation());
        match whole.count() {
            1 => Err("distribution permutation is for reads and writes alike".into()),
            2 if sizes.windows(2).any(|pair| pair[0] != pair[1]) => {
                Err("distribution permutation needs one block size for all I/Os".into())
            }
            _ => Ok(()),
        }
    }

    fn check_streams(
        &self,
        streams: u64,
        active: &[Arc<Target>],
        sizes: &[u64],
    ) -> Result<(), String> {
        let least = |target: &Arc<Target>| target.size_bytes;
        let each = active.iter().map(least).min().unwrap_or(0);
        let space = self.layout.map_or(each, |layout| layout.capacity_bytes());
        let largest = sizes.iter().copied().max().unwrap_or(0);
        if streams > 1 && space / streams < 2 * largest {
            return Err(format!(
                "streams {streams} leave {} bytes to each, less than two blocks of {largest}",
                space / streams
            ));
        }
        Ok(())
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

fn check_depth(knobs: &Knobs, limits: &Limits, targets: usize) -> Result<(), String> {
    let (depth, width) = (knobs.queue_depth, knobs.stripe_width);
    if depth == 0 || depth > limits.max_queue_depth {
        return Err(format!(
            "queue_depth {depth} is not in 1..{}",
            limits.max_queue_depth
        ));
    }
    if width == 0 || width > targets {
        return Err(format!(
            "stripe_width {width} is not in 1..{targets}, the number of targets"
        ));
    }
    if limits.total_depth && depth < width {
        return Err(format!(
            "queue_depth {depth} in all is less than 1 for each of {width} targets"
        ));
    }
    let ios = if limits.total_depth {
        depth
    } else {
        depth * width
    };
    if limits.thread_per_io && ios > MAX_THREADS {
        return Err(format!(
            "queue_depth {depth} on {width} targets needs {ios} threads, above the limit of {MAX_THREADS}"
        ));
    }
    if limits.copies == 0 || width % limits.copies != 0 {
        return Err(format!(
            "stripe_width {width} is not a multiple of the {} copies of the mirror",
            limits.copies
        ));
    }
    Ok(())
}

/// A path of weight 0 is never used under some policies; a target needs one that is.
fn check_policy(policy: PolicyName, targets: &[Arc<Target>]) -> Result<(), String> {
    let unreachable = |target: &&Arc<Target>| {
        target.nodes.len() > 1
            && target
                .nodes
                .iter()
                .all(|node| policy.excludes_weight(node.weight))
    };
    match targets.iter().find(unreachable) {
        Some(target) => Err(format!(
            "policy: all paths of {} have weight 0, so none would be used",
            target.name
        )),
        None => Ok(()),
    }
}

fn check_block(block_bytes: u64, target: &Target, mode: Mode) -> Result<(), String> {
    let (align, size) = (target.align_bytes(mode), target.size_bytes);
    if block_bytes % align != 0 {
        return Err(format!(
            "block {block_bytes} is not a multiple of {align}, the alignment of {}",
            target.name
        ));
    }
    if block_bytes > size {
        return Err(format!(
            "block {block_bytes} is larger than {}, which has {size} bytes",
            target.name
        ));
    }
    Ok(())
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

fn checked_threads(threads: usize) -> Result<usize, String> {
    if (1..=MAX_THREADS).contains(&threads) {
        Ok(threads)
    } else {
        Err(format!("threads {threads} is not in 1..{MAX_THREADS}"))
    }
}

fn checked_fsync_every(every: Option<u64>) -> Result<Option<u64>, String> {
    match every {
        Some(0) => Err("fsync_every 0 is not above 0".into()),
        every => Ok(every),
    }
}

fn checked_rate(rate_iops: Option<f64>, arrival: Arrival) -> Result<Option<f64>, String> {
    match rate_iops {
        None if arrival != Arrival::Closed => Err("rate_iops: arrivals need a rate".into()),
        Some(rate) if !(rate.is_finite() && rate > 0.0) => {
            Err(format!("rate_iops {rate} is not above 0"))
        }
        rate => Ok(rate),
    }
}

/// How many of a target's outstanding I/Os one worker keeps; over all workers they add up to the queue depth. Those
/// hired for more threads than there are now keep none.
///
/// The remainder starts at another worker for every target, so that workers carry alike. The share of a worker never
/// falls when the depth grows: otherwise a turn could for a moment exceed both depths.
pub fn share(queue_depth: usize, target: usize, worker: usize, workers: usize) -> usize {
    if worker >= workers {
        return 0;
    }
    let place = (worker + workers - target % workers) % workers;
    queue_depth / workers + usize::from(place < queue_depth % workers)
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;
    use crate::load::node::Node;

    fn target(size_bytes: u64, writable: bool) -> Arc<Target> {
        let fd = File::open("/dev/null").unwrap().into();
        Arc::new(Target {
            nodes: vec![Node::new(fd, "null".into())],
            name: "null".into(),
            size_bytes,
            align_bytes: 512,
            writable,
        })
    }

    fn limits() -> Limits {
        Limits {
            max_queue_depth: 64,
            stripe_unit_bytes: 65536,
            thread_per_io: false,
            copies: 1,
            total_depth: false,
            arrival: Arrival::Closed,
            ring_use: RingUse::Sleep,
            streams: None,
            grain_bytes: None,
        }
    }

    fn knobs(blocks: &[(u64, f64)], read_pct: f64) -> Knobs {
        let share = |(block_bytes, percent): &(u64, f64)| BlockShare {
            block_bytes: *block_bytes,
            percent: *percent,
        };
        let blocks = blocks.iter().map(share).collect();
        Knobs {
            queue_depth: 8,
            stripe_width: 2,
            blocks,
            write_blocks: None,
            read_pct,
            rate_iops: None,
            policy: PolicyName::default(),
            distributions: [Distribution::Uniform, Distribution::Uniform],
            mode: Mode::Direct,
            threads: 1,
            fsync_every: None,
        }
    }

    fn refusal(knobs: &Knobs, limits: &Limits) -> String {
        Settings::new(
            knobs,
            limits,
            &[target(1 << 20, false), target(1 << 20, true)],
        )
        .unwrap_err()
    }

    #[test]
    fn shares_add_up_and_never_fall_as_the_depth_grows() {
        for workers in 1..9 {
            for target in 0..10 {
                for depth in 1..40 {
                    let all: usize = (0..workers)
                        .map(|worker| share(depth, target, worker, workers))
                        .sum();
                    assert_eq!(all, depth);
                    for worker in 0..workers {
                        assert!(
                            share(depth + 1, target, worker, workers)
                                >= share(depth, target, worker, workers)
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn spare_workers_keep_nothing() {
        assert_eq!([share(7, 0, 2, 2), share(7, 3, 9, 2)], [0, 0]);
    }

    #[test]
    fn any_block_will_do_through_the_page_cache() {
        let settings = settings(|knobs| {
            (knobs.blocks, knobs.mode) = (shares(&[(1000, 100.0)]), Mode::Dsync);
        });
        assert_eq!(settings.unwrap().part_bytes, 1000);
    }

    #[test]
    fn remainders_are_spread_over_workers() {
        let load = |worker| {
            (0..8)
                .map(|target| share(1, target, worker, 4))
                .sum::<usize>()
        };
        assert_eq!([load(0), load(1), load(2), load(3)], [2, 2, 2, 2]);
    }

    #[test]
    fn knobs_out_of_range_are_named() {
        let good = knobs(&[(4096, 100.0)], 100.0);
        let with = |change: &dyn Fn(&mut Knobs)| {
            let mut knobs = good.clone();
            change(&mut knobs);
            refusal(&knobs, &limits())
        };
        assert!(with(&|knobs| knobs.queue_depth = 0).starts_with("queue_depth 0"));
        assert!(with(&|knobs| knobs.queue_depth = 65).contains("1..64"));
        assert!(with(&|knobs| knobs.stripe_width = 3).starts_with("stripe_width 3"));
        assert!(with(&|knobs| knobs.blocks[0].block_bytes = 100).contains("alignment"));
        assert!(with(&|knobs| knobs.blocks[0].block_bytes = 2 << 20).contains("larger than"));
        assert!(with(&|knobs| knobs.blocks[0].percent = 60.0).contains("60 %"));
        assert!(with(&|knobs| knobs.write_blocks = Some(Vec::new())).contains("0 %"));
        assert!(with(&|knobs| knobs.read_pct = f64::NAN).contains("read_pct"));
        assert!(with(&|knobs| knobs.read_pct = 99.0).contains("not open for writing"));
        assert!(with(&|knobs| knobs.rate_iops = Some(0.0)).contains("rate_iops"));
        assert!(with(&|knobs| knobs.threads = 0).starts_with("threads 0"));
        assert!(with(&|knobs| knobs.threads = 1001).contains("1..1000"));
        assert!(with(&|knobs| knobs.fsync_every = Some(0)).starts_with("fsync_every 0"));
        let open = Limits {
            arrival: Arrival::Poisson,
            ..limits()
        };
        assert!(refusal(&good, &open).contains("arrivals need a rate"));
    }

    #[test]
    fn a_thread_per_io_has_its_limit() {
        let limits = Limits {
            thread_per_io: true,
            max_queue_depth: 1024,
            ..limits()
        };
        let deep = Knobs {
            queue_depth: 501,
            ..knobs(&[(4096, 100.0)], 100.0)
        };
        assert!(refusal(&deep, &limits).contains("1002 threads, above the limit of 1000"));
    }

    #[test]
    fn a_total_depth_is_shared_out_to_the_last_io() {
        let targets = [target(1 << 20, false), target(1 << 20, false)];
        let total = Limits {
            total_depth: true,
            ..limits()
        };
        let deep = |queue_depth| Knobs {
            queue_depth,
            ..knobs(&[(4096, 100.0)], 100.0)
        };
        let settings = Settings::new(&deep(7), &total, &targets).unwrap();
        assert_eq!([0, 1, 2].map(|target| settings.depth_of(target)), [4, 3, 0]);
        assert_eq!((settings.deepest(), settings.outstanding()), (4, 7));
        assert!(refusal(&deep(1), &total).contains("less than 1 for each of 2 targets"));
    }

    #[test]
    fn a_mirror_fans_out_and_needs_whole_columns() {
        let targets = [(); 4].map(|()| target(1 << 20, false));
        let mirrored = Limits {
            copies: 2,
            ..limits()
        };
        let wide = |stripe_width| Knobs {
            stripe_width,
            ..knobs(&[(4096, 100.0)], 100.0)
        };
        let settings = Settings::new(&wide(4), &mirrored, &targets).unwrap();
        assert_eq!(settings.layout.unwrap().capacity_bytes(), 2 << 20);
        let refusal = Settings::new(&wide(3), &mirrored, &targets).unwrap_err();
        assert!(refusal.contains("not a multiple of the 2 copies"));
    }

    #[test]
    fn only_blocks_beyond_one_unit_fan_out() {
        let targets = [target(1 << 20, false), target(1 << 20, false)];
        let settings = |blocks: &[(u64, f64)]| {
            Settings::new(&knobs(blocks, 100.0), &limits(), &targets).unwrap()
        };
        assert!(settings(&[(4096, 50.0), (65536, 50.0)]).layout.is_none());
        assert!(settings(&[(131_072, 100.0)]).layout.is_some());
        assert!(settings(&[(49152, 100.0)]).layout.is_some());
        assert_eq!(settings(&[(131_072, 100.0)]).part_bytes, 131_072);
    }

    fn settings(change: impl Fn(&mut Knobs)) -> Result<Settings, String> {
        let mut knobs = knobs(&[(4096, 100.0)], 70.0);
        change(&mut knobs);
        let targets = [target(1 << 20, true), target(1 << 20, true)];
        Settings::new(&knobs, &limits(), &targets)
    }

    fn shares(blocks: &[(u64, f64)]) -> Vec<BlockShare> {
        knobs(blocks, 0.0).blocks
    }

    #[test]
    fn each_direction_has_its_share_and_its_sizes() {
        let settings =
            settings(|knobs| knobs.write_blocks = Some(shares(&[(8192, 50.0), (16384, 50.0)])))
                .unwrap();
        let reads = (0..1000_u64)
            .filter(|step| settings.direction(step * (CERTAIN / 1000)) == Direction::Read)
            .count();
        assert!((699..=701).contains(&reads));
        assert_eq!(settings.block_bytes(Direction::Read, 1 << 31), 4096);
        assert_eq!(settings.block_bytes(Direction::Write, 1 << 31), 16384);
        assert_eq!((settings.part_bytes, settings.always()), (16384, None));
    }

    #[test]
    fn sizes_that_are_never_drawn_do_not_count() {
        let settings = settings(|knobs| {
            knobs.read_pct = 100.0;
            knobs.write_blocks = Some(shares(&[(4 << 20, 100.0)]));
        });
        let settings = settings.unwrap();
        assert_eq!(settings.part_bytes, 4096);
        assert_eq!(settings.always(), Some((Direction::Read, 4096)));
    }

    #[test]
    fn a_permutation_takes_one_size_and_both_directions() {
        let whole = || Distribution::new("permutation", &[]).unwrap();
        let both = |knobs: &mut Knobs| knobs.distributions = [whole(), whole()];
        assert!(settings(both).is_ok());
        let half = settings(|knobs| knobs.distributions[1] = whole());
        assert!(half.unwrap_err().contains("alike"));
        let mixed = settings(|knobs| {
            both(knobs);
            knobs.write_blocks = Some(shares(&[(8192, 100.0)]));
        });
        assert!(mixed.unwrap_err().contains("one block size"));
    }

    #[test]
    fn streams_need_room_for_two_blocks_each() {
        let of = |streams| {
            let limits = Limits {
                streams: Some(streams),
                ..limits()
            };
            let targets = [target(1 << 20, false), target(1 << 20, false)];
            Settings::new(&knobs(&[(65536, 100.0)], 100.0), &limits, &targets)
        };
        assert!(of(1).is_ok() && of(8).is_ok());
        assert!(of(9).unwrap_err().contains("streams 9 leave 116508 bytes"));
    }
}
