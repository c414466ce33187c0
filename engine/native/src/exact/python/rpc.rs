//! Calls of NFS clients as Python sees them.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::sync::Mutex;

use numpy::PyArray2;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::reader::table;
use crate::exact::rpc::calls::{COLUMNS, NfsCalls};
use crate::exact::rpc::slow;
use crate::load::system::lock::lock;

type CallArrays<'py> = (
    Bound<'py, PyArray2<u64>>,
    Vec<String>,
    Bound<'py, PyArray2<u64>>,
);

/// Values, names of the operations, and of the commands.
type SlowArrays<'py> = (Bound<'py, PyArray2<u64>>, Vec<String>, Vec<OsString>);

#[pyclass(frozen, module = "engine._native")]
pub struct NfsTracer {
    calls: Mutex<Option<NfsCalls>>,
}

impl NfsTracer {
    /// Does something with the program, without the GIL.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut NfsCalls) -> T + Send,
    ) -> PyResult<T> {
        py.detach(|| lock(&self.calls).as_mut().map(work))
            .ok_or_else(|| PyValueError::new_err("the tracer is closed"))
    }
}

#[pymethods]
impl NfsTracer {
    #[new]
    #[pyo3(
        signature = (sysfs = PathBuf::from("/sys"), *, places = 2048),
        text_signature = "(sysfs='/sys', *, places=2048)"
    )]
    fn new(py: Python<'_>, sysfs: PathBuf, places: u32) -> PyResult<Self> {
        if places == 0 || places > 1 << 16 {
            return Err(PyValueError::new_err("places: not from 1 to 65536"));
        }
        let calls = py.detach(move || NfsCalls::start(&sysfs, places))?;
        Ok(Self {
            calls: Mutex::new(Some(calls)),
        })
    }

    fn read<'py>(&self, py: Python<'py>) -> PyResult<CallArrays<'py>> {
        let found = self.with(py, NfsCalls::read)?;
        Ok((
            table(py, found.rows.into_flattened(), COLUMNS.len())?,
            found.operations,
            table(py, found.cells.into_flattened(), 4)?,
        ))
    }

    fn slowest<'py>(&self, py: Python<'py>) -> PyResult<SlowArrays<'py>> {
        let (values, names) = self.with(py, |calls| {
            let slow = calls.slowest();
            let values: Vec<u64> = slow.iter().flat_map(|call| call.values).collect();
            let names: Vec<_> = slow
                .iter()
                .map(|call| {
                    (
                        call.operation.clone(),
                        OsString::from_vec(call.command.clone()),
                    )
                })
                .collect();
            (values, names)
        })?;
        let (operations, commands) = names.into_iter().unzip();
        Ok((
            table(py, values, slow::COLUMNS.len())?,
            operations,
            commands,
        ))
    }

    fn losses(&self, py: Python<'_>) -> PyResult<(u64, u64)> {
        self.with(py, |calls| calls.losses())
    }

    fn close(&self, py: Python<'_>) {
        py.detach(|| drop(lock(&self.calls).take()));
    }
}
