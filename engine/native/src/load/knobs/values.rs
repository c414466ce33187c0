//! Knobs as they were given, and what is fixed for a run and bounds them.

use std::num::NonZeroU64;

use crate::load::pace::arrival::Arrival;
use crate::load::pace::fsyncs::Flush;
use crate::load::pace::priority::Priorities;
use crate::load::pace::rest::Rest;
use crate::load::pattern::{BlockShare, Distribution, StreamPlan};
use crate::load::policy::PolicyName;
use crate::load::targets::mode::Mode;

/// Largest number of threads the `threads` backend starts (`engine.job.spec.MAX_THREADS`).
pub const MAX_THREADS: usize = 1000;

/// `engine.job.spec.Knobs`.
#[derive(Clone, Debug)]
pub struct Knobs {
    pub queue_depth: usize,
    pub stripe_width: usize,
    /// Blocks of reads, and of writes where these have none of their own.
    pub blocks: Vec<BlockShare>,
    pub write_blocks: Option<Vec<BlockShare>>,
    pub read_pct: f64,
    pub rate_iops: Option<f64>,
    pub policy: PolicyName,
    /// Distributions of reads and of writes.
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
    /// Sleep, with no-ops in place of I/Os.
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
    pub streams: Option<StreamPlan>,
    /// Offset at which the address space of each target begins.
    pub offset_bytes: u64,
    /// Bytes that random offsets are multiples of; None: each of its own block.
    pub align_bytes: Option<u64>,
    /// Bytes after which a target is done; with neither of these two the load has no such end.
    pub io_bytes: Option<u64>,
    /// How often the load does these bytes, or the whole address space.
    pub loops: Option<u64>,
    /// How long an epoch is open before measuring begins, if that is longer than it takes to settle.
    pub ramp_ns: u64,
    pub rest: Option<Rest>,
    pub priorities: Priorities,
    /// Bytes that every write is a multiple of with --verify.
    pub grain_bytes: Option<u64>,
}
