//! What one worker counts: single-writer atomics that any thread may read while it runs.

use std::sync::OnceLock;
use std::sync::atomic::{
    AtomicU64,
    Ordering::{Relaxed, Release},
};

use super::histogram::Histogram;

/// The way the data goes; the index of the direction in every array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    Read = 0,
    Write = 1,
}

impl Direction {
    pub const ALL: [Self; 2] = [Self::Read, Self::Write];

    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
        }
    }
}

/// Counters of one target and direction; the first eight share a cache line.
#[repr(align(64))]
pub struct Lane {
    pub(in crate::load) ios: AtomicU64,
    pub(in crate::load) bytes: AtomicU64,
    pub(in crate::load) latency_ns: AtomicU64,
    pub(in crate::load) least_ns: AtomicU64,
    pub(in crate::load) largest_ns: AtomicU64,
    pub(in crate::load) errors: AtomicU64,
    /// Largest since the reader of `counters` last took it.
    pub(in crate::load) peak_ns: AtomicU64,
    /// Largest since the coordinator last took it.
    pub(in crate::load) second_peak_ns: AtomicU64,
    pub(in crate::load) histogram: Histogram,
    pub(in crate::load) service: OnceLock<Box<Service>>,
}

/// Times from submit to reap, counted beside latencies where those count from an intended start.
pub struct Service {
    pub(in crate::load) sum_ns: AtomicU64,
    pub(in crate::load) least_ns: AtomicU64,
    pub(in crate::load) largest_ns: AtomicU64,
    pub(in crate::load) histogram: Histogram,
}

impl Default for Service {
    fn default() -> Self {
        Self {
            sum_ns: AtomicU64::new(0),
            least_ns: AtomicU64::new(u64::MAX),
            largest_ns: AtomicU64::new(0),
            histogram: Histogram::default(),
        }
    }
}

impl Default for Lane {
    fn default() -> Self {
        Self {
            ios: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            latency_ns: AtomicU64::new(0),
            least_ns: AtomicU64::new(u64::MAX),
            largest_ns: AtomicU64::new(0),
            errors: AtomicU64::new(0),
            peak_ns: AtomicU64::new(0),
            second_peak_ns: AtomicU64::new(0),
            histogram: Histogram::default(),
            service: OnceLock::new(),
        }
    }
}

/// Adds where only one thread writes: no locked instruction.
#[inline]
fn add(counter: &AtomicU64, amount: u64) {
    counter.store(counter.load(Relaxed) + amount, Relaxed);
}

/// Raises a peak that a reader may take at any moment.
#[inline]
fn raise(peak: &AtomicU64, value: u64) {
    if value > peak.load(Relaxed) {
        peak.fetch_max(value, Relaxed);
    }
}

impl Lane {
    #[inline]
    pub fn record(&self, bytes: u64, latency_ns: u64) {
        add(&self.bytes, bytes);
        add(&self.latency_ns, latency_ns);
        if latency_ns < self.least_ns.load(Relaxed) {
            self.least_ns.store(latency_ns, Relaxed);
        }
        if latency_ns > self.largest_ns.load(Relaxed) {
            self.largest_ns.store(latency_ns, Relaxed);
        }
        raise(&self.peak_ns, latency_ns);
        raise(&self.second_peak_ns, latency_ns);
        self.histogram.record(latency_ns);
        // Last, so that a reader that sees the I/O sees all its counts.
        self.ios.store(self.ios.load(Relaxed) + 1, Release);
    }

    /// Counts the service time of an I/O whose latency `record` gets.
    pub fn record_service(&self, service_ns: u64) {
        let service = self.service.get_or_init(Box::default);
        add(&service.sum_ns, service_ns);
        if service_ns < service.least_ns.load(Relaxed) {
            service.least_ns.store(service_ns, Relaxed);
        }
        if service_ns > service.largest_ns.load(Relaxed) {
            service.largest_ns.store(service_ns, Relaxed);
        }
        service.histogram.record(service_ns);
    }

    pub fn record_error(&self) {
        add(&self.errors, 1);
    }

    pub fn take_second_peak(&self) -> u64 {
        self.second_peak_ns.swap(0, Relaxed)
    }
}

/// All lanes one worker writes in one phase of an epoch; a lane takes memory when it is first used.
pub struct Block {
    first_target: usize,
    fsyncs: Box<[OnceLock<Box<Lane>>]>,
    lanes: Box<[[OnceLock<Box<Lane>>; 2]]>,
}

impl Block {
    pub fn new(first_target: usize, targets: usize) -> Self {
        Self {
            first_target,
            fsyncs: (0..targets).map(|_| OnceLock::new()).collect(),
            lanes: (0..targets).map(|_| Default::default()).collect(),
        }
    }

    #[inline]
    pub fn lane(&self, target: usize, direction: Direction) -> &Lane {
        self.lanes[target - self.first_target][direction as usize].get_or_init(Box::default)
    }

    pub fn fsync_lane(&self, target: usize) -> &Lane {
        self.fsyncs[target - self.first_target].get_or_init(Box::default)
    }

    /// The lane of a target's fsyncs if it was ever used.
    pub fn used_fsyncs(&self, target: usize) -> Option<&Lane> {
        let lane = self.fsyncs.get(target.checked_sub(self.first_target)?)?;
        lane.get().map(Box::as_ref)
    }

    /// The lane if it was ever used.
    pub fn used(&self, target: usize, direction: Direction) -> Option<&Lane> {
        let lanes = self.lanes.get(target.checked_sub(self.first_target)?)?;
        lanes[direction as usize].get().map(Box::as_ref)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_of_one_target_knows_only_that() {
        let block = Block::new(3, 1);
        block.lane(3, Direction::Write).record(512, 1);
        assert!(block.used(3, Direction::Write).is_some());
        assert!(block.used(3, Direction::Read).is_none());
        assert!(block.used(0, Direction::Write).is_none());
    }
}
