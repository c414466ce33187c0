//! Whether the whole process was stopped (Ctrl-Z, a frozen guest), seen by how late its coordinator wakes.

use std::time::Duration;

use crate::load::system::clock::Instant;

/// A delay that means that the process was stopped: a busy machine delays a thread that sleeps by far less.
const STOPPED_NS: u64 = 250_000_000;

/// Remembers when the coordinator was to wake.
pub struct StopWatch {
    due_ns: u64,
    /// The newest epoch seen; a later one was to be seen the moment it was turned.
    epoch: u32,
}

impl StopWatch {
    pub fn new(epoch: u32) -> Self {
        let due_ns = u64::MAX;
        Self { due_ns, epoch }
    }

    /// Whether the process was stopped since the last call, or since the turn if the epoch is new.
    pub fn was_stopped(&mut self, epoch: u32, turned: Instant, now: Instant) -> bool {
        if epoch != self.epoch {
            self.epoch = epoch;
            self.due_ns = self.due_ns.min(turned.ns);
        }
        let late_ns = now.ns.saturating_sub(self.due_ns);
        self.due_ns = now.ns;
        late_ns > STOPPED_NS
    }

    /// Notes for how long the coordinator sleeps.
    pub fn sleeps(&mut self, pause: Duration) {
        let pause_ns = u64::try_from(pause.as_nanos()).unwrap_or(u64::MAX);
        self.due_ns = self.due_ns.saturating_add(pause_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STOP_NS: u64 = 800_000_000;
    const LONG: Duration = Duration::from_secs(1);
    const SHORT: Duration = Duration::from_millis(2);

    fn at(ns: u64) -> Instant {
        Instant { ticks: ns, ns }
    }

    #[test]
    fn waking_in_time_is_no_stop() {
        let mut watch = StopWatch::new(0);
        assert!(!watch.was_stopped(0, at(0), at(STOP_NS)));
        watch.sleeps(LONG);
        assert!(!watch.was_stopped(0, at(0), at(STOP_NS + 1_000_000_000)));
    }

    #[test]
    fn waking_late_is_a_stop() {
        let mut watch = StopWatch::new(0);
        watch.was_stopped(0, at(0), at(0));
        watch.sleeps(SHORT);
        assert!(watch.was_stopped(0, at(0), at(STOP_NS)));
        watch.sleeps(SHORT);
        assert!(!watch.was_stopped(0, at(0), at(STOP_NS + 2_000_000)));
    }

    #[test]
    fn an_epoch_turned_before_the_stop_shows_it_though_the_coordinator_was_to_sleep_on() {
        let mut watch = StopWatch::new(3);
        watch.was_stopped(3, at(0), at(0));
        watch.sleeps(LONG);
        assert!(watch.was_stopped(4, at(10_000_000), at(10_000_000 + STOP_NS)));
    }

    #[test]
    fn a_stop_while_the_coordinator_is_awake_is_one_too() {
        let mut watch = StopWatch::new(0);
        watch.was_stopped(0, at(0), at(0));
        assert!(watch.was_stopped(0, at(0), at(STOP_NS)));
    }
}
