//! What becomes of completed I/Os: their counts, the health of their target and path, and their logical I/O.

use std::sync::atomic::Ordering::Relaxed;

use super::run::Run;
use crate::load::counts::errors::SHORT;
use crate::load::counts::levels::{Level, Levels};
use crate::load::counts::logical::ALONE;
use crate::load::counts::policy_cost::is_sampled;
use crate::load::counts::stats::Direction;
use crate::load::epochs::epoch::Epoch;
use crate::load::layout::fanout::FanOut;
use crate::load::layout::next_io::Asker;
use crate::load::pattern::Part;
use crate::load::targets::path_outcome::Outcome;

impl Run {
    /// Counts what came of an I/O on its path, where its target has several; whether another path should try it.
    #[inline]
    pub fn back(
        &self,
        epoch: &Epoch,
        levels: &Levels,
        part: &Part,
        result: i32,
        sent_ticks: u64,
        reaped_ticks: u64,
    ) -> bool {
        self.routes.has_choice(part.target)
            && self.count_path(epoch, levels, part, result, sent_ticks, reaped_ticks)
    }

    fn count_path(
        &self,
        epoch: &Epoch,
        levels: &Levels,
        part: &Part,
        result: i32,
        sent_ticks: u64,
        reaped_ticks: u64,
    ) -> bool {
        let began_ticks = self.clock.now();
        let outcome = self.routes.back(part, result, sent_ticks, reaped_ticks);
        if is_sampled(sent_ticks) {
            epoch.policy_cost.learned(self.clock.now() - began_ticks);
        }
        let lane = levels.lane(Level::Path, part.file as usize, part.direction);
        match outcome {
            Outcome::Good if part.is_fsync() => {}
            Outcome::Good => {
                let latency_ns = self.clock.ns(reaped_ticks.saturating_sub(sent_ticks));
                lane.record(u64::from(part.length), latency_ns);
            }
            _ => lane.record_error(),
        }
        outcome == Outcome::PathFailed && self.routes.is_open(part.target)
    }

    /// Counts a completion; `result` is the kernel's: bytes, or a negative errno.
    #[inline]
    pub fn count(
        &self,
        levels: &Levels,
        fan_out: Option<&FanOut>,
        part: &Part,
        result: i32,
        issued_ticks: u64,
        reaped_ticks: u64,
    ) {
        let lane = if part.is_fsync() {
            levels.fsync_lane(part.target)
        } else {
            levels.lane(Level::Target, part.target, part.direction)
        };
        let service_ns = self.clock.ns(reaped_ticks.saturating_sub(issued_ticks));
        let good = u32::try_from(result).is_ok_and(|bytes| bytes == part.length);
        let latency_ns = if part.intended_ticks == 0 {
            service_ns
        } else {
            self.clock
                .ns(reaped_ticks.saturating_sub(part.intended_ticks))
        };
        if !good || part.is_fsync() {
            self.unlisted_ns[part.target].fetch_add(service_ns, Relaxed);
        }
        if good {
            if part.intended_ticks != 0 {
                lane.record_service(service_ns);
            }
            lane.record(u64::from(part.length), latency_ns);
            if !part.is_fsync() {
                self.slowest.offer(part, issued_ticks, service_ns);
            }
            self.health[part.target].succeeded(issued_ticks);
            if part.direction == Direction::Write && !part.is_fsync() {
                self.fsyncs.wrote(part.target);
            }
        } else {
            lane.record_error();
            let errno = if result < 0 { -result } else { SHORT };
            self.errors
                .record(part.target, part.direction, errno, part.offset);
            self.health[part.target].failed(reaped_ticks, self.probe_interval_ticks);
        }
        if let Some(fan_out) = fan_out {
            let asker = Asker {
                target: part.target,
                now_ns: self.clock.ns(reaped_ticks),
                failing: &|target| self.failing(target),
            };
            if fan_out.back(part, service_ns, &asker, good) {
                return;
            }
        }
        if part.logical != ALONE {
            let finished =
                self.logical_ios
                    .part_ended(part.logical, part.target, latency_ns, !good);
            if let Some(finished) = finished {
                levels.finish(&finished);
            }
        }
        // After all counters: the load may be over now.
        self.settle_budget(part);
    }
}
