//! Arguments from Python, checked before anything is done.

use std::fs::File;
use std::num::NonZeroU64;
use std::os::fd::RawFd;
use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::descriptors::duplicate;
use super::errors::os_error;
use super::flow::FlowShare;
use super::numbers::{above_0, bits, seconds, unsigned};
use crate::load::counts::stats::Direction;
use crate::load::engine::Options;
use crate::load::knobs::{Knobs, Limits, RingUse};
use crate::load::pace::arrival::Arrival;
use crate::load::pace::fsyncs::Flush;
use crate::load::pace::priority::{Priorities, Rule};
use crate::load::pace::rest::Rest;
use crate::load::pattern::{BlockShare, Distribution, StreamPlan};
use crate::load::policy::PolicyName;
use crate::load::running::backend::Backend;
use crate::load::system::clock::Clock;
use crate::load::targets::mode::Mode;

/// `engine.job.limits.MAX_STREAMS`.
const MAX_STREAMS: usize = 1024;

#[derive(FromPyObject)]
struct BlockShareArgument {
    block_bytes: i64,
    percent: f64,
}

impl BlockShareArgument {
    fn checked(self) -> PyResult<BlockShare> {
        Ok(BlockShare {
            block_bytes: unsigned("block", self.block_bytes)?,
            percent: self.percent,
        })
    }
}

fn block_shares(shares: Vec<BlockShareArgument>) -> PyResult<Vec<BlockShare>> {
    shares
        .into_iter()
        .map(BlockShareArgument::checked)
        .collect()
}

/// engine.job.distribution.Distribution by its attributes.
#[derive(FromPyObject)]
struct DistributionArgument {
    kind: String,
    numbers: Vec<f64>,
}

impl DistributionArgument {
    fn checked(&self) -> PyResult<Distribution> {
        Distribution::new(&self.kind, &self.numbers).map_err(PyValueError::new_err)
    }
}

/// engine.job.spec.Knobs by its attributes.
#[derive(FromPyObject)]
pub struct KnobsArgument {
    queue_depth: i64,
    stripe_width: i64,
    blocks: Vec<BlockShareArgument>,
    write_blocks: Option<Vec<BlockShareArgument>>,
    read_pct: f64,
    rate_iops: Option<f64>,
    policy: String,
    distribution: DistributionArgument,
    write_distribution: Option<DistributionArgument>,
    mode: String,
    threads: i64,
    fsync_every: Option<i64>,
    flush: String,
}

impl KnobsArgument {
    pub fn checked(self) -> PyResult<Knobs> {
        let distribution = self.distribution.checked()?;
        let write_distribution = match self.write_distribution {
            Some(own) => own.checked()?,
            None => distribution.clone(),
        };
        Ok(Knobs {
            queue_depth: unsigned("queue_depth", self.queue_depth)?,
            stripe_width: unsigned("stripe_width", self.stripe_width)?,
            blocks: block_shares(self.blocks)?,
            write_blocks: self.write_blocks.map(block_shares).transpose()?,
            read_pct: self.read_pct,
            rate_iops: self.rate_iops,
            policy: PolicyName::parse(&self.policy).ok_or_else(|| {
                PyValueError::new_err(format!("policy {} is not known", self.policy))
            })?,
            distributions: [distribution, write_distribution],
            mode: Mode::new(&self.mode).map_err(PyValueError::new_err)?,
            threads: unsigned("threads", self.threads)?,
            fsync_every: self
                .fsync_every
                .map(|every| above_0("fsync_every", every))
                .transpose()?,
            flush: Flush::new(&self.flush).map_err(PyValueError::new_err)?,
        })
    }
}

/// `engine.backend.protocol.LoadSettings` by its attributes.
#[expect(clippy::struct_excessive_bools, reason = "the settings of a job")]
#[derive(FromPyObject)]
pub struct SettingsArgument {
    backend: String,
    sequential: bool,
    streams: i64,
    stream_step_bytes: Option<i64>,
    jump_bytes: i64,
    separate: bool,
    offset_bytes: i64,
    align_bytes: Option<i64>,
    io_bytes: Option<i64>,
    loops: Option<i64>,
    ramp_s: f64,
    think_s: f64,
    think_every: i64,
    priorities: Vec<(bool, i64, i64, i64)>,
    stripe_unit_bytes: i64,
    copies: i64,
    total_queue_depth: bool,
    seed: i64,
    max_queue_depth: i64,
    runtime_s: Option<f64>,
    arrival: String,
    poll: bool,
    dry: bool,
    journals: Option<Vec<Option<RawFd>>>,
    flow: Option<Py<FlowShare>>,
}

