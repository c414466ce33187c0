//! The load section of `engine/_native.pyi`.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use numpy::{PyArray1, PyArray2, PyArray3, PyArrayMethods};
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;

use super::crew::Backend;
use super::engine::{Engine, Failure, Options};
use super::histogram::{BUCKETS, SUB_BITS};
use super::knobs::{BlockShare, Knobs, Limits};
use super::lock::lock;
use super::packed::PackedCells;
use super::peaks::PeakSum;
use super::stats::{Direction, Sums};
use super::target::Target;
use super::timeline::AnyEpoch;
use super::{fill, ring};

const COUNTER_COLUMNS: usize = 14;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("HISTOGRAM_SUB_BITS", SUB_BITS)?;
    module.add("HISTOGRAM_BUCKETS", BUCKETS)?;
    module.add_class::<LoadTarget>()?;
    module.add_class::<EpochStats>()?;
    module.add_class::<LoadEngine>()?;
    module.add_function(wrap_pyfunction!(fill_file, module)?)?;
    module.add_function(wrap_pyfunction!(uring_refusal, module)?)
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Value(text) => PyValueError::new_err(text),
            Failure::Os(error) => error.into(),
        }
    }
}

#[derive(FromPyObject)]
struct BlockShareArgument {
    block_bytes: i64,
    percent: f64,
}

/// engine.job.Knobs by its attributes.
#[derive(FromPyObject)]
struct KnobsArgument {
    queue_depth: i64,
    stripe_width: i64,
    blocks: Vec<BlockShareArgument>,
    read_pct: f64,
    rate_iops: Option<f64>,
}

impl KnobsArgument {
    fn checked(self) -> PyResult<Knobs> {
        let share = |share: BlockShareArgument| {
            Ok::<_, PyErr>(BlockShare {
                block_bytes: unsigned("block", share.block_bytes)?,
                percent: share.percent,
            })
        };
        Ok(Knobs {
            queue_depth: unsigned("queue_depth", self.queue_depth)?,
            stripe_width: unsigned("stripe_width", self.stripe_width)?,
            blocks: self
                .blocks
                .into_iter()
                .map(share)
                .collect::<PyResult<_>>()?,
            read_pct: self.read_pct,
            rate_iops: self.rate_iops,
        })
    }
}

fn unsigned<T: TryFrom<i64>>(name: &str, value: i64) -> PyResult<T> {
    T::try_from(value).map_err(|_| PyValueError::new_err(format!("{name} {value} is out of range")))
}

/// Seeds are bits; Python's may be negative.
#[expect(clippy::cast_sign_loss, reason = "all 64 bits are kept")]
fn bits(seed: i64) -> u64 {
    seed as u64
}

fn seconds(name: &str, value: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(value)
        .map_err(|error| PyValueError::new_err(format!("{name} {value}: {error}")))
}

#[pyclass(module = "engine._native", frozen)]
struct LoadTarget(Arc<Target>);

#[pymethods]
impl LoadTarget {
    #[new]
    #[pyo3(signature = (fd, name, size_bytes, align_bytes, *, writable))]
    fn new(
        fd: RawFd,
        name: String,
        size_bytes: i64,
        align_bytes: i64,
        writable: bool,
    ) -> PyResult<Self> {
        let (size_bytes, align_bytes) = (
            unsigned("size_bytes", size_bytes)?,
            unsigned("align_bytes", align_bytes)?,
        );
        if align_bytes == 0 || size_bytes == 0 {
            return Err(PyValueError::new_err(format!(
                "{name}: size_bytes and align_bytes must be above 0"
            )));
        }
        if writable && !opened_for_writing(fd)? {
            return Err(PyValueError::new_err(format!(
                "{name}: writable, but the descriptor is open for reading only"
            )));
        }
        let fd = duplicate(fd)?;
        Ok(Self(Arc::new(Target {
            fd,
            name,
            size_bytes,
            align_bytes,
            writable,
        })))
    }
}

fn opened_for_writing(fd: RawFd) -> io::Result<bool> {
    // SAFETY: F_GETFL takes no pointer.
    match unsafe { libc::fcntl(fd, libc::F_GETFL) } {
        -1 => Err(io::Error::last_os_error()),
        flags => Ok(flags & libc::O_ACCMODE != libc::O_RDONLY),
    }
}

