//! A worker that does one I/O at a time with preadv2 and pwritev2: one thread per slot of a target's queue depth, or of
//! the one queue over all targets.

mod performing;
mod worker;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use self::worker::Worker;
use crate::load::layout::next_io::Next;
use crate::load::pace::arrival::Arrival;
use crate::load::pace::pacing::Gate;
use crate::load::pace::schedule::WATCH_NS;
use crate::load::running::run::Run;
use crate::load::running::worker_handle::WorkerHandle;
use crate::load::system::clock;

/// How soon a thread checks again for free slots on the other targets of a striped I/O.
const BLOCKED: Duration = Duration::from_millis(1);

/// How soon a thread checks again whether another write to the same range has completed.
const HELD: Duration = Duration::from_micros(100);

/// Runs a worker for one slot of a queue until the load stops.
pub fn work(run: &Run, handle: &WorkerHandle, slot: usize) -> io::Result<()> {
    handle.waker.is_me();
    if run.limits.arrival != Arrival::Closed {
        clock::wake_in_time();
    }
    run.life.wait_for_start();
    let stream = if handle.served.several() {
        run.targets.len()
    } else {
        handle.served.first
    };
    let mut worker = Worker {
        run,
        handle,
        slot,
        turn: slot,
        rng: run.rng(slot, stream),
        gate: Gate::default(),
        epoch: Arc::clone(&handle.epoch()),
        epoch_turned: false,
        source: None,
        held: None,
        own_sink: None,
        expected: Vec::new(),
        sequence: (handle.worker as u64) << 48,
    };
    while !run.life.stopping() {
        if worker.adopt()? {
            worker.drive();
        } else {
            std::thread::park();
        }
    }
    worker.drop_held();
    Ok(())
}

impl Worker<'_> {
    /// Issues one I/O after the other until the epoch turns or the load stops.
    fn drive(&mut self) {
        let mut now_ticks = self.run.clock.now();
        loop {
            match self.next(now_ticks) {
                Next::Issue(part) => {
                    let Some(back_ticks) = self.perform(part, now_ticks) else {
                        self.held = Some(part);
                        std::thread::park_timeout(HELD);
                        return;
                    };
                    now_ticks = back_ticks;
                    if self.epoch_turned || self.run.life.stopping() {
                        return;
                    }
                }
                Next::NotBefore(due) | Next::Refused(due) => {
                    self.pause(self.handle.served.first, due);
                    return;
                }
                Next::Blocked => {
                    std::thread::park_timeout(BLOCKED);
                    return;
                }
            }
        }
    }

    fn next(&mut self, now_ticks: u64) -> Next {
        if let Some(part) = self.held.take() {
            return Next::Issue(part);
        }
        if self.handle.served.several() {
            self.next_in_turn(now_ticks)
        } else {
            self.next_of(self.handle.served.first, now_ticks)
        }
    }

    /// What the first target in turn that can be used has to do, or when to ask again.
    fn next_in_turn(&mut self, now_ticks: u64) -> Next {
        let (width, mut first_due) = (self.epoch.settings.width, None);
        let mut is_blocked = false;
        for _ in 0..width {
            let target = self.turn % width;
            match self.next_of(target, now_ticks) {
                Next::Refused(due) => {
                    first_due = Some(first_due.map_or(due, |first: u64| first.min(due)));
                }
                Next::Blocked => is_blocked = true,
                // The rate is of all targets: this one stays the next.
                Next::NotBefore(due) => return Next::NotBefore(due),
                issue @ Next::Issue(_) => {
                    self.turn = target + 1;
                    return issue;
                }
            }
            self.turn = target + 1;
        }
        match first_due {
            Some(due) if !is_blocked => Next::Refused(due),
            _ => Next::Blocked,
        }
    }

    fn next_of(&mut self, target: usize, now_ticks: u64) -> Next {
        self.run.next(
            &self.epoch,
            target,
            &mut self.rng,
            &mut self.gate,
            now_ticks,
        )
    }

    /// Waits for a moment, up to a time; for an arrival that is near, one thread of each target stays awake.
    fn pause(&self, target: usize, due_ticks: u64) {
        let clock = self.run.clock;
        let left_ns = clock.ns(due_ticks.saturating_sub(clock.now()));
        let Some(schedule) = &self.epoch.schedule else {
            return std::thread::park_timeout(Duration::from_nanos(left_ns));
        };
        let stream = target.min(schedule.streams() - 1);
        if left_ns > WATCH_NS {
            std::thread::park_timeout(Duration::from_nanos(left_ns - WATCH_NS));
        } else if schedule.watch(stream) {
            while clock.now() < due_ticks && !self.run.life.stopping() {
                std::hint::spin_loop();
            }
            schedule.unwatch(stream);
        } else {
            std::thread::park_timeout(Duration::from_nanos(left_ns));
        }
    }
}
