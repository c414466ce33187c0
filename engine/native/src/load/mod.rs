//! The load engine: worker threads that keep a queue depth on every target.

use pyo3::prelude::*;

/// Adds this part's classes and functions to the native module.
pub fn register(_module: &Bound<'_, PyModule>) -> PyResult<()> {
    Ok(())
}
