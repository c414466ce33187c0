//! Numbers from Python, checked.

use std::num::NonZeroU64;
use std::time::Duration;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// A number that is not negative and fits.
pub fn unsigned<T: TryFrom<i64>>(name: &str, value: i64) -> PyResult<T> {
    T::try_from(value).map_err(|_| PyValueError::new_err(format!("{name} {value} is out of range")))
}

pub fn above_0(name: &str, value: i64) -> PyResult<NonZeroU64> {
    NonZeroU64::new(unsigned(name, value)?)
        .ok_or_else(|| PyValueError::new_err(format!("{name} 0 is not above 0")))
}

/// Seeds are bits; Python's may be negative.
#[expect(clippy::cast_sign_loss, reason = "all 64 bits are kept")]
pub fn bits(seed: i64) -> u64 {
    seed as u64
}

/// A span that is not negative.
pub fn seconds(name: &str, value: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(value)
        .map_err(|error| PyValueError::new_err(format!("{name} {value}: {error}")))
}
