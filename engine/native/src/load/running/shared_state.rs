//! State shared by the engine, its coordinator and its workers.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

use super::backend::Backend;
use super::new_epoch::new_epoch;
use super::redistribution::hold_back;
use super::run::Run;
use super::worker_handle::{Waker, WorkerHandle};
use crate::load::counts::cpu_span::CpuTimes;
use crate::load::counts::levels::Served;
use crate::load::epochs::epoch::Epoch;
use crate::load::epochs::timeline::Timeline;
use crate::load::knobs::Settings;
use crate::load::system::clock::Instant;
use crate::load::system::io_workers::IoWorkers;
use crate::load::system::lock::lock;

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
        let first = Arc::new(new_epoch(&run, backend, &[], 0, settings, None)?);
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
        let (run, backend) = (&self.run, self.backend);
        let next = new_epoch(
            run,
            backend,
            &self.worker_handles(),
            index,
            settings,
            Some(before),
        )?;
        if !next.is_redistributed() {
            let targets = run.targets.len();
            hold_back(&self.worker_handles(), targets, before, &next.settings);
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

    /// How long the workers were ready and waited for a processor; None where the kernel does not count that.
    fn waited_ns(&self) -> Option<u64> {
        let worker_handles = self.worker_handles();
        worker_handles
            .iter()
            .map(|handle| handle.cpu.waited_ns())
            .sum()
    }

    /// The CPU times of an end of an epoch.
    pub fn cpu_now(&self) -> CpuTimes {
        CpuTimes::now(self.cpu_ns(), self.waited_ns())
    }

    /// Ends an epoch and records its CPU time.
    pub fn end(&self, epoch: &Epoch, now: Instant) {
        epoch.end(now);
        epoch.cpu.end(self.cpu_now());
    }

    /// Whether no outstanding I/O is older than this epoch.
    pub fn all_settled(&self, index: u32) -> bool {
        self.worker_handles()
            .iter()
            .all(|handle| handle.has_settled(index))
    }

    /// Wakes the workers that have something to do in an epoch, and those that had.
    pub fn wake_users(&self, epoch: &Epoch) {
        self.worker_handles()
            .iter()
            .filter(|handle| !handle.is_parked() || handle.is_used(epoch))
            .for_each(|handle| handle.waker.wake());
    }

    /// Ends the load: closes its last epoch and lets the workers reap what is outstanding.
    pub fn finish(&self) {
        let timeline = lock(&self.timeline);
        let (epoch, ended) = (timeline.current(), self.run.now());
        if self.run.life.started() && !self.run.life.stopping() {
            epoch.end(ended);
        }
        if self.run.life.begin_stop() {
            // Only now: reading the times of many threads takes a while, in which I/Os would still be issued.
            epoch.cpu.end(self.cpu_now());
            if let Some(flow) = &self.run.flow {
                flow.leave();
            }
            let worker_handles = self.worker_handles();
            // A worker that was counting when the epoch ended has finished once its epoch lock was free.
            worker_handles
                .iter()
                .for_each(|handle| drop(handle.epoch()));
            epoch.take_last_second();
            if let Some(schedule) = &epoch.schedule {
                // What arrived since the epoch ended was never to be issued, so that it is not skipped either.
                schedule.end(ended.ticks);
            }
            worker_handles.iter().for_each(|handle| handle.waker.wake());
        }
        drop(timeline);
        self.run.life.notify();
    }
}
