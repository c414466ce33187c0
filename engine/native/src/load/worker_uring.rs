//! A worker with a ring of its own: keeps its share of every target's queue depth outstanding.

mod issuing;
mod reaping;
mod verifying;
mod waiting;

use std::io;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::time::Duration;

use io_uring::{opcode, types};

use self::verifying::Verifying;
use super::arrival::Arrival;
use super::buffers::Arena;
use super::clock;
use super::epoch::Epoch;
use super::flight::Flights;
use super::knobs::{Settings, share};
use super::pacing::Gate;
use super::pattern::Rng;
use super::ring::Ring;
use super::ring_setup;
use super::room::FreeSlots;
use super::run::Run;
use super::spin::Spin;
use super::worker_handle::WorkerHandle;

/// Least and most I/Os per submitting system call: a whole queue at once reaches the device late and in one burst.
const CHUNK: (usize, usize) = (4, 32);
/// Chunks per queue between those.
const CHUNKS: usize = 8;
/// About the cost of a sleep and wake-up (measured: 3 to 5 us are alike, 15 us cost more than they save).
const SPIN_NS: u64 = 4_000;
/// Completion of the poll on the worker's eventfd, and of the cancellation when the run is given up.
const WOKEN: u64 = u64::MAX;
const CANCELLED: u64 = u64::MAX - 1;
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
    let outcome = worker.run();
    let lost = worker.free_slots.in_flight();
    if lost > 0 {
        // The kernel may still write into these buffers.
        std::mem::forget(worker.arenas);
    }
    outcome.map(|()| lost)
}

struct Worker<'a> {
    run: &'a Run,
    handle: &'a WorkerHandle,
    ring: Ring<'a>,
    /// For reads and for writes.
    arenas: [Arena; 2],
    flights: Flights,
    free_slots: FreeSlots,
    rngs: Vec<Rng>,
    gate: Gate,
    spin: Spin,
    epoch: Arc<Epoch>,
    /// Whether the whole share of the epoch was taken.
    redistributed: bool,
    /// Outstanding I/Os of earlier epochs.
    older: usize,
    sequence: u64,
    /// Numbers of I/Os queued but not submitted.
    chunk: Vec<usize>,
    /// How many those may be.
    most_queued: u32,
    /// Numbers of I/Os whose path failed and that go to another.
    again: Vec<usize>,
    /// Number of the read that is to be checked when it completes.
    chosen: Option<usize>,
    verifying: Verifying,
}

impl<'a> Worker<'a> {
    fn new(run: &'a Run, handle: &'a WorkerHandle, ring: Ring<'a>) -> Self {
        let targets = run.targets.len();
        let epoch = Arc::clone(&handle.epoch());
        Self {
            run,
            handle,
            ring,
            arenas: [Arena::new(run.verifier.is_some()), Arena::new(true)],
            flights: Flights::default(),
            free_slots: FreeSlots::new(targets),
            rngs: (0..targets)
                .map(|target| run.rng(handle.worker, target))
                .collect(),
            gate: Gate::default(),
            spin: Spin::new(run.clock.ticks(SPIN_NS)),
            epoch,
            redistributed: true,
            older: 0,
            sequence: (handle.worker as u64) << 48,
            chunk: Vec::new(),
            most_queued: 0,
            again: Vec::new(),
            chosen: None,
            verifying: Verifying::default(),
        }
    }

    fn run(&mut self) -> io::Result<()> {
        self.adopt()?;
        while !self.run.life.stopping() {
            let wake_ticks = if self.epoch.schedule.is_some() {
                self.refill_by_arrival()?
            } else {
                self.refill()?
            };
            self.stamp();
            self.pass(wake_ticks)?;
            self.reap()?;
        }
        while self.free_slots.in_flight() > 0 && !self.run.life.abandoned() {
            self.stamp();
            self.ring.wait(None, false)?;
            self.reap()?;
        }
        self.drop_held();
        self.cancel()
    }

    /// Takes over the epoch its handle has now.
    fn adopt(&mut self) -> io::Result<()> {
        let epoch = Arc::clone(&self.handle.epoch());
        let settings = &epoch.settings;
        self.redistributed = epoch.is_redistributed();
        let most: Vec<u32> = (0..self.run.targets.len())
            .map(|target| self.share(settings, target))
            .collect();
        self.free_slots.set_shares(|target| most[target]);
        self.handle.adopt(epoch.index);
        self.gate.enter(&epoch);
        // This worker may have no share any more of the targets they are for.
        self.gate.leave();
        let (ios, length) = (
            self.free_slots.most_in_flight(),
            usize::try_from(settings.part_bytes).unwrap_or(usize::MAX),
        );
        self.most_queued =
            u32::try_from((ios / CHUNKS).clamp(CHUNK.0, CHUNK.1)).unwrap_or(u32::MAX);
        self.flights.keep_below(ios);
        self.arenas[0].ensure(&mut self.ring, ios, length)?;
        if settings.writes() {
            self.arenas[1].ensure(&mut self.ring, ios, length)?;
        }
        if epoch.index != self.epoch.index {
            self.older = self.free_slots.in_flight();
            self.drop_held();
        }
        if self.older == 0 {
            self.handle.settle(epoch.index);
        }
        self.epoch = epoch;
        Ok(())
    }

    /// How much of a target's depth this worker keeps now.
    fn share(&self, settings: &Settings, target: usize) -> u32 {
        let (worker, workers) = (self.handle.worker, settings.threads);
        let share = share(settings.depth_of(target), target, worker, workers);
        let share = u32::try_from(share).unwrap_or(u32::MAX);
        if self.redistributed {
            share
        } else {
            share.min(self.handle.allowed(target))
        }
    }

    /// Arms the poll by which a turn or a stop wakes this worker, even when its device is stalled.
    fn listen(&mut self) -> io::Result<()> {
        let Some(descriptor) = self.handle.waker.descriptor() else {
            return Ok(());
        };
        let poll = opcode::PollAdd::new(types::Fd(descriptor), libc::POLLIN as u32)
            .build()
            .user_data(WOKEN);
        if self.ring.is_full() {
            self.submit()?;
        }
        // SAFETY: the entry points to nothing.
        unsafe { self.ring.push(&poll) }
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
