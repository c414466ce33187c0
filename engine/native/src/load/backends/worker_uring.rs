//! A worker with a ring of its own: keeps its share of every target's queue depth outstanding.

mod entry;
mod issuing;
mod reaping;
mod user_data;
mod verifying;
mod waiting;
mod worker;

use std::io;
use std::os::fd::AsRawFd;
use std::time::Duration;

use io_uring::{opcode, types};

use self::user_data::CANCELLED;
use self::worker::Worker;
use crate::load::pace::arrival::Arrival;
use crate::load::rings::crowd::Crowd;
use crate::load::rings::ring::Ring;
use crate::load::rings::ring_setup;
use crate::load::running::run::Run;
use crate::load::running::worker_handle::WorkerHandle;
use crate::load::system::clock;

/// How long cancelled I/Os have to complete.
const CANCEL_PATIENCE: Duration = Duration::from_millis(200);

/// Runs a worker until the load stops; returns the number of lost I/Os. `ready` gets the features or the refusal once.
pub fn work(
    run: &Run,
    handle: &WorkerHandle,
    ready: impl FnOnce(io::Result<Vec<&'static str>>),
) -> io::Result<usize> {
    let threads = handle.epoch().settings.threads;
    let most = run.limits.max_queue_depth.div_ceil(threads) * run.targets.len();
    let access = run.access();
    let (mut ring, mut features) = match ring_setup::open(most, access) {
        Ok(opened) => opened,
        Err(error) => {
            ready(Err(error));
            return Ok(0);
        }
    };
    let files: Vec<_> = run
        .routes
        .files()
        .iter()
        .enumerate()
        .map(|(file, _)| run.routes.node(file).fd.as_raw_fd())
        .collect();
    let ring = match Ring::new(&mut ring, &files, access) {
        Ok(ring) => ring,
        Err(error) => {
            ready(Err(error));
            return Ok(0);
        }
    };
    let mut worker = Worker::new(run, handle, ring);
    match worker.adopt().and_then(|()| worker.listen()) {
        Ok(()) => {
            features.extend(worker.ring.features());
            ready(Ok(features));
        }
        Err(error) => {
            ready(Err(error));
            return Ok(0);
        }
    }
    if run.limits.arrival != Arrival::Closed {
        clock::wake_in_time();
    }
    run.life.wait_for_start();
    worker.crowd = Some(Crowd::join());
    let outcome = worker.run();
    let lost = worker.free_slots.in_flight();
    if lost > 0 {
        // The kernel may still write into these buffers.
        std::mem::forget(worker.arenas);
    }
    outcome.map(|()| lost)
}

impl Worker<'_> {
    fn run(&mut self) -> io::Result<()> {
        self.adopt()?;
        let mut now_ticks = self.run.clock.now();
        while !self.run.life.stopping() {
            let wake_ticks = if self.epoch.schedule.is_some() {
                self.refill_by_arrival()?
            } else {
                self.refill(now_ticks)?
            };
            self.stamp();
            self.pass(wake_ticks)?;
            now_ticks = self.reap()?;
        }
        while self.free_slots.in_flight() > 0 && !self.run.life.abandoned() {
            self.stamp();
            self.ring.wait(None, false)?;
            self.reap()?;
        }
        self.drop_held();
        self.cancel()
    }

    /// Cancels what is still outstanding and waits shortly for it.
    fn cancel(&mut self) -> io::Result<()> {
        if self.free_slots.in_flight() == 0 {
            return Ok(());
        }
        let every = opcode::AsyncCancel2::new(types::CancelBuilder::any().all());
        let entry = every.build().user_data(CANCELLED);
        // SAFETY: the entry points to nothing.
        unsafe { self.ring.push(&entry)? };
        let deadline = std::time::Instant::now() + CANCEL_PATIENCE;
        while self.free_slots.in_flight() > 0 {
            let left = deadline.saturating_duration_since(std::time::Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            self.ring.wait(Some(left), false)?;
            self.reap()?;
        }
        Ok(())
    }
}
