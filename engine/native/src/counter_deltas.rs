//! Changes of a table of counters over one interval. `collectors.derive.counter_deltas` is its only user.

use numpy::ndarray::Array2;
use numpy::{IntoPyArray, PyArray2, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// A value that the kernel does not give; `collectors.model.MISSING`.
pub const MISSING: u64 = u64::MAX;

/// The largest value of 32 bits.
const MASK32: u64 = u32::MAX as u64;

/// A larger change of a 32-bit counter is a decrease, not a wrap.
const PLAUSIBLE32: u64 = 1 << 31;

/// Rows of one tile: their old and new values of some 30 columns fit into the first-level cache.
const TILE: usize = 64;

/// How a column behaves from one sample to the next; `collectors.model.Kind`.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Counter,
    Counter32,
    Gauge,
    /// The amount, or the largest value, since the previous sample.
    SinceLast,
}

impl Kind {
    fn of(code: u8) -> PyResult<Self> {
        match code {
            0 => Ok(Self::Counter),
            1 => Ok(Self::Counter32),
            2 => Ok(Self::Gauge),
            3 => Ok(Self::SinceLast),
            _ => Err(PyValueError::new_err(format!(
                "{code} is no kind of a column: 0 to 3"
            ))),
        }
    }
}

/// `amount`, or NaN if it is unknown.
#[expect(
    clippy::cast_precision_loss,
    reason = "counters above 2^53 lose their last digits, as in every float64"
)]
fn unless(unknown: bool, amount: u64) -> f64 {
    if unknown { f64::NAN } else { amount as f64 }
}

/// Two tables of the same shape, row by row.
struct Tables<'a> {
    before: &'a [u64],
    now: &'a [u64],
    kinds: Vec<Kind>,
    /// Source of each column: the columns of one source are reset together.
    sources: &'a [u16],
    /// Largest change for which a decreased counter wrapped at 2^32; 0 if none does.
    wrap: u64,
}

impl Tables<'_> {
    /// The change of each column in each row, column by column.
    fn deltas(&self, rows: usize) -> Vec<f64> {
        let mut deltas = vec![0.0; rows * self.kinds.len()];
        let mut resets = Vec::new();
        for first in (0..rows).step_by(TILE) {
            let tile = first..rows.min(first + TILE);
            for column in 0..self.kinds.len() {
                let results = &mut deltas[column * rows..][tile.clone()];
                if self.fill(column, tile.start, results) {
                    self.correct(column, tile.start, results, &mut resets);
                }
            }
        }
        for (row, source) in resets {
            for (column, kind) in self.kinds.iter().enumerate() {
                if self.sources[column] == source && *kind != Kind::Gauge {
                    deltas[column * rows + row] = f64::NAN;
                }
            }
        }
        deltas
    }

    /// Old and new values of a column from a row on.
    fn pairs(&self, column: usize, first: usize) -> impl Iterator<Item = (u64, u64)> {
        let columns = self.kinds.len();
        let cells = first * columns + column..;
        let before = self.before[cells.clone()].iter().step_by(columns);
        before
            .copied()
            .zip(self.now[cells].iter().step_by(columns).copied())
    }

    /// Compute some rows of a column as if no counter decreased; returns whether one did.
    fn fill(&self, column: usize, first: usize, results: &mut [f64]) -> bool {
        let rows = results.iter_mut().zip(self.pairs(column, first));
        let mut decreased = false;
        match self.kinds[column] {
            Kind::Counter => rows.for_each(|(result, (before, now))| {
                decreased |= now < before;
                *result = unless(
                    now == MISSING || before == MISSING,
                    now.wrapping_sub(before),
                );
            }),
            Kind::Counter32 => rows.for_each(|(result, (before, now))| {
                let step = now.wrapping_sub(before) & MASK32;
                let unknown = now == MISSING || before == MISSING || step > PLAUSIBLE32;
                *result = unless(unknown, step);
            }),
            Kind::Gauge => rows.for_each(|(result, (_, now))| {
                *result = unless(now == MISSING, now);
            }),
            Kind::SinceLast => rows.for_each(|(result, (before, now))| {
                *result = unless(now == MISSING || before == MISSING, now);
            }),
        }
        decreased
    }

    /// Tell counters that wrapped from those whose source was reset: `resets` gets its row and number.
    fn correct(
        &self,
        column: usize,
        first: usize,
        results: &mut [f64],
        resets: &mut Vec<(usize, u16)>,
    ) {
        let rows = results.iter_mut().zip(self.pairs(column, first));
        for (row, (result, (before, now))) in (first..).zip(rows) {
            if now >= before || before == MISSING {
                continue;
            }
            let step = now.wrapping_sub(before) & MASK32;
            if before <= MASK32 && step <= self.wrap && self.wrap > 0 {
                *result = unless(false, step);
            } else {
                resets.push((row, self.sources[column]));
            }
        }
    }
}

