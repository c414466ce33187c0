//! `EpochStats`.

use std::sync::Arc;

use numpy::{PyArray1, PyArray2, PyArray3, PyArrayMethods};
use pyo3::prelude::*;

use super::cells::{CellArrays, cell_arrays};
use crate::load::counts::cpu_span::CpuTimes;
use crate::load::counts::histogram::Counts;
use crate::load::counts::levels::{Level, Rows};
use crate::load::counts::packed::PackedCells;
use crate::load::counts::peaks::PeakSum;
use crate::load::counts::sums::Sums;
use crate::load::epochs::timeline::{AnyEpoch, Cell};

#[pyclass(module = "engine._native", frozen)]
pub struct EpochStats {
    pub index: usize,
    pub rows: Rows,
    pub ns_per_tick: f64,
    pub knobs: Arc<Py<PyAny>>,
    pub cpu: Option<CpuTimes>,
    pub epoch: AnyEpoch,
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
        self.counts_of(py, Level::Target)
    }

    #[getter]
    fn path_counts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray3<u64>>> {
        self.counts_of(py, Level::Path)
    }

    #[getter]
    fn logical_counts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray3<u64>>> {
        self.counts_of(py, Level::Logical)
    }

    #[getter]
    fn services<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray3<u64>>> {
        let mut sums = match &self.epoch {
            AnyEpoch::Open(epoch) => py.detach(|| epoch.counted.sums(Level::Target)),
            AnyEpoch::Closed(epoch) => epoch.sums[Level::Target as usize].clone(),
        };
        sums.resize(self.rows.targets, [Sums::default(); 2]);
        let row = |sums: &Sums| {
            [
                sums.service_ns,
                sums.least_service_ns,
                sums.largest_service_ns,
            ]
        };
        let values = sums.iter().flatten().flat_map(row);
        PyArray1::from_iter(py, values).reshape([self.rows.targets, 2, 3])
    }

    #[getter]
    fn skipped<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u64>> {
        let mut skipped = match &self.epoch {
            AnyEpoch::Open(epoch) => epoch.skipped(),
            AnyEpoch::Closed(epoch) => epoch.skipped.clone(),
        };
        skipped.resize(self.rows.targets, 0);
        PyArray1::from_vec(py, skipped)
    }

    #[getter]
    fn fsyncs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<u64>>> {
        let mut sums = match &self.epoch {
            AnyEpoch::Open(epoch) => py.detach(|| epoch.counted.fsyncs()),
            AnyEpoch::Closed(epoch) => epoch.fsyncs.clone(),
        };
        sums.resize(self.rows.targets, Sums::default());
        let values = sums
            .iter()
            .flat_map(|sums| [sums.ios, sums.latency_ns, sums.largest_ns, sums.errors]);
        PyArray1::from_iter(py, values).reshape([self.rows.targets, 4])
    }

    #[getter]
    fn cpu_ns(&self) -> Option<(u64, u64, u64, Option<u64>)> {
        self.cpu
            .map(|cpu| (cpu.engine_ns, cpu.host_busy_ns, cpu.host_ns, cpu.waited_ns))
    }

    #[getter]
    fn peaks<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray3<u64>>> {
        self.peaks_of(py, Level::Target)
    }

    #[getter]
    fn logical_peaks<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray3<u64>>> {
        self.peaks_of(py, Level::Logical)
    }

    #[getter]
    fn transient_ios(&self, py: Python<'_>) -> u64 {
        match &self.epoch {
            AnyEpoch::Open(epoch) => py.detach(|| epoch.counted.transient_ios()),
            AnyEpoch::Closed(epoch) => epoch.transient_ios,
        }
    }

    #[getter]
    fn delays<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<u64>>> {
        let delays = match &self.epoch {
            AnyEpoch::Open(epoch) => epoch.counted.delays(),
            AnyEpoch::Closed(epoch) => epoch.delays.clone(),
        };
        let rows = delays.len();
        PyArray1::from_iter(py, delays.into_iter().flatten()).reshape([rows, 2])
    }

    #[getter]
    fn policy_ns(&self) -> Option<f64> {
        let ticks = match &self.epoch {
            AnyEpoch::Open(epoch) => epoch.policy_cost.ticks_per_io(),
            AnyEpoch::Closed(epoch) => epoch.policy_ticks,
        };
        #[expect(clippy::cast_precision_loss, reason = "a short span")]
        ticks.map(|ticks| ticks as f64 * self.ns_per_tick)
    }

    #[getter]
    fn cells<'py>(&self, py: Python<'py>) -> CellArrays<'py> {
        self.cells_of(py, Level::Target)
    }

    #[getter]
    fn service_cells<'py>(&self, py: Python<'py>) -> CellArrays<'py> {
        let per_lane = py.detach(|| match &self.epoch {
            AnyEpoch::Open(epoch) => listed(&epoch.counted.service_counts()),
            AnyEpoch::Closed(epoch) => unpacked(&epoch.service_cells),
        });
        arrays(py, &per_lane)
    }

    #[getter]
    fn path_cells<'py>(&self, py: Python<'py>) -> CellArrays<'py> {
        self.cells_of(py, Level::Path)
    }

    #[getter]
    fn logical_cells<'py>(&self, py: Python<'py>) -> CellArrays<'py> {
        self.cells_of(py, Level::Logical)
    }
}

