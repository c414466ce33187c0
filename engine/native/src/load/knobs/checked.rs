//! Makes settings of knobs, if all of them are in range on these targets.

use std::sync::Arc;

use super::checks::{check_block, check_depth, check_policy, checked_rate, checked_threads};
use super::settings::Settings;
use super::values::{Knobs, Limits};
use crate::load::counts::stats::Direction;
use crate::load::pattern::{CERTAIN, Mix, Passes, chance};
use crate::load::targets::stripe::Layout;
use crate::load::targets::target::Target;

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
                .try_for_each(|target| check_block(*block_bytes, target, limits, knobs.mode))?;
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
            offset_bytes: limits.offset_bytes,
            align_bytes: limits.align_bytes,
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
        settings.check_ends(limits)?;
        Ok(settings)
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
        .map(|target| target.space_bytes(limits.offset_bytes))
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
