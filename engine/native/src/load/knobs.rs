//! Knobs as they were given, checked against the targets and made ready for the hot path.

use std::sync::Arc;

use super::arrival::Arrival;
use super::stats::Direction;
use super::stripe::Layout;
use super::target::Target;

/// Largest number of threads the `threads` backend starts (`engine.job.MAX_THREADS`).
pub const MAX_THREADS: usize = 1000;
const MAX_BLOCK_BYTES: u64 = 64 << 20;
/// Writes never share a buffer, as one in flight must not change.
const MAX_WRITE_BUFFER_BYTES: u64 = 4 << 30;
/// How far the shares of a mix may be from 100 in all, as `MIX_TOLERANCE_PERCENT` of engine/sizes.py: thirds are
/// written 33.3.
const MIX_TOLERANCE_PERCENT: f64 = 0.5;
/// Chances are drawn as 32 bits.
const CERTAIN: u64 = 1 << 32;

/// One block size of a mix and its share.
#[derive(Clone, Debug)]
pub struct BlockShare {
    pub block_bytes: u64,
    pub percent: f64,
}

/// `engine.job.Knobs`.
#[derive(Clone, Debug)]
pub struct Knobs {
    pub queue_depth: usize,
    pub stripe_width: usize,
    pub blocks: Vec<BlockShare>,
    pub read_pct: f64,
    pub rate_iops: Option<f64>,
}

/// What is fixed for a run and bounds the knobs.
#[derive(Clone, Debug)]
pub struct Limits {
    pub max_queue_depth: usize,
    pub stripe_unit_bytes: u64,
    pub thread_per_io: bool,
    pub arrival: Arrival,
}

/// Checked knobs.
#[derive(Debug)]
pub struct Settings {
    pub queue_depth: usize,
    pub width: usize,
    pub rate_iops: Option<f64>,
    /// Set when a block is larger than the stripe unit, so that I/Os fan out over targets.
    pub layout: Option<Layout>,
    /// Largest I/O on one target.
    pub part_bytes: u64,
    /// Block sizes with the upper bound of their share of 2^32.
    mix: Vec<(u64, u32)>,
    read_bound: u64,
}

impl Settings {
    /// Checks knobs; the error says which is out of range and why.
    pub fn new(knobs: &Knobs, limits: &Limits, targets: &[Arc<Target>]) -> Result<Self, String> {
        check_depth(knobs, limits, targets.len())?;
        let active = &targets[..knobs.stripe_width];
        let mix = mix(&knobs.blocks)?;
        for (_, block) in &mix {
            active
                .iter()
                .try_for_each(|target| check_block(u64::from(*block), target))?;
        }
        let layout = layout(knobs, limits, active, &mix)?;
        let largest = mix
            .iter()
            .map(|(_, block)| u64::from(*block))
            .max()
            .unwrap_or(0);
        let settings = Self {
            queue_depth: knobs.queue_depth,
            width: knobs.stripe_width,
            rate_iops: checked_rate(knobs.rate_iops, limits.arrival)?,
            part_bytes: layout.map_or(largest, |layout| layout.largest_part_bytes(largest)),
            layout,
            mix,
            read_bound: chance(knobs.read_pct)
                .ok_or(format!("read_pct {} is not in 0..100", knobs.read_pct))?,
        };
        settings.check_writing(active)?;
        Ok(settings)
    }

    /// Whether every I/O has the same size and direction.
    #[inline]
    pub fn is_uniform(&self) -> bool {
        self.mix.len() == 1 && (self.read_bound == CERTAIN || self.read_bound == 0)
    }

