//! What one worker counts: single-writer atomics that any thread may read while it runs.

use std::sync::OnceLock;
use std::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

use super::histogram::{Counts, Histogram};

/// Which way the data goes; the index of the direction in every array.
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
    ios: AtomicU64,
    bytes: AtomicU64,
    latency_ns: AtomicU64,
    least_ns: AtomicU64,
    largest_ns: AtomicU64,
    errors: AtomicU64,
    /// Largest since the reader of `counters` last took it.
    peak_ns: AtomicU64,
    /// Largest since the coordinator last took it.
    second_peak_ns: AtomicU64,
    histogram: Histogram,
    service: OnceLock<Box<Service>>,
}

/// Times from submit to reap, counted beside latencies where those count from an intended start.
pub struct Service {
    sum_ns: AtomicU64,
    least_ns: AtomicU64,
    largest_ns: AtomicU64,
    histogram: Histogram,
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

/// A sum over lanes.
#[derive(Clone, Copy, Default)]
pub struct Sums {
    pub ios: u64,
    pub bytes: u64,
    pub latency_ns: u64,
    /// 0 while `ios` is.
    pub least_ns: u64,
    pub largest_ns: u64,
    pub errors: u64,
    pub peak_ns: u64,
    /// Service times, where latencies are not: 0 elsewhere.
    pub service_ns: u64,
    pub least_service_ns: u64,
    pub largest_service_ns: u64,
}

impl Sums {
    pub fn add(&mut self, lane: &Lane) {
        let service = lane.service.get();
        let of_service = |counter: fn(&Service) -> &AtomicU64| {
            service.map_or(0, |service| counter(service).load(Relaxed))
        };
        let other = Self {
            ios: lane.ios.load(Acquire),
            bytes: lane.bytes.load(Relaxed),
            latency_ns: lane.latency_ns.load(Relaxed),
            least_ns: lane.least_ns.load(Relaxed),
            largest_ns: lane.largest_ns.load(Relaxed),
            errors: lane.errors.load(Relaxed),
            peak_ns: 0,
            service_ns: of_service(|service| &service.sum_ns),
            least_service_ns: of_service(|service| &service.least_ns),
            largest_service_ns: of_service(|service| &service.largest_ns),
        };
        self.merge(&other);
    }

    pub fn merge(&mut self, other: &Self) {
        if other.ios > 0 {
            self.least_ns = if self.ios > 0 {
                self.least_ns.min(other.least_ns)
            } else {
                other.least_ns
            };
            self.least_service_ns = if self.ios > 0 {
                self.least_service_ns.min(other.least_service_ns)
            } else {
                other.least_service_ns
            };
        }
        self.ios += other.ios;
        self.bytes += other.bytes;
        self.latency_ns += other.latency_ns;
        self.largest_ns = self.largest_ns.max(other.largest_ns);
        self.errors += other.errors;
        self.peak_ns = self.peak_ns.max(other.peak_ns);
        self.service_ns += other.service_ns;
        self.largest_service_ns = self.largest_service_ns.max(other.largest_service_ns);
    }

    /// Takes the peak of a lane along; the next reader finds what came after.
    pub fn take_peak(&mut self, lane: &Lane) {
        self.peak_ns = self.peak_ns.max(lane.peak_ns.swap(0, Relaxed));
    }
}

/// Sums and histogram of one target and direction over any number of workers and epochs.
#[derive(Default)]
pub struct Tally {
    pub sums: Sums,
    pub counts: Counts,
    /// Service times, where latencies are not.
    pub service_counts: Counts,
}

impl Tally {
    pub fn add(&mut self, lane: &Lane) {
        self.sums.add(lane);
        self.counts.add(&lane.histogram);
        if let Some(service) = lane.service.get() {
            self.service_counts.add(&service.histogram);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_over_lanes_keep_least_and_largest() {
        let (first, second, unused) = (Lane::default(), Lane::default(), Lane::default());
        first.record(4096, 300);
        first.record(4096, 100);
        second.record(8192, 200);
        second.record_error();
        let mut tally = Tally::default();
        for lane in [&unused, &first, &second] {
            tally.add(lane);
        }
        let sums = tally.sums;
        assert_eq!(
            (sums.ios, sums.bytes, sums.latency_ns, sums.errors),
            (3, 16384, 600, 1)
        );
        assert_eq!((sums.least_ns, sums.largest_ns), (100, 300));
        assert_eq!(tally.counts.cells().map(|(_, count)| count).sum::<u64>(), 3);
    }

    #[test]
    fn service_times_are_kept_beside_latencies() {
        let (first, second) = (Lane::default(), Lane::default());
        for (lane, service_ns, latency_ns) in
            [(&first, 40, 400), (&first, 30, 30), (&second, 50, 60)]
        {
            lane.record_service(service_ns);
            lane.record(512, latency_ns);
        }
        let mut tally = Tally::default();
        tally.add(&first);
        tally.add(&second);
        let sums = tally.sums;
        assert_eq!(
            (sums.latency_ns, sums.least_ns, sums.largest_ns),
            (490, 30, 400)
        );
        assert_eq!(
            (
                sums.service_ns,
                sums.least_service_ns,
                sums.largest_service_ns
            ),
            (120, 30, 50)
        );
        assert_eq!(tally.service_counts.cells().count(), 3);
    }

    #[test]
    fn a_peak_is_taken_once() {
        let lane = Lane::default();
        lane.record(512, 70);
        let mut sums = Sums::default();
        sums.take_peak(&lane);
        assert_eq!(sums.peak_ns, 70);
        let mut later = Sums::default();
        later.take_peak(&lane);
        assert_eq!(later.peak_ns, 0);
        assert_eq!(lane.take_second_peak(), 70);
    }

    #[test]
    fn a_block_of_one_target_knows_only_that() {
        let block = Block::new(3, 1);
        block.lane(3, Direction::Write).record(512, 1);
        assert!(block.used(3, Direction::Write).is_some());
        assert!(block.used(3, Direction::Read).is_none());
        assert!(block.used(0, Direction::Write).is_none());
    }
}
