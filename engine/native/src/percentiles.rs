//! Percentiles of many histograms at once, from their cells in any order.

use numpy::{IntoPyArray, PyArray2, PyArrayMethods, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Rank in thousandths of a percent, and the number of values below which there is no such percentile.
type Rank = (u32, u64);

const WHOLE: f64 = 100_000.0;
const NONE: i32 = -1;

/// One cell: `count` values of histogram `row` in `bucket`.
#[derive(Clone, Copy, Default)]
struct Cell {
    bucket: u16,
    count: u64,
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(ranked_buckets, module)?)
}

#[pyfunction]
#[expect(
    clippy::needless_pass_by_value,
    reason = "pyo3 hands over owned arrays"
)]
fn ranked_buckets<'py>(
    py: Python<'py>,
    row: PyReadonlyArray1<'py, u32>,
    bucket: PyReadonlyArray1<'py, u16>,
    count: PyReadonlyArray1<'py, u64>,
    rows: usize,
    ranks: Vec<Rank>,
) -> PyResult<Bound<'py, PyArray2<i32>>> {
    let (row, bucket, count) = (row.as_slice()?, bucket.as_slice()?, count.as_slice()?);
    if row.len() != bucket.len() || row.len() != count.len() {
        return Err(PyValueError::new_err("cells: arrays of different length"));
    }
    let found = py.detach(|| find(row, bucket, count, rows, &ranks));
    found.into_pyarray(py).reshape([ranks.len(), rows])
}

/// By rank, then by row.
fn find(row: &[u32], bucket: &[u16], count: &[u64], rows: usize, ranks: &[Rank]) -> Vec<i32> {
    let (mut cells, starts) = by_row(row, bucket, count, rows);
    let mut found = vec![NONE; rows * ranks.len()];
    for one in 0..rows {
        let mine = &mut cells[starts[one]..starts[one + 1]];
        if !mine.is_sorted_by_key(|cell| cell.bucket) {
            mine.sort_unstable_by_key(|cell| cell.bucket);
        }
        let total: f64 = mine.iter().map(|cell| as_float(cell.count)).sum();
        for (place, rank) in ranks.iter().enumerate() {
            found[place * rows + one] = bucket_of(mine, total, *rank);
        }
    }
    found
}

/// Cells gathered by row, and where those of each row begin.
fn by_row(row: &[u32], bucket: &[u16], count: &[u64], rows: usize) -> (Vec<Cell>, Vec<usize>) {
    let mut starts = vec![0; rows + 1];
    for one in row.iter().filter(|one| (**one as usize) < rows) {
        starts[*one as usize + 1] += 1;
    }
    for one in 0..rows {
        starts[one + 1] += starts[one];
    }
    let mut next = starts.clone();
    let mut cells = vec![Cell::default(); starts[rows]];
    for ((one, bucket), count) in row.iter().zip(bucket).zip(count) {
        let one = *one as usize;
        if one < rows {
            cells[next[one]] = Cell {
                bucket: *bucket,
                count: *count,
            };
            next[one] += 1;
        }
    }
    (cells, starts)
}

/// Bucket of the value of a rank, counted from the smallest.
fn bucket_of(cells: &[Cell], total: f64, (thousandths, least): Rank) -> i32 {
    if total < as_float(least) {
        return NONE;
    }
    let rank = (total * f64::from(thousandths) / WHOLE).ceil();
    let mut reached = 0.0;
    for cell in cells {
        reached += as_float(cell.count);
        if reached >= rank {
            return i32::from(cell.bucket);
        }
    }
    cells.last().map_or(NONE, |cell| i32::from(cell.bucket))
}

#[expect(
    clippy::cast_precision_loss,
    reason = "ranks beyond 2^53 values need not be exact"
)]
fn as_float(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_in_any_order_give_nearest_ranks() {
        let (row, bucket, count) = ([1, 0, 1, 7, 1], [9, 4, 3, 1, 9], [1, 1, 98, 5, 1]);
        let ranks = [(50_000, 1), (99_000, 100), (100_000, 1)];
        assert_eq!(
            find(&row, &bucket, &count, 3, &ranks),
            [4, 3, NONE, NONE, 9, NONE, 4, 9, NONE]
        );
    }

    #[test]
    fn empty_histograms_have_none() {
        assert_eq!(find(&[], &[], &[], 2, &[(50_000, 1)]), [NONE, NONE]);
        assert_eq!(find(&[0], &[3], &[0], 1, &[(50_000, 1)]), [NONE]);
    }
}
