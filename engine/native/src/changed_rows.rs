//! Rows of a table of counters that need arithmetic: they changed, or lack a value.

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::counter_deltas::MISSING;

/// Whether a row differs from what it was, or lacks a value of a column that is required.
///
/// `required` is 1 for a column that must be there, else 0.
fn is_changed(before: &[u64], now: &[u64], required: &[u64]) -> bool {
    // A disk that is read from differs in its first counter; the loop, without an early end, is vectorised.
    if before.first() != now.first() {
        return true;
    }
    let mut difference = 0;
    let mut missing = 0;
    for ((before, now), required) in before.iter().zip(now).zip(required) {
        difference |= before ^ now;
        // The highest bit of `x | -x` is 0 for x = 0 only; a comparison of 64 bits would not be vectorised.
        let inverse = now ^ MISSING;
        missing |= (!(inverse | inverse.wrapping_neg()) >> 63) & required;
    }
    difference != 0 || missing != 0
}

#[pyfunction]
#[expect(
    clippy::needless_pass_by_value,
    reason = "pyo3 hands arrays over by value"
)]
pub fn changed_rows<'py>(
    py: Python<'py>,
    before: PyReadonlyArray2<'py, u64>,
    now: PyReadonlyArray2<'py, u64>,
    required: PyReadonlyArray1<'py, bool>,
) -> PyResult<Bound<'py, PyArray1<bool>>> {
    let (rows, columns) = (now.shape()[0], now.shape()[1]);
    if before.shape() != now.shape() || required.len() != columns {
        return Err(PyValueError::new_err(
            "before, now and required are of different shapes",
        ));
    }
    let (before, now) = (before.as_slice()?, now.as_slice()?);
    let required: Vec<u64> = required
        .as_slice()?
        .iter()
        .copied()
        .map(u64::from)
        .collect();
    let changed = if columns == 0 {
        vec![false; rows]
    } else {
        let pairs = before.chunks_exact(columns).zip(now.chunks_exact(columns));
        pairs
            .map(|(before, now)| is_changed(before, now, &required))
            .collect()
    };
    Ok(changed.into_pyarray(py))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_changed_by_any_column_or_by_a_missing_one_that_is_required() {
        let required = [1, 0];
        assert!(!is_changed(&[1, MISSING], &[1, MISSING], &required));
        assert!(is_changed(&[1, 2], &[1, 3], &required));
        assert!(is_changed(&[0, 2], &[1, 2], &required));
        assert!(is_changed(&[MISSING, 2], &[MISSING, 2], &required));
    }
}
