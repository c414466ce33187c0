//! Decides when a target is due an fsync: after each of a number of completed writes.

use std::os::fd::RawFd;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use io_uring::types;

/// `engine.job.choices.Flush`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flush {
    Fsync,
    /// A flush without metadata that the data do not need.
    Fdatasync,
}

impl Flush {
    pub fn new(name: &str) -> Result<Self, String> {
        match name {
            "fsync" => Ok(Self::Fsync),
            "fdatasync" => Ok(Self::Fdatasync),
            other => Err(format!("flush {other} is not fsync or fdatasync")),
        }
    }

    /// Flags of `IORING_OP_FSYNC`.
    pub fn ring_flags(self) -> types::FsyncFlags {
        match self {
            Self::Fsync => types::FsyncFlags::empty(),
            Self::Fdatasync => types::FsyncFlags::DATASYNC,
        }
    }

    /// The system call; its result.
    pub fn call(self, fd: RawFd) -> i32 {
        // SAFETY: neither takes memory, and a descriptor that is not open is refused.
        unsafe {
            match self {
                Self::Fsync => libc::fsync(fd),
                Self::Fdatasync => libc::fdatasync(fd),
            }
        }
    }
}

/// Shared by all workers of a run.
pub struct Fsyncs {
    /// 0 is never.
    every: AtomicU64,
    targets: Box<[Owing]>,
}

/// On a cache line of its own, as workers write it per I/O.
#[derive(Default)]
#[repr(align(64))]
struct Owing {
    writes: AtomicU64,
    fsyncs: AtomicU32,
}

impl Fsyncs {
    pub fn new(targets: usize) -> Self {
        Self {
            every: AtomicU64::new(0),
            targets: (0..targets).map(|_| Owing::default()).collect(),
        }
    }

    /// Counts from now on towards an fsync after this many writes; None for never.
    pub fn turn(&self, every: Option<u64>) {
        self.every.store(every.unwrap_or(0), Relaxed);
    }

    /// A write completed without an error.
    #[inline]
    pub fn wrote(&self, target: usize) {
        let every = self.every.load(Relaxed);
        if every == 0 {
            return;
        }
        let owing = &self.targets[target];
        if (owing.writes.fetch_add(1, Relaxed) + 1) % every == 0 {
            owing.fsyncs.fetch_add(1, Relaxed);
        }
    }

    /// Takes one fsync to be issued, if one is due.
    #[inline]
    pub fn take(&self, target: usize) -> bool {
        if self.every.load(Relaxed) == 0 {
            return false;
        }
        let less = |due: u32| due.checked_sub(1);
        let fsyncs = &self.targets[target].fsyncs;
        fsyncs.fetch_update(Relaxed, Relaxed, less).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_fsync_is_due_after_every_so_many_writes() {
        let fsyncs = Fsyncs::new(2);
        fsyncs.turn(Some(3));
        let due = |writes: u32| {
            (0..writes)
                .filter(|_| {
                    fsyncs.wrote(1);
                    fsyncs.take(1)
                })
                .count()
        };
        assert_eq!([due(2), due(1), due(3), due(30)], [0, 1, 1, 10]);
        assert!(!fsyncs.take(0) && !fsyncs.take(1));
    }

    #[test]
    fn without_the_knob_none_is_due() {
        let fsyncs = Fsyncs::new(1);
        fsyncs.turn(Some(1));
        fsyncs.wrote(0);
        fsyncs.turn(None);
        assert!(!fsyncs.take(0));
    }
}
