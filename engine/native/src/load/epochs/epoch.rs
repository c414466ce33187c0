//! A stretch of a run in which no knob moved, and everything counted in it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock};

use super::closed_epoch::{ClosedEpoch, packed};
use super::opening::Opening;
use crate::load::counts::counted::Counted;
use crate::load::counts::cpu_span::{CpuSpan, CpuTimes};
use crate::load::counts::levels::{Level, Levels, Rows, Served};
use crate::load::counts::peaks::Peaks;
use crate::load::counts::policy_cost::PolicyCost;
use crate::load::counts::stats::{Direction, Lane};
use crate::load::data::memory::Memory;
use crate::load::knobs::Settings;
use crate::load::layout::fanout::FanOut;
use crate::load::pace::pacing::Pacer;
use crate::load::pace::schedule::Schedule;
use crate::load::pattern::Part;
use crate::load::system::clock::Instant;
use crate::load::system::lock::lock;

const NEVER: u64 = u64::MAX;

/// An epoch while it is, or may still be, written to.
pub struct Epoch {
    pub index: u32,
    pub settings: Arc<Settings>,
    pub turned: Instant,
    pub opening: Opening,
    /// Whether the page cache is turned on or off before it opens.
    pub mode_turns: bool,
    pub pacer: Option<Arc<Pacer>>,
    pub schedule: Option<Arc<Schedule>>,
    pub fan_out: Option<FanOut>,
    /// What synchronous reads go into.
    pub sink: Option<Arc<Memory>>,
    pub cpu: CpuSpan,
    pub policy_cost: PolicyCost,
    pub counted: Counted,
    redistributed: AtomicBool,
    start_ticks: AtomicU64,
    start_ns: AtomicU64,
    end_ticks: AtomicU64,
    end_ns: AtomicU64,
    peaks: Mutex<Peaks>,
    /// Arrivals skipped before measuring began and before it ended, per target.
    skipped: [OnceLock<Box<[u64]>>; 2],
    /// Peaks of logical I/Os.
    logical_peaks: Mutex<Peaks>,
}

/// How an epoch differs from the one before.
pub struct Turn {
    pub index: u32,
    pub settings: Arc<Settings>,
    pub turned: Instant,
    pub pacer: Option<Arc<Pacer>>,
    pub schedule: Option<Arc<Schedule>>,
    pub fan_out: Option<FanOut>,
    /// What synchronous reads go into.
    pub sink: Option<Arc<Memory>>,
    /// Whether it opens only once all older I/Os have completed.
    pub waits: bool,
    /// Whether the page cache is turned on or off before that.
    pub mode_turns: bool,
    /// Whether the depths are redistributed over another number of workers.
    pub redistribute: bool,
}

impl Epoch {
    pub fn new(turn: Turn, rows: Rows, workers: impl Iterator<Item = Served>) -> Self {
        Self {
            index: turn.index,
            turned: turn.turned,
            opening: if turn.waits {
                Opening::later()
            } else {
                Opening::at(turn.turned)
            },
            mode_turns: turn.mode_turns,
            pacer: turn.pacer,
            schedule: turn.schedule,
            fan_out: turn.fan_out,
            sink: turn.sink,
            cpu: CpuSpan::default(),
            policy_cost: PolicyCost::default(),
            counted: Counted::new(rows, turn.settings.width, workers),
            redistributed: AtomicBool::new(!turn.redistribute),
            start_ticks: AtomicU64::new(NEVER),
            start_ns: AtomicU64::new(NEVER),
            end_ticks: AtomicU64::new(NEVER),
            end_ns: AtomicU64::new(NEVER),
            peaks: Mutex::new(Peaks::new(turn.settings.width)),
            skipped: Default::default(),
            logical_peaks: Mutex::new(Peaks::new(1)),
            settings: turn.settings,
        }
    }

    /// What arrived before this epoch opened is not measured, whenever it completes.
    #[inline]
    pub fn levels_of<'a>(&'a self, part: &Part, worker: usize, levels: &'a Levels) -> &'a Levels {
        if part.intended_ticks != 0 && part.intended_ticks < self.opening.ticks() {
            self.counted.transient_of(worker)
        } else {
            levels
        }
    }

    /// Returns where a worker counts an I/O reaped at this moment.
    #[inline]
    pub fn levels(&self, worker: usize, reaped_ticks: u64) -> &Levels {
        let measuring = self.start_ticks.load(Relaxed) <= reaped_ticks
            && reaped_ticks < self.end_ticks.load(Relaxed);
        if measuring {
            self.counted.measured_of(worker)
        } else {
            self.counted.transient_of(worker)
        }
    }

    /// Whether workers may take their whole share of the depths. Before, each keeps within what its handle allows, so that
    /// no target exceeds its depth while slots move from one worker to another.
    pub fn is_redistributed(&self) -> bool {
        self.redistributed.load(Relaxed)
    }

