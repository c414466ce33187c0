//! How often the sampler samples, within the CPU time it may use.

/// The period between samples: the nominal one, longer where fewer samples are as exact or sampling is expensive.
pub struct Pace {
    nominal_ns: f64,
    cpu_share: f64,
    /// The shortest useful one.
    least_ns: f64,
    period_ns: f64,
    random: u64,
}

/// The longest period, in nominal ones: a mean over a tick needs enough samples.
const SLOWEST: f64 = 100.0;

/// The longest period while samples are cheap, in nominal ones: loads change, and intervals of 0.1 s need samples, too.
const SLOWEST_IF_CHEAP: f64 = 1.6;

impl Pace {
    pub fn new(rate_hz: f64, cpu_share: f64, seed: u64) -> Self {
        let nominal_ns = 1e9 / rate_hz;
        Self {
            nominal_ns,
            cpu_share,
            least_ns: nominal_ns,
            period_ns: nominal_ns,
            random: seed | 1,
        }
    }

    /// Adapts to the samples per second that the recent ones call for, and to their cost.
    ///
    /// The cost of a sample does not depend on the period, so the period at which it meets the share is computed directly;
    /// going half of the way damps what other loads do to the measurement.
    pub fn follow(&mut self, useful_hz: f64, cpu_ns: u64, elapsed_ns: u64) {
        if elapsed_ns == 0 {
            return;
        }
        let least_ns = (1e9 / useful_hz).clamp(self.nominal_ns, self.nominal_ns * SLOWEST_IF_CHEAP);
        self.least_ns = f64::midpoint(self.least_ns, least_ns);
        #[expect(
            clippy::cast_precision_loss,
            reason = "spans of seconds in nanoseconds fit into 53 bits"
        )]
        let used = cpu_ns as f64 / elapsed_ns as f64;
        let wanted = self.period_ns * used / self.cpu_share;
        let period = f64::midpoint(self.period_ns, wanted);
        self.period_ns = period.clamp(self.least_ns, self.nominal_ns * SLOWEST);
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

    /// Lets a sampler whose samples cost `sample_ns` run for a while and returns the share of CPU it ends with.
    fn settle(pace: &mut Pace, sample_ns: u32) -> f64 {
        for _ in 0..40 {
            let samples = 1000;
            let elapsed_ns: u64 = (0..samples).map(|_| pace.next_ns()).sum();
            pace.follow(f64::INFINITY, samples * u64::from(sample_ns), elapsed_ns);
        }
        f64::from(sample_ns) / pace.period_ns
    }

    #[test]
    fn cheap_samples_keep_the_nominal_rate() {
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
    fn the_rate_follows_what_is_useful() {
        let mut pace = Pace::new(2000.0, 0.5, 5);
        let settled = |pace: &mut Pace, useful_hz: f64| {
            for _ in 0..20 {
                pace.follow(useful_hz, 1, 1_000_000);
            }
            1e9 / pace.period_ns
        };
        assert!((settled(&mut pace, 1500.0) - 1500.0).abs() < 1.0);
        assert!((settled(&mut pace, f64::INFINITY) - 2000.0).abs() < 1.0);
        assert!((settled(&mut pace, 0.0) - 1250.0).abs() < 1.0);
    }

    #[test]
    fn phases_vary_around_the_period() {
        let mut pace = Pace::new(1000.0, 0.01, 4);
        let waits: Vec<u64> = (0..10_000).map(|_| pace.next_ns()).collect();
        assert!(waits.iter().all(|wait| (500_000..1_500_000).contains(wait)));
        let mean = waits.iter().sum::<u64>() / 10_000;
        assert!((980_000..1_020_000).contains(&mean), "{mean}");
    }
}