    pub fn writes(&self) -> bool {
        self.read_bound < CERTAIN
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
    pub fn block_bytes(&self, bits: u64) -> u32 {
        let found = self.mix.iter().find(|(bound, _)| bits < *bound);
        found.or(self.mix.last()).map_or(0, |(_, block)| *block)
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
        let needed = self.part_bytes * (self.queue_depth * self.width) as u64;
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
    if limits.thread_per_io && depth * width > MAX_THREADS {
        return Err(format!(
            "queue_depth {depth} on {width} targets needs {} threads, above the limit of {MAX_THREADS}",
            depth * width
        ));
    }
    Ok(())
}

fn check_block(block_bytes: u64, target: &Target) -> Result<(), String> {
    let (align, size) = (target.align_bytes, target.size_bytes);
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

/// Block sizes with the cumulated bounds of their shares.
fn mix(blocks: &[BlockShare]) -> Result<Vec<(u64, u32)>, String> {
    let total: f64 = blocks.iter().map(|share| share.percent).sum();
    if blocks
        .iter()
        .any(|share| share.percent.is_nan() || share.percent < 0.0)
        || (total - 100.0).abs() > MIX_TOLERANCE_PERCENT
    {
        return Err(format!("blocks: shares add up to {total} %, not 100"));
    }
    let mut below = 0.0;
    let mut bounds = Vec::new();
    for share in blocks {
        let block = u32::try_from(share.block_bytes)
            .ok()
            .filter(|block| (1..=MAX_BLOCK_BYTES).contains(&u64::from(*block)));
        let block = block.ok_or(format!(
            "block {} is not in 1..{MAX_BLOCK_BYTES}",
            share.block_bytes
        ))?;
        below += share.percent;
        if share.percent > 0.0 {
            bounds.push((
                chance((below * 100.0 / total).min(100.0)).unwrap_or(CERTAIN),
                block,
            ));
        }
    }
    Ok(bounds)
}

/// The fan-out layout, when some block does not lie within one stripe unit.
fn layout(
    knobs: &Knobs,
    limits: &Limits,
    active: &[Arc<Target>],
    mix: &[(u64, u32)],
) -> Result<Option<Layout>, String> {
    let unit = limits.stripe_unit_bytes;
    if active.len() == 1 || mix.iter().all(|(_, block)| unit % u64::from(*block) == 0) {
        return Ok(None);
    }
    if let Some(target) = active.iter().find(|target| unit % target.align_bytes != 0) {
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
    let layout = Layout::new(knobs.stripe_width, unit, smallest);
    match mix
        .iter()
        .find(|(_, block)| u64::from(*block) > layout.capacity_bytes())
    {
        Some((_, block)) => Err(format!(
            "block {block} is larger than the stripe of {} bytes over {} targets",
            layout.capacity_bytes(),
            knobs.stripe_width
        )),
        None => Ok(Some(layout)),
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

/// A percentage as a share of 2^32.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "0..=2^32"
)]
fn chance(percent: f64) -> Option<u64> {
    (0.0..=100.0)
        .contains(&percent)
        .then(|| (percent / 100.0 * CERTAIN as f64).round() as u64)
}

/// How many of a target's outstanding I/Os one worker keeps; over all workers they add up to the queue depth.
///
/// The remainder starts at another worker for every target, so that workers carry alike. The share of a worker never
/// falls when the depth grows: otherwise a turn could for a moment exceed both depths.
pub fn share(queue_depth: usize, target: usize, worker: usize, workers: usize) -> usize {
    let place = (worker + workers - target % workers) % workers;
    queue_depth / workers + usize::from(place < queue_depth % workers)
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    fn target(size_bytes: u64, writable: bool) -> Arc<Target> {
        let fd = File::open("/dev/null").unwrap().into();
        Arc::new(Target {
            fd,
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
            arrival: Arrival::Closed,
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
            read_pct,
            rate_iops: None,
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
        assert!(with(&|knobs| knobs.blocks[0].block_bytes = 1 << 30).contains("block 1073741824"));
        assert!(with(&|knobs| knobs.blocks[0].block_bytes = 0).contains("block 0"));
        assert!(with(&|knobs| knobs.blocks[0].percent = 60.0).contains("60 %"));
        assert!(with(&|knobs| knobs.blocks[0].percent = 99.4).contains("99.4 %"));
        assert!(with(&|knobs| knobs.blocks.clear()).contains("0 %"));
        assert!(with(&|knobs| knobs.read_pct = f64::NAN).contains("read_pct"));
        assert!(with(&|knobs| knobs.read_pct = 99.0).contains("not open for writing"));
        assert!(with(&|knobs| knobs.rate_iops = Some(0.0)).contains("rate_iops"));
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

    #[test]
    fn a_mix_is_drawn_by_its_shares() {
        let targets = [target(1 << 20, true), target(1 << 20, true)];
        let settings = Settings::new(
            &knobs(&[(4096, 25.0), (8192, 0.0), (16384, 75.0)], 70.0),
            &limits(),
            &targets,
        )
        .unwrap();
        let quarter = 1_u64 << 30;
        assert_eq!(settings.block_bytes(quarter - 1), 4096);
        assert_eq!(settings.block_bytes(quarter), 16384);
        assert_eq!(settings.block_bytes(u64::from(u32::MAX)), 16384);
        let reads = (0..1000_u64)
            .filter(|step| settings.direction(step * (CERTAIN / 1000)) == Direction::Read)
            .count();
        assert!((699..=701).contains(&reads));
    }
}
