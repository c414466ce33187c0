//! Readers of kernel counters into columns.

mod attribute_watch;
mod attributes;
mod block;
mod block_reader;
mod counters;
mod diskstats;
mod files;
mod group_files;
mod group_reader;
mod group_text;
mod inflight;
mod inflight_sums;
mod inflight_thread;
mod pace;
mod snapshot;
mod stat_files;

pub use files::sysfs_name;
use pyo3::prelude::*;

/// Adds this part's classes and functions to the native module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<block_reader::BlockReader>()?;
    module.add_class::<inflight::InflightSampler>()?;
    module.add_class::<attribute_watch::AttributeWatch>()?;
    module.add_class::<group_reader::GroupReader>()?;
    module.add_function(wrap_pyfunction!(attribute_watch::is_sysfs_folder, module)?)?;
    module.add_function(wrap_pyfunction!(attributes::read_attributes, module)?)
}
