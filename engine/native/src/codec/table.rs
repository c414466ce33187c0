//! Tables of raw values as differences from the table before, with rows that did not change left out.
//!
//! All arithmetic wraps, so that resets, 32-bit wraps and the mark of a missing value (2^64 - 1) are differences
//! like any other.

use super::bytes::{Checked, Damage, Reader, write_section, write_varint};
use super::guess::{Guess, read_guesses, write_guesses};
use super::integers::{BitReader, BitWriter, Lengths, unzigzag, zigzag};

/// More cells than any host has; what a hostile file can make us allocate is bounded by it.
pub const MAX_CELLS: usize = 1 << 23;

/// Values as of one tick and how they moved to get there.
#[derive(Clone)]
pub struct TableState {
    rows: usize,
    columns: usize,
    values: Vec<u64>,
    trend: Vec<u64>,
    /// Rows that moved last time; the trend of all others is zero.
    active: Vec<bool>,
}

impl TableState {
    /// All zero.
    pub fn new(rows: usize, columns: usize) -> Checked<Self> {
        let cells = rows
            .checked_mul(columns)
            .filter(|&cells| cells <= MAX_CELLS && rows <= MAX_CELLS);
        let cells = cells.ok_or(Damage("table too large"))?;
        Ok(Self {
            rows,
            columns,
            values: vec![0; cells],
            trend: vec![0; cells],
            active: vec![false; rows],
        })
    }

    pub fn shape(&self) -> [usize; 2] {
        [self.rows, self.columns]
    }

    pub fn values(&self) -> &[u64] {
        &self.values
    }

    /// Forgets how the values moved, as the next difference is from a tick further away.
    pub fn settle(&mut self) {
        self.trend.fill(0);
        self.active.fill(false);
    }

    /// The same values for other rows: row i is the old row `source[i]`, or zero where that is negative.
    pub fn rearranged(&self, source: &[i64]) -> Checked<Self> {
        let mut moved = Self::new(source.len(), self.columns)?;
        for (row, &from) in source.iter().enumerate().filter(|(_, from)| **from >= 0) {
            let from = usize::try_from(from)
                .ok()
                .filter(|&from| from < self.rows)
                .ok_or(Damage("no such row"))?;
            let (to, from_cells) = (moved.cells(row), self.cells(from));
            moved.values[to.clone()].copy_from_slice(&self.values[from_cells.clone()]);
            moved.trend[to].copy_from_slice(&self.trend[from_cells]);
            moved.active[row] = self.active[from];
        }
        Ok(moved)
    }

    /// Differences that lead to `current`, which becomes the state.
    pub fn encode(&mut self, current: &[u64]) -> Checked<Vec<u8>> {
        if current.len() != self.values.len() {
            return Err(Damage("values have another shape"));
        }
        let mut out = Vec::new();
        let active: Vec<bool> = (0..self.rows)
            .map(|row| current[self.cells(row)] != self.values[self.cells(row)])
            .collect();
        self.write_toggles(&mut out, &active);
        let moving: Vec<usize> = (0..self.rows).filter(|&row| active[row]).collect();
        if !moving.is_empty() {
            let guesses = self.guess(current, &moving);
            write_guesses(&mut out, guesses.iter().map(|&(guess, _)| guess));
            write_section(&mut out, &self.residuals(current, &moving, &guesses));
        }
        self.advance(active, &moving, |state, cell| {
            current[cell].wrapping_sub(state.values[cell])
        });
        Ok(out)
    }

    /// Undoes [`Self::encode`]; after an error the state is as before.
    pub fn apply(&mut self, bytes: &[u8]) -> Checked<()> {
        let mut reader = Reader::new(bytes);
        let active = self.read_toggles(&mut reader)?;
        let moving: Vec<usize> = (0..self.rows).filter(|&row| active[row]).collect();
        let mut guesses = vec![Guess::Same; self.columns];
        let mut residuals = Vec::new();
        if !moving.is_empty() {
            guesses = read_guesses(&mut reader, self.columns)?;
            let coded = guesses.iter().filter(|guess| guess.coded()).count();
            residuals = read_columns(&mut reader, coded, moving.len())?;
        }
        reader.finish()?;
        let differences = self.differences(&residuals, &moving, &guesses);
        let mut next = differences.into_iter();
        self.advance(active, &moving, |_, _| next.next().unwrap_or(0));
        Ok(())
    }

