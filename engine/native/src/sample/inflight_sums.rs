//! What samples of requests in flight add up to, and how many of them are of use.

use std::time::Instant;

/// Standard error of the mean of what the driver holds, over a second, below which more samples add nothing.
const DRIVER_ERROR: f64 = 0.04;

/// The same of what is accounted while anything is, and how many successive I/Os are alike: with larger errors
/// `collectors/derive/queue_split.py` leaves the busy time out.
const MOST_ERROR: f64 = 0.1 / 1.96;
const BATCH: f64 = 4.0;

/// How fast the most that the driver held is forgotten, in samples as a power of two: half a second to two.
const FORGET_SHIFT: u32 = 10;

/// What was seen of the requests in the driver, and of all that are accounted as in flight at the same instants.
#[derive(Default)]
pub struct Seen {
    pub in_driver: u64,
    pub samples: u64,
    pub busy_sample_count: u64,
    pub peak: u64,
    pub accounted: u64,
    pub accounted_samples: u64,
    pub accounted_squares: u64,
    pub queued: u64,
    /// Since when every sample saw an accounted I/O.
    pub unbroken_since: Option<Instant>,
    /// The most that the driver held of late, shifted.
    full: u64,
}

impl Seen {
    pub fn add(&mut self, in_driver: u64, accounted: Option<u64>) {
        self.in_driver = self.in_driver.saturating_add(in_driver);
        self.samples += 1;
        self.busy_sample_count += u64::from(in_driver > 0);
        self.peak = self.peak.max(in_driver);
        let level = in_driver.min(u64::MAX >> (FORGET_SHIFT + 2)) << FORGET_SHIFT;
        self.full = level.max(self.full - (self.full >> FORGET_SHIFT));
        if let Some(accounted) = accounted {
            // The two are not read at once: what came in between is not to be in the driver and not accounted.
            let accounted = accounted.max(in_driver);
            self.accounted = self.accounted.saturating_add(accounted);
            self.accounted_samples += u64::from(accounted > 0);
            self.unbroken_since =
                (accounted > 0).then(|| self.unbroken_since.unwrap_or_else(Instant::now));
            self.accounted_squares = self
                .accounted_squares
                .saturating_add(accounted.saturating_mul(accounted));
            // A request that is not in the driver waits for it if the driver is full; else it has just left it.
            if in_driver > 0 && level * 4 >= self.full * 3 {
                self.queued = self.queued.saturating_add(accounted - in_driver);
            }
        }
    }
}

/// What is in flight at the samples of an interval, and how many samples a second that calls for.
///
/// The mean of n independent samples has a relative variance of theirs over n.
#[derive(Default)]
pub struct Spread {
    in_driver: Moments,
    /// Moments of all samples with an accounted I/O.
    accounted: Moments,
}

impl Spread {
    pub fn add(&mut self, in_driver: u64, accounted: Option<u64>) {
        self.in_driver.add(in_driver);
        if let Some(count @ 1..) = accounted {
            self.accounted.add(count);
        }
    }

    /// 0 if nothing was seen.
    pub fn useful_hz(&self) -> f64 {
        if self.in_driver.sum <= 0.0 {
            return 0.0;
        }
        let share = self.accounted.count / self.in_driver.count;
        let of_accounted = self.accounted.variation() * BATCH / share / MOST_ERROR.powi(2);
        let of_driver = self.in_driver.variation() / DRIVER_ERROR.powi(2);
        // Where no accounted I/O was seen, that has no value.
        of_driver.max(of_accounted)
    }
}

/// Number, sum, and sum of squares of some counts.
#[derive(Default)]
struct Moments {
    count: f64,
    sum: f64,
    squares: f64,
}

impl Moments {
    #[expect(
        clippy::cast_precision_loss,
        reason = "requests in flight fit into 53 bits"
    )]
    fn add(&mut self, value: u64) {
        let value = value as f64;
        self.count += 1.0;
        self.sum += value;
        self.squares += value * value;
    }

    /// Variance over mean squared.
    fn variation(&self) -> f64 {
        self.squares * self.count / (self.sum * self.sum) - 1.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(samples: &[(u64, u64)]) -> Seen {
        let mut seen = Seen::default();
        for (in_driver, accounted) in samples {
            seen.add(*in_driver, Some(*accounted));
        }
        seen
    }

    #[test]
    fn what_a_full_driver_cannot_take_is_queued() {
        let seen = seen(&[(4, 10), (4, 12), (3, 8)]);
        assert_eq!((seen.in_driver, seen.accounted), (11, 30));
        assert_eq!(seen.queued, 6 + 8 + 5);
        assert_eq!(seen.accounted_squares, 100 + 144 + 64);
    }

    #[test]
    fn what_has_left_a_driver_that_is_not_full_is_not_queued() {
        let seen = seen(&[(16, 16), (1, 3), (0, 1), (11, 13)]);
        assert_eq!(seen.queued, 0);
        assert_eq!((seen.accounted_samples, seen.busy_sample_count), (4, 3));
    }

    #[test]
    fn how_much_a_driver_takes_is_learnt_anew() {
        let mut seen = seen(&[(128, 128)]);
        for _ in 0..5_000 {
            seen.add(8, Some(20));
        }
        assert!(seen.queued >= 12 * 1_000, "{}", seen.queued);
    }

    #[test]
    fn one_sample_of_an_idle_device_ends_what_was_unbroken() {
        assert!(seen(&[(0, 1), (1, 1)]).unbroken_since.is_some());
        assert!(seen(&[(1, 1), (0, 0)]).unbroken_since.is_none());
    }

    #[test]
    fn fewer_samples_do_where_they_vary_less() {
        let useful_hz = |counts: &[u64]| {
            let mut spread = Spread::default();
            for count in counts {
                spread.add(*count, Some(*count));
            }
            spread.useful_hz()
        };
        for steady in [&[][..], &[0, 0], &[3, 3, 3]] {
            assert!(useful_hz(steady) < 1e-6);
        }
        // Busy for half of the time, with one at a time; the variance is the mean squared.
        assert!((useful_hz(&[0, 1, 0, 1]) - 625.0).abs() < 1e-6);
        assert!(useful_hz(&[0, 0, 0, 1]) > 1800.0);
        assert!(useful_hz(&[1, 9, 1, 9]) > 900.0);
    }

    #[test]
    fn never_more_is_in_the_driver_than_is_accounted() {
        let seen = seen(&[(2, 1)]);
        assert_eq!((seen.accounted, seen.queued), (2, 0));
    }
}
