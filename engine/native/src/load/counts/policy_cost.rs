//! What choosing paths costs: a sample of I/Os is timed, as timing costs about as much as choosing.

use std::sync::Mutex;

use super::histogram::{Counts, Histogram, lower_bound};
use crate::load::system::lock::lock;

/// About one of this many I/Os, as a power of two, is timed.
const SAMPLE_BITS: u32 = 6;

/// Time of the two steps of an I/O: choosing its path, and learning from its end.
#[derive(Default)]
pub struct PolicyCost {
    choosing: Step,
    learning: Step,
}

#[derive(Default)]
struct Step(Mutex<Histogram>);

impl Step {
    fn add(&self, ticks: u64) {
        lock(&self.0).record(ticks);
    }

    /// The median: a thread that lost its processor amid a sample says nothing about the policy.
    fn median(&self) -> Option<u64> {
        let mut counts = Counts::default();
        counts.add(&lock(&self.0));
        let half = counts
            .cells()
            .map(|(_, count)| count)
            .sum::<u64>()
            .div_ceil(2);
        let mut below = 0;
        let mut reached = counts.cells().skip_while(|(_, count)| {
            below += count;
            below < half
        });
        reached.next().map(|(bucket, _)| lower_bound(bucket))
    }
}

/// Whether the I/O at this tick is timed; ticks are as good as random.
#[inline]
pub fn is_sampled(ticks: u64) -> bool {
    ticks.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (u64::BITS - SAMPLE_BITS) == 0
}

impl PolicyCost {
    pub fn chose(&self, ticks: u64) {
        self.choosing.add(ticks);
    }

    pub fn learned(&self, ticks: u64) {
        self.learning.add(ticks);
    }

    /// Both steps together; none without samples.
    pub fn ticks_per_io(&self) -> Option<u64> {
        Some(self.choosing.median()? + self.learning.median().unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn about_one_in_64_is_sampled() {
        let sampled = (0..64_000_u64)
            .filter(|step| is_sampled(step * 2311))
            .count();
        assert!((700..1300).contains(&sampled), "{sampled}");
    }

    #[test]
    fn the_cost_is_the_usual_one_of_both_steps() {
        let cost = PolicyCost::default();
        assert_eq!(cost.ticks_per_io(), None);
        for ticks in [10, 10, 30, 1_000_000] {
            cost.chose(ticks);
        }
        cost.learned(5);
        assert_eq!(cost.ticks_per_io(), Some(15));
    }
}
