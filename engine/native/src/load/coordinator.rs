//! The clock of a run: begins measuring when a turn has settled, collects the peaks of every second, ends the run.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use super::arrival::{Arrival, Beginning, Schedule};
use super::cpu_span::CpuTimes;
use super::dealing;
use super::epoch::{Epoch, Instant, Turn};
use super::fanout::FanOut;
use super::io_workers::IoWorkers;
use super::knobs::{Settings, share};
use super::levels::Served;
use super::lock::lock;
use super::pacing::Pacer;
use super::peaks::SECOND_NS;
use super::run::Run;
use super::stop_watch::StopWatch;
use super::timeline::Timeline;
use super::worker_handle::{Waker, WorkerHandle};
use super::worker_threads;
use super::workers::{self, Backend};

/// Part of every transient even if all older I/Os are back at once: caches and schedulers settle too.
const SETTLE_NS: u64 = 100_000_000;

/// How often to check whether all I/Os of earlier epochs have completed.
const SETTLED_YET: Duration = Duration::from_millis(2);

/// Key of the random numbers by which I/Os arrive; smaller ones are those of workers.
const ARRIVALS: usize = usize::MAX - 1;

/// State shared by the engine, its coordinator and its workers.
///
/// Lock order: timeline, worker handles, one worker handle.
pub struct Core {
    pub run: Arc<Run>,
    pub timeline: Mutex<Timeline>,
    worker_handles: Mutex<Vec<Arc<WorkerHandle>>>,
    backend: Backend,
    io_workers: IoWorkers,
}

impl Core {
    pub fn new(run: Arc<Run>, settings: Arc<Settings>, backend: Backend) -> io::Result<Self> {
        let first = Arc::new(epoch(&run, backend, &[], 0, settings, None)?);
        let timeline = Mutex::new(Timeline::new(first, run.rows()));
        Ok(Self {
            run,
            timeline,
            worker_handles: Mutex::default(),
            backend,
            io_workers: IoWorkers::default(),
        })
    }

