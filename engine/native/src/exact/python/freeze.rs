//! Frozen filesystems as Python sees them.

use std::path::PathBuf;
use std::sync::Mutex;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::exact::freeze::{Freeze, Freezes};
use crate::load::system::lock::lock;

#[pyclass(frozen, module = "engine._native")]
pub struct FreezeTracer {
    freezes: Mutex<Option<Freezes>>,
}

#[pymethods]
impl FreezeTracer {
    #[new]
    #[pyo3(
        signature = (sysfs = PathBuf::from("/sys")),
        text_signature = "(sysfs='/sys')"
    )]
    fn new(py: Python<'_>, sysfs: PathBuf) -> PyResult<Self> {
        let freezes = py.detach(move || Freezes::start(&sysfs))?;
        Ok(Self {
            freezes: Mutex::new(Some(freezes)),
        })
    }

    fn read(&self) -> PyResult<Vec<Freeze>> {
        lock(&self.freezes)
            .as_ref()
            .map(Freezes::read)
            .ok_or_else(|| PyValueError::new_err("the tracer is closed"))
    }

    fn close(&self, py: Python<'_>) {
        py.detach(|| drop(lock(&self.freezes).take()));
    }
}
