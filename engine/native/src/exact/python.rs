//! The exact section of `engine/_native.pyi`.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::sync::Mutex;

use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::counters::COLUMNS;
use super::refusal::refusal;
use super::slowest;
use super::tracer::Tracer;
use super::{healing, view::View};
use crate::load::lock::lock;

/// Row, series, bucket, count.
type CellArrays<'py> = (
    Bound<'py, PyArray1<u32>>,
    Bound<'py, PyArray1<u8>>,
    Bound<'py, PyArray1<u16>>,
    Bound<'py, PyArray1<u64>>,
);

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add(
        "TRACE_COLUMNS",
        COLUMNS.to_vec().into_pyobject(module.py())?.into_any(),
    )?;
    module.add(
        "SLOW_COLUMNS",
        slowest::COLUMNS
            .to_vec()
            .into_pyobject(module.py())?
            .into_any(),
    )?;
    module.add_class::<BlockTracer>()?;
    module.add_function(wrap_pyfunction!(tracer_refusal, module)?)
}

#[pyfunction]
#[pyo3(
    signature = (procfs = PathBuf::from("/proc"), sysfs = PathBuf::from("/sys")),
    text_signature = "(procfs='/proc', sysfs='/sys')"
)]
fn tracer_refusal(py: Python<'_>, procfs: PathBuf, sysfs: PathBuf) -> String {
    py.detach(move || refusal(&procfs, &sysfs))
}

#[pyclass(frozen, module = "engine._native")]
pub struct BlockTracer {
    tracer: Mutex<Option<Tracer>>,
}

impl BlockTracer {
    /// Does something with the tracer, without the GIL.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut Tracer) -> T + Send,
    ) -> PyResult<T> {
        py.detach(|| lock(&self.tracer).as_mut().map(work))
            .ok_or_else(|| PyValueError::new_err("the tracer is closed"))
    }
}

#[pymethods]
impl BlockTracer {
    #[new]
    #[pyo3(
        signature = (sysfs = PathBuf::from("/sys"), *, histograms = 4096),
        text_signature = "(sysfs='/sys', *, histograms=4096)"
    )]
    fn new(py: Python<'_>, sysfs: PathBuf, histograms: u32) -> PyResult<Self> {
        if histograms == 0 || histograms > 65_535 {
            return Err(PyValueError::new_err("histograms: not from 1 to 65535"));
        }
        let tracer = py.detach(|| Tracer::start(sysfs, histograms))?;
        Ok(Self {
            tracer: Mutex::new(Some(tracer)),
        })
    }

    #[getter]
    fn generation(&self, py: Python<'_>) -> PyResult<u64> {
        self.with(py, |tracer| tracer.view.rows.generation)
    }

    fn names(&self, py: Python<'_>) -> PyResult<Vec<OsString>> {
        self.with(py, |tracer| names(&tracer.view))
    }

    fn numbers<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<u32>>> {
        let numbers = self.with(py, |tracer| numbers(&tracer.view))?;
        let rows = numbers.len() / 2;
        numbers.into_pyarray(py).reshape([rows, 2])
    }

    fn read<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<u64>>> {
        let values = self.with(py, |tracer| tracer.read().to_vec())?;
        let rows = values.len() / COLUMNS.len();
        values.into_pyarray(py).reshape([rows, COLUMNS.len()])
    }

    fn cells<'py>(&self, py: Python<'py>) -> PyResult<CellArrays<'py>> {
        let cells = self.with(py, |tracer| tracer.view.cells(&tracer.maps))?;
        Ok((
            cells.row.into_pyarray(py),
            cells.series.into_pyarray(py),
            cells.bucket.into_pyarray(py),
            cells.count.into_pyarray(py),
        ))
    }

    fn regroup(&self, py: Python<'_>, groups: Vec<Vec<OsString>>) -> PyResult<()> {
        let groups = groups
            .into_iter()
            .map(|members| members.into_iter().map(OsString::into_vec).collect())
            .collect();
        Ok(self.with(py, |tracer| tracer.regroup(groups))??)
    }

    fn read_groups<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<u64>>> {
        let values = self.with(py, Tracer::read_groups)?;
        let groups = values.len() / 2;
        values.into_pyarray(py).reshape([groups, 2])
    }

    fn slowest<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyArray2<u64>>, Vec<OsString>)> {
        let slow = self.with(py, |tracer| tracer.view.slowest(&tracer.maps))?;
        let values: Vec<u64> = slow.iter().flat_map(|one| one.values).collect();
        let commands = slow
            .into_iter()
            .map(|one| OsString::from_vec(one.command))
            .collect::<Vec<_>>();
        let rows = commands.len();
        Ok((
            values
                .into_pyarray(py)
                .reshape([rows, slowest::COLUMNS.len()])?,
            commands,
        ))
    }

    fn oldest<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<u64>>> {
        let ages = self.with(py, |tracer| {
            healing::oldest(&tracer.maps, &tracer.view.rows)
        })?;
        Ok(ages.into_pyarray(py))
    }

    fn losses<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let losses = self.with(py, |tracer| tracer.losses())?;
        let dict = PyDict::new(py);
        for (name, count) in losses {
            dict.set_item(name, count)?;
        }
        Ok(dict)
    }

    fn watch_tag_wait(&self, py: Python<'_>, on: bool) -> PyResult<()> {
        Ok(self.with(py, |tracer| tracer.watch_tag_wait(on))??)
    }

    fn rescan(&self, py: Python<'_>) -> PyResult<()> {
        Ok(self.with(py, Tracer::rescan)??)
    }

    fn pause(&self, py: Python<'_>) -> PyResult<()> {
        Ok(self.with(py, Tracer::pause)??)
    }

    fn resume(&self, py: Python<'_>) -> PyResult<()> {
        Ok(self.with(py, Tracer::resume)??)
    }

    fn close(&self, py: Python<'_>) {
        py.detach(|| drop(lock(&self.tracer).take()));
    }
}

fn names(view: &View) -> Vec<OsString> {
    let names = view.rows.all.iter();
    names
        .map(|row| OsString::from_vec(row.name.clone()))
        .collect()
}

fn numbers(view: &View) -> Vec<u32> {
    let rows = view.rows.all.iter();
    rows.flat_map(super::rows::Row::major_minor).collect()
}
