//! The Python face of the block reader.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use numpy::{IntoPyArray, PyArray2, PyArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::block::{Block, Method};
use super::counters::COLUMNS;

#[pyclass(frozen, module = "engine._native")]
pub struct BlockReader {
    block: Mutex<Block>,
    width: usize,
}

impl BlockReader {
    /// A panic under the lock leaves counters that the next read replaces, so a poisoned lock is taken all the same.
    fn block(&self) -> MutexGuard<'_, Block> {
        self.block.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl BlockReader {
    #[new]
    #[pyo3(
        signature = (procfs = PathBuf::from("/proc"), sysfs = PathBuf::from("/sys"), method = "auto", *, switch_bytes = 230_000, spare_columns = 0),
        text_signature = "(procfs='/proc', sysfs='/sys', method='auto', *, switch_bytes=230000, spare_columns=0)"
    )]
    fn new(
        procfs: PathBuf,
        sysfs: PathBuf,
        method: &str,
        switch_bytes: usize,
        spare_columns: usize,
    ) -> PyResult<Self> {
        let method = match method {
            "auto" => Method::Auto,
            "diskstats" => Method::Diskstats,
            "sysfs" => Method::Sysfs,
            other => {
                return Err(PyValueError::new_err(format!(
                    "method: {other:?} is none of auto, diskstats, sysfs"
                )));
            }
        };
        if spare_columns > 64 {
            return Err(PyValueError::new_err("spare_columns: more than 64"));
        }
        let width = COLUMNS + spare_columns;
        Ok(Self {
            block: Mutex::new(Block::new(procfs, sysfs, method, switch_bytes, width)),
            width,
        })
    }

    #[getter]
    fn method(&self, py: Python<'_>) -> &'static str {
        py.detach(|| {
            if self.block().uses_sysfs() {
                "sysfs"
            } else {
                "diskstats"
            }
        })
    }

    #[getter]
    fn generation(&self, py: Python<'_>) -> u64 {
        py.detach(|| self.block().generation)
    }

    #[getter]
    fn malformed(&self, py: Python<'_>) -> usize {
        py.detach(|| self.block().malformed())
    }

    fn names(&self, py: Python<'_>) -> Vec<OsString> {
        py.detach(|| {
            self.block()
                .rows
                .iter()
                .map(|row| OsString::from_vec(row.name.clone()))
                .collect()
        })
    }

    fn numbers<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<u32>>> {
        let numbers: Vec<u32> = py.detach(|| {
            self.block()
                .rows
                .iter()
                .flat_map(|row| [row.major, row.minor])
                .collect()
        });
        let rows = numbers.len() / 2;
        numbers.into_pyarray(py).reshape([rows, 2])
    }

    fn read<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<u64>>> {
        let values = py.detach(|| self.block().read())?;
        let rows = values.len() / self.width;
        values.into_pyarray(py).reshape([rows, self.width])
    }

    fn rescan(&self, py: Python<'_>) {
        py.detach(|| self.block().rescan());
    }
}
