//! Busy time of a device or group, as bpf/busy.h counts it: what user space does in its stead is done by the same steps.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use super::layout::{Busy, IO_TIME, ROOT_MEMBER, ROOT_MEMBERS, ROOT_SLACK_NS, ROOT_TIME_SHIFT};
use crate::load::system::clock::monotonic_ns;

/// The number of busy leaves of a device, or of busy devices of a group.
pub fn members(root: u64) -> u64 {
    root >> 1 & ROOT_MEMBERS
}

/// The later of a time and of the latest departure.
fn later(now: u64, root: u64) -> u64 {
    let ahead = (root >> ROOT_TIME_SHIFT).wrapping_sub(now) & IO_TIME;
    if ahead < ROOT_SLACK_NS {
        now + ahead
    } else {
        now
    }
}

fn signed(ns: u64) -> i64 {
    i64::try_from(ns).unwrap_or(i64::MAX)
}

impl Busy {
    /// Returns when this made it busy, and which list of groups is in force.
    pub fn arrive(&self, now: u64) -> Option<(u64, usize)> {
        let before = self.root.fetch_add(ROOT_MEMBER, AcqRel);
        if members(before) > 0 {
            return None;
        }
        let begin = later(now, before);
        self.sum_ns.fetch_sub(signed(begin), AcqRel);
        Some((begin, list(before)))
    }

    /// Returns when this made it idle, and which list of groups is in force.
    pub fn depart(&self, now: u64) -> Option<(u64, usize)> {
        let departed = |root: u64| {
            let low = root.wrapping_sub(ROOT_MEMBER) & ((1 << ROOT_TIME_SHIFT) - 1);
            Some(low | later(now, root) << ROOT_TIME_SHIFT)
        };
        let before = match self.root.fetch_update(AcqRel, Acquire, departed) {
            Ok(before) | Err(before) => before,
        };
        if members(before) != 1 {
            return None;
        }
        let end = later(now, before);
        self.sum_ns.fetch_add(signed(end), AcqRel);
        Some((end, list(before)))
    }

    /// An I/O was taken to be in the driver from `began`, because its completion was missed.
    pub fn lose(&self, began: u64, now: u64) {
        let from = self.lost_until_ns.swap(now, AcqRel).max(began);
        self.lost_ns.fetch_add(now.saturating_sub(from), AcqRel);
    }

    /// Time that it was busy by the I/Os that were seen from their issue to their completion: the least it can have been.
    pub fn least_ns(&self) -> u64 {
        let lost_ns = self.lost_ns.load(Acquire);
        since(self.sum_ns.load(Acquire)).saturating_sub(lost_ns)
    }

    /// Forgets all; nothing may be counting.
    pub fn reset(&self) {
        self.root.store(0, Relaxed);
        self.lost_ns.store(0, Relaxed);
        self.lost_until_ns.store(0, Relaxed);
        self.sum_ns.store(0, Release);
    }

    pub fn members(&self) -> u64 {
        members(self.root.load(Relaxed))
    }
}

/// Which of the two lists of groups is in force.
pub fn list(root: u64) -> usize {
    usize::from(root & 1 == 1)
}