    pub fn set_redistributed(&self) {
        self.redistributed.store(true, Relaxed);
    }

    pub fn start_ns(&self) -> Option<u64> {
        Some(self.start_ns.load(Relaxed)).filter(|ns| *ns != NEVER)
    }

    pub fn end_ns(&self) -> Option<u64> {
        Some(self.end_ns.load(Relaxed)).filter(|ns| *ns != NEVER)
    }

    /// Begins measuring: every outstanding I/O was issued under these knobs.
    pub fn begin(&self, now: Instant) {
        lock(&self.peaks).begin(now.ns);
        self.note_skipped(0, now);
        lock(&self.logical_peaks).begin(now.ns);
        self.start_ns.store(now.ns, Relaxed);
        self.start_ticks.store(now.ticks, Relaxed);
    }

    /// Ends measuring; what is reaped later counts as transient.
    pub fn end(&self, now: Instant) {
        self.note_skipped(1, now);
        self.end_ns.store(now.ns, Relaxed);
        self.end_ticks.store(now.ticks, Relaxed);
    }

    /// Ends the arrivals that do not go on in the next epoch, which every worker must have.
    pub fn retire(&self, next: &Self) {
        let Some(old) = &self.schedule else { return };
        let goes_on = |new: &Arc<Schedule>| Arc::ptr_eq(old, new);
        if !next.schedule.as_ref().is_some_and(goes_on) {
            old.end(next.turned.ticks);
        }
    }

    fn note_skipped(&self, index: usize, now: Instant) {
        if let Some(schedule) = &self.schedule {
            schedule.expire(now.ticks);
            self.skipped[index].get_or_init(|| schedule.skipped());
        }
    }

    /// Arrivals skipped while measuring, per target; nothing where there are none.
    pub fn skipped(&self) -> Vec<u64> {
        let (Some(before), Some(schedule)) = (self.skipped[0].get(), &self.schedule) else {
            return Vec::new();
        };
        let after = self.skipped[1].get().cloned();
        let after = after.unwrap_or_else(|| schedule.skipped());
        let pairs = after.iter().zip(before);
        pairs.map(|(after, before)| after - before).collect()
    }

    /// Takes the peaks of the second that has passed, if it has; how long until the next has.
    pub fn take_second(&self, now_ns: u64) -> u64 {
        let (mut peaks, mut logical) = (lock(&self.peaks), lock(&self.logical_peaks));
        if peaks.left_ns(now_ns) == 0 {
            self.fold_peaks(Level::Target, &mut peaks, now_ns);
            self.fold_peaks(Level::Logical, &mut logical, now_ns);
        }
        peaks.left_ns(now_ns)
    }

    /// Takes the peaks of the last, partial second; only once no worker writes into the measured blocks any more.
    pub fn take_last_second(&self) {
        let (mut peaks, mut logical) = (lock(&self.peaks), lock(&self.logical_peaks));
        if let Some(end_ns) = self
            .end_ns()
            .filter(|end_ns| peaks.remainder_counts(*end_ns))
        {
            self.fold_peaks(Level::Target, &mut peaks, end_ns);
            self.fold_peaks(Level::Logical, &mut logical, end_ns);
        }
    }

    fn fold_peaks(&self, level: Level, peaks: &mut Peaks, now_ns: u64) {
        let peak = |row, direction| {
            self.counted
                .measured(level, row, direction)
                .map(Lane::take_second_peak)
                .max()
                .unwrap_or(0)
        };
        peaks.fold(now_ns, |row| {
            Direction::ALL.map(|direction| peak(row, direction))
        });
    }

    pub fn peaks(&self, level: Level) -> Peaks {
        match level {
            Level::Logical => lock(&self.logical_peaks).clone(),
            _ => lock(&self.peaks).clone(),
        }
    }

    /// The same statistics in a few hundred bytes; only once no worker writes into the blocks any more.
    pub fn close(&self) -> ClosedEpoch {
        ClosedEpoch {
            turned_ns: self.turned.ns,
            start_ns: self.start_ns(),
            end_ns: self.end_ns(),
            transient_ios: self.counted.transient_ios(),
            sums: Level::ALL.map(|level| self.counted.sums(level)),
            fsyncs: self.counted.fsyncs(),
            cpu: self.cpu.used(CpuTimes::default),
            peaks: self.peaks(Level::Target),
            logical_peaks: self.peaks(Level::Logical),
            skipped: self.skipped(),
            service_cells: packed(&self.counted.service_counts()),
            cells: Level::ALL.map(|level| packed(&self.counted.counts(level))),
            delays: self.counted.delays(),
            policy_ticks: self.policy_cost.ticks_per_io(),
        }
    }
}
