//! How many bytes a load transfers on a target before it ends.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// Bytes of one target that may be issued, those that were, and those of them that completed; on a cache line of its own.
#[repr(align(64))]
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

    /// Takes the bytes of one I/O, and returns them; None if none are left.
    ///
    /// The last has what `fitting` says fits the rest; where nothing does, it exceeds the rest, as in fio.
    #[inline]
    pub fn take(&self, bytes: u32, fitting: impl Fn(u64) -> Option<u32>) -> Option<u32> {
        let mut taken = bytes;
        let more = |issued: u64| {
            let left = self.total.checked_sub(issued).filter(|left| *left > 0)?;
            taken = if u64::from(bytes) > left {
                fitting(left).unwrap_or(bytes)
            } else {
                bytes
            };
            Some(issued + u64::from(taken))
        };
        let more = self.issued.fetch_update(Relaxed, Relaxed, more);
        more.is_ok().then_some(taken)
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
        let none = |_| None;
        assert_eq!(
            [4096, 8192, 4096].map(|bytes| budget.take(bytes, none)),
            [Some(4096), Some(8192), None]
        );
        assert!(!budget.is_left());
        assert!(!budget.ended(4096) && !budget.is_done());
        assert!(budget.ended(8192) && budget.is_done());
    }

    #[test]
    fn the_last_io_is_one_that_fits_the_rest() {
        let budget = Budget::new(20 << 10);
        let fitting = |left: u64| (left >= 4096).then_some(4096);
        assert_eq!(
            [16 << 10, 16 << 10, 16 << 10].map(|bytes| budget.take(bytes, fitting)),
            [Some(16 << 10), Some(4096), None]
        );
        assert_eq!(Budget::new(512).take(16 << 10, fitting), Some(16 << 10));
    }
}