/// Ends minus starts: a negative sum has an open interval.
fn since(sum: i64) -> u64 {
    let open = if sum < 0 { signed(monotonic_ns()) } else { 0 };
    u64::try_from(sum + open).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicI32;
    use std::thread;

    use super::*;

    fn idle() -> Busy {
        // SAFETY: plain atomic integers, for which zero is a value.
        unsafe { std::mem::zeroed() }
    }

    #[test]
    fn it_ends_at_the_latest_departure_whichever_comes_last() {
        let busy = idle();
        assert_eq!(busy.arrive(1_000), Some((1_000, 0)));
        assert_eq!(busy.arrive(1_100), None);
        assert_eq!(busy.depart(2_000), None);
        assert_eq!(busy.depart(1_900), Some((2_000, 0)));
        assert_eq!((busy.members(), busy.least_ns()), (0, 1_000));
    }

    #[test]
    fn no_time_counts_twice_when_an_arrival_comes_late() {
        let busy = idle();
        busy.arrive(1_000);
        busy.depart(2_000);
        assert_eq!(busy.arrive(1_900), Some((2_000, 0)));
        busy.depart(2_500);
        assert_eq!(busy.least_ns(), 1_500);
    }

    #[test]
    fn the_time_of_a_departure_is_compared_across_the_wrap_of_its_bits() {
        let (busy, wrap) = (idle(), 1 << 45);
        busy.arrive(wrap - ROOT_SLACK_NS * 2);
        busy.depart(wrap - ROOT_SLACK_NS * 2 + 7);
        busy.arrive(wrap - 1_000);
        busy.depart(wrap - 10);
        assert_eq!(busy.arrive(wrap + 5), Some((wrap + 5, 0)));
        busy.depart(wrap + 100);
        assert_eq!(busy.arrive(wrap + 90), Some((wrap + 100, 0)));
        busy.depart(wrap + 200);
        assert_eq!(busy.least_ns(), 7 + 990 + 95 + 100);
        // Hours after the last departure.
        let hours = wrap / 2;
        assert_eq!(busy.arrive(wrap + hours), Some((wrap + hours, 0)));
    }

    #[test]
    fn lost_time_counts_once_where_several_are_lost_at_once() {
        let busy = idle();
        busy.arrive(1_000);
        busy.lose(1_000, 5_000);
        busy.lose(3_000, 6_000);
        busy.depart(6_000);
        assert_eq!((busy.lost_ns.load(Relaxed), busy.least_ns()), (5_000, 0));
    }

    #[test]
    fn the_list_in_force_stays_as_it_was_set() {
        let busy = idle();
        busy.root.fetch_xor(1, Relaxed);
        assert_eq!(busy.arrive(10), Some((10, 1)));
        assert_eq!(busy.depart(20), Some((20, 1)));
        assert_eq!(list(busy.root.load(Relaxed)), 1);
    }

    fn union(mut spans: Vec<(u64, u64)>) -> u64 {
        spans.sort_unstable();
        let mut until = 0;
        let add = |(begin, end): (u64, u64)| {
            let more = end.saturating_sub(begin.max(until));
            until = until.max(end);
            more
        };
        spans.into_iter().map(add).sum()
    }

    /// What a program does at some time: to a leaf, or, held up by an interrupt, to the root.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    struct Step {
        at: u64,
        of_root: bool,
        leaf: usize,
        arrives: bool,
        clock: u64,
    }

    #[test]
    fn programs_that_are_held_up_between_leaf_and_root_agree_with_a_log() {
        const LEAVES: usize = 4;
        let mut random = 1_u64;
        let mut below = |limit: u64| {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) % limit
        };
        let (mut steps, mut spans) = (std::collections::BTreeSet::new(), Vec::new());
        // Sixteen threads that move from shard to shard, each with one I/O at a time.
        for _ in 0..16 {
            let mut now = 1_000_000_000 + below(100_000);
            for _ in 0..2_000 {
                let (begin, end) = (now, now + 20_000 + below(200_000));
                let leaf = usize::try_from(below(LEAVES as u64)).unwrap();
                spans.push((begin, end));
                for (clock, arrives) in [(begin, true), (end, false)] {
                    steps.insert(Step {
                        at: clock + below(300),
                        of_root: false,
                        leaf,
                        arrives,
                        clock,
                    });
                }
                now = end + 20_000 + below(3_000_000);
            }
        }
        let (busy, mut leaves) = (idle(), [0_u32; LEAVES]);
        while let Some(step) = steps.pop_first() {
            if step.of_root {
                let edge = if step.arrives {
                    busy.arrive(step.clock)
                } else {
                    busy.depart(step.clock)
                };
                assert!(edge.is_none_or(|(at, _)| at >= step.clock));
                continue;
            }
            let leaf = &mut leaves[step.leaf];
            let before = *leaf;
            *leaf = if step.arrives { before + 1 } else { before - 1 };
            if before.max(*leaf) == 1 {
                let held_up = if below(8) == 0 {
                    below(10_000)
                } else {
                    below(200)
                };
                steps.insert(Step {
                    at: step.at + held_up,
                    of_root: true,
                    ..step
                });
            }
        }
        assert_eq!((leaves, busy.members()), ([0; LEAVES], 0));
        let (logged, counted) = (union(spans), busy.least_ns());
        assert!(
            counted.abs_diff(logged) <= logged / 100,
            "{counted} counted, {logged} logged"
        );
    }

    #[test]
    fn nothing_stays_of_what_threads_do_at_once() {
        let (busy, leaf, began) = (idle(), AtomicI32::new(0), monotonic_ns());
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..20_000 {
                        if leaf.fetch_add(1, AcqRel) == 0 {
                            busy.arrive(monotonic_ns());
                        }
                        if leaf.fetch_sub(1, AcqRel) == 1 {
                            busy.depart(monotonic_ns());
                        }
                    }
                });
            }
        });
        assert_eq!(busy.members(), 0);
        assert!((1..=monotonic_ns() - began).contains(&busy.least_ns()));
    }
}