fn duplicate(fd: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: F_DUPFD_CLOEXEC takes no pointer.
    match unsafe { libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, 0) } {
        -1 => Err(io::Error::last_os_error()),
        // SAFETY: the kernel just gave this descriptor to us alone.
        duplicate => Ok(unsafe { OwnedFd::from_raw_fd(duplicate) }),
    }
}

type CellArrays<'py> = (
    Bound<'py, PyArray1<u32>>,
    Bound<'py, PyArray1<u8>>,
    Bound<'py, PyArray1<u16>>,
    Bound<'py, PyArray1<u64>>,
);

fn cell_arrays<'py>(py: Python<'py>, cells: &[(usize, Direction, u16, u64)]) -> CellArrays<'py> {
    (
        PyArray1::from_iter(
            py,
            cells
                .iter()
                .map(|cell| u32::try_from(cell.0).unwrap_or(u32::MAX)),
        ),
        PyArray1::from_iter(py, cells.iter().map(|cell| cell.1 as u8)),
        PyArray1::from_iter(py, cells.iter().map(|cell| cell.2)),
        PyArray1::from_iter(py, cells.iter().map(|cell| cell.3)),
    )
}

#[pyclass(module = "engine._native", frozen)]
struct EpochStats {
    index: usize,
    targets: usize,
    knobs: Arc<Py<PyAny>>,
    epoch: AnyEpoch,
}

#[pymethods]
impl EpochStats {
    #[getter]
    fn index(&self) -> usize {
        self.index
    }

    #[getter]
    fn knobs(&self, py: Python<'_>) -> Py<PyAny> {
        self.knobs.clone_ref(py)
    }

    #[getter]
    fn turned_ns(&self) -> u64 {
        match &self.epoch {
            AnyEpoch::Open(epoch) => epoch.turned.ns,
            AnyEpoch::Closed(epoch) => epoch.turned_ns,
        }
    }

    #[getter]
    fn start_ns(&self) -> Option<u64> {
        match &self.epoch {
            AnyEpoch::Open(epoch) => epoch.start_ns(),
            AnyEpoch::Closed(epoch) => epoch.start_ns,
        }
    }

    #[getter]
    fn end_ns(&self) -> Option<u64> {
        match &self.epoch {
            AnyEpoch::Open(epoch) => epoch.end_ns(),
            AnyEpoch::Closed(epoch) => epoch.end_ns,
        }
    }

    #[getter]
    fn counts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray3<u64>>> {
        let mut sums = match &self.epoch {
            AnyEpoch::Open(epoch) => py.detach(|| epoch.sums()),
            AnyEpoch::Closed(epoch) => epoch.sums.clone(),
        };
        sums.resize(self.targets, [Sums::default(); 2]);
        let row = |sums: &Sums| {
            [
                sums.ios,
                sums.bytes,
                sums.latency_ns,
                sums.least_ns,
                sums.largest_ns,
                sums.errors,
            ]
        };
        let values = sums.iter().flatten().flat_map(row);
        PyArray1::from_iter(py, values).reshape([self.targets, 2, 6])
    }

    #[getter]
    fn peaks<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray3<u64>>> {
        let peaks = match &self.epoch {
            AnyEpoch::Open(epoch) => epoch.peaks(),
            AnyEpoch::Closed(epoch) => epoch.peaks.clone(),
        };
        let rows =
            (0..self.targets).map(|target| peaks.target(target).copied().unwrap_or_default());
        let values = rows
            .chain([*peaks.overall()])
            .flatten()
            .flat_map(|peak: PeakSum| [peak.sum_ns, peak.seconds]);
        PyArray1::from_iter(py, values).reshape([self.targets + 1, 3, 2])
    }

    #[getter]
    fn transient_ios(&self, py: Python<'_>) -> u64 {
        match &self.epoch {
            AnyEpoch::Open(epoch) => py.detach(|| epoch.transient_ios()),
            AnyEpoch::Closed(epoch) => epoch.transient_ios,
        }
    }