    fn cells(&self, row: usize) -> std::ops::Range<usize> {
        row * self.columns..(row + 1) * self.columns
    }

    /// Advances the state by one difference per cell of the changed rows, in row order.
    fn advance(
        &mut self,
        active: Vec<bool>,
        moving: &[usize],
        mut difference: impl FnMut(&Self, usize) -> u64,
    ) {
        for row in (0..self.rows).filter(|&row| self.active[row] && !active[row]) {
            let cells = self.cells(row);
            self.trend[cells].fill(0);
        }
        for &row in moving {
            for cell in self.cells(row) {
                let step = difference(self, cell);
                self.values[cell] = self.values[cell].wrapping_add(step);
                self.trend[cell] = step;
            }
        }
        self.active = active;
    }

    /// Writes which rows started or stopped moving: mostly none, as the same ones are busy for long.
    fn write_toggles(&self, out: &mut Vec<u8>, active: &[bool]) {
        let toggles: Vec<usize> = (0..self.rows)
            .filter(|&row| active[row] != self.active[row])
            .collect();
        write_varint(out, toggles.len() as u64);
        let mut next = 0;
        for row in toggles {
            write_varint(out, (row - next) as u64);
            next = row + 1;
        }
    }

    fn read_toggles(&self, reader: &mut Reader<'_>) -> Checked<Vec<bool>> {
        let mut active = self.active.clone();
        let mut next = 0;
        for _ in 0..reader.count(self.rows)? {
            let row = next + reader.count(self.rows)?;
            let flag = active.get_mut(row).ok_or(Damage("no such row"))?;
            *flag = !*flag;
            next = row + 1;
        }
        Ok(active)
    }

    /// How to encode each column, and the parameter of its numbers.
    fn guess(&self, current: &[u64], moving: &[usize]) -> Vec<(Guess, u32)> {
        let mut lengths = vec![(Lengths::new(), Lengths::new()); self.columns];
        for &row in moving {
            for (cell, (level, trend)) in self.cells(row).zip(&mut lengths) {
                let step = current[cell].wrapping_sub(self.values[cell]);
                level.add(zigzag(step));
                trend.add(zigzag(step.wrapping_sub(self.trend[cell])));
            }
        }
        let pick = |(level, trend): (Lengths, Lengths)| {
            if level.all_zero() {
                return (Guess::Same, 0);
            }
            if trend.all_zero() {
                return (Guess::Onward, 0);
            }
            let ((level_k, level_cost), (trend_k, trend_cost)) = (level.best(), trend.best());
            if level_cost <= trend_cost {
                (Guess::Level, level_k)
            } else {
                (Guess::Trend, trend_k)
            }
        };
        lengths.into_iter().map(pick).collect()
    }

    /// Column by column, since neighbours in a column are alike.
    fn residuals(&self, current: &[u64], moving: &[usize], guesses: &[(Guess, u32)]) -> Vec<u8> {
        let mut bits = BitWriter::with_capacity(moving.len() * self.columns);
        let mut residuals = Vec::with_capacity(moving.len());
        for (column, &(guess, k)) in guesses
            .iter()
            .enumerate()
            .filter(|(_, (guess, _))| guess.coded())
        {
            residuals.clear();
            residuals.extend(moving.iter().map(|row| {
                let cell = row * self.columns + column;
                let step = current[cell].wrapping_sub(self.values[cell]);
                zigzag(if guess == Guess::Trend {
                    step.wrapping_sub(self.trend[cell])
                } else {
                    step
                })
            }));
            bits.list(&residuals, k);
        }
        bits.finish()
    }

