//! How a ring worker waits until there is something to reap or to issue: sleeping, spinning or polling.

use std::io;
use std::time::Duration;

use super::worker::Worker;
use crate::load::knobs::RingUse;
use crate::load::pace::schedule::WATCH_NS;
use crate::load::rings::crowd::Crowd;

/// Most outstanding I/Os with which sleeping costs IOPS: with more the device has work, and completions come together.
const SPIN_UP_TO: usize = 16;
/// Factor of the cost of a sleep among many workers (measured with eight: 2.9 against 2.0 us of CPU per I/O).
const CROWDED: u64 = 2;

impl Worker<'_> {
    /// Waits as the run is configured, at most until a deadline. What is queued is submitted first.
    pub(super) fn pass(&mut self, wake_ticks: u64) -> io::Result<()> {
        if self.epoch.schedule.is_some() {
            return self.await_arrival(wake_ticks);
        }
        if self.run.limits.ring_use == RingUse::Poll && self.free_slots.in_flight() > 0 {
            return self.watch(wake_ticks);
        }
        if self.spin_briefly()? && !self.ring.has_news() {
            return Ok(());
        }
        self.sleep(wake_ticks)
    }

    /// Spins for a completion before going to sleep, if that has been worth it lately; whether some can be reaped.
    fn spin_briefly(&mut self) -> io::Result<bool> {
        let outstanding = self.free_slots.in_flight();
        let crowded = self.crowd.as_ref().is_some_and(Crowd::stays_awake);
        if outstanding == 0 || outstanding > SPIN_UP_TO && !crowded {
            return Ok(false);
        }
        let budget_ticks = self.spin.budget_ticks() * if crowded { CROWDED } else { 1 };
        if budget_ticks == 0 {
            return Ok(false);
        }
        if self.ring.queued() > 0 {
            self.ring.submit()?;
        }
        // What completes while it is submitted, as reads of cached data do, is there at once and is no news.
        if self.ring.has_completions() {
            self.spin.learn(true);
            return Ok(true);
        }
        let until_ticks = self.run.clock.now() + budget_ticks;
        let mut in_time = true;
        while in_time && !self.ring.has_news() {
            std::hint::spin_loop();
            // Later news came because others needed this processor and took it, so that sleeping was better.
            in_time = self.run.clock.now() < until_ticks;
        }
        self.spin.learn(in_time);
        Ok(false)
    }

    /// Sleeps until shortly before an arrival and then watches the clock: waking up would take too long.
    fn await_arrival(&mut self, wake_ticks: u64) -> io::Result<()> {
        let watch_ticks = wake_ticks.saturating_sub(self.run.clock.ticks(WATCH_NS));
        let polls = self.run.limits.ring_use == RingUse::Poll && self.free_slots.in_flight() > 0;
        if polls || wake_ticks != u64::MAX && self.run.clock.now() >= watch_ticks {
            return self.watch(wake_ticks);
        }
        self.sleep(if wake_ticks == u64::MAX {
            wake_ticks
        } else {
            watch_ticks
        })
    }

    /// Polls until there is a completion, or until a deadline.
    fn watch(&mut self, wake_ticks: u64) -> io::Result<()> {
        loop {
            if self.ring.queued() > 0 || self.ring.has_news() {
                self.ring.collect()?;
            }
            if self.ring.has_completions()
                || self.run.clock.now() >= wake_ticks
                || self.run.life.stopping()
            {
                return Ok(());
            }
            std::hint::spin_loop();
        }
    }

    fn sleep(&mut self, wake_ticks: u64) -> io::Result<()> {
        let idle = self.free_slots.in_flight() == 0;
        let left = (wake_ticks != u64::MAX).then(|| {
            let clock = self.run.clock;
            Duration::from_nanos(clock.ns(wake_ticks.saturating_sub(clock.now())))
        });
        self.ring.wait(left, idle)
    }
}
