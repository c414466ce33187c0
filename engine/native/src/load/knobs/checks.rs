//! What knobs may be on these targets; every refusal begins with the knob and names its range.
//!
//! Ranges that do not depend on targets are invariants here: people get them in the words of `engine/job/knobs`.

use std::sync::Arc;

use super::settings::Settings;
use super::values::{Knobs, Limits, MAX_THREADS};
use crate::load::pace::arrival::Arrival;
use crate::load::pattern::StreamPlan;
use crate::load::policy::PolicyName;
use crate::load::targets::mode::Mode;
use crate::load::targets::target::Target;

/// Writes never share a buffer, as one in flight must not change.
const MAX_WRITE_BUFFER_BYTES: u64 = 4 << 30;

impl Settings {
    /// Whether targets may be written to, and each write can have a buffer of its own.
    pub(super) fn check_writing(&self, active: &[Arc<Target>]) -> Result<(), String> {
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

    /// Whether the write map can describe I/Os of these sizes, and each can have a buffer of its own.
    pub(super) fn check_verifying(&self, limits: &Limits, sizes: &[u64]) -> Result<(), String> {
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
                "{odd} is not a multiple of {grain_bytes}, the block of this verified run's journal, fixed at its start"
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
    pub(super) fn check_order(
        &self,
        limits: &Limits,
        active: &[Arc<Target>],
        sizes: &[u64],
    ) -> Result<(), String> {
        if let Some(streams) = limits.streams {
            return self.check_streams(&streams, active, sizes);
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
        streams: &StreamPlan,
        active: &[Arc<Target>],
        sizes: &[u64],
    ) -> Result<(), String> {
        let least = |target: &Arc<Target>| target.space_bytes(self.offset_bytes);
        let each = active.iter().map(least).min().unwrap_or(0);
        let space = self.layout.map_or(each, |layout| layout.capacity_bytes());
        let largest = sizes.iter().copied().max().unwrap_or(0);
        let each = streams.shortest(space);
        let (blocks, words) = if streams.count > 1 && streams.step_bytes.is_none() {
            (2, "two blocks")
        } else {
            (1, "one block")
        };
        if each < blocks * largest {
            return Err(format!(
                "streams {} leave {each} bytes to each, less than {words} of {largest}",
                streams.count
            ));
        }
        Ok(())
    }

    /// Whether pauses and ends can be had with these knobs.
    pub(super) fn check_ends(&self, limits: &Limits) -> Result<(), String> {
        if self.layout.is_some() && (limits.io_bytes.is_some() || limits.loops.is_some()) {
            return Err(
                "io_size and loops count the bytes of each target: not with a mirror, nor with blocks cut over \
                 stripe units"
                    .into(),
            );
        }
        let one_each = limits.thread_per_io || self.outstanding() <= self.threads;
        if limits.rest.is_some() && !(one_each && self.layout.is_none()) {
            return Err(format!(
                "think pauses between the I/Os of a thread: queue_depth needs to leave {} threads one I/O each",
                self.threads
            ));
        }
        Ok(())
    }
}

pub(super) fn check_depth(knobs: &Knobs, limits: &Limits, targets: usize) -> Result<(), String> {
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
    if limits.total_depth && depth < width && limits.arrival != Arrival::Closed {
        return Err(format!(
            "queue_depth {depth} in all over {width} targets is one queue, which takes no arrivals"
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
pub(super) fn check_policy(policy: PolicyName, targets: &[Arc<Target>]) -> Result<(), String> {
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

pub(super) fn check_block(
    block_bytes: u64,
    target: &Target,
    limits: &Limits,
    mode: Mode,
) -> Result<(), String> {
    let align = target.align_bytes(mode);
    let size = target.space_bytes(limits.offset_bytes);
    let starts = [
        ("offset", Some(limits.offset_bytes)),
        ("align", limits.align_bytes),
    ];
    for (name, bytes) in starts {
        if let Some(bytes) = bytes.filter(|bytes| bytes % align != 0) {
            return Err(format!(
                "{name} {bytes} is not a multiple of {align}, the alignment of {}",
                target.name
            ));
        }
    }
    if block_bytes % align != 0 {
        return Err(format!(
            "block {block_bytes} is not a multiple of {align}, the alignment of {}",
            target.name
        ));
    }
    if block_bytes > size {
        return Err(format!(
            "block {block_bytes} is larger than {}, of which {size} bytes are used",
            target.name
        ));
    }
    Ok(())
}

pub(super) fn checked_threads(threads: usize) -> Result<usize, String> {
    if (1..=MAX_THREADS).contains(&threads) {
        Ok(threads)
    } else {
        Err(format!("threads {threads} is not in 1..{MAX_THREADS}"))
    }
}

pub(super) fn checked_rate(
    rate_iops: Option<f64>,
    arrival: Arrival,
) -> Result<Option<f64>, String> {
    match rate_iops {
        None if arrival != Arrival::Closed => Err("rate_iops: arrivals need a rate".into()),
        Some(rate) if !(rate.is_finite() && rate > 0.0) => {
            Err(format!("rate_iops {rate} is not above 0"))
        }
        rate => Ok(rate),
    }
}
