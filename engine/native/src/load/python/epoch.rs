//! `EpochStats`.

use std::sync::Arc;

use numpy::{PyArray1, PyArray2, PyArray3, PyArrayMethods};
use pyo3::prelude::*;

use super::cells::{CellArrays, cell_arrays};
use crate::load::cpu_span::CpuTimes;
use crate::load::packed::PackedCells;
use crate::load::peaks::PeakSum;
use crate::load::stats::{Direction, Sums};
use crate::load::timeline::AnyEpoch;

#[pyclass(module = "engine._native", frozen)]
pub struct EpochStats {
    pub index: usize,
    pub targets: usize,
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
    fn fsyncs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<u64>>> {
        let mut sums = match &self.epoch {
            AnyEpoch::Open(epoch) => py.detach(|| epoch.fsyncs()),
            AnyEpoch::Closed(epoch) => epoch.fsyncs.clone(),
        };
        sums.resize(self.targets, Sums::default());
        let values = sums
            .iter()
            .flat_map(|sums| [sums.ios, sums.latency_ns, sums.largest_ns, sums.errors]);
        PyArray1::from_iter(py, values).reshape([self.targets, 4])
    }

    #[getter]
    fn cpu_ns(&self) -> Option<(u64, u64, u64)> {
        self.cpu
            .map(|cpu| (cpu.engine_ns, cpu.host_busy_ns, cpu.host_ns))
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