#[pyfunction]
#[expect(
    clippy::needless_pass_by_value,
    reason = "pyo3 hands arrays over by value"
)]
pub fn counter_deltas<'py>(
    py: Python<'py>,
    before: PyReadonlyArray2<'py, u64>,
    now: PyReadonlyArray2<'py, u64>,
    kinds: PyReadonlyArray1<'py, u8>,
    sources: PyReadonlyArray1<'py, u16>,
    wrap: u64,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let (rows, columns) = (now.shape()[0], now.shape()[1]);
    if before.shape() != now.shape() || kinds.len() != columns || sources.len() != columns {
        return Err(PyValueError::new_err(
            "before, now, kinds and sources are of different shapes",
        ));
    }
    let kinds = kinds.as_slice()?.iter().map(|code| Kind::of(*code));
    let tables = Tables {
        before: before.as_slice()?,
        now: now.as_slice()?,
        kinds: kinds.collect::<PyResult<_>>()?,
        sources: sources.as_slice()?,
        wrap,
    };
    let deltas = Array2::from_shape_vec((columns, rows), tables.deltas(rows));
    let deltas = deltas.map_err(|error| PyValueError::new_err(error.to_string()))?;
    Ok(deltas.into_pyarray(py))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Changes as text.
    fn deltas(kinds: &[Kind], before: &[u64], now: &[u64], wrap: u64) -> Vec<String> {
        let tables = Tables {
            before,
            now,
            kinds: kinds.to_vec(),
            sources: &vec![0; kinds.len()],
            wrap,
        };
        let found = tables.deltas(now.len() / kinds.len());
        found.iter().map(f64::to_string).collect()
    }

    #[test]
    fn each_kind_has_its_own_change() {
        let kinds = [Kind::Counter, Kind::Counter32, Kind::Gauge, Kind::SinceLast];
        let found = deltas(&kinds, &[1, MASK32, 9, 9], &[8, 4, 2, 3], 0);
        assert_eq!(found, ["7", "5", "2", "3"]);
        let found = deltas(&kinds, &[MISSING; 4], &[8, 4, 2, 3], 0);
        assert_eq!(found, ["NaN", "NaN", "2", "NaN"]);
        let found = deltas(&kinds, &[1; 4], &[MISSING; 4], 0);
        assert_eq!(found, ["NaN"; 4]);
    }

    #[test]
    fn a_decrease_resets_its_row_but_not_gauges_or_other_rows() {
        let kinds = [Kind::Counter, Kind::Counter, Kind::Gauge];
        let found = deltas(&kinds, &[5, 1, 1, 5, 1, 1], &[4, 2, 3, 6, 2, 3], 0);
        assert_eq!(found, ["NaN", "1", "NaN", "1", "3", "3"]);
    }

    #[test]
    fn a_counter_of_a_32_bit_kernel_wraps_within_its_limit() {
        let (old, limit) = ([MASK32 - 1], 100);
        assert_eq!(deltas(&[Kind::Counter], &old, &[8], limit), ["10"]);
        assert_eq!(deltas(&[Kind::Counter], &old, &[99], limit), ["NaN"]);
        assert_eq!(deltas(&[Kind::Counter], &old, &[8], 0), ["NaN"]);
        let above = deltas(&[Kind::Counter], &[MASK32 + 9], &[8], limit);
        assert_eq!(above, ["NaN"]);
    }

    #[test]
    fn tiles_cover_every_row() {
        let rows = 2 * TILE + 3;
        let now: Vec<u64> = (0..2 * rows as u64).collect();
        let found = deltas(&[Kind::Counter, Kind::Gauge], &vec![0; 2 * rows], &now, 0);
        let expected = (0..2).flat_map(|column| (0..rows).map(move |row| 2 * row + column));
        assert!(
            found
                .into_iter()
                .eq(expected.map(|value| value.to_string()))
        );
    }
}
