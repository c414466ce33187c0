//! Makes the next epoch of a run: what its settings need, and what goes on from the one before.

use std::io;
use std::sync::Arc;

use super::backend::Backend;
use super::run::Run;
use super::sink::sink;
use super::worker_handle::WorkerHandle;
use crate::load::epochs::epoch::{Epoch, Turn};
use crate::load::knobs::Settings;
use crate::load::layout::fanout::FanOut;
use crate::load::pace::arrival::Arrival;
use crate::load::pace::pacing::Pacer;
use crate::load::pace::schedule::{Beginning, Schedule};

/// Key of the random numbers by which I/Os arrive; smaller ones are those of workers.
const ARRIVALS: usize = usize::MAX - 1;

/// An epoch for these workers, after `before` if there was one.
pub fn new_epoch(
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
        Backend::Threads => Some(sink(&settings, old_sink)?),
        Backend::Uring => None,
    };
    let turned = run.now();
    let (pacer, schedule) = if run.limits.arrival == Arrival::Closed {
        (pacer(run, &settings, before), None)
    } else {
        (None, schedule(run, &settings, before, turned.ticks))
    };
    let before = before.filter(|_| run.life.started());
    let mode_turns = before.is_some_and(|before| {
        !before.opening.is_open() && before.mode_turns
            || before.settings.mode.is_direct() != settings.mode.is_direct()
    });
    let threads_turn = before.is_some_and(|before| before.settings.threads != settings.threads);
    let queue_turns = before.is_some_and(|before| {
        let queues = [&before.settings, &settings].map(|settings| settings.one_queue().is_some());
        queues[0] != queues[1] || queues[0] && threads_turn
    });
    let redistribute = backend == Backend::Uring
        && !queue_turns
        && before.is_some_and(|before| !before.is_redistributed() || threads_turn);
    let waits = mode_turns || queue_turns || before.is_some_and(|before| !before.opening.is_open());
    let turn = Turn {
        index,
        settings,
        turned,
        pacer,
        schedule,
        fan_out,
        sink,
        waits,
        mode_turns,
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
