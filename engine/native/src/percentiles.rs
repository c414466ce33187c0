//! Percentiles of many rows of sparse log-linear histograms.

use numpy::{IntoPyArray, PyArray2, PyArrayMethods, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Larger octaves would overflow; only damaged recordings have them.
const LARGEST_OCTAVE: u32 = 63;
/// Percents are taken to the thousandth.
const WHOLE: u64 = 100_000;

/// A wanted percentile: its share in thousandths of a percent, and the I/Os a row must have for it.
struct Wanted {
    share: u64,
    minimum_ios: u64,
}

/// Log-linear buckets as in `collectors.model.HistogramScale`.
struct Scale {
    unit_ns: f64,
    sub_bits: u32,
}

impl Scale {
    /// Middle of the whole nanoseconds of a bucket.
    fn middle_ns(&self, bucket: u16) -> f64 {
        let bucket = u32::from(bucket);
        let octave = (bucket >> self.sub_bits).saturating_sub(1);
        let mantissa = bucket - (octave << self.sub_bits);
        let width = self.unit_ns * f64::from(octave.min(LARGEST_OCTAVE)).exp2();
        let low = f64::from(mantissa) * width;
        f64::midpoint(low, low + width - 1.0)
    }
}

/// Positions of the cells by row and bucket, as they are if they come so.
fn ordered(row: &[u32], bucket: &[u16]) -> Vec<usize> {
    let key = |at: &usize| (row[*at], bucket[*at]);
    let mut order: Vec<usize> = (0..row.len()).collect();
    if !order.is_sorted_by_key(key) {
        order.sort_unstable_by_key(key);
    }
    order
}

/// Nearest-rank percentiles of one row, whose cells come by bucket.
fn of_row(
    cells: &[(u16, u64)],
    wanted: &[Wanted],
    scale: &Scale,
    mut found: impl FnMut(usize, f64),
) {
    let ios: u64 = cells.iter().map(|cell| cell.1).sum();
    for (position, one) in wanted.iter().enumerate() {
        if ios < one.minimum_ios || ios == 0 {
            continue;
        }
        let rank = (u128::from(ios) * u128::from(one.share)).div_ceil(u128::from(WHOLE));
        let mut reached = 0_u128;
        for (bucket, count) in cells {
            reached += u128::from(*count);
            if reached >= rank {
                found(position, scale.middle_ns(*bucket));
                break;
            }
        }
    }
}

#[pyfunction]
#[pyo3(name = "percentiles")]
#[expect(
    clippy::too_many_arguments,
    clippy::needless_pass_by_value,
    reason = "the columns and scale of histogram cells"
)]
pub fn percentiles_of_rows<'py>(
    py: Python<'py>,
    row: PyReadonlyArray1<'py, u32>,
    bucket: PyReadonlyArray1<'py, u16>,
    count: PyReadonlyArray1<'py, u64>,
    rows: usize,
    wanted: Vec<(u64, u64)>,
    unit_ns: u32,
    sub_bits: u32,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let (row, bucket, count) = (row.as_slice()?, bucket.as_slice()?, count.as_slice()?);
    if row.len() != bucket.len() || row.len() != count.len() {
        return Err(PyValueError::new_err(
            "row, bucket and count have different lengths",
        ));
    }
    if sub_bits > 15 {
        return Err(PyValueError::new_err("sub_bits: more than 15"));
    }
    let wanted: Vec<Wanted> = wanted
        .into_iter()
        .map(|(share, minimum_ios)| Wanted { share, minimum_ios })
        .collect();
    let scale = Scale {
        unit_ns: f64::from(unit_ns),
        sub_bits,
    };
    let columns = wanted.len();
    let values = py.detach(|| {
        let mut values = vec![f64::NAN; columns * rows];
        let mut cells = Vec::new();
        for run in ordered(row, bucket).chunk_by(|one, next| row[*one] == row[*next]) {
            let at = row[run[0]] as usize;
            if at >= rows {
                break;
            }
            cells.clear();
            cells.extend(run.iter().map(|index| (bucket[*index], count[*index])));
            of_row(&cells, &wanted, &scale, |position, ns| {
                values[position * rows + at] = ns;
            });
        }
        values
    });
    values.into_pyarray(py).reshape([columns, rows])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(cells: &[(u16, u64)], share: u64, minimum_ios: u64) -> Option<f64> {
        let scale = Scale {
            unit_ns: 64.0,
            sub_bits: 4,
        };
        let mut result = None;
        let wanted = [Wanted { share, minimum_ios }];
        of_row(cells, &wanted, &scale, |_, ns| result = Some(ns));
        result
    }

    #[test]
    fn the_rank_lies_in_the_bucket_that_reaches_it() {
        let cells = [(0, 50), (16, 49), (32, 1)];
        assert_eq!(found(&cells, 50_000, 1), Some(31.5));
        assert_eq!(found(&cells, 99_000, 1), Some(16.0 * 64.0 + 31.5));
        assert_eq!(found(&cells, 99_900, 1), Some(16.0 * 128.0 + 63.5));
    }

    #[test]
    fn too_few_ios_have_no_percentile() {
        assert_eq!(found(&[(3, 999)], 99_900, 1_000), None);
        assert_eq!(found(&[(3, 0)], 50_000, 0), None);
        assert!(found(&[(3, 1_000)], 99_900, 1_000).is_some());
    }

    #[test]
    fn cells_may_come_in_any_order() {
        assert_eq!(ordered(&[1, 0, 1], &[5, 9, 2]), [1, 2, 0]);
    }
}
