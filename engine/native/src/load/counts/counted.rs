//! What all workers counted in an epoch, and its sums over them.

use super::histogram::Counts;
use super::levels::{Level, Levels, Rows, Served};
use super::stats::{Direction, Lane};
use super::sums::{Sums, Tally};

/// What one worker counts in an epoch. Before measuring begins and after it ended, I/Os go into `transient`.
struct Phases {
    transient: Levels,
    measured: Levels,
}

/// The counters of all workers; each worker writes its own.
pub struct Counted {
    rows: Rows,
    /// Targets that the knobs let be used; figures are of these.
    width: usize,
    phases: Vec<Phases>,
}

impl Counted {
    pub fn new(rows: Rows, width: usize, workers: impl Iterator<Item = Served>) -> Self {
        let phases = workers.map(|served| Phases {
            transient: Levels::new(&served, rows),
            measured: Levels::new(&served, rows),
        });
        Self {
            rows,
            width,
            phases: phases.collect(),
        }
    }

    /// Returns where a worker counts what it reaps while measuring.
    #[inline]
    pub fn measured_of(&self, worker: usize) -> &Levels {
        &self.phases[worker].measured
    }

    /// Returns where a worker counts what is not measured.
    #[inline]
    pub fn transient_of(&self, worker: usize) -> &Levels {
        &self.phases[worker].transient
    }

    /// Lanes of a row that were written to while measuring.
    pub fn measured(
        &self,
        level: Level,
        row: usize,
        direction: Direction,
    ) -> impl Iterator<Item = &Lane> {
        self.phases
            .iter()
            .filter_map(move |phases| phases.measured.used(level, row, direction))
    }

    fn transient(
        &self,
        level: Level,
        row: usize,
        direction: Direction,
    ) -> impl Iterator<Item = &Lane> {
        self.phases
            .iter()
            .filter_map(move |phases| phases.transient.used(level, row, direction))
    }

    /// All lanes of a row, measured or not.
    pub fn lanes(
        &self,
        level: Level,
        row: usize,
        direction: Direction,
    ) -> impl Iterator<Item = &Lane> {
        self.measured(level, row, direction)
            .chain(self.transient(level, row, direction))
    }

    /// Measured sums of every active target, path, or of logical I/Os.
    pub fn sums(&self, level: Level) -> Vec<[Sums; 2]> {
        self.per_row(level, |row, direction| {
            let mut sums = Sums::default();
            self.measured(level, row, direction)
                .for_each(|lane| sums.add(lane));
            sums
        })
    }

    /// Measured fsyncs of every target; at least one was made.
    pub fn fsyncs(&self) -> Vec<Sums> {
        let of_target = |target| {
            let mut sums = Sums::default();
            self.phases
                .iter()
                .filter_map(|phases| phases.measured.used_fsyncs(target))
                .for_each(|lane| sums.add(lane));
            sums
        };
        (0..self.width).map(of_target).collect()
    }

    /// Measured histograms of every active target, path, or of logical I/Os.
    pub fn counts(&self, level: Level) -> Vec<[Counts; 2]> {
        self.per_row(level, |row, direction| {
            self.tally(level, row, direction).counts
        })
    }

    /// Measured histograms of service times of every active target, where latencies are not.
    pub fn service_counts(&self) -> Vec<[Counts; 2]> {
        let level = Level::Target;
        self.per_row(level, |row, direction| {
            self.tally(level, row, direction).service_counts
        })
    }

    fn tally(&self, level: Level, row: usize, direction: Direction) -> Tally {
        let mut tally = Tally::default();
        self.measured(level, row, direction)
            .for_each(|lane| tally.add(lane));
        tally
    }

    /// For each target, how often it was the last of a measured logical I/O, and how long the others had waited.
    pub fn delays(&self) -> Vec<[u64; 2]> {
        let delay = |target| {
            let all = self
                .phases
                .iter()
                .filter_map(|phases| phases.measured.delay(target));
            all.fold([0, 0], |sum: [u64; 2], delay| {
                let [ios, waited_ns] = delay.read();
                [sum[0] + ios, sum[1] + waited_ns]
            })
        };
        (0..self.rows.targets).map(delay).collect()
    }

    pub fn transient_ios(&self) -> u64 {
        let mut sums = Sums::default();
        for target in 0..self.rows.targets {
            for direction in Direction::ALL {
                self.transient(Level::Target, target, direction)
                    .for_each(|lane| sums.add(lane));
            }
        }
        sums.ios
    }

    fn per_row<T>(&self, level: Level, one: impl Fn(usize, Direction) -> T) -> Vec<[T; 2]> {
        let rows = match level {
            Level::Target => self.width,
            _ => self.rows.of(level),
        };
        (0..rows)
            .map(|row| Direction::ALL.map(|direction| one(row, direction)))
            .collect()
    }
}
