//! How often the sampler samples, within the CPU time it may use.

/// The period between samples: the nominal one, longer where fewer samples are as exact or sampling is expensive.
pub struct Pace {
    nominal_ns: f64,
    cpu_share: f64,
    /// CPU time of a sample; 0 before the first were taken.
    cost_ns: f64,
    period_ns: f64,
    random: u64,
}

/// The longest period, in nominal ones: a mean over a tick needs enough samples.
const SLOWEST: f64 = 100.0;

/// The longest period while samples are cheap, in nominal ones, and the first one: loads change.
const SLOWEST_IF_CHEAP: f64 = 4.0;

/// How many times the share of CPU may be used until the next interval, when samples have become more expensive.
const EXCESS: f64 = 1.5;

impl Pace {
    pub fn new(rate_hz: f64, cpu_share: f64, seed: u64) -> Self {
        let nominal_ns = 1e9 / rate_hz;
        Self {
            nominal_ns,
            cpu_share,
            cost_ns: 0.0,
            period_ns: nominal_ns * SLOWEST_IF_CHEAP,
            random: seed | 1,
        }
    }

    /// Learns what samples cost, and slows down at once if that is far too much.
    ///
    /// Going half of the way damps what other loads do to the measurement.
    #[expect(
        clippy::cast_precision_loss,
        reason = "spans of seconds in nanoseconds fit into 53 bits"
    )]
    pub fn heed_cost(&mut self, cpu_ns: u64, samples: u32) {
        let cost_ns = cpu_ns as f64 / f64::from(samples.max(1));
        self.cost_ns = if self.cost_ns > 0.0 {
            f64::midpoint(self.cost_ns, cost_ns)
        } else {
            cost_ns
        };
        if self.cost_ns > self.period_ns * self.cpu_share * EXCESS {
            self.period_ns = self.affordable_ns();
        }
    }

    /// Takes as many samples a second as are useful, at most the nominal number, within the share of CPU.
    pub fn follow(&mut self, useful_hz: f64) {
        let useful_ns =
            (1e9 / useful_hz).clamp(self.nominal_ns, self.nominal_ns * SLOWEST_IF_CHEAP);
        self.period_ns = useful_ns.max(self.affordable_ns());
    }

    /// The period at which samples use the share of CPU: what one costs does not depend on the period.
    fn affordable_ns(&self) -> f64 {
        (self.cost_ns / self.cpu_share).min(self.nominal_ns * SLOWEST)
    }

    /// Time to the next sample: the period at random phase, so that no regular load stays between two samples.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "periods are positive and of seconds at most; 53 random bits are enough"
    )]
    pub fn next_ns(&mut self) -> u64 {
        // xorshift64 (Marsaglia 2003)
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        let fraction = (self.random >> 11) as f64 / (1_u64 << 53) as f64;
        (self.period_ns * (0.5 + fraction)) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lets a sampler whose samples cost `sample_ns` run for some intervals and returns the share of CPU it ends with.
    fn settle(pace: &mut Pace, sample_ns: u32) -> f64 {
        for _ in 0..40 {
            pace.heed_cost(1000 * u64::from(sample_ns), 1000);
            pace.follow(f64::INFINITY);
        }
        f64::from(sample_ns) / pace.period_ns
    }

    #[test]
    fn cheap_samples_have_the_nominal_rate() {
        let mut pace = Pace::new(1000.0, 0.01, 1);
        settle(&mut pace, 2_000);
        assert!((pace.period_ns - 1e6).abs() < 1.0);
    }

    #[test]
    fn expensive_samples_slow_down_to_the_share_and_cheap_ones_return() {
        let mut pace = Pace::new(1000.0, 0.01, 2);
        let share = settle(&mut pace, 50_000);
        assert!((0.009..0.011).contains(&share), "{share}");
        settle(&mut pace, 1_000);
        assert!(pace.period_ns < 1.01e6);
    }

    #[test]
    fn the_period_is_bounded() {
        let mut pace = Pace::new(1000.0, 0.01, 3);
        settle(&mut pace, 1_000_000_000);
        assert!(pace.period_ns <= 1e8);
    }

    #[test]
    fn the_rate_is_the_useful_one() {
        let mut pace = Pace::new(2000.0, 0.5, 5);
        let mut rate = |useful_hz: f64| {
            pace.follow(useful_hz);
            1e9 / pace.period_ns
        };
        assert!((rate(1500.0) - 1500.0).abs() < 1.0);
        assert!((rate(f64::INFINITY) - 2000.0).abs() < 1.0);
        assert!((rate(0.0) - 500.0).abs() < 1.0);
    }

    #[test]
    fn costs_change_the_rate_of_an_interval_only_if_they_are_far_too_high() {
        let mut pace = Pace::new(1000.0, 0.01, 6);
        settle(&mut pace, 10_000);
        pace.heed_cost(14_000, 1);
        assert!((pace.period_ns - 1e6).abs() < 1.0);
        pace.heed_cost(1_000, 1);
        assert!((pace.period_ns - 1e6).abs() < 1.0);
        pace.heed_cost(100_000, 1);
        assert!(pace.period_ns > 4e6, "{}", pace.period_ns);
    }

    #[test]
    fn phases_vary_around_the_period() {
        let mut pace = Pace::new(1000.0, 0.01, 4);
        pace.follow(f64::INFINITY);
        let waits: Vec<u64> = (0..10_000).map(|_| pace.next_ns()).collect();
        assert!(waits.iter().all(|wait| (500_000..1_500_000).contains(wait)));
        let mean = waits.iter().sum::<u64>() / 10_000;
        assert!((980_000..1_020_000).contains(&mean), "{mean}");
    }
}