impl SettingsArgument {
    pub fn checked(self, targets: usize) -> PyResult<Options> {
        let backend = match self.backend.as_str() {
            "uring" => Ok(Backend::Uring),
            "threads" => Ok(Backend::Threads),
            other => refused(format!("backend {other} is not uring or threads")),
        }?;
        Ok(Options {
            backend,
            limits: self.limits(backend)?,
            seed: bits(self.seed),
            runtime: self
                .runtime_s
                .map(|runtime_s| seconds("runtime_s", runtime_s))
                .transpose()?,
            journals: journal_files(self.journals, targets, self.dry)?,
            flow: self.flow.map(|share| Arc::clone(&share.get().0)),
        })
    }

    fn limits(&self, backend: Backend) -> PyResult<Limits> {
        Ok(Limits {
            max_queue_depth: unsigned("max_queue_depth", self.max_queue_depth)?,
            stripe_unit_bytes: above_0("stripe_unit_bytes", self.stripe_unit_bytes)?.get(),
            thread_per_io: backend == Backend::Threads,
            copies: unsigned("copies", self.copies)?,
            total_depth: self.total_queue_depth,
            arrival: Arrival::parse(&self.arrival).ok_or_else(|| {
                PyValueError::new_err(format!(
                    "arrival {} is not closed, constant or poisson",
                    self.arrival
                ))
            })?,
            ring_use: self.ring_use()?,
            streams: self.streams()?,
            offset_bytes: unsigned("offset_bytes", self.offset_bytes)?,
            align_bytes: optional("align_bytes", self.align_bytes)?,
            io_bytes: optional("io_bytes", self.io_bytes)?,
            loops: optional("loops", self.loops)?,
            ramp_ns: nanoseconds("ramp_s", self.ramp_s)?,
            rest: self.rest()?,
            priorities: self.priorities()?,
            grain_bytes: None,
        })
    }

    fn streams(&self) -> PyResult<Option<StreamPlan>> {
        let count = unsigned("streams", self.streams)?;
        if !(1..=MAX_STREAMS).contains(&count) {
            return refused(format!("streams {count} is not in 1..{MAX_STREAMS}"));
        }
        let step = self.stream_step_bytes;
        let plan = StreamPlan {
            count,
            step_bytes: step
                .map(|step| unsigned("stream_step_bytes", step))
                .transpose()?,
            jump_bytes: self.jump_bytes,
            separate: self.separate,
        };
        Ok(self.sequential.then_some(plan))
    }

    fn rest(&self) -> PyResult<Option<Rest>> {
        let ticks = Clock::shared().ticks(nanoseconds("think_s", self.think_s)?);
        let every = above_0("think_every", self.think_every)?.get();
        Ok((ticks > 0).then_some(Rest { every, ticks }))
    }

    fn priorities(&self) -> PyResult<Priorities> {
        let rules = self.priorities.iter().map(|&(reads, bytes, below, value)| {
            Ok(Rule {
                direction: if reads {
                    Direction::Read
                } else {
                    Direction::Write
                },
                bytes: unsigned("priorities", bytes)?,
                below: unsigned("priorities", below)?,
                value: unsigned("priorities", value)?,
            })
        });
        Ok(Priorities(rules.collect::<PyResult<_>>()?))
    }

    fn ring_use(&self) -> PyResult<RingUse> {
        match (self.poll, self.dry) {
            (false, false) => Ok(RingUse::Sleep),
            (true, false) => Ok(RingUse::Poll),
            (false, true) => Ok(RingUse::Dry),
            (true, true) => refused("poll: a dry run has nothing to wait for".into()),
        }
    }
}

fn optional(name: &str, value: Option<i64>) -> PyResult<Option<u64>> {
    value
        .map(|value| above_0(name, value).map(NonZeroU64::get))
        .transpose()
}

fn nanoseconds(name: &str, seconds_: f64) -> PyResult<u64> {
    let duration = seconds(name, seconds_)?;
    Ok(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
}

fn refused<T>(why: String) -> PyResult<T> {
    Err(PyValueError::new_err(why))
}

/// The files of the write maps of --verify, by duplicated descriptors.
fn journal_files(
    journals: Option<Vec<Option<RawFd>>>,
    targets: usize,
    dry: bool,
) -> PyResult<Option<Vec<Option<File>>>> {
    let Some(journals) = journals else {
        return Ok(None);
    };
    if dry || journals.len() != targets {
        return refused("journals: one for every target, and none in a dry run".into());
    }
    let duplicate = |fd: Option<RawFd>| fd.map(|fd| duplicate(fd).map(File::from)).transpose();
    let files = journals.into_iter().map(duplicate);
    let files = files.collect::<std::io::Result<Vec<_>>>();
    files.map(Some).map_err(|error| os_error(&error))
}
