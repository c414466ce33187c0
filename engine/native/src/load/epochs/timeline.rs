//! All epochs of a run, and the totals over them.

use std::sync::Arc;

use super::closed_epoch::ClosedEpoch;
use super::epoch::Epoch;
use crate::load::counts::histogram::Counts;
use crate::load::counts::levels::{Level, Rows};
use crate::load::counts::stats::Direction;
use crate::load::counts::sums::{Sums, Tally};

/// An epoch for readers. One that was open stays readable after it was closed.
#[derive(Clone)]
pub enum AnyEpoch {
    Open(Arc<Epoch>),
    Closed(Arc<ClosedEpoch>),
}

/// A cell of a histogram: target, series, bucket, count.
pub type Cell = (usize, u8, u16, u64);

/// The open epoch, the statistics of the closed ones, and what readers have taken.
pub struct Timeline {
    current: Arc<Epoch>,
    closed: Vec<Arc<ClosedEpoch>>,
    levels: [LevelTotals; 3],
}

/// Rows of one level.
struct LevelTotals {
    /// Everything counted in closed epochs, transients too.
    totals: Vec<[Tally; 2]>,
    /// What `take_cells` has returned.
    taken: Vec<[Counts; SERIES]>,
}

/// Latencies of reads and writes, then service times of both.
pub const SERIES: usize = 4;

impl Timeline {
    pub fn new(current: Arc<Epoch>, rows: Rows) -> Self {
        let levels = Level::ALL.map(|level| LevelTotals {
            totals: (0..rows.of(level)).map(|_| Default::default()).collect(),
            taken: (0..rows.of(level)).map(|_| Default::default()).collect(),
        });
        Self {
            current,
            closed: Vec::new(),
            levels,
        }
    }

    pub fn current(&self) -> &Arc<Epoch> {
        &self.current
    }

    /// Replaces an epoch in which nothing was issued.
    pub fn replace(&mut self, epoch: Arc<Epoch>) {
        self.current = epoch;
    }

    /// Opens the next epoch; every worker must have it already.
    pub fn turn(&mut self, next: Arc<Epoch>) {
        let ended = std::mem::replace(&mut self.current, next);
        ended.take_last_second();
        for level in Level::ALL {
            let totals = self.levels[level as usize].totals.iter_mut();
            for (row, tallies) in totals.enumerate() {
                for (tally, direction) in tallies.iter_mut().zip(Direction::ALL) {
                    ended.counted.lanes(level, row, direction).for_each(|lane| {
                        tally.add(lane);
                        tally.sums.take_peak(lane);
                    });
                }
            }
        }
        self.closed.push(Arc::new(ended.close()));
    }

    pub fn epochs(&self) -> Vec<AnyEpoch> {
        let closed = self.closed.iter().cloned().map(AnyEpoch::Closed);
        closed
            .chain([AnyEpoch::Open(Arc::clone(&self.current))])
            .collect()
    }

    /// Sums since the start per row of a level and direction; takes the peaks.
    pub fn take_sums(&mut self, level: Level) -> Vec<[Sums; 2]> {
        let current = &self.current;
        let sums = |(row, tallies): (usize, &mut [Tally; 2])| {
            Direction::ALL.map(|direction| {
                let tally = &mut tallies[direction as usize];
                let mut sums = tally.sums;
                tally.sums.peak_ns = 0;
                current
                    .counted
                    .lanes(level, row, direction)
                    .for_each(|lane| {
                        sums.add(lane);
                        sums.take_peak(lane);
                    });
                sums
            })
        };
        let totals = self.levels[level as usize].totals.iter_mut();
        totals.enumerate().map(sums).collect()
    }

    /// Histogram cells since the last call: row, series, bucket, count.
    pub fn take_cells(&mut self, level: Level) -> Vec<Cell> {
        let mut cells = Vec::new();
        let LevelTotals { totals, taken } = &mut self.levels[level as usize];
        for (row, (tallies, taken)) in totals.iter().zip(taken).enumerate() {
            for (series, direction) in (0_u8..).zip(Direction::ALL) {
                let mut now = Tally::default();
                let before = &tallies[direction as usize];
                now.counts.add_counts(&before.counts);
                now.service_counts.add_counts(&before.service_counts);
                self.current
                    .counted
                    .lanes(level, row, direction)
                    .for_each(|lane| now.add(lane));
                for (series, counts) in [(series, &now.counts), (series + 2, &now.service_counts)] {
                    let grown = counts.advance(&mut taken[usize::from(series)]);
                    let cell = |(bucket, count)| (row, series, bucket, count);
                    cells.extend(grown.into_iter().map(cell));
                }
            }
        }
        cells
    }
}
