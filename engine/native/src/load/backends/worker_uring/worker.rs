//! State of a ring worker, and how it takes over an epoch.

use std::io;
use std::sync::Arc;

use super::verifying::Verifying;
use crate::load::data::buffers::Arena;
use crate::load::epochs::epoch::Epoch;
use crate::load::knobs::{Settings, share};
use crate::load::pace::pacing::Gate;
use crate::load::pattern::Rng;
use crate::load::rings::crowd::Crowd;
use crate::load::rings::flight::Flights;
use crate::load::rings::ring::Ring;
use crate::load::rings::spin::Spin;
use crate::load::running::run::Run;
use crate::load::running::worker_handle::WorkerHandle;
use crate::load::targets::room::FreeSlots;

/// Least and most I/Os per submitting system call: a whole queue at once reaches the device late and in one burst.
const CHUNK: (usize, usize) = (4, 32);
/// Chunks per queue between those.
const CHUNKS: usize = 8;
/// Time to watch: about that of a sleep and wake-up (measured: 3 to 5 us are alike, 15 us cost more than they save).
const SPIN_NS: u64 = 4_000;

pub(super) struct Worker<'a> {
    pub(super) run: &'a Run,
    pub(super) handle: &'a WorkerHandle,
    pub(super) ring: Ring<'a>,
    /// Arenas for reads and for writes.
    pub(super) arenas: [Arena; 2],
    pub(super) flights: Flights<'a>,
    pub(super) free_slots: FreeSlots,
    pub(super) rngs: Vec<Rng>,
    pub(super) gate: Gate,
    pub(super) spin: Spin,
    /// Once it has begun to issue.
    pub(super) crowd: Option<Crowd>,
    pub(super) epoch: Arc<Epoch>,
    /// Whether the whole share of the epoch was taken.
    pub(super) redistributed: bool,
    /// Outstanding I/Os of earlier epochs.
    pub(super) older: usize,
    pub(super) sequence: u64,
    /// Numbers of I/Os queued but not submitted.
    pub(super) chunk: Vec<usize>,
    /// How many those may be.
    pub(super) most_queued: u32,
    /// Numbers of I/Os whose path failed and that go to another.
    pub(super) again: Vec<usize>,
    /// Number of the read that is checked when it completes.
    pub(super) chosen: Option<usize>,
    pub(super) verifying: Verifying,
}

impl<'a> Worker<'a> {
    pub(super) fn new(run: &'a Run, handle: &'a WorkerHandle, ring: Ring<'a>) -> Self {
        let targets = run.targets.len();
        let epoch = Arc::clone(&handle.epoch());
        Self {
            run,
            handle,
            ring,
            arenas: [Arena::new(run.verifier.is_some()), Arena::new(true)],
            flights: Flights::new(&handle.outstanding),
            free_slots: FreeSlots::new(targets),
            rngs: (0..targets)
                .map(|target| run.rng(handle.worker, target))
                .collect(),
            gate: Gate::default(),
            spin: Spin::new(run.clock.ticks(SPIN_NS)),
            crowd: None,
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

    /// Takes over the epoch its handle has now.
    pub(super) fn adopt(&mut self) -> io::Result<()> {
        let epoch = Arc::clone(&self.handle.epoch());
        let settings = &epoch.settings;
        self.redistributed = epoch.is_redistributed();
        self.take_slots(settings);
        self.handle.adopt(epoch.index);
        self.gate
            .enter(epoch.pacer.as_ref(), epoch.schedule.as_ref());
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

    /// Takes this worker's part of the depths, or of the one queue over all targets.
    fn take_slots(&mut self, settings: &Settings) {
        if let Some(depth) = settings.one_queue() {
            let worker = self.handle.worker;
            let depth = share(depth, 0, worker, settings.threads);
            let depth = u32::try_from(depth).unwrap_or(u32::MAX);
            let first = worker % settings.width;
            return self.free_slots.set_one_queue(settings.width, depth, first);
        }
        let most: Vec<u32> = (0..self.run.targets.len())
            .map(|target| self.share(settings, target))
            .collect();
        self.free_slots.set_shares(|target| most[target]);
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

    /// Gives up writes that were drawn and never issued.
    pub(super) fn drop_held(&mut self) {
        for part in self.verifying.held.drain() {
            self.run.drop_part(&part);
        }
    }
}
