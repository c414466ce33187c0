//! Logical I/Os that are cut into parts: one is done when its slowest part is.
//!
//! The latency of a logical I/O is that of its slowest part. The wait of a part for a free slot of its target is
//! the generator's doing and no part of it.

use std::sync::Mutex;

use super::stats::Direction;
use crate::load::system::lock::lock;

/// Means an I/O that is not part of a larger one.
pub const ALONE: u32 = u32::MAX;

/// A logical I/O whose last part has completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finished {
    pub direction: Direction,
    pub bytes: u64,
    pub failed: bool,
    pub slowest_ns: u64,
    pub slowest_target: usize,
    /// Latency of the slowest part but one; none if there was only one.
    second_ns: Option<u64>,
}

impl Finished {
    /// Time by which its slowest part came after all others.
    pub fn waited_ns(&self) -> Option<u64> {
        self.second_ns.map(|second_ns| self.slowest_ns - second_ns)
    }
}

struct Pending {
    state: Finished,
    parts_left: u32,
    /// A knob was turned before all parts were issued: it is in no statistic.
    cut: bool,
    /// Latency of attempts on copies that failed.
    lost_ns: u64,
    retries: u32,
}

/// Logical I/Os in flight.
#[derive(Default)]
pub struct LogicalIos(Mutex<Slots>);

#[derive(Default)]
struct Slots {
    all: Vec<Pending>,
    free: Vec<u32>,
}

impl LogicalIos {
    /// Takes memory for this many in flight, so that no worker has to.
    pub fn reserve(&self, ios: usize) {
        let mut slots = lock(&self.0);
        let more = ios.saturating_sub(slots.all.len());
        slots.all.reserve(more);
        let more = ios.saturating_sub(slots.free.len());
        slots.free.reserve(more);
    }

    /// Begins one of this many parts; its number, which every part carries.
    pub fn begin(&self, direction: Direction, bytes: u64, parts: u32, failed: bool) -> u32 {
        let pending = Pending {
            state: Finished {
                direction,
                bytes,
                failed,
                slowest_ns: 0,
                slowest_target: 0,
                second_ns: None,
            },
            parts_left: parts,
            cut: false,
            lost_ns: 0,
            retries: 0,
        };
        let mut slots = lock(&self.0);
        if let Some(number) = slots.free.pop() {
            slots.all[number as usize] = pending;
            return number;
        }
        slots.all.push(pending);
        u32::try_from(slots.all.len() - 1).unwrap_or(ALONE)
    }

    /// A part completed; returns the logical I/O if it was the last and no turn dropped a part.
    pub fn part_ended(
        &self,
        number: u32,
        target: usize,
        latency_ns: u64,
        failed: bool,
    ) -> Option<Finished> {
        let mut slots = lock(&self.0);
        let pending = slots.all.get_mut(number as usize)?;
        let state = &mut pending.state;
        state.failed |= failed;
        let latency_ns = latency_ns + std::mem::take(&mut pending.lost_ns);
        let is_first = state.slowest_ns == 0;
        if latency_ns >= state.slowest_ns {
            state.second_ns = (!is_first).then_some(state.slowest_ns);
            (state.slowest_ns, state.slowest_target) = (latency_ns, target);
        } else {
            state.second_ns = Some(state.second_ns.unwrap_or(0).max(latency_ns));
        }
        slots.step(number)
    }

    /// A part will never be issued.
    pub fn part_dropped(&self, number: u32) {
        let mut slots = lock(&self.0);
        if let Some(pending) = slots.all.get_mut(number as usize) {
            pending.cut = true;
            slots.step(number);
        }
    }

    /// A part failed and goes to another copy, at most this often for one logical I/O.
    pub fn retry(&self, number: u32, latency_ns: u64, most: u32) -> bool {
        let mut slots = lock(&self.0);
        let Some(pending) = slots.all.get_mut(number as usize) else {
            return false;
        };
        pending.retries += 1;
        pending.lost_ns += latency_ns;
        pending.retries <= most
    }
}

impl Slots {
    /// Notes that one part fewer is awaited.
    fn step(&mut self, number: u32) -> Option<Finished> {
        let pending = &mut self.all[number as usize];
        pending.parts_left -= 1;
        if pending.parts_left > 0 {
            return None;
        }
        let finished = (!pending.cut).then_some(pending.state);
        self.free.push(number);
        finished
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_logical_io_ends_with_its_slowest_part_which_the_others_waited_for() {
        let ios = LogicalIos::default();
        let number = ios.begin(Direction::Read, 3 * 4096, 3, false);
        assert_eq!(ios.part_ended(number, 0, 50, false), None);
        assert_eq!(ios.part_ended(number, 2, 90, false), None);
        let done = ios.part_ended(number, 1, 70, false).unwrap();
        assert_eq!((done.slowest_ns, done.slowest_target), (90, 2));
        assert_eq!(
            (done.waited_ns(), done.bytes, done.failed),
            (Some(20), 12288, false)
        );
    }

    #[test]
    fn a_single_part_holds_nobody_up() {
        let ios = LogicalIos::default();
        let number = ios.begin(Direction::Write, 4096, 1, false);
        let done = ios.part_ended(number, 4, 70, false).unwrap();
        assert_eq!((done.slowest_ns, done.waited_ns()), (70, None));
    }

    #[test]
    fn one_failed_part_fails_the_whole_and_a_dropped_one_leaves_no_trace() {
        let ios = LogicalIos::default();
        let number = ios.begin(Direction::Read, 8192, 2, false);
        ios.part_ended(number, 0, 50, true);
        assert!(ios.part_ended(number, 1, 60, false).unwrap().failed);
        let cut = ios.begin(Direction::Read, 8192, 2, false);
        assert_eq!(cut, number, "numbers are used again");
        ios.part_dropped(cut);
        assert_eq!(ios.part_ended(cut, 0, 50, false), None);
    }

    #[test]
    fn the_time_on_a_copy_that_failed_counts() {
        let ios = LogicalIos::default();
        let number = ios.begin(Direction::Read, 4096, 1, false);
        assert!(ios.retry(number, 30, 1));
        assert!(!ios.retry(number, 10, 1));
        let done = ios.part_ended(number, 1, 60, false).unwrap();
        assert_eq!(done.slowest_ns, 100);
    }
}
