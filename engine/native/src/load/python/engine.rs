//! `LoadEngine`.

use std::sync::{Arc, Mutex};

use numpy::{PyArray1, PyArray2, PyArrayMethods};
use pyo3::prelude::*;

use super::arguments::{KnobsArgument, SettingsArgument};
use super::cells::{CellArrays, cell_arrays};
use super::epoch::EpochStats;
use super::numbers::seconds;
use super::rows::{
    COUNTER_COLUMNS, PATH_COLUMNS, SLOW_COLUMNS, counter_row, path_row, slow_row, sums_row,
};
use super::target::LoadTarget;
use super::verify::{DamageRow, VerifyPass, damage_row};
use crate::load::engine::Engine;
use crate::load::epochs::timeline::AnyEpoch;
use crate::load::system::lock::lock;
use crate::load::targets::target::Target;
use crate::load::verify::{Pass, Reference};

#[pyclass(module = "engine._native", frozen)]
pub struct LoadEngine {
    engine: Engine,
    /// Knobs of every epoch as Python gave them; held while turning, so that indices agree.
    epoch_knobs: Mutex<Vec<Arc<Py<PyAny>>>>,
}

#[pymethods]
impl LoadEngine {
    #[new]
    fn new(
        py: Python<'_>,
        targets: Vec<Bound<'_, LoadTarget>>,
        knobs: Bound<'_, PyAny>,
        settings: SettingsArgument,
    ) -> PyResult<Self> {
        let options = settings.checked(targets.len())?;
        let targets = targets
            .into_iter()
            .map(|target| Arc::clone(&target.get().0))
            .collect();
        let checked = knobs.extract::<KnobsArgument>()?.checked()?;
        let engine = py.detach(|| Engine::new(targets, &checked, options))?;
        Ok(Self {
            engine,
            epoch_knobs: Mutex::new(vec![Arc::new(knobs.unbind())]),
        })
    }

    fn start(&self, py: Python<'_>) -> PyResult<()> {
        Ok(py.detach(|| self.engine.start())?)
    }

    fn end_after(&self, py: Python<'_>, runtime_s: Option<f64>) -> PyResult<()> {
        let runtime = runtime_s
            .map(|runtime_s| seconds("runtime_s", runtime_s))
            .transpose()?;
        py.detach(|| self.engine.end_after(runtime));
        Ok(())
    }

    fn apply(&self, py: Python<'_>, knobs: Bound<'_, PyAny>) -> PyResult<u32> {
        let checked = knobs.extract::<KnobsArgument>()?.checked()?;
        let knobs = Arc::new(knobs.unbind());
        py.detach(|| {
            let mut turns = lock(&self.epoch_knobs);
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
    fn done(&self) -> bool {
        self.engine.done()
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
        let rows = py.detach(|| self.engine.readings().counters());
        let count = rows.len();
        let values = rows.iter().flat_map(counter_row);
        PyArray1::from_iter(py, values).reshape([count, COUNTER_COLUMNS])
    }

    fn cells<'py>(&self, py: Python<'py>) -> CellArrays<'py> {
        let cells = py.detach(|| self.engine.readings().cells());
        cell_arrays(py, &cells)
    }

    fn path_counters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<u64>>> {
        let rows = py.detach(|| self.engine.readings().paths());
        let count = rows.len();
        let values = rows.into_iter().flat_map(path_row);
        PyArray1::from_iter(py, values).reshape([count, PATH_COLUMNS])
    }

    fn logical_counters<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u64>> {
        let sums = py.detach(|| self.engine.readings().logical());
        PyArray1::from_iter(py, sums_row(&sums))
    }

    fn logical_cells<'py>(&self, py: Python<'py>) -> CellArrays<'py> {
        let cells = py.detach(|| self.engine.readings().logical_cells());
        cell_arrays(py, &cells)
    }

    fn slowest<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<u64>>> {
        let ios = py.detach(|| self.engine.readings().slowest());
        let count = ios.len();
        let values = ios.into_iter().flat_map(slow_row);
        PyArray1::from_iter(py, values).reshape([count, SLOW_COLUMNS])
    }

    fn errors(&self, py: Python<'_>) -> Vec<(usize, &'static str, i32, u64, u64)> {
        let errors = py.detach(|| self.engine.readings().errors());
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
            let turns = lock(&self.epoch_knobs);
            let stats =
                |(index, (epoch, knobs)): (usize, (AnyEpoch, &Arc<Py<PyAny>>))| EpochStats {
                    index,
                    rows: self.engine.readings().rows(),
                    ns_per_tick: self.engine.readings().ns_of_ticks(1.0),
                    knobs: Arc::clone(knobs),
                    cpu: self.engine.readings().cpu_used(&epoch),
                    epoch,
                };
            self.engine
                .readings()
                .epochs()
                .into_iter()
                .zip(turns.iter())
                .enumerate()
                .map(stats)
                .collect()
        })
    }

    fn contents<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<u64>>> {
        let rows = self.engine.readings().contents();
        let count = rows.len();
        PyArray1::from_iter(py, rows.into_iter().flatten()).reshape([count, 3])
    }

    #[getter]
    fn verified_run(&self) -> u64 {
        self.engine
            .readings()
            .verifier()
            .map_or(0, |verifier| verifier.run)
    }

    fn verified<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<u64>>> {
        let count = self.engine.readings().targets().len();
        let row = |target: usize| {
            let sums = self.engine.readings().verifier().map(|verifier| {
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
        let Some(verifier) = self.engine.readings().verifier() else {
            return Vec::new();
        };
        let of = |target: usize| {
            let found = verifier.damage(target);
            found
                .into_iter()
                .map(move |range| (target, damage_row(&range)))
        };
        (0..self.engine.readings().targets().len())
            .flat_map(of)
            .collect()
    }

    fn final_passes(&self) -> Vec<VerifyPass> {
        let Some(verifier) = self.engine.readings().verifier() else {
            return Vec::new();
        };
        let pass = |(index, target): (usize, &Arc<Target>)| {
            let reference = Reference {
                home: verifier.home(index),
                write_map: Arc::clone(verifier.write_map(index)),
            };
            VerifyPass::of(Pass::new(Arc::clone(target), Some(reference), true))
        };
        self.engine
            .readings()
            .targets()
            .iter()
            .enumerate()
            .map(pass)
            .collect()
    }

    fn cpu_ns(&self) -> u64 {
        self.engine.readings().cpu_ns()
    }

    #[pyo3(signature = (at_least_s = 0.0))]
    fn outstanding<'py>(
        &self,
        py: Python<'py>,
        at_least_s: f64,
    ) -> PyResult<Bound<'py, PyArray2<u64>>> {
        let at_least = seconds("at_least_s", at_least_s)?;
        let rows = py.detach(|| self.engine.readings().outstanding(at_least));
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
