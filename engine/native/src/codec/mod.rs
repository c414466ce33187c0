//! Compact, checked encoding of raw counters for session files.

use pyo3::prelude::*;

/// Adds this part's classes and functions to the native module.
pub fn register(_module: &Bound<'_, PyModule>) -> PyResult<()> {
    Ok(())
}