    #[getter]
    fn cells<'py>(&self, py: Python<'py>) -> CellArrays<'py> {
        let per_lane: Vec<[Vec<(u16, u64)>; 2]> = py.detach(|| match &self.epoch {
            AnyEpoch::Open(epoch) => epoch
                .counts()
                .iter()
                .map(|lanes| lanes.each_ref().map(|lane| lane.cells().collect()))
                .collect(),
            AnyEpoch::Closed(epoch) => epoch
                .cells
                .iter()
                .map(|lanes| lanes.each_ref().map(PackedCells::cells))
                .collect(),
        });
        let mut cells = Vec::new();
        for (target, lanes) in per_lane.iter().enumerate() {
            for (direction, lane) in Direction::ALL.into_iter().zip(lanes) {
                cells.extend(
                    lane.iter()
                        .map(|(bucket, count)| (target, direction, *bucket, *count)),
                );
            }
        }
        cell_arrays(py, &cells)
    }
}

#[pyclass(module = "engine._native", frozen)]
struct LoadEngine {
    engine: Engine,
    /// Knobs of every epoch as Python gave them; held while turning, so that indices agree.
    turns: Mutex<Vec<Arc<Py<PyAny>>>>,
}

#[pymethods]
impl LoadEngine {
    #[new]
    #[expect(clippy::too_many_arguments, reason = "the settings of a job")]
    #[pyo3(signature = (targets, knobs, *, backend, threads = 1, sequential = false, stripe_unit_bytes = 65536, seed = 1,
                        max_queue_depth = 1024, runtime_s = None))]
    fn new(
        py: Python<'_>,
        targets: Vec<Bound<'_, LoadTarget>>,
        knobs: Bound<'_, PyAny>,
        backend: &str,
        threads: i64,
        sequential: bool,
        stripe_unit_bytes: i64,
        seed: i64,
        max_queue_depth: i64,
        runtime_s: Option<f64>,
    ) -> PyResult<Self> {
        let threads = unsigned("threads", threads)?;
        let backend = match backend {
            "uring" => Backend::Uring { threads },
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
        let limits = Limits {
            max_queue_depth: unsigned("max_queue_depth", max_queue_depth)?,
            stripe_unit_bytes,
            thread_per_io: backend == Backend::Threads,
        };
        let runtime = runtime_s
            .map(|runtime_s| seconds("runtime_s", runtime_s))
            .transpose()?;
        let options = Options {
            backend,
            limits,
            sequential,
            seed: bits(seed),
            runtime,
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
            let [read, write] = row.sums;
            let lane = |sums: &Sums| [sums.ios, sums.bytes, sums.latency_ns, sums.peak_ns];
            let [first, second] = [lane(&read), lane(&write)];
            let gauges = [
                read.errors + write.errors,
                row.in_flight,
                row.queue_depth,
                u64::from(row.active),
                u64::from(row.failing),
                row.epoch,
            ];
            first.into_iter().chain(second).chain(gauges)
        });
        PyArray1::from_iter(py, values).reshape([count, COUNTER_COLUMNS])
    }

    fn cells<'py>(&self, py: Python<'py>) -> CellArrays<'py> {
        let cells = py.detach(|| self.engine.cells());
        cell_arrays(py, &cells)
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
                    targets: self.engine.targets(),
                    knobs: Arc::clone(knobs),
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

    fn cpu_ns(&self) -> u64 {
        self.engine.cpu_ns()
    }

    #[pyo3(signature = (timeout_s = 10.0))]
    fn stop(&self, py: Python<'_>, timeout_s: f64) -> PyResult<bool> {
        let timeout = seconds("timeout_s", timeout_s)?;
        Ok(py.detach(|| self.engine.stop(timeout)))
    }
}

#[pyfunction]
#[pyo3(name = "fill")]
fn fill_file(py: Python<'_>, fd: RawFd, offset: i64, length: i64, seed: i64) -> PyResult<u64> {
    let (offset, length) = (unsigned("offset", offset)?, unsigned("length", length)?);
    py.detach(|| fill::fill(fd, offset, length, bits(seed)))
        .map_err(|error| PyOSError::new_err((error.raw_os_error(), error.to_string())))
}

#[pyfunction]
fn uring_refusal(py: Python<'_>) -> String {
    py.detach(ring::refusal)
}
