//! Sparse histograms as numpy columns.

use numpy::PyArray1;
use pyo3::prelude::*;

use crate::load::epochs::timeline::Cell;

/// Target, series, bucket, count.
pub type CellArrays<'py> = (
    Bound<'py, PyArray1<u32>>,
    Bound<'py, PyArray1<u8>>,
    Bound<'py, PyArray1<u16>>,
    Bound<'py, PyArray1<u64>>,
);

pub fn cell_arrays<'py>(py: Python<'py>, cells: &[Cell]) -> CellArrays<'py> {
    (
        PyArray1::from_iter(
            py,
            cells
                .iter()
                .map(|cell| u32::try_from(cell.0).unwrap_or(u32::MAX)),
        ),
        PyArray1::from_iter(py, cells.iter().map(|cell| cell.1)),
        PyArray1::from_iter(py, cells.iter().map(|cell| cell.2)),
        PyArray1::from_iter(py, cells.iter().map(|cell| cell.3)),
    )
}
