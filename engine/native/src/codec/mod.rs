//! Compact, bounded encoding of raw counters and histograms for session files.

mod bytes;
mod cells;
mod guess;
mod integers;
mod table;

use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use bytes::Damage;
use cells::Cell;
use table::TableState;

impl From<Damage> for PyErr {
    fn from(damage: Damage) -> Self {
        PyValueError::new_err(format!("session data: {}", damage.0))
    }
}

/// The values of one table as of the last tick encoded or decoded.
#[pyclass(module = "engine._native")]
struct TableCodec(TableState);

#[pymethods]
impl TableCodec {
    #[new]
    fn new(rows: usize, columns: usize) -> PyResult<Self> {
        Ok(Self(TableState::new(rows, columns)?))
    }

    fn encode<'py>(
        &mut self,
        py: Python<'py>,
        values: &Bound<'py, PyArray2<u64>>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        if values.shape() != self.0.shape() {
            return Err(Damage("values have another shape").into());
        }
        let values = values.try_readonly()?;
        let values = values.as_slice()?;
        let bytes = py.detach(|| self.0.encode(values))?;
        Ok(PyBytes::new(py, &bytes))
    }

    fn apply(&mut self, py: Python<'_>, data: &[u8]) -> PyResult<()> {
        Ok(py.detach(|| self.0.apply(data))?)
    }

    fn values<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<u64>>> {
        PyArray1::from_slice(py, self.0.values()).reshape(self.0.shape())
    }

    fn settle(&mut self) {
        self.0.settle();
    }

    fn rearranged(&self, py: Python<'_>, source: &Bound<'_, PyArray1<i64>>) -> PyResult<Self> {
        let source = source.try_readonly()?;
        let source = source.as_slice()?;
        Ok(Self(py.detach(|| self.0.rearranged(source))?))
    }

    fn copy(&self) -> Self {
        Self(self.0.clone())
    }
}

#[pyfunction]
fn encode_cells<'py>(
    py: Python<'py>,
    row: &Bound<'py, PyArray1<u32>>,
    series: &Bound<'py, PyArray1<u8>>,
    bucket: &Bound<'py, PyArray1<u16>>,
    count: &Bound<'py, PyArray1<u64>>,
) -> PyResult<Bound<'py, PyBytes>> {
    let (row, series) = (row.try_readonly()?, series.try_readonly()?);
    let (bucket, count) = (bucket.try_readonly()?, count.try_readonly()?);
    let (row, series) = (row.as_slice()?, series.as_slice()?);
    let (bucket, count) = (bucket.as_slice()?, count.as_slice()?);
    if [series.len(), bucket.len(), count.len()] != [row.len(); 3] {
        return Err(PyValueError::new_err(
            "histogram cells: arrays differ in length",
        ));
    }
    let bytes = py.detach(|| {
        let cell = |at: usize| Cell {
            row: row[at],
            series: series[at],
            bucket: bucket[at],
            count: count[at],
        };
        cells::encode((0..row.len()).map(cell).collect())
    })?;
    Ok(PyBytes::new(py, &bytes))
}

type CellArrays<'py> = (
    Bound<'py, PyArray1<u32>>,
    Bound<'py, PyArray1<u8>>,
    Bound<'py, PyArray1<u16>>,
    Bound<'py, PyArray1<u64>>,
);

#[pyfunction]
fn decode_cells<'py>(py: Python<'py>, data: &[u8]) -> PyResult<CellArrays<'py>> {
    let cells = py.detach(|| cells::decode(data))?;
    Ok((
        cells
            .iter()
            .map(|cell| cell.row)
            .collect::<Vec<_>>()
            .into_pyarray(py),
        cells
            .iter()
            .map(|cell| cell.series)
            .collect::<Vec<_>>()
            .into_pyarray(py),
        cells
            .iter()
            .map(|cell| cell.bucket)
            .collect::<Vec<_>>()
            .into_pyarray(py),
        cells
            .iter()
            .map(|cell| cell.count)
            .collect::<Vec<_>>()
            .into_pyarray(py),
    ))
}

#[pyfunction]
fn compress<'py>(py: Python<'py>, data: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
    let packed = py
        .detach(|| bytes::compress(data))
        .ok_or(Damage("zstd cannot compress this"))?;
    Ok(PyBytes::new(py, &packed))
}

#[pyfunction]
fn decompress<'py>(py: Python<'py>, data: &[u8], limit: usize) -> PyResult<Bound<'py, PyBytes>> {
    let raw = py.detach(|| bytes::decompress(data, limit))?;
    Ok(PyBytes::new(py, &raw))
}

/// Adds this part's classes and functions to the native module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<TableCodec>()?;
    module.add_function(wrap_pyfunction!(encode_cells, module)?)?;
    module.add_function(wrap_pyfunction!(decode_cells, module)?)?;
    module.add_function(wrap_pyfunction!(compress, module)?)?;
    module.add_function(wrap_pyfunction!(decompress, module)?)
}