    pub fn worker_handles(&self) -> MutexGuard<'_, Vec<Arc<WorkerHandle>>> {
        lock(&self.worker_handles)
    }

    /// Adds a worker; it has counters in the epochs made from now on.
    pub fn add_worker(
        &self,
        served: Served,
        waker: Waker,
        epoch: &Arc<Epoch>,
    ) -> Arc<WorkerHandle> {
        let mut worker_handles = self.worker_handles();
        let handle = Arc::new(WorkerHandle::new(
            worker_handles.len(),
            served,
            waker,
            Arc::clone(epoch),
        ));
        worker_handles.push(Arc::clone(&handle));
        handle
    }

    /// The epoch after `before` for all workers there are.
    pub fn next_epoch(
        &self,
        index: u32,
        settings: Arc<Settings>,
        before: &Epoch,
    ) -> io::Result<Arc<Epoch>> {
        let next = epoch(
            &self.run,
            self.backend,
            &self.worker_handles(),
            index,
            settings,
            Some(before),
        )?;
        if !next.is_redistributed() {
            self.hold_back(before, &next.settings);
        }
        Ok(Arc::new(next))
    }

    /// CPU time of the workers and of the kernel's io-wq threads of their rings.
    pub fn cpu_ns(&self) -> u64 {
        let worker_handles = self.worker_handles();
        let own: u64 = worker_handles.iter().map(|handle| handle.cpu.ns()).sum();
        if self.backend == Backend::Threads {
            return own;
        }
        let threads: Vec<_> = worker_handles
            .iter()
            .filter_map(|handle| handle.cpu.thread())
            .collect();
        own + self.io_workers.ns(&threads)
    }

    /// Ends an epoch and records its CPU time.
    pub fn end(&self, epoch: &Epoch, now: Instant) {
        epoch.end(now);
        epoch.cpu.end(CpuTimes::now(self.cpu_ns()));
    }

    /// Runs until the load stops, fails or has lasted for `runtime`.
    pub fn coordinate(self: &Arc<Self>, runtime: Option<Duration>) {
        let deadline = runtime.map(|runtime| std::time::Instant::now() + runtime);
        let mut stops = StopWatch::new(lock(&self.timeline).current().index);
        loop {
            let nudges = self.run.life.nudges();
            let left = deadline
                .map(|deadline| deadline.saturating_duration_since(std::time::Instant::now()));
            if self.run.life.stopping() {
                return;
            }
            if left.is_some_and(|left| left.is_zero()) || !self.run.life.fault().is_empty() {
                return self.finish();
            }
            let next_due = self.run_due(&mut stops);
            let pause = left.unwrap_or(next_due).min(next_due);
            stops.sleeps(pause);
            self.run.life.pause(nudges, pause);
        }
    }

    /// Does what is due in the open epoch; returns the time until more is due.
    fn run_due(self: &Arc<Self>, stops: &mut StopWatch) -> Duration {
        let timeline = lock(&self.timeline);
        let (epoch, now) = (timeline.current(), self.run.now());
        let was_stopped = stops.was_stopped(epoch.index, epoch.turned, now);
        if let Some(schedule) = &epoch.schedule {
            schedule.expire(now.ticks);
        }
        if epoch.start_ns().is_some() {
            return Duration::from_nanos(epoch.take_second(now.ns));
        }
        if !epoch.is_redistributed() {
            self.redistribute(epoch);
            return SETTLED_YET;
        }
        if !epoch.opening.is_open() {
            self.open_settled(epoch);
            return SETTLED_YET;
        }
        if was_stopped {
            epoch.opening.postpone(now);
        }
        let settling_ns = (epoch.opening.ns() + SETTLE_NS).saturating_sub(now.ns);
        if settling_ns > 0 {
            return Duration::from_nanos(settling_ns);
        }
        if !self.is_settled(epoch) {
            return SETTLED_YET;
        }
        let (used, begin) = (CpuTimes::now(self.cpu_ns()), self.run.now());
        if stops.was_stopped(epoch.index, epoch.turned, begin) {
            epoch.opening.postpone(begin);
            return SETTLED_YET;
        }
        epoch.cpu.begin(used);
        epoch.begin(begin);
        Duration::from_nanos(SECOND_NS)
    }

    /// Whether everything issued, or due, before an epoch opened has completed.
    fn is_settled(&self, epoch: &Epoch) -> bool {
        let opened_ticks = epoch.opening.ticks();
        let arrived = |schedule: &Arc<Schedule>| schedule.has_passed(opened_ticks);
        self.all_settled(epoch.index)
            && epoch.schedule.as_ref().is_none_or(arrived)
            && !self
                .worker_handles()
                .iter()
                .any(|handle| handle.outstanding.has_older(opened_ticks))
    }

    /// Lets workers keep as much of each target's depth as others have given back, and their share in the end.
    fn redistribute(&self, epoch: &Epoch) {
        let worker_handles = self.worker_handles();
        if !worker_handles
            .iter()
            .all(|handle| handle.has_adopted(epoch.index))
        {
            return;
        }
        let mut complete = true;
        for target in 0..epoch.settings.width {
            let shares = shares(&epoch.settings, &worker_handles, target);
            let in_flight: Vec<usize> = worker_handles
                .iter()
                .map(|handle| usize::try_from(handle.in_flight(target)).unwrap_or(usize::MAX))
                .collect();
            let before: Vec<usize> = worker_handles
                .iter()
                .map(|handle| handle.allowed(target) as usize)
                .collect();
            let mut allowed = before.clone();
            complete &= dealing::redistribute(
                epoch.settings.depth_of(target),
                &shares,
                &in_flight,
                &mut allowed,
            );
            for ((handle, before), after) in worker_handles.iter().zip(before).zip(allowed) {
                if after != before {
                    handle.allow(target, after);
                    handle.waker.wake();
                }
            }
        }
        if complete {
            epoch.set_redistributed();
        }
    }

    /// Allows each worker what it had and what it will have, whichever is less, until the slots have moved.
    fn hold_back(&self, before: &Epoch, settings: &Settings) {
        let worker_handles = self.worker_handles();
        for target in 0..self.run.targets.len() {
            let new = shares(settings, &worker_handles, target);
            let old = shares(&before.settings, &worker_handles, target);
            for ((handle, new), old) in worker_handles.iter().zip(new).zip(old) {
                let had = if before.is_redistributed() {
                    old
                } else {
                    handle.allowed(target) as usize
                };
                handle.allow(target, new.min(had));
            }
        }
    }

    pub fn all_settled(&self, index: u32) -> bool {
        self.worker_handles()
            .iter()
            .all(|handle| handle.has_settled(index))
    }

    /// Wakes the workers that have something to do in an epoch, and those that had.
    pub fn wake_users(&self, epoch: &Epoch) {
        self.worker_handles()
            .iter()
            .filter(|handle| !handle.is_parked() || workers::is_used(handle, epoch))
            .for_each(|handle| handle.waker.wake());
    }

    /// Ends the load: closes its last epoch and lets the workers reap what is outstanding.
    pub fn finish(&self) {
        let timeline = lock(&self.timeline);
        if self.run.life.started() && !self.run.life.stopping() {
            self.end(timeline.current(), self.run.now());
        }
        if self.run.life.begin_stop() {
            let worker_handles = self.worker_handles();
            // A worker that was counting when the epoch ended has finished once its epoch lock was free.
            worker_handles
                .iter()
                .for_each(|handle| drop(handle.epoch()));
            timeline.current().take_last_second();
            if let Some(schedule) = &timeline.current().schedule {
                schedule.end(self.run.clock.now());
            }
            worker_handles.iter().for_each(|handle| handle.waker.wake());
        }
        drop(timeline);
        self.run.life.notify();
    }
}

