//! When an epoch lets its workers issue: at once, or once all older I/Os are back (and, where it turns the page cache
//! on or off, written back).
//!
//! One queue over all targets and a queue for each of them would together hold more I/Os than either.
//!
//! Direct and cached writes in flight together collide in the kernel: it warns of corruption and fails the next
//! synchronous write with EIO (mm/filemap.c: `dio_warn_stale_pagecache`).

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64};

use crate::load::system::clock::Instant;

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

    /// Makes the opening of an epoch that waits.
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
    pub fn begin(&self) -> bool {
        !self.begun.swap(true, Relaxed)
    }

    /// Makes an open epoch settle again: the process was stopped until now, and what was issued before waited in it.
    pub fn postpone(&self, now: Instant) {
        self.open(now);
    }

    /// Lets workers issue from this moment on.
    pub fn open(&self, now: Instant) {
        self.ns.store(now.ns, Relaxed);
        self.ticks.store(now.ticks, Release);
    }
}
