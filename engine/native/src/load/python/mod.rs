//! The load section of `engine/_native.pyi`.

mod arguments;
mod cells;
mod descriptors;
mod engine;
mod epoch;
mod errors;
mod flow;
mod numbers;
mod rows;
mod target;
mod verify;

use std::os::fd::RawFd;

use pyo3::prelude::*;

use self::errors::os_error;
use self::numbers::{bits, unsigned};
use super::counts::cpu_span::CpuTimes;
use super::counts::histogram::{BUCKETS, SUB_BITS};
use super::data::content::Content;
use crate::load::rings::{ring_lock, ring_setup};
use crate::load::targets::fill;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("HISTOGRAM_SUB_BITS", SUB_BITS)?;
    module.add("HISTOGRAM_BUCKETS", BUCKETS)?;
    module.add_class::<target::LoadPath>()?;
    module.add_class::<target::LoadTarget>()?;
    module.add_class::<epoch::EpochStats>()?;
    module.add_class::<engine::LoadEngine>()?;
    module.add_class::<verify::VerifyPass>()?;
    module.add_class::<flow::FlowShare>()?;
    module.add_function(wrap_pyfunction!(flow::flow_shares, module)?)?;
    module.add_function(wrap_pyfunction!(verify::journal_facts, module)?)?;
    module.add_function(wrap_pyfunction!(fill_file, module)?)?;
    module.add_function(wrap_pyfunction!(content, module)?)?;
    module.add_function(wrap_pyfunction!(host_cpu_ns, module)?)?;
    module.add_function(wrap_pyfunction!(uring_refusal, module)?)?;
    module.add_function(wrap_pyfunction!(read_only_ring_refusal, module)?)
}

#[pyfunction]
#[pyo3(name = "fill")]
fn fill_file(py: Python<'_>, fd: RawFd, offset: i64, length: i64, seed: i64) -> PyResult<u64> {
    let (offset, length) = (unsigned("offset", offset)?, unsigned("length", length)?);
    py.detach(|| fill::fill(fd, offset, length, bits(seed)))
        .map_err(|error| os_error(&error))
}

#[pyfunction]
fn content(data: &[u8]) -> &'static str {
    match Content::of(data.iter().copied()) {
        Content::Dense => "dense",
        Content::Compressible => "compressible",
        Content::Zeros => "zeros",
    }
}

#[pyfunction]
fn host_cpu_ns(py: Python<'_>) -> (u64, u64) {
    let now = py.detach(|| CpuTimes::now(0, None));
    (now.host_busy_ns, now.host_ns)
}

#[pyfunction]
fn uring_refusal(py: Python<'_>) -> String {
    py.detach(ring_setup::refusal)
}

#[pyfunction]
fn read_only_ring_refusal(py: Python<'_>) -> String {
    py.detach(ring_lock::refusal)
}
