//! One target of the load, and how it fares.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};

use super::mode::Mode;
use super::node::Node;

/// Errors in a row after which a target is only probed.
const ERRORS_UNTIL_FAILING: u32 = 16;
/// Pause between probes of a failing target.
pub const PROBE_INTERVAL_NS: u64 = 100_000_000;

/// An open file or device; the engine has its own duplicates of the descriptors and never opens anything by name.
pub struct Target {
    /// At least one node; several are paths to the same data.
    pub nodes: Vec<Node>,
    pub name: String,
    pub size_bytes: u64,
    /// What direct I/O needs.
    pub align_bytes: u64,
    pub writable: bool,
}

impl Target {
    /// Bytes from an offset to its end.
    #[inline]
    pub fn space_bytes(&self, offset_bytes: u64) -> u64 {
        self.size_bytes.saturating_sub(offset_bytes)
    }

    /// Alignment of offsets and lengths; none is needed through the page cache.
    pub fn align_bytes(&self, mode: Mode) -> u64 {
        if mode.is_direct() {
            self.align_bytes
        } else {
            1
        }
    }
}

/// Whether a target answers; shared by all workers.
#[derive(Default)]
pub struct Health {
    errors_in_a_row: AtomicU32,
    failing: AtomicBool,
    failing_since_ticks: AtomicU64,
    next_probe_ticks: AtomicU64,
}

/// What a worker may do with a target now.
#[derive(Debug, PartialEq, Eq)]
pub enum Permit {
    Issue,
    /// Failing: nothing before this moment.
    NotBefore(u64),
}

impl Health {
    pub fn failing(&self) -> bool {
        self.failing.load(Acquire)
    }

    /// Whether one I/O may be issued; only one worker gets the probe of a failing target.
    #[inline]
    pub fn permit(&self, now_ticks: u64, probe_interval_ticks: u64) -> Permit {
        if !self.failing() {
            return Permit::Issue;
        }
        let due = self.next_probe_ticks.load(Relaxed);
        let next = now_ticks + probe_interval_ticks;
        if now_ticks < due {
            return Permit::NotBefore(due);
        }
        match self
            .next_probe_ticks
            .compare_exchange(due, next, Relaxed, Relaxed)
        {
            Ok(_) => Permit::Issue,
            Err(other) => Permit::NotBefore(other),
        }
    }

    /// An I/O completed without an error. One issued before the target was found failing says nothing about it.
    #[inline]
    pub fn succeeded(&self, issued_ticks: u64) {
        if self.errors_in_a_row.load(Relaxed) == 0
            || self.failing() && issued_ticks <= self.failing_since_ticks.load(Relaxed)
        {
            return;
        }
        self.errors_in_a_row.store(0, Relaxed);
        self.failing.store(false, Relaxed);
    }

    pub fn failed(&self, now_ticks: u64, probe_interval_ticks: u64) {
        let errors = self.errors_in_a_row.fetch_add(1, Relaxed).saturating_add(1);
        if errors >= ERRORS_UNTIL_FAILING && !self.failing() {
            // The flag is set last, so that a reader that sees it sees since when.
            self.failing_since_ticks.store(now_ticks, Relaxed);
            self.next_probe_ticks
                .store(now_ticks + probe_interval_ticks, Relaxed);
            self.failing.store(true, Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_target_is_probed_by_one_worker_at_a_time_until_it_answers() {
        let health = Health::default();
        for _ in 0..ERRORS_UNTIL_FAILING {
            assert_eq!(health.permit(0, 100), Permit::Issue);
            health.failed(0, 100);
        }
        assert!(health.failing());
        assert_eq!(health.permit(50, 100), Permit::NotBefore(100));
        assert_eq!(health.permit(100, 100), Permit::Issue);
        assert_eq!(health.permit(100, 100), Permit::NotBefore(200));
        health.succeeded(0);
        assert!(health.failing(), "an old success is no answer");
        health.succeeded(100);
        assert_eq!(health.permit(101, 100), Permit::Issue);
    }

    #[test]
    fn single_errors_do_not_stop_a_target() {
        let health = Health::default();
        for _ in 0..10 * ERRORS_UNTIL_FAILING {
            health.failed(0, 100);
            health.succeeded(1);
        }
        assert!(!health.failing());
    }
}
