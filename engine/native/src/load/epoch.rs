//! A stretch of a run in which no knob moved, and everything counted in it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock};

use super::arrival::Schedule;
use super::cpu_span::{CpuSpan, CpuTimes};
use super::fanout::FanOut;
use super::histogram::Counts;
use super::knobs::Settings;
use super::lock::lock;
use super::memory::Memory;
use super::pacing::Pacer;
use super::packed::PackedCells;
use super::pattern::Part;
use super::peaks::Peaks;
use super::stats::{Block, Direction, Lane, Sums, Tally};

/// An instant on both clocks: ticks are compared with stamps of I/Os, nanoseconds are shown.
#[derive(Clone, Copy, Debug)]
pub struct Instant {
    pub ticks: u64,
    pub ns: u64,
}

const NEVER: u64 = u64::MAX;

/// What one worker counts in an epoch. Before measuring begins and after it ended, I/Os go into `transient`.
struct Phases {
    transient: Block,
    measured: Block,
}

/// Which targets a worker serves.
#[derive(Clone, Copy, Debug)]
pub struct Served {
    pub first: usize,
    pub count: usize,
}

/// An epoch while it is, or may still be, written to.
pub struct Epoch {
    pub index: u32,
    pub settings: Arc<Settings>,
    pub turned: Instant,
    pub pacer: Option<Arc<Pacer>>,
    pub schedule: Option<Arc<Schedule>>,
    pub fan_out: Option<FanOut>,
    /// What synchronous reads go into.
    pub sink: Option<Arc<Memory>>,
    pub cpu: CpuSpan,
    targets: usize,
    phases: Vec<Phases>,
    dealt: AtomicBool,
    start_ticks: AtomicU64,
    start_ns: AtomicU64,
    end_ticks: AtomicU64,
    end_ns: AtomicU64,
    peaks: Mutex<Peaks>,
    /// Arrivals skipped before measuring began and before it ended, per target.
    skipped: [OnceLock<Box<[u64]>>; 2],
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
    /// Whether the depths are dealt to another number of workers.
    pub redeal: bool,
}

impl Epoch {
    pub fn new(turn: Turn, targets: usize, workers: impl Iterator<Item = Served>) -> Self {
        let phases = workers.map(|served| Phases {
            transient: Block::new(served.first, served.count),
            measured: Block::new(served.first, served.count),
        });
        Self {
            index: turn.index,
            turned: turn.turned,
            pacer: turn.pacer,
            schedule: turn.schedule,
            fan_out: turn.fan_out,
            sink: turn.sink,
            cpu: CpuSpan::default(),
            targets,
            phases: phases.collect(),
            dealt: AtomicBool::new(!turn.redeal),
            start_ticks: AtomicU64::new(NEVER),
            start_ns: AtomicU64::new(NEVER),
            end_ticks: AtomicU64::new(NEVER),
            end_ns: AtomicU64::new(NEVER),
            peaks: Mutex::new(Peaks::new(turn.settings.width)),
            skipped: Default::default(),
            settings: turn.settings,
        }
    }

    /// What arrived before the turn that opened this epoch is not measured, whenever it comes back.
    #[inline]
    pub fn block_of<'a>(&'a self, part: &Part, worker: usize, block: &'a Block) -> &'a Block {
        if part.intended_ticks != 0 && part.intended_ticks < self.turned.ticks {
            &self.phases[worker].transient
        } else {
            block
        }
    }

    /// Where a worker counts an I/O reaped at this moment.
    #[inline]
    pub fn block(&self, worker: usize, reaped_ticks: u64) -> &Block {
        let phases = &self.phases[worker];
        let measuring = self.start_ticks.load(Relaxed) <= reaped_ticks
            && reaped_ticks < self.end_ticks.load(Relaxed);
        if measuring {
            &phases.measured
        } else {
            &phases.transient
        }
    }

    /// Whether workers may take their whole share of the depths. Before, each keeps within what its seat allows, so that
    /// no target exceeds its depth while places move from one worker to another.
    pub fn is_dealt(&self) -> bool {
        self.dealt.load(Relaxed)
    }

