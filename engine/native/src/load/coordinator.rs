//! The clock of a run: begins measuring when a turn has settled, collects the peaks of every second, ends the run.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use super::arrival::{Arrival, Beginning, Schedule};
use super::cpu_span::CpuTimes;
use super::crew::{self, Backend};
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
use super::seat::{Seat, Waker};
use super::stop_watch::StopWatch;
use super::timeline::Timeline;
use super::worker_threads;

/// Part of every transient even if all older I/Os are back at once: caches and schedulers settle too.
const SETTLE_NS: u64 = 100_000_000;

/// How often to ask whether all I/Os of earlier epochs are back.
const SETTLED_YET: Duration = Duration::from_millis(2);

/// Key of the random numbers by which I/Os arrive; smaller ones are those of workers.
const ARRIVALS: usize = usize::MAX - 1;

/// What the engine, its coordinator and its workers share. Locks are taken in this order: timeline, seats, a seat.
pub struct Core {
    pub run: Arc<Run>,
    pub timeline: Mutex<Timeline>,
    seats: Mutex<Vec<Arc<Seat>>>,
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
            seats: Mutex::default(),
            backend,
            io_workers: IoWorkers::default(),
        })
    }

    pub fn seats(&self) -> MutexGuard<'_, Vec<Arc<Seat>>> {
        lock(&self.seats)
    }

    /// A seat for one more worker; it has a place in the epochs made from now on.
    pub fn seat(&self, served: Served, waker: Waker, epoch: &Arc<Epoch>) -> Arc<Seat> {
        let mut seats = self.seats();
        let seat = Arc::new(Seat::new(seats.len(), served, waker, Arc::clone(epoch)));
        seats.push(Arc::clone(&seat));
        seat
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
            &self.seats(),
            index,
            settings,
            Some(before),
        )?;
        if !next.is_dealt() {
            self.hold_back(before, &next.settings);
        }
        Ok(Arc::new(next))
    }

    /// CPU time of the workers and of the kernel's helpers behind their rings.
    pub fn cpu_ns(&self) -> u64 {
        let seats = self.seats();
        let own: u64 = seats.iter().map(|seat| seat.cpu.ns()).sum();
        if self.backend == Backend::Threads {
            return own;
        }
        let threads: Vec<_> = seats.iter().filter_map(|seat| seat.cpu.thread()).collect();
        own + self.io_workers.ns(&threads)
    }

    /// Ends an epoch and notes what it cost.
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
            let next_look = self.look(&mut stops);
            let pause = left.unwrap_or(next_look).min(next_look);
            stops.sleeps(pause);
            self.run.life.pause(nudges, pause);
        }
    }

    /// Does what is due in the open epoch; how long until there is more.
    fn look(self: &Arc<Self>, stops: &mut StopWatch) -> Duration {
        let timeline = lock(&self.timeline);
        let (epoch, now) = (timeline.current(), self.run.now());
        let was_stopped = stops.was_stopped(epoch.index, epoch.turned, now);
        if let Some(schedule) = &epoch.schedule {
            schedule.expire(now.ticks);
        }
        if epoch.start_ns().is_some() {
            return Duration::from_nanos(epoch.take_second(now.ns));
        }
        if !epoch.is_dealt() {
            self.deal(epoch);
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

    /// Whether whatever was issued, or was to be, before an epoch opened is back.
    fn is_settled(&self, epoch: &Epoch) -> bool {
        let opened_ticks = epoch.opening.ticks();
        let arrived = |schedule: &Arc<Schedule>| schedule.has_passed(opened_ticks);
        self.all_settled(epoch.index)
            && epoch.schedule.as_ref().is_none_or(arrived)
            && !self
                .seats()
                .iter()
                .any(|seat| seat.outstanding.has_older(opened_ticks))
    }

    /// Lets workers keep as much of each target's depth as others have given back, and their share in the end.
    fn deal(&self, epoch: &Epoch) {
        let seats = self.seats();
        if !seats.iter().all(|seat| seat.has_adopted(epoch.index)) {
            return;
        }
        let mut complete = true;
        for target in 0..epoch.settings.width {
            let shares = shares(&epoch.settings, &seats, target);
            let in_flight: Vec<usize> = seats
                .iter()
                .map(|seat| usize::try_from(seat.in_flight(target)).unwrap_or(usize::MAX))
                .collect();
            let before: Vec<usize> = seats
                .iter()
                .map(|seat| seat.allowed(target) as usize)
                .collect();
            let mut allowed = before.clone();
            complete &= dealing::deal(
                epoch.settings.depth_of(target),
                &shares,
                &in_flight,
                &mut allowed,
            );
            for ((seat, before), after) in seats.iter().zip(before).zip(allowed) {
                if after != before {
                    seat.allow(target, after);
                    seat.waker.wake();
                }
            }
        }
        if complete {
            epoch.set_dealt();
        }
    }

    /// Allows each worker what it had and what it will have, whichever is less, until places have moved.
    fn hold_back(&self, before: &Epoch, settings: &Settings) {
        let seats = self.seats();
        for target in 0..self.run.targets.len() {
            let new = shares(settings, &seats, target);
            let old = shares(&before.settings, &seats, target);
            for ((seat, new), old) in seats.iter().zip(new).zip(old) {
                let had = if before.is_dealt() {
                    old
                } else {
                    seat.allowed(target) as usize
                };
                seat.allow(target, new.min(had));
            }
        }
    }

    pub fn all_settled(&self, index: u32) -> bool {
        self.seats().iter().all(|seat| seat.has_settled(index))
    }

    /// Wakes the workers that have something to do in an epoch, and those that had.
    pub fn wake_users(&self, epoch: &Epoch) {
        self.seats()
            .iter()
            .filter(|seat| !seat.is_parked() || crew::is_used(seat, epoch))
            .for_each(|seat| seat.waker.wake());
    }

    /// Ends the load: closes its last epoch and lets the workers bring in what is outstanding.
    pub fn finish(&self) {
        let timeline = lock(&self.timeline);
        if self.run.life.started() && !self.run.life.stopping() {
            self.end(timeline.current(), self.run.now());
        }
        if self.run.life.begin_stop() {
            let seats = self.seats();
            // Whoever was counting when the epoch ended has finished once its seat was free.
            seats.iter().for_each(|seat| drop(seat.epoch()));
            timeline.current().take_last_second();
            if let Some(schedule) = &timeline.current().schedule {
                schedule.end(self.run.clock.now());
            }
            seats.iter().for_each(|seat| seat.waker.wake());
        }
        drop(timeline);
        self.run.life.notify();
    }
}

/// Every worker's share of a target's depth.
fn shares(settings: &Settings, seats: &[Arc<Seat>], target: usize) -> Vec<usize> {
    let depth = settings.depth_of(target);
    let of = |seat: &Arc<Seat>| share(depth, target, seat.worker, settings.threads);
    seats.iter().map(of).collect()
}

fn epoch(
    run: &Run,
    backend: Backend,
    seats: &[Arc<Seat>],
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
    let redeal = run.life.started()
        && backend == Backend::Uring
        && before.is_some_and(|before| {
            !before.is_dealt() || before.settings.threads != settings.threads
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
        redeal,
    };
    Ok(Epoch::new(
        turn,
        run.rows(),
        seats.iter().map(|seat| seat.served),
    ))
}

/// A pacer goes on as long as its rate does, so that turning other knobs does not disturb the schedule.
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
