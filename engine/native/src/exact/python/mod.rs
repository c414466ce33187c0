//! The exact section of `engine/_native.pyi`.

mod freeze;
mod reader;
mod rpc;
mod throttle;
mod tracer;

use std::ffi::OsString;
use std::path::PathBuf;

use pyo3::prelude::*;

use super::counters;
use super::failure::Failure;
use super::processes;
use super::refusal::{kernel_refusal, refusal};
use super::slowest;
use super::types::Types;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("TRACE_COLUMNS", counters::COLUMNS.to_vec())?;
    module.add("SLOW_COLUMNS", slowest::COLUMNS.to_vec())?;
    module.add("PROCESS_COLUMNS", processes::COLUMNS.to_vec())?;
    module.add_class::<reader::TraceReader>()?;
    module.add_class::<tracer::BlockTracer>()?;
    module.add_class::<throttle::ThrottleTracer>()?;
    module.add_class::<rpc::NfsTracer>()?;
    module.add_class::<freeze::FreezeTracer>()?;
    module.add_function(wrap_pyfunction!(kernel_types, module)?)?;
    module.add_function(wrap_pyfunction!(tracer_refusal, module)?)
}

#[pyfunction]
#[pyo3(signature = (sysfs = PathBuf::from("/sys")), text_signature = "(sysfs='/sys')")]
fn kernel_types(py: Python<'_>, sysfs: PathBuf) -> PyResult<(OsString, bool)> {
    let found = py.detach(move || Types::of_host(&sysfs).map_err(Failure::missing));
    Ok(found.map(|types| (types.path.into_os_string(), types.own))?)
}

#[pyfunction]
#[pyo3(
    signature = (procfs = PathBuf::from("/proc"), sysfs = PathBuf::from("/sys"), *, rights = true),
    text_signature = "(procfs='/proc', sysfs='/sys', *, rights=True)"
)]
fn tracer_refusal(py: Python<'_>, procfs: PathBuf, sysfs: PathBuf, rights: bool) -> String {
    py.detach(move || {
        if rights {
            refusal(&procfs, &sysfs)
        } else {
            kernel_refusal(&sysfs).unwrap_or_default()
        }
    })
}
