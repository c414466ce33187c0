//! What choosing paths costs: a sample of I/Os is timed, as timing costs about as much as choosing.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Of this many I/Os about one is timed.
const SAMPLE_BITS: u32 = 6;

/// Time of the two steps of an I/O: choosing its path, and learning from its end.
#[derive(Default)]
pub struct PolicyCost {
    choosing: Step,
    learning: Step,
}

#[derive(Default)]
struct Step {
    samples: AtomicU64,
    ticks: AtomicU64,
}

impl Step {
    fn add(&self, ticks: u64) {
        self.samples.fetch_add(1, Relaxed);
        self.ticks.fetch_add(ticks, Relaxed);
    }

    #[expect(clippy::cast_precision_loss, reason = "a mean of short spans")]
    fn mean(&self) -> Option<f64> {
        let samples = self.samples.load(Relaxed);
        (samples > 0).then(|| self.ticks.load(Relaxed) as f64 / samples as f64)
    }
}

/// Whether the I/O of this moment is timed; moments are as good as random.
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

    /// Mean of both steps together; none without samples.
    pub fn ticks_per_io(&self) -> Option<f64> {
        Some(self.choosing.mean()? + self.learning.mean().unwrap_or(0.0))
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
    fn the_cost_is_that_of_both_steps() {
        let cost = PolicyCost::default();
        assert_eq!(cost.ticks_per_io(), None);
        cost.chose(10);
        cost.chose(30);
        cost.learned(5);
        assert!((cost.ticks_per_io().unwrap() - 25.0).abs() < 1e-9);
    }
}