    pub fn set_dealt(&self) {
        self.dealt.store(true, Relaxed);
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

    fn note_skipped(&self, place: usize, now: Instant) {
        if let Some(schedule) = &self.schedule {
            schedule.expire(now.ticks);
            self.skipped[place].get_or_init(|| schedule.skipped());
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
        let mut peaks = lock(&self.peaks);
        if peaks.left_ns(now_ns) == 0 {
            self.fold_peaks(&mut peaks, now_ns);
        }
        peaks.left_ns(now_ns)
    }

    /// Takes the peaks of the last, partial second; only once no worker writes into the measured blocks any more.
    pub fn take_last_second(&self) {
        let mut peaks = lock(&self.peaks);
        if let Some(end_ns) = self
            .end_ns()
            .filter(|end_ns| peaks.remainder_counts(*end_ns))
        {
            self.fold_peaks(&mut peaks, end_ns);
        }
    }

    fn fold_peaks(&self, peaks: &mut Peaks, now_ns: u64) {
        let peak = |target, direction| {
            self.measured(target, direction)
                .map(Lane::take_second_peak)
                .max()
                .unwrap_or(0)
        };
        peaks.fold(now_ns, |target| {
            Direction::ALL.map(|direction| peak(target, direction))
        });
    }

    fn measured(&self, target: usize, direction: Direction) -> impl Iterator<Item = &Lane> {
        self.phases
            .iter()
            .filter_map(move |phases| phases.measured.used(target, direction))
    }

    fn transient(&self, target: usize, direction: Direction) -> impl Iterator<Item = &Lane> {
        self.phases
            .iter()
            .filter_map(move |phases| phases.transient.used(target, direction))
    }

    /// All lanes of a target, measured or not.
    pub fn lanes(&self, target: usize, direction: Direction) -> impl Iterator<Item = &Lane> {
        self.measured(target, direction)
            .chain(self.transient(target, direction))
    }

    pub fn peaks(&self) -> Peaks {
        lock(&self.peaks).clone()
    }

    /// Measured sums of every active target.
    pub fn sums(&self) -> Vec<[Sums; 2]> {
        self.per_active_target(|target, direction| {
            let mut sums = Sums::default();
            self.measured(target, direction)
                .for_each(|lane| sums.add(lane));
            sums
        })
    }

    /// Measured fsyncs of every target, one or more of which were made.
    pub fn fsyncs(&self) -> Vec<Sums> {
        let of_target = |target| {
            let mut sums = Sums::default();
            self.phases
                .iter()
                .filter_map(|phases| phases.measured.used_fsyncs(target))
                .for_each(|lane| sums.add(lane));
            sums
        };
        (0..self.settings.width).map(of_target).collect()
    }

    /// Measured histograms of every active target.
    pub fn counts(&self) -> Vec<[Counts; 2]> {
        self.per_active_target(|target, direction| self.tally(target, direction).counts)
    }

    /// Measured histograms of service times, where latencies are not.
    pub fn service_counts(&self) -> Vec<[Counts; 2]> {
        self.per_active_target(|target, direction| self.tally(target, direction).service_counts)
    }

    fn tally(&self, target: usize, direction: Direction) -> Tally {
        let mut tally = Tally::default();
        self.measured(target, direction)
            .for_each(|lane| tally.add(lane));
        tally
    }

    pub fn transient_ios(&self) -> u64 {
        let mut sums = Sums::default();
        for target in 0..self.targets {
            for direction in Direction::ALL {
                self.transient(target, direction)
                    .for_each(|lane| sums.add(lane));
            }
        }
        sums.ios
    }

    fn per_active_target<T>(&self, one: impl Fn(usize, Direction) -> T) -> Vec<[T; 2]> {
        (0..self.settings.width)
            .map(|target| Direction::ALL.map(|direction| one(target, direction)))
            .collect()
    }

    /// The same statistics in a few hundred bytes; only once no worker writes into the blocks any more.
    pub fn close(&self) -> ClosedEpoch {
        ClosedEpoch {
            turned_ns: self.turned.ns,
            start_ns: self.start_ns(),
            end_ns: self.end_ns(),
            transient_ios: self.transient_ios(),
            sums: self.sums(),
            fsyncs: self.fsyncs(),
            cpu: self.cpu.used(CpuTimes::default),
            peaks: self.peaks(),
            skipped: self.skipped(),
            service_cells: packed(&self.service_counts()),
            cells: packed(&self.counts()),
        }
    }
}

fn packed(counts: &[[Counts; 2]]) -> Vec<[PackedCells; 2]> {
    let of_target = |counts: &[Counts; 2]| counts.each_ref().map(PackedCells::pack);
    counts.iter().map(of_target).collect()
}

/// An epoch that no worker writes to any more.
pub struct ClosedEpoch {
    pub turned_ns: u64,
    pub start_ns: Option<u64>,
    pub end_ns: Option<u64>,
    pub transient_ios: u64,
    pub sums: Vec<[Sums; 2]>,
    pub fsyncs: Vec<Sums>,
    pub cpu: Option<CpuTimes>,
    pub peaks: Peaks,
    /// Per target; empty where nothing arrives by a schedule.
    pub skipped: Vec<u64>,
    pub service_cells: Vec<[PackedCells; 2]>,
    pub cells: Vec<[PackedCells; 2]>,
}
