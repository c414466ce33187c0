//! `LoadEngine`.

use std::fs::File;
use std::os::fd::RawFd;
use std::sync::{Arc, Mutex};

use numpy::{PyArray1, PyArray2, PyArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::arguments::{KnobsArgument, bits, seconds, unsigned};
use super::cells::{CellArrays, cell_arrays};
use super::epoch::EpochStats;
use super::os_error;
use super::target::{LoadTarget, duplicate};
use super::verify::{DamageRow, VerifyPass, damage_row};
use crate::load::arrival::Arrival;
use crate::load::crew::Backend;
use crate::load::engine::{Engine, Options};
use crate::load::knobs::{Limits, RingUse};
use crate::load::lock::lock;
use crate::load::stats::Sums;
use crate::load::target::Target;
use crate::load::timeline::AnyEpoch;
use crate::load::verify::{Books, Pass};

/// Columns of the raw table `load`.
const COUNTER_COLUMNS: usize = 17;
/// Columns of the raw table `load_path`.
const PATH_COLUMNS: usize = 12;

/// I/Os, bytes, latency and peak of both directions, then errors of both together.
fn sums_row(sums: &[Sums; 2]) -> [u64; 9] {
    let [read, write] = sums;
    [
        read.ios,
        read.bytes,
        read.latency_ns,
        read.peak_ns,
        write.ios,
        write.bytes,
        write.latency_ns,
        write.peak_ns,
        read.errors + write.errors,
    ]
}
/// Columns of the raw table `slow_load`.
const SLOW_COLUMNS: usize = 6;
/// `engine.job.spec.MAX_STREAMS`.
const MAX_STREAMS: usize = 1024;

#[pyclass(module = "engine._native", frozen)]
pub struct LoadEngine {
    engine: Engine,
    /// Knobs of every epoch as Python gave them; held while turning, so that indices agree.
    turns: Mutex<Vec<Arc<Py<PyAny>>>>,
}

#[pymethods]
impl LoadEngine {
    #[new]
    #[expect(
        clippy::too_many_arguments,
        clippy::fn_params_excessive_bools,
        reason = "the settings of a job"
    )]
    #[pyo3(signature = (targets, knobs, *, backend, sequential = false, streams = 1, stripe_unit_bytes = 65536, copies = 1,
                        total_queue_depth = false, seed = 1, max_queue_depth = 1024, runtime_s = None,
                        arrival = "closed", poll = false, dry = false, journals = None))]
    fn new(
        py: Python<'_>,
        targets: Vec<Bound<'_, LoadTarget>>,
        knobs: Bound<'_, PyAny>,
        backend: &str,
        sequential: bool,
        streams: i64,
        stripe_unit_bytes: i64,
        copies: i64,
        total_queue_depth: bool,
        seed: i64,
        max_queue_depth: i64,
        runtime_s: Option<f64>,
        arrival: &str,
        poll: bool,
        dry: bool,
        journals: Option<Vec<Option<RawFd>>>,
    ) -> PyResult<Self> {
        let backend = match backend {
            "uring" => Backend::Uring,
            "threads" => Backend::Threads,
            other => {
                return Err(PyValueError::new_err(format!(
                    "backend {other} is not uring or threads"
                )));
            }
        };
        let stripe_unit_bytes = unsigned("stripe_unit_bytes", stripe_unit_bytes)?;
        if stripe_unit_bytes == 0 {
            return Err(PyValueError::new_err("stripe_unit_bytes must be above 0"));
        }
        let streams = unsigned("streams", streams)?;
        if !(1..=MAX_STREAMS).contains(&streams) {
            return Err(PyValueError::new_err(format!(
                "streams {streams} is not in 1..{MAX_STREAMS}"
            )));
        }
        let limits = Limits {
            max_queue_depth: unsigned("max_queue_depth", max_queue_depth)?,
            stripe_unit_bytes,
            thread_per_io: backend == Backend::Threads,
            copies: unsigned("copies", copies)?,
            total_depth: total_queue_depth,
            arrival: Arrival::parse(arrival).ok_or_else(|| {
                PyValueError::new_err(format!(
                    "arrival {arrival} is not closed, constant or poisson"
                ))
            })?,
            ring_use: ring_use(poll, dry)?,
            streams: sequential.then_some(streams),
            grain_bytes: None,
        };
        let runtime = runtime_s
            .map(|runtime_s| seconds("runtime_s", runtime_s))
            .transpose()?;
        let options = Options {
            backend,
            limits,
            seed: bits(seed),
            runtime,
            journals: journal_files(journals, targets.len(), dry)?,
        };
        let targets = targets
            .into_iter()
            .map(|target| Arc::clone(&target.get().0))
            .collect();
        let checked = knobs.extract::<KnobsArgument>()?.checked()?;
        let engine = py.detach(|| Engine::new(targets, &checked, options))?;
        Ok(Self {
            engine,
            turns: Mutex::new(vec![Arc::new(knobs.unbind())]),
        })
    }

    fn start(&self, py: Python<'_>) -> PyResult<()> {
        Ok(py.detach(|| self.engine.start())?)
    }

    fn apply(&self, py: Python<'_>, knobs: Bound<'_, PyAny>) -> PyResult<u32> {
        let checked = knobs.extract::<KnobsArgument>()?.checked()?;
        let knobs = Arc::new(knobs.unbind());
        py.detach(|| {
            let mut turns = lock(&self.turns);
            let index = self.engine.turn(&checked)?;
            turns.truncate(index as usize);
            turns.push(knobs);
            Ok(index)
        })
    }

    #[getter]
    fn running(&self) -> bool {
        self.engine.running()
    }

    #[getter]
    fn waits(&self) -> bool {
        self.engine.waits()
    }

    #[getter]
    fn fault(&self) -> String {
        self.engine.fault()
    }

    #[getter]
    fn features(&self) -> Vec<&'static str> {
        self.engine.features().to_vec()
    }

    fn counters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<u64>>> {
        let rows = py.detach(|| self.engine.counters());
        let count = rows.len();
        let values = rows.into_iter().flat_map(|row| {
            let gauges = [
                row.in_flight,
                row.queue_depth,
                u64::from(row.active),
                u64::from(row.failing),
                row.epoch,
                row.skipped,
                row.sums[0].service_ns,
                row.sums[1].service_ns,
            ];
            sums_row(&row.sums).into_iter().chain(gauges)
        });
        PyArray1::from_iter(py, values).reshape([count, COUNTER_COLUMNS])
    }

    fn cells<'py>(&self, py: Python<'py>) -> CellArrays<'py> {
        let cells = py.detach(|| self.engine.cells());
        cell_arrays(py, &cells)
    }

    fn path_counters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<u64>>> {
        let rows = py.detach(|| self.engine.paths());
        let count = rows.len();
        let values = rows.into_iter().flat_map(|row| {
            let state = row.state.unwrap_or_default();
            sums_row(&row.sums).into_iter().chain([
                u64::from(state.in_flight),
                u64::from(!state.usable),
                row.target as u64,
            ])
        });
        PyArray1::from_iter(py, values).reshape([count, PATH_COLUMNS])
    }

    fn logical_counters<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u64>> {
        let sums = py.detach(|| self.engine.logical());
        PyArray1::from_iter(py, sums_row(&sums))
    }

    fn logical_cells<'py>(&self, py: Python<'py>) -> CellArrays<'py> {
        let cells = py.detach(|| self.engine.logical_cells());
        cell_arrays(py, &cells)
    }

    fn slowest<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<u64>>> {
        let ios = py.detach(|| self.engine.slowest());
        let count = ios.len();
        let values = ios.into_iter().flat_map(|(io, issued_ns)| {
            [
                io.target as u64,
                io.direction as u64,
                io.offset,
                u64::from(io.length),
                issued_ns,
                io.latency_ns,
            ]
        });
        PyArray1::from_iter(py, values).reshape([count, SLOW_COLUMNS])
    }

    fn errors(&self, py: Python<'_>) -> Vec<(usize, &'static str, i32, u64, u64)> {
        let errors = py.detach(|| self.engine.errors());
        errors
            .iter()
            .map(|error| {
                (
                    error.target,
                    error.direction.name(),
                    error.errno,
                    error.first_offset,
                    error.count,
                )
            })
            .collect()
    }

    fn epochs(&self, py: Python<'_>) -> Vec<EpochStats> {
        py.detach(|| {
            let turns = lock(&self.turns);
            let stats =
                |(index, (epoch, knobs)): (usize, (AnyEpoch, &Arc<Py<PyAny>>))| EpochStats {
                    index,
                    rows: self.engine.rows(),
                    ns_per_tick: self.engine.ns_of_ticks(1.0),
                    knobs: Arc::clone(knobs),
                    cpu: self.engine.cpu_used(&epoch),
                    epoch,
                };
            self.engine
                .epochs()
                .into_iter()
                .zip(turns.iter())
                .enumerate()
                .map(stats)
                .collect()
        })
    }

    fn contents<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<u64>>> {
        let rows = self.engine.contents();
        let count = rows.len();
        PyArray1::from_iter(py, rows.into_iter().flatten()).reshape([count, 3])
    }

    #[getter]
    fn verified_run(&self) -> u64 {
        self.engine.verifier().map_or(0, |verifier| verifier.run)
    }

    fn verified<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<u64>>> {
        let count = self.engine.targets().len();
        let row = |target: usize| {
            let sums = self.engine.verifier().map(|verifier| {
                let reads = verifier.read_sums(target);
                [
                    verifier.written_bytes(target),
                    reads.checked_bytes,
                    reads.raced_bytes,
                    reads.unwritten_bytes,
                    verifier.damaged_ranges(target) as u64,
                ]
            });
            sums.unwrap_or_default()
        };
        PyArray1::from_iter(py, (0..count).flat_map(row)).reshape([count, 5])
    }

    fn damage(&self) -> Vec<(usize, DamageRow)> {
        let Some(verifier) = self.engine.verifier() else {
            return Vec::new();
        };
        let of = |target: usize| {
            let found = verifier.damage(target);
            found
                .into_iter()
                .map(move |range| (target, damage_row(&range)))
        };
        (0..self.engine.targets().len()).flat_map(of).collect()
    }

    fn final_passes(&self) -> Vec<VerifyPass> {
        let Some(verifier) = self.engine.verifier() else {
            return Vec::new();
        };
        let pass = |(index, target): (usize, &Arc<Target>)| {
            let books = Books {
                home: verifier.home(index),
                ledger: Arc::clone(verifier.ledger(index)),
            };
            VerifyPass::of(Pass::new(Arc::clone(target), Some(books), true))
        };
        self.engine.targets().iter().enumerate().map(pass).collect()
    }

    fn cpu_ns(&self) -> u64 {
        self.engine.cpu_ns()
    }

    #[pyo3(signature = (at_least_s = 0.0))]
    fn outstanding<'py>(
        &self,
        py: Python<'py>,
        at_least_s: f64,
    ) -> PyResult<Bound<'py, PyArray2<u64>>> {
        let at_least = seconds("at_least_s", at_least_s)?;
        let rows = py.detach(|| self.engine.outstanding(at_least));
        let count = rows.len();
        let values = rows.iter().flat_map(|row| [row.ios, row.since_ns]);
        PyArray1::from_iter(py, values).reshape([count, 2])
    }

    fn drain(&self, py: Python<'_>, timeout_s: f64) -> PyResult<bool> {
        let timeout = seconds("timeout_s", timeout_s)?;
        Ok(py.detach(|| self.engine.drain(timeout)))
    }

    #[pyo3(signature = (timeout_s = 10.0))]
    fn stop(&self, py: Python<'_>, timeout_s: f64) -> PyResult<bool> {
        let timeout = seconds("timeout_s", timeout_s)?;
        Ok(py.detach(|| self.engine.stop(timeout)))
    }
}

/// The files of the books of --verify, by descriptors of our own.
fn journal_files(
    journals: Option<Vec<Option<RawFd>>>,
    targets: usize,
    dry: bool,
) -> PyResult<Option<Vec<Option<File>>>> {
    let Some(journals) = journals else {
        return Ok(None);
    };
    if dry || journals.len() != targets {
        return Err(PyValueError::new_err(
            "journals: one for every target, and none in a dry run",
        ));
    }
    let duplicate = |fd: Option<RawFd>| fd.map(|fd| duplicate(fd).map(File::from)).transpose();
    let files = journals.into_iter().map(duplicate);
    let files = files.collect::<std::io::Result<Vec<_>>>();
    files.map(Some).map_err(|error| os_error(&error))
}

fn ring_use(poll: bool, dry: bool) -> PyResult<RingUse> {
    match (poll, dry) {
        (false, false) => Ok(RingUse::Sleep),
        (true, false) => Ok(RingUse::Poll),
        (false, true) => Ok(RingUse::Dry),
        (true, true) => Err(PyValueError::new_err(
            "poll: a dry run has nothing to wait for",
        )),
    }
}
