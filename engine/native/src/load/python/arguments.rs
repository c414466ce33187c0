//! Arguments as Python gives them, checked before anything is done.

use std::time::Duration;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::load::knobs::Knobs;
use crate::load::mode::Mode;
use crate::load::pattern::{BlockShare, Distribution};
use crate::load::policy::PolicyName;

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
                .map(|every| unsigned("fsync_every", every))
                .transpose()?,
        })
    }
}

pub fn unsigned<T: TryFrom<i64>>(name: &str, value: i64) -> PyResult<T> {
    T::try_from(value).map_err(|_| PyValueError::new_err(format!("{name} {value} is out of range")))
}

/// Seeds are bits; Python's may be negative.
#[expect(clippy::cast_sign_loss, reason = "all 64 bits are kept")]
pub fn bits(seed: i64) -> u64 {
    seed as u64
}

pub fn seconds(name: &str, value: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(value)
        .map_err(|error| PyValueError::new_err(format!("{name} {value}: {error}")))
}
