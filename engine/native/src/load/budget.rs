//! How many bytes a load transfers on a target before it ends.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// Bytes of one target that may be issued, those that were, and those of them that completed.
pub struct Budget {
    total: u64,
    issued: AtomicU64,
    ended: AtomicU64,
}

impl Budget {
    pub fn new(total: u64) -> Self {
        Self {
            total,
            issued: AtomicU64::new(0),
            ended: AtomicU64::new(0),
        }
    }

    /// Whether another I/O may be issued.
    #[inline]
    pub fn is_left(&self) -> bool {
        self.issued.load(Relaxed) < self.total
    }

    /// Takes the bytes of one I/O; false if none are left. The last may exceed the rest, as in fio.
    #[inline]
    pub fn take(&self, bytes: u64) -> bool {
        let more = |issued: u64| (issued < self.total).then_some(issued + bytes);
        self.issued.fetch_update(Relaxed, Relaxed, more).is_ok()
    }

    /// Counts an I/O that completed, or was given up; whether it was the last of all.
    #[inline]
    pub fn ended(&self, bytes: u64) -> bool {
        let so_far = self.ended.fetch_add(bytes, Release) + bytes;
        !self.is_left() && so_far == self.issued.load(Relaxed)
    }

    /// Whether nothing is left to issue and all that was issued has completed.
    pub fn is_done(&self) -> bool {
        !self.is_left() && self.ended.load(Acquire) == self.issued.load(Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_done_when_the_last_io_completes() {
        let budget = Budget::new(8192);
        assert!(budget.take(4096) && budget.take(8192));
        assert!(!budget.is_left() && !budget.take(4096));
        assert!(!budget.ended(4096) && !budget.is_done());
        assert!(budget.ended(8192) && budget.is_done());
    }
}
