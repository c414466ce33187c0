//! Readings of a run: counters, histograms, epochs, errors, and what is outstanding.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::shared_state::Core;
use super::slowest::SlowIo;
use crate::load::counts::cpu_span::CpuTimes;
use crate::load::counts::errors::ErrorCount;
use crate::load::counts::levels::{Level, Rows};
use crate::load::counts::outstanding::{Outstanding, Waiting};
use crate::load::counts::sums::Sums;
use crate::load::epochs::timeline::{AnyEpoch, Cell};
use crate::load::policy::PathState;
use crate::load::system::clock::Instant;
use crate::load::system::lock::lock;
use crate::load::targets::target::Target;
use crate::load::verify::Verifier;

/// One row of `counters`.
pub struct Counters {
    pub sums: [Sums; 2],
    pub in_flight: u64,
    pub queue_depth: u64,
    pub active: bool,
    pub failing: bool,
    pub epoch: u64,
    /// Arrivals that found no free slot in time.
    pub skipped: u64,
    /// Time that I/Os have been outstanding which still are, failed or were fsyncs.
    pub outstanding_ns: u64,
}

/// One row of `path_counters`.
pub struct PathCounters {
    pub target: usize,
    pub sums: [Sums; 2],
    /// State of the path; None for targets with one.
    pub state: Option<PathState>,
}

/// Reads a run, at any time of its life.
pub struct Readings<'a> {
    core: &'a Core,
}

impl<'a> Readings<'a> {
    pub fn new(core: &'a Core) -> Self {
        Self { core }
    }

    /// One row per target; takes the peaks.
    pub fn counters(&self) -> Vec<Counters> {
        let run = &self.core.run;
        let issued = self.issued(Duration::ZERO);
        let mut timeline = lock(&self.core.timeline);
        let sums = timeline.take_sums(Level::Target);
        let (epoch, worker_handles) = (timeline.current(), self.core.worker_handles());
        if let Some(schedule) = &epoch.schedule {
            schedule.expire(run.clock.now());
        }
        let row = |(target, sums): (usize, [Sums; 2])| {
            let active = target < epoch.settings.width;
            Counters {
                sums,
                in_flight: worker_handles
                    .iter()
                    .map(|handle| handle.in_flight(target))
                    .sum(),
                queue_depth: epoch.settings.depth_of(target) as u64,
                active,
                failing: run.failing(target),
                epoch: u64::from(epoch.index),
                skipped: run.skipped[target].load(Ordering::Relaxed),
                outstanding_ns: issued[target].waited_ns
                    + run.unlisted_ns[target].load(Ordering::Relaxed),
            }
        };
        sums.into_iter().enumerate().map(row).collect()
    }

    /// Histogram cells since the last call.
    pub fn cells(&self) -> Vec<Cell> {
        lock(&self.core.timeline).take_cells(Level::Target)
    }

    /// Sums and state of every path; none where no target has several. Takes the peaks.
    pub fn paths(&self) -> Vec<PathCounters> {
        let run = &self.core.run;
        let sums = lock(&self.core.timeline).take_sums(Level::Path);
        let row = |(file, sums): (usize, [Sums; 2])| {
            let (target, path) = run.routes.files()[file];
            PathCounters {
                target,
                sums,
                state: run.routes.states(target).get(path).cloned(),
            }
        };
        sums.into_iter().enumerate().map(row).collect()
    }

    /// Sums of logical I/Os; none before there was one. Takes the peaks.
    pub fn logical(&self) -> [Sums; 2] {
        let sums = lock(&self.core.timeline).take_sums(Level::Logical);
        sums.first().copied().unwrap_or_default()
    }

    /// Histogram cells of logical I/Os since the last call.
    pub fn logical_cells(&self) -> Vec<Cell> {
        lock(&self.core.timeline).take_cells(Level::Logical)
    }

    /// The slowest I/Os since the last call, the slowest first, with when each was submitted (`CLOCK_MONOTONIC`).
    pub fn slowest(&self) -> Vec<(SlowIo, u64)> {
        let (run, taken) = (&self.core.run, self.core.run.slowest.take());
        let now = run.now();
        let issued_ns = |io: &SlowIo| {
            let ago_ns = run.clock.ns(now.ticks.saturating_sub(io.issued_ticks));
            now.ns.saturating_sub(ago_ns)
        };
        taken.into_iter().map(|io| (io, issued_ns(&io))).collect()
    }

    pub fn errors(&self) -> Vec<ErrorCount> {
        self.core.run.errors.list()
    }

    /// All epochs; none before the start.
    pub fn epochs(&self) -> Vec<AnyEpoch> {
        if self.core.run.life.started() {
            lock(&self.core.timeline).epochs()
        } else {
            Vec::new()
        }
    }

    pub fn rows(&self) -> Rows {
        self.core.run.rows()
    }

    /// A span of ticks in nanoseconds.
    pub fn ns_of_ticks(&self, ticks: f64) -> f64 {
        ticks * self.core.run.clock.ns_per_tick()
    }

    /// Reads sampled, and how many of them were compressible and zeros, per target.
    pub fn contents(&self) -> Vec<[u64; 3]> {
        self.core.run.contents.counts()
    }

    /// The write maps of --verify.
    pub fn verifier(&self) -> Option<&'a Verifier> {
        self.core.run.verifier.as_ref()
    }

    pub fn targets(&self) -> &'a [Arc<Target>] {
        &self.core.run.targets
    }

    /// CPU time of the workers and of the kernel's io-wq threads of their rings.
    pub fn cpu_ns(&self) -> u64 {
        self.core.cpu_ns()
    }

    /// CPU time of an epoch so far, up to its end; None before measuring began.
    pub fn cpu_used(&self, epoch: &AnyEpoch) -> Option<CpuTimes> {
        match epoch {
            AnyEpoch::Open(epoch) => epoch.cpu.used(|| self.core.cpu_now()),
            AnyEpoch::Closed(epoch) => epoch.cpu,
        }
    }

    /// I/Os and calls of each target that have been outstanding for that time.
    pub fn outstanding(&self, at_least: Duration) -> Vec<Waiting> {
        let mut found = self.issued(at_least);
        let run = &self.core.run;
        self.count(&run.write_backs, run.now(), at_least, &mut found);
        found
    }

    /// I/Os of each target that have been outstanding for that time.
    fn issued(&self, at_least: Duration) -> Vec<Waiting> {
        let (run, now) = (&self.core.run, self.core.run.now());
        let mut found = vec![Waiting::default(); run.targets.len()];
        for handle in self.core.worker_handles().iter() {
            self.count(&handle.outstanding, now, at_least, &mut found);
        }
        found
    }

    fn count(&self, table: &Outstanding, now: Instant, at_least: Duration, found: &mut [Waiting]) {
        for (target, since_ns) in table.since(self.core.run.clock, now, at_least) {
            if let Some(waiting) = found.get_mut(target) {
                waiting.add(since_ns, now.ns);
            }
        }
    }
}
