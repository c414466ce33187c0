//! Whether to spin for a completion before going to sleep.
//!
//! Going to sleep and being woken costs microseconds on both sides. Where completions mostly come sooner than that,
//! spinning is cheaper; where they do not, it is waste, and tried only now and then.

/// One of this many waits tries, however badly it went before.
const TRY_EVERY: u32 = 64;
/// Weight of one outcome in the running share of successes, as a power of two.
const WEIGHT_BITS: u32 = 4;
const ALWAYS: u32 = 1 << 16;
/// Share of successes from which spinning takes no more time than sleeping: a failure costs both.
const WORTH_PERCENT: u32 = 85;

/// Remembers how often it was worth it.
pub struct Spin {
    budget_ticks: u64,
    success: u32,
    waits: u32,
}

impl Spin {
    pub fn new(budget_ticks: u64) -> Self {
        Self {
            budget_ticks,
            success: 0,
            waits: 0,
        }
    }

    /// How long to spin this time.
    #[inline]
    pub fn budget_ticks(&mut self) -> u64 {
        self.waits = self.waits.wrapping_add(1);
        if self.success >= ALWAYS / 100 * WORTH_PERCENT || self.waits % TRY_EVERY == 0 {
            self.budget_ticks
        } else {
            0
        }
    }

    /// Says whether a completion came within the time.
    #[inline]
    pub fn learn(&mut self, came: bool) {
        self.success -= self.success >> WEIGHT_BITS;
        if came {
            self.success += ALWAYS >> WEIGHT_BITS;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many of many waits spun, with the same outcome each.
    fn spun(spin: &mut Spin, came: bool) -> u32 {
        let mut count = 0;
        for _ in 0..6400 {
            if spin.budget_ticks() > 0 {
                spin.learn(came);
                count += 1;
            }
        }
        count
    }

    #[test]
    fn it_spins_where_that_works_and_hardly_where_it_does_not() {
        let mut spin = Spin::new(7);
        assert_eq!(spun(&mut spin, false), 100);
        assert!(spun(&mut spin, true) > 3000);
        assert!(spun(&mut spin, false) < 150);
    }
}
