//! The slowest I/Os since the last call, with when they were submitted and completed.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::load::counts::stats::Direction;
use crate::load::pattern::Part;
use crate::load::system::lock::lock;

/// How many are kept.
pub const KEPT: usize = 16;

/// One I/O that took long.
#[derive(Clone, Copy, Debug)]
pub struct SlowIo {
    pub target: usize,
    pub direction: Direction,
    pub offset: u64,
    pub length: u32,
    pub issued_ticks: u64,
    pub latency_ns: u64,
}

/// Kept by all workers of a run together: an I/O that is not among the slowest costs one comparison.
pub struct Slowest {
    /// What an I/O must exceed to be kept.
    threshold_ns: AtomicU64,
    kept: Mutex<Vec<SlowIo>>,
}

impl Default for Slowest {
    fn default() -> Self {
        Self {
            threshold_ns: AtomicU64::new(0),
            kept: Mutex::new(Vec::with_capacity(KEPT)),
        }
    }
}

impl Slowest {
    #[inline]
    pub fn offer(&self, part: &Part, issued_ticks: u64, latency_ns: u64) {
        if latency_ns > self.threshold_ns.load(Relaxed) {
            self.keep(SlowIo {
                target: part.target,
                direction: part.direction,
                offset: part.offset,
                length: part.length,
                issued_ticks,
                latency_ns,
            });
        }
    }

    #[cold]
    fn keep(&self, io: SlowIo) {
        let mut kept = lock(&self.kept);
        if kept.len() < KEPT {
            kept.push(io);
        } else if let Some(fastest) = kept.iter_mut().min_by_key(|other| other.latency_ns) {
            if fastest.latency_ns < io.latency_ns {
                *fastest = io;
            }
        }
        if kept.len() == KEPT {
            let least_ns = kept.iter().map(|other| other.latency_ns).min();
            self.threshold_ns.store(least_ns.unwrap_or(0), Relaxed);
        }
    }

    /// Returns and removes them, the slowest first.
    pub fn take(&self) -> Vec<SlowIo> {
        let mut kept = lock(&self.kept);
        let mut taken = std::mem::replace(&mut *kept, Vec::with_capacity(KEPT));
        self.threshold_ns.store(0, Relaxed);
        drop(kept);
        taken.sort_unstable_by_key(|io| std::cmp::Reverse(io.latency_ns));
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offer(slowest: &Slowest, latency_ns: u64) {
        let part = Part::alone(1, Direction::Write, latency_ns * 512, 4096);
        slowest.offer(&part, 7, latency_ns);
    }

    fn latencies(slowest: &Slowest) -> Vec<u64> {
        slowest.take().iter().map(|io| io.latency_ns).collect()
    }

    #[test]
    fn the_slowest_of_many_are_kept_in_order() {
        let slowest = Slowest::default();
        (1..=1000).for_each(|step| offer(&slowest, step * 37 % 1009));
        let mut all: Vec<u64> = (1..=1000).map(|step| step * 37 % 1009).collect();
        all.sort_unstable_by_key(|latency_ns| std::cmp::Reverse(*latency_ns));
        assert_eq!(latencies(&slowest), all[..KEPT]);
    }

    #[test]
    fn taking_begins_anew() {
        let slowest = Slowest::default();
        (0..100).for_each(|step| offer(&slowest, 1_000 + step));
        slowest.take();
        offer(&slowest, 5);
        assert_eq!(latencies(&slowest), [5]);
        assert!(latencies(&slowest).is_empty());
    }
}