    /// What [`Self::residuals`] stood for, row by row.
    fn differences(&self, residuals: &[u64], moving: &[usize], guesses: &[Guess]) -> Vec<u64> {
        let mut differences = vec![0; moving.len() * self.columns];
        let mut coded = residuals.chunks_exact(moving.len().max(1));
        for (column, guess) in guesses.iter().enumerate() {
            let residuals = if guess.coded() {
                coded.next().unwrap_or(&[])
            } else {
                &[]
            };
            for (position, &row) in moving.iter().enumerate() {
                let residual = residuals.get(position).copied().map_or(0, unzigzag);
                let trend = self.trend[row * self.columns + column];
                differences[position * self.columns + column] = match guess {
                    Guess::Same | Guess::Level => residual,
                    Guess::Trend | Guess::Onward => residual.wrapping_add(trend),
                };
            }
        }
        differences
    }
}

fn read_columns(reader: &mut Reader<'_>, columns: usize, rows: usize) -> Checked<Vec<u64>> {
    let bytes = reader.section(columns * BitReader::most_bytes(rows))?;
    let mut bits = BitReader::new(&bytes);
    let mut residuals = Vec::with_capacity(columns * rows);
    for _ in 0..columns {
        residuals.extend(bits.list(rows)?);
    }
    bits.finish()?;
    Ok(residuals)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticks() -> Vec<Vec<u64>> {
        let start: Vec<u64> = (0..60).map(|cell| cell * 1_000_003).collect();
        let mut ticks = vec![start];
        for tick in 1..50_u64 {
            let mut next = ticks[ticks.len() - 1].clone();
            for row in 0..10_u32 {
                if (u64::from(row) + tick) % 3 != 0 {
                    let cell = row as usize * 6;
                    next[cell] += 900 + (tick * u64::from(row)) % 17;
                    next[cell + 1] = if tick % 7 == 0 { u64::MAX } else { tick };
                    next[cell + 2] = next[cell + 2].wrapping_sub(tick << (row * 6));
                    next[cell + 3] += 8;
                }
            }
            ticks.push(next);
        }
        ticks
    }

    #[test]
    fn a_run_of_ticks_comes_back() {
        let (mut writer, mut reader) = (
            TableState::new(10, 6).unwrap(),
            TableState::new(10, 6).unwrap(),
        );
        for values in ticks() {
            reader.apply(&writer.encode(&values).unwrap()).unwrap();
            assert_eq!(reader.values(), values);
            assert_eq!(writer.values(), values);
        }
    }

    #[test]
    fn what_stays_costs_a_byte() {
        let mut state = TableState::new(1000, 21).unwrap();
        let values = vec![7; 21_000];
        state.encode(&values).unwrap();
        state.settle();
        assert_eq!(state.encode(&values).unwrap(), [0]);
    }

    #[test]
    fn rows_move_with_their_history() {
        let mut state = TableState::new(3, 2).unwrap();
        state.encode(&[1, 2, 3, 4, 5, 6]).unwrap();
        let mut moved = state.rearranged(&[2, -1, 0]).unwrap();
        assert_eq!(moved.values(), [5, 6, 0, 0, 1, 2]);
        assert!(state.rearranged(&[3]).is_err());
        moved
            .clone()
            .apply(&moved.encode(&[10, 12, 9, 9, 2, 4]).unwrap())
            .unwrap();
    }

    #[test]
    fn a_bad_string_leaves_the_state_alone() {
        let mut writer = TableState::new(10, 6).unwrap();
        let mut reader = writer.clone();
        let strings: Vec<_> = ticks()
            .iter()
            .map(|values| writer.encode(values).unwrap())
            .collect();
        reader.apply(&strings[0]).unwrap();
        let before = reader.values().to_vec();
        for length in 0..strings[1].len() {
            assert!(reader.apply(&strings[1][..length]).is_err());
            assert_eq!(reader.values(), before);
        }
    }

    #[test]
    fn absurd_shapes_are_refused() {
        assert!(TableState::new(usize::MAX, 2).is_err());
        assert!(TableState::new(usize::MAX, 0).is_err());
        assert!(TableState::new(1 << 20, 1 << 10).is_err());
    }
}
