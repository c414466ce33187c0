//! The tracer as Python sees it.

use std::collections::HashMap;
use std::ffi::OsString;
use std::os::fd::{IntoRawFd, RawFd};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

use numpy::PyArray2;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::reader::{TraceReader, table};
use crate::exact::counters::COLUMNS;
use crate::exact::failure::Failure;
use crate::exact::maps;
use crate::exact::sizes::HISTOGRAMS;
use crate::exact::tracer::Tracer;
use crate::exact::view::View;
use crate::load::system::lock::lock;

#[pyclass(frozen, extends = TraceReader, module = "engine._native")]
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

/// Does something with the tracer and its own view.
fn with_view<T: Send>(
    this: &Bound<'_, BlockTracer>,
    work: impl FnOnce(&mut Tracer, &mut View) -> T + Send,
) -> PyResult<T> {
    let (tracer, reader) = (this.get(), this.as_super().get());
    reader
        .with(this.py(), |reading| {
            let mut tracer = lock(&tracer.tracer);
            tracer
                .as_mut()
                .map(|tracer| work(tracer, &mut reading.view))
        })?
        .ok_or_else(|| PyValueError::new_err("the tracer is closed"))
}

#[pymethods]
impl BlockTracer {
    #[new]
    #[pyo3(
        signature = (sysfs = PathBuf::from("/sys"), *, histograms = HISTOGRAMS, process_idle_s = 60.0, fetch = true),
        text_signature = "(sysfs='/sys', *, histograms=3000, process_idle_s=60.0, fetch=True)"
    )]
    fn new(
        py: Python<'_>,
        sysfs: PathBuf,
        histograms: u32,
        process_idle_s: f64,
        fetch: bool,
    ) -> PyResult<PyClassInitializer<Self>> {
        if histograms == 0 || histograms > 65_535 {
            return Err(PyValueError::new_err("histograms: not from 1 to 65535"));
        }
        let idle = Duration::try_from_secs_f64(process_idle_s)
            .map_err(|error| PyValueError::new_err(format!("process_idle_s: {error}")))?;
        let tracer = py.detach(move || Tracer::start(sysfs, histograms, idle, fetch))?;
        let reader = TraceReader::of(tracer.view());
        Ok(PyClassInitializer::from(reader).add_subclass(Self {
            tracer: Mutex::new(Some(tracer)),
        }))
    }

    fn read<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyArray2<u64>>> {
        let values = with_view(this, |tracer, view| tracer.read(view).map(<[u64]>::to_vec))??;
        table(this.py(), values, COLUMNS.len())
    }

    fn regroup(this: &Bound<'_, Self>, groups: Vec<Vec<OsString>>) -> PyResult<Vec<u16>> {
        let groups = groups
            .into_iter()
            .map(|members| members.into_iter().map(OsString::into_vec).collect())
            .collect();
        Ok(with_view(this, |tracer, view| {
            tracer.regroup(view, groups)
        })??)
    }

    fn read_groups<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<u64>>> {
        let values = self.with(py, Tracer::read_groups)?;
        table(py, values, 2)
    }

    fn losses(this: &Bound<'_, Self>) -> PyResult<HashMap<&'static str, u64>> {
        with_view(this, |tracer, view| {
            let mut losses: HashMap<_, _> = view.losses().into_iter().collect();
            losses.insert("healed", tracer.healed);
            let programs = tracer.programs.statistics();
            losses.insert("recursion_misses", programs.recursion_misses);
            losses.insert("program_time_ns", programs.run_time_ns);
            losses.insert("program_runs", programs.runs);
            losses.extend(tracer.tag_sleeps().map(|sleeps| ("tag_sleeps", sleeps)));
            losses
        })
    }

    /// Whether programs have typed arguments, and atomic operations results.
    fn form(&self, py: Python<'_>) -> PyResult<(bool, bool)> {
        self.with(py, |tracer| {
            let form = tracer.programs.form;
            (form.typed, form.fetch)
        })
    }

    fn watch_tag_wait(&self, py: Python<'_>, on: bool) -> PyResult<()> {
        Ok(self.with(py, |tracer| tracer.time_tag_waits(on))??)
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

    fn map_descriptors(&self, py: Python<'_>) -> PyResult<HashMap<&'static str, RawFd>> {
        let opened = self.with(py, |tracer| {
            maps::NAMES
                .into_iter()
                .map(|name| Ok((name, tracer.programs.duplicate(name)?)))
                .collect::<Result<Vec<_>, Failure>>()
        })??;
        let given_away = opened
            .into_iter()
            .map(|(name, map)| (name, map.into_raw_fd()));
        Ok(given_away.collect())
    }

    fn close(this: &Bound<'_, Self>) {
        let (tracer, reader) = (this.get(), this.as_super().get());
        this.py().detach(|| {
            drop(lock(&tracer.tracer).take());
            reader.forget();
        });
    }
}