/// Every worker's share of a target's depth.
fn shares(settings: &Settings, worker_handles: &[Arc<WorkerHandle>], target: usize) -> Vec<usize> {
    let depth = settings.depth_of(target);
    let of = |handle: &Arc<WorkerHandle>| share(depth, target, handle.worker, settings.threads);
    worker_handles.iter().map(of).collect()
}

fn epoch(
    run: &Run,
    backend: Backend,
    worker_handles: &[Arc<WorkerHandle>],
    index: u32,
    settings: Arc<Settings>,
    before: Option<&Epoch>,
) -> io::Result<Epoch> {
    let fan_out = settings.layout.map(|layout| {
        let rng = run.rng(usize::MAX, index as usize);
        FanOut::new(layout, &settings, rng, Arc::clone(&run.logical_ios))
    });
    let old_sink = before.and_then(|before| before.sink.as_ref());
    let sink = match backend {
        Backend::Threads => Some(worker_threads::sink(&settings, old_sink)?),
        Backend::Uring => None,
    };
    let turned = run.now();
    let (pacer, schedule) = if run.limits.arrival == Arrival::Closed {
        (pacer(run, &settings, before), None)
    } else {
        (None, schedule(run, &settings, before, turned.ticks))
    };
    let redistribute = run.life.started()
        && backend == Backend::Uring
        && before.is_some_and(|before| {
            !before.is_redistributed() || before.settings.threads != settings.threads
        });
    let waits = run.life.started()
        && before.is_some_and(|before| {
            !before.opening.is_open()
                || before.settings.mode.is_direct() != settings.mode.is_direct()
        });
    let turn = Turn {
        index,
        settings,
        turned,
        pacer,
        schedule,
        fan_out,
        sink,
        waits,
        redistribute,
    };
    Ok(Epoch::new(
        turn,
        run.rows(),
        worker_handles.iter().map(|handle| handle.served),
    ))
}

/// A pacer is kept while the rate stays the same, so that turning other knobs does not disturb the schedule.
fn pacer(run: &Run, settings: &Settings, before: Option<&Epoch>) -> Option<Arc<Pacer>> {
    let rate_iops = settings.rate_iops?;
    let old = live(run, before).and_then(|before| before.pacer.as_ref());
    #[expect(clippy::float_cmp, reason = "unchanged means the very same number")]
    let same = old.filter(|pacer| pacer.rate_iops() == rate_iops);
    Some(same.map_or_else(|| Arc::new(Pacer::new(rate_iops, run.clock)), Arc::clone))
}

/// Arrivals go on as long as their rate and their streams do.
fn schedule(
    run: &Run,
    settings: &Settings,
    before: Option<&Epoch>,
    start_ticks: u64,
) -> Option<Arc<Schedule>> {
    let rate_iops = settings.rate_iops?;
    let streams = if settings.layout.is_some() {
        1
    } else {
        settings.width
    };
    let old = live(run, before).and_then(|before| before.schedule.as_ref());
    #[expect(clippy::float_cmp, reason = "unchanged means the very same number")]
    let same = old.filter(|old| old.rate_iops() == rate_iops && old.streams() == streams);
    let beginning = || Beginning {
        arrival: run.limits.arrival,
        rate_iops,
        streams,
        start_ticks,
        seed: run.rng(
            ARRIVALS,
            before.map_or(0, |before| before.index as usize + 1),
        ),
    };
    let new = || {
        Arc::new(Schedule::new(
            &beginning(),
            run.clock,
            Arc::clone(&run.skipped),
        ))
    };
    Some(same.map_or_else(new, Arc::clone))
}

/// The epoch before, if anything was issued in it.
fn live<'a>(run: &Run, before: Option<&'a Epoch>) -> Option<&'a Epoch> {
    before.filter(|before| before.index > 0 || run.life.started())
}
