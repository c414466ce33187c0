//! Arguments as Python gives them, checked before anything is done.

use std::time::Duration;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::load::knobs::{BlockShare, Knobs};
use crate::load::policy::PolicyName;

#[derive(FromPyObject)]
struct BlockShareArgument {
    block_bytes: i64,
    percent: f64,
}

/// engine.job.Knobs by its attributes.
#[derive(FromPyObject)]
pub struct KnobsArgument {
    queue_depth: i64,
    stripe_width: i64,
    blocks: Vec<BlockShareArgument>,
    read_pct: f64,
    rate_iops: Option<f64>,
    policy: String,
}

impl KnobsArgument {
    pub fn checked(self) -> PyResult<Knobs> {
        let share = |share: BlockShareArgument| {
            Ok::<_, PyErr>(BlockShare {
                block_bytes: unsigned("block", share.block_bytes)?,
                percent: share.percent,
            })
        };
        Ok(Knobs {
            queue_depth: unsigned("queue_depth", self.queue_depth)?,
            stripe_width: unsigned("stripe_width", self.stripe_width)?,
            blocks: self
                .blocks
                .into_iter()
                .map(share)
                .collect::<PyResult<_>>()?,
            read_pct: self.read_pct,
            rate_iops: self.rate_iops,
            policy: PolicyName::parse(&self.policy).ok_or_else(|| {
                PyValueError::new_err(format!("policy {} is not known", self.policy))
            })?,
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
