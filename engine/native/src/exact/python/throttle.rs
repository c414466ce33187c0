//! Waits for the limits of control groups as Python sees them.

use std::path::PathBuf;
use std::sync::Mutex;

use numpy::PyArray2;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::reader::table;
use crate::exact::throttle::waits::{COLUMNS, ThrottleWaits};
use crate::load::system::lock::lock;

type WaitArrays<'py> = (Bound<'py, PyArray2<u64>>, Bound<'py, PyArray2<u64>>);

#[pyclass(frozen, module = "engine._native")]
pub struct ThrottleTracer {
    waits: Mutex<Option<ThrottleWaits>>,
}

impl ThrottleTracer {
    /// Does something with the programs, without the GIL.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut ThrottleWaits) -> T + Send,
    ) -> PyResult<T> {
        py.detach(|| lock(&self.waits).as_mut().map(work))
            .ok_or_else(|| PyValueError::new_err("the tracer is closed"))
    }
}

#[pymethods]
impl ThrottleTracer {
    #[new]
    #[pyo3(
        signature = (sysfs = PathBuf::from("/sys"), *, places = 8192),
        text_signature = "(sysfs='/sys', *, places=8192)"
    )]
    fn new(py: Python<'_>, sysfs: PathBuf, places: u32) -> PyResult<Self> {
        if places == 0 || places > 1 << 20 {
            return Err(PyValueError::new_err("places: not from 1 to 1048576"));
        }
        let waits = py.detach(move || ThrottleWaits::start(&sysfs, places))?;
        Ok(Self {
            waits: Mutex::new(Some(waits)),
        })
    }

    fn read<'py>(&self, py: Python<'py>) -> PyResult<WaitArrays<'py>> {
        let found = self.with(py, ThrottleWaits::read)?;
        Ok((
            table(py, found.rows.into_flattened(), COLUMNS.len())?,
            table(py, found.cells.into_flattened(), 3)?,
        ))
    }

    fn losses(&self, py: Python<'_>) -> PyResult<(u64, u64)> {
        self.with(py, |waits| waits.losses())
    }

    fn close(&self, py: Python<'_>) {
        py.detach(|| drop(lock(&self.waits).take()));
    }
}
