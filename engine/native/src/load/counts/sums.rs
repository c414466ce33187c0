//! Sums of counters over workers and epochs.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed};

use super::histogram::Counts;
use super::stats::{Lane, Service};

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
}