impl EpochStats {
    fn counts_of<'py>(&self, py: Python<'py>, level: Level) -> PyResult<Bound<'py, PyArray3<u64>>> {
        let mut sums = match &self.epoch {
            AnyEpoch::Open(epoch) => py.detach(|| epoch.counted.sums(level)),
            AnyEpoch::Closed(epoch) => epoch.sums[level as usize].clone(),
        };
        let rows = self.rows.of(level);
        sums.resize(rows, [Sums::default(); 2]);
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
        PyArray1::from_iter(py, values).reshape([rows, 2, 6])
    }

    fn peaks_of<'py>(&self, py: Python<'py>, level: Level) -> PyResult<Bound<'py, PyArray3<u64>>> {
        let peaks = match (&self.epoch, level) {
            (AnyEpoch::Open(epoch), _) => epoch.peaks(level),
            (AnyEpoch::Closed(epoch), Level::Logical) => epoch.logical_peaks.clone(),
            (AnyEpoch::Closed(epoch), _) => epoch.peaks.clone(),
        };
        let count = self.rows.of(level);
        let rows = (0..count).map(|row| peaks.target(row).copied().unwrap_or_default());
        let values = rows
            .chain([*peaks.overall()])
            .flatten()
            .flat_map(|peak: PeakSum| [peak.sum_ns, peak.seconds]);
        PyArray1::from_iter(py, values).reshape([count + 1, 3, 2])
    }

    fn cells_of<'py>(&self, py: Python<'py>, level: Level) -> CellArrays<'py> {
        let per_lane = py.detach(|| match &self.epoch {
            AnyEpoch::Open(epoch) => listed(&epoch.counted.counts(level)),
            AnyEpoch::Closed(epoch) => unpacked(&epoch.cells[level as usize]),
        });
        arrays(py, &per_lane)
    }
}

type LaneCells = [Vec<(u16, u64)>; 2];

fn listed(counts: &[[Counts; 2]]) -> Vec<LaneCells> {
    let of_target = |lanes: &[Counts; 2]| lanes.each_ref().map(|lane| lane.cells().collect());
    counts.iter().map(of_target).collect()
}

fn unpacked(cells: &[[PackedCells; 2]]) -> Vec<LaneCells> {
    let of_target = |lanes: &[PackedCells; 2]| lanes.each_ref().map(PackedCells::cells);
    cells.iter().map(of_target).collect()
}

fn arrays<'py>(py: Python<'py>, per_lane: &[LaneCells]) -> CellArrays<'py> {
    let mut cells: Vec<Cell> = Vec::new();
    for (target, lanes) in per_lane.iter().enumerate() {
        for (direction, lane) in (0_u8..).zip(lanes) {
            let cell = |(bucket, count): &(u16, u64)| (target, direction, *bucket, *count);
            cells.extend(lane.iter().map(cell));
        }
    }
    cell_arrays(py, &cells)
}
