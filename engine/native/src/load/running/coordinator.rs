//! The clock of a run: begins measuring when a turn has settled, collects the peaks of every second, ends the run.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::opening_turn::open_settled;
use super::redistribution::redistribute;
use super::shared_state::Core;
use super::stop_watch::StopWatch;
use crate::load::counts::peaks::SECOND_NS;
use crate::load::epochs::epoch::Epoch;
use crate::load::pace::schedule::Schedule;
use crate::load::system::lock::lock;

/// Part of every transient even if all older I/Os are back at once: caches and schedulers settle too.
const SETTLE_NS: u64 = 100_000_000;

/// How often to check whether all I/Os of earlier epochs have completed.
const SETTLED_YET: Duration = Duration::from_millis(2);

/// Runs until the load stops, fails or has lasted for `runtime`, which is read again whenever life is notified.
pub fn coordinate(core: &Arc<Core>, runtime: &Mutex<Option<Duration>>) {
    let started = Instant::now();
    let mut stops = StopWatch::new(lock(&core.timeline).current().index);
    loop {
        let nudges = core.run.life.nudges();
        let left = lock(runtime).map(|runtime| runtime.saturating_sub(started.elapsed()));
        if core.run.life.stopping() {
            return;
        }
        let is_over = left.is_some_and(|left| left.is_zero()) || is_done(core);
        if is_over || !core.run.life.fault().is_empty() {
            return core.finish();
        }
        let next_due = run_due(core, &mut stops);
        let pause = left.unwrap_or(next_due).min(next_due);
        stops.sleeps(pause);
        core.run.life.pause(nudges, pause);
    }
}

/// Does what is due in the open epoch; returns the time until more is due.
fn run_due(core: &Arc<Core>, stops: &mut StopWatch) -> Duration {
    let timeline = lock(&core.timeline);
    let (epoch, now) = (timeline.current(), core.run.now());
    let was_stopped = stops.was_stopped(epoch.index, epoch.turned, now);
    if let Some(schedule) = &epoch.schedule {
        schedule.expire(now.ticks);
    }
    if epoch.start_ns().is_some() {
        return Duration::from_nanos(epoch.take_second(now.ns));
    }
    if !epoch.is_redistributed() {
        redistribute(&core.worker_handles(), epoch);
        return SETTLED_YET;
    }
    if !epoch.opening.is_open() {
        open_settled(core, epoch);
        return SETTLED_YET;
    }
    if was_stopped {
        epoch.opening.postpone(now);
    }
    let settling_ns = (epoch.opening.ns() + settle_ns(core)).saturating_sub(now.ns);
    if settling_ns > 0 {
        return Duration::from_nanos(settling_ns);
    }
    if !is_settled(core, epoch) {
        return SETTLED_YET;
    }
    let (used, begin) = (core.cpu_now(), core.run.now());
    if stops.was_stopped(epoch.index, epoch.turned, begin) {
        epoch.opening.postpone(begin);
        return SETTLED_YET;
    }
    epoch.cpu.begin(used);
    epoch.begin(begin);
    Duration::from_nanos(SECOND_NS)
}

/// Whether the load has transferred what it was to transfer.
fn is_done(core: &Core) -> bool {
    core.run.has_budget() && core.run.is_done(&lock(&core.timeline).current().settings)
}

fn settle_ns(core: &Core) -> u64 {
    SETTLE_NS.max(core.run.limits.ramp_ns)
}

/// Whether everything issued, or due, before an epoch opened has completed.
fn is_settled(core: &Core, epoch: &Epoch) -> bool {
    let opened_ticks = epoch.opening.ticks();
    let arrived = |schedule: &Arc<Schedule>| schedule.has_passed(opened_ticks);
    core.all_settled(epoch.index)
        && epoch.schedule.as_ref().is_none_or(arrived)
        && !core
            .worker_handles()
            .iter()
            .any(|handle| handle.outstanding.has_older(opened_ticks))
}
