//! When an epoch lets its workers issue: at once, or, where it turns the page cache on or off, once all older I/Os are
//! back and written back.
//!
//! Direct and cached writes in flight together collide in the kernel: it warns of corruption and fails the next
//! synchronous write with EIO (mm/filemap.c: `dio_warn_stale_pagecache`).

use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64};

use super::coordinator::Core;
use super::epoch::{Epoch, Instant};
use super::lock::lock;
use super::mode;
use super::refusal::words;

const NEVER: u64 = u64::MAX;

/// The moment from which an epoch's I/Os are issued.
pub struct Opening {
    ticks: AtomicU64,
    ns: AtomicU64,
    begun: AtomicBool,
}

impl Opening {
    pub fn at(moment: Instant) -> Self {
        Self {
            ticks: AtomicU64::new(moment.ticks),
            ns: AtomicU64::new(moment.ns),
            begun: AtomicBool::new(true),
        }
    }

    /// For an epoch that waits.
    pub fn later() -> Self {
        Self {
            ticks: AtomicU64::new(NEVER),
            ns: AtomicU64::new(NEVER),
            begun: AtomicBool::new(false),
        }
    }

    #[inline]
    pub fn is_open(&self) -> bool {
        self.ticks.load(Acquire) != NEVER
    }

    /// The moment on the ticks' clock; the largest value until then.
    #[inline]
    pub fn ticks(&self) -> u64 {
        self.ticks.load(Relaxed)
    }

    /// The moment on the monotonic clock; the largest value until then.
    pub fn ns(&self) -> u64 {
        self.ns.load(Relaxed)
    }

    /// Whether the caller is the first, and so the one to handle it.
    fn begin(&self) -> bool {
        !self.begun.swap(true, Relaxed)
    }

    /// Makes an open epoch settle again: the process was stopped until now, and what was issued before waited in it.
    pub fn postpone(&self, now: Instant) {
        self.open(now);
    }

    fn open(&self, now: Instant) {
        self.ns.store(now.ns, Relaxed);
        self.ticks.store(now.ticks, Release);
    }
}

impl Core {
    /// Opens an epoch that waits, if no older I/O is outstanding; dirty pages are first written back by a thread of its
    /// own, as that may take minutes.
    pub fn open_settled(self: &Arc<Self>, epoch: &Arc<Epoch>) {
        if !self.all_settled(epoch.index) || !epoch.opening.begin() {
            return;
        }
        if !epoch.settings.mode.is_direct() {
            return self.open(epoch);
        }
        let (core, epoch) = (Arc::clone(self), Arc::clone(epoch));
        let written_back = move || {
            let run = &core.run;
            mode::write_back(&run.targets, &run.errors, &run.write_backs, run.clock);
            let timeline = lock(&core.timeline);
            // After the end the descriptors stay as they were for the pass that reads back what was written.
            if !core.run.life.stopping() && Arc::ptr_eq(timeline.current(), &epoch) {
                core.open(&epoch);
            }
        };
        let thread = std::thread::Builder::new().name("load-writeback".into());
        if let Err(error) = thread.spawn(written_back) {
            let text = format!("a thread to write back cached data: {}", words(&error));
            self.run.life.set_fault(text);
        }
    }

    fn open(&self, epoch: &Epoch) {
        if let Err(error) = mode::turn(&self.run.targets, epoch.settings.mode.is_direct()) {
            return self.run.life.set_fault(words(&error));
        }
        epoch.opening.open(self.run.now());
        self.wake_users(epoch);
        self.run.life.notify();
    }
}
