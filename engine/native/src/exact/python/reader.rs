//! Reading what a tracer counts, here or in another process.

use std::collections::HashMap;
use std::ffi::OsString;
use std::os::fd::{BorrowedFd, RawFd};
use std::os::unix::ffi::OsStringExt;
use std::sync::{Arc, Mutex};

use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::exact::counters::COLUMNS;
use crate::exact::failure::Failure;
use crate::exact::grouping::ReportedBusy;
use crate::exact::maps::Maps;
use crate::exact::processes;
use crate::exact::rows::Row;
use crate::exact::slowest;
use crate::exact::view::View;
use crate::load::system::lock::lock;

/// Row, series, bucket, count.
type CellArrays<'py> = (
    Bound<'py, PyArray1<u32>>,
    Bound<'py, PyArray1<u8>>,
    Bound<'py, PyArray1<u16>>,
    Bound<'py, PyArray1<u64>>,
);

/// Rows, and cells of their histograms.
type ProcessArrays<'py> = (Bound<'py, PyArray2<u64>>, Bound<'py, PyArray2<u64>>);

/// State of a reader beside the maps.
pub struct Reading {
    pub view: View,
    reported: ReportedBusy,
}

#[pyclass(frozen, subclass, module = "engine._native")]
pub struct TraceReader {
    reading: Mutex<Option<Reading>>,
}

impl TraceReader {
    pub fn of(view: View) -> Self {
        Self {
            reading: Mutex::new(Some(Reading {
                view,
                reported: ReportedBusy::default(),
            })),
        }
    }

    /// Does something with what is read, without the GIL.
    pub fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut Reading) -> T + Send,
    ) -> PyResult<T> {
        py.detach(|| lock(&self.reading).as_mut().map(work))
            .ok_or_else(|| PyValueError::new_err("the tracer is closed"))
    }

    pub fn forget(&self) {
        drop(lock(&self.reading).take());
    }
}

#[pymethods]
impl TraceReader {
    #[new]
    fn new(py: Python<'_>, descriptors: HashMap<String, RawFd>) -> PyResult<Self> {
        let maps = py.detach(move || Maps::new(|name| descriptor(&descriptors, name), false))?;
        Ok(Self::of(View::new(Arc::new(maps))))
    }

    #[getter]
    fn generation(&self, py: Python<'_>) -> PyResult<u64> {
        self.with(py, |reading| reading.view.rows.generation)
    }

    fn names(&self, py: Python<'_>) -> PyResult<Vec<OsString>> {
        self.with(py, |reading| {
            let rows = reading.view.rows.all.iter();
            rows.map(|row| OsString::from_vec(row.name.clone()))
                .collect()
        })
    }

    fn numbers<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<u32>>> {
        let numbers: Vec<u32> = self.with(py, |reading| {
            let rows = reading.view.rows.all.iter();
            rows.flat_map(Row::major_minor).collect()
        })?;
        table(py, numbers, 2)
    }

    fn read<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<u64>>> {
        let values = self.with(py, |reading| reading.view.read().to_vec())?;
        table(py, values, COLUMNS.len())
    }

    fn cells<'py>(&self, py: Python<'py>) -> PyResult<CellArrays<'py>> {
        let cells = self.with(py, |reading| reading.view.cells())?;
        Ok((
            cells.row.into_pyarray(py),
            cells.series.into_pyarray(py),
            cells.bucket.into_pyarray(py),
            cells.count.into_pyarray(py),
        ))
    }

    fn slowest<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyArray2<u64>>, Vec<OsString>)> {
        let slow = self.with(py, |reading| reading.view.slowest())?;
        let values = slow.iter().flat_map(|one| one.values).collect();
        let commands = slow
            .into_iter()
            .map(|one| OsString::from_vec(one.command))
            .collect();
        Ok((table(py, values, slowest::COLUMNS.len())?, commands))
    }

    fn processes<'py>(&self, py: Python<'py>) -> PyResult<ProcessArrays<'py>> {
        let found = self.with(py, |reading| reading.view.processes())?;
        Ok((
            table(py, found.rows.into_flattened(), processes::COLUMNS.len())?,
            table(py, found.cells.into_flattened(), 3)?,
        ))
    }

    fn oldest<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<u64>>> {
        let ages = self.with(py, |reading| reading.view.oldest())?;
        Ok(ages.into_pyarray(py))
    }

    fn groups_at<'py>(
        &self,
        py: Python<'py>,
        slots: Vec<u16>,
    ) -> PyResult<Bound<'py, PyArray2<u64>>> {
        let values = self.with(py, move |reading| {
            reading.reported.read(&reading.view.maps, &slots)
        })?;
        table(py, values, 2)
    }

    fn losses(&self, py: Python<'_>) -> PyResult<HashMap<&'static str, u64>> {
        self.with(py, |reading| reading.view.losses().into_iter().collect())
    }

    fn close(&self, py: Python<'_>) {
        py.detach(|| self.forget());
    }
}

pub fn table<T: numpy::Element>(
    py: Python<'_>,
    values: Vec<T>,
    columns: usize,
) -> PyResult<Bound<'_, PyArray2<T>>> {
    let rows = values.len() / columns;
    values.into_pyarray(py).reshape([rows, columns])
}

fn descriptor<'fd>(
    descriptors: &HashMap<String, RawFd>,
    name: &str,
) -> Result<BorrowedFd<'fd>, Failure> {
    let fd = descriptors.get(name).copied().unwrap_or(-1);
    // SAFETY: the answer only says whether the number is an open descriptor.
    if fd < 0 || unsafe { libc::fcntl(fd, libc::F_GETFD) } < 0 {
        return Err(Failure::Value(format!(
            "descriptors: none that is open for {name}"
        )));
    }
    // SAFETY: it was open a moment ago, and the caller keeps it so for the call; a wrong one is refused when mapped.
    Ok(unsafe { BorrowedFd::borrow_raw(fd) })
}
