//! The thread that samples the files with requests in flight, and what it has counted.

use std::fs::File;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::counters::number;
use super::files::read_start;
use super::pace::Pace;

/// How long the cost of sampling is summed before the pace heeds it.
const COST_AFTER: Duration = Duration::from_millis(100);

/// Time between two reads below which they are not taken for an interval of their own.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(50);

/// Samples that an interval needs even if nothing was in flight in the one before: more may be in flight in this one.
/// With a fifth of them `collectors/derive/queue_split.py` still shows what they found.
const LEAST_SAMPLES: f64 = 500.0;

/// Standard error of the mean of what the driver holds, over a second, below which more samples add nothing.
const DRIVER_ERROR: f64 = 0.04;

/// The same of what is accounted while anything is, and how many successive I/Os are alike: with larger errors
/// `collectors/derive/queue_split.py` leaves the busy time out.
const MOST_ERROR: f64 = 0.1 / 1.96;
const BATCH: f64 = 4.0;

/// Values of a device or group in the order of `InflightSampler.read`.
pub const SUMS: usize = 9;

/// A value that was not read.
const MISSING: u64 = u64::MAX;

/// How fast the most that the driver held is forgotten, in samples as a power of two: about a second.
const FORGET_SHIFT: u32 = 10;

/// What was seen of the requests in the driver, and of all that are accounted as in flight at the same instants.
#[derive(Default)]
struct Seen {
    in_driver: u64,
    samples: u64,
    busy_sample_count: u64,
    peak: u64,
    accounted: u64,
    accounted_samples: u64,
    accounted_squares: u64,
    queued: u64,
    /// Since when every sample saw an accounted I/O.
    unbroken_since: Option<Instant>,
    /// The most that the driver held of late, shifted.
    full: u64,
}

impl Seen {
    fn add(&mut self, in_driver: u64, accounted: Option<u64>) {
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
struct Spread {
    in_driver: Moments,
    /// Of all samples with an accounted I/O.
    accounted: Moments,
}

impl Spread {
    fn add(&mut self, in_driver: u64, accounted: Option<u64>) {
        self.in_driver.add(in_driver);
        if let Some(count @ 1..) = accounted {
            self.accounted.add(count);
        }
    }

    /// 0 if nothing was seen.
    fn useful_hz(&self) -> f64 {
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

/// One watched device, or a group sampled together, and what was seen of it.
pub struct Watched {
    pub name: Vec<u8>,
    /// Where the files are below sysfs.
    pub paths: Vec<Vec<u8>>,
    files: Vec<File>,
    /// The device's `stat`, which has what is accounted as in flight.
    stat: Option<File>,
    seen: Seen,
    spread: Spread,
}

impl Watched {
    pub fn new(name: Vec<u8>, paths: Vec<Vec<u8>>, files: Vec<File>, stat: Option<File>) -> Self {
        Self {
            name,
            paths,
            files,
            stat,
            seen: Seen::default(),
            spread: Spread::default(),
        }
    }

    /// Sums since the watch began and the peak since the last call, as `InflightSampler.read` says.
    pub fn take(&mut self) -> [u64; SUMS] {
        let seen = &mut self.seen;
        let unbroken = seen
            .unbroken_since
            .map_or(Duration::ZERO, |since| since.elapsed());
        let unbroken_us = u64::try_from(unbroken.as_micros()).unwrap_or(MISSING);
        let of_accounted = |value| if self.stat.is_some() { value } else { MISSING };
        [
            seen.in_driver,
            seen.samples,
            seen.busy_sample_count,
            std::mem::take(&mut seen.peak),
            of_accounted(seen.accounted),
            of_accounted(seen.accounted_samples),
            of_accounted(seen.accounted_squares),
            of_accounted(seen.queued),
            of_accounted(unbroken_us),
        ]
    }

    /// Samples once; false if the device, or one of the group, is gone.
    fn sample(&mut self) -> bool {
        let mut requests: u64 = 0;
        for file in &self.files {
            let Some(here) = in_flight(file) else {
                return false;
            };
            requests = requests.saturating_add(here);
        }
        let accounted = match &self.stat {
            None => None,
            Some(file) => match accounted(file) {
                None => return false,
                some => some,
            },
        };
        self.seen.add(requests, accounted);
        self.spread.add(requests, accounted);
        true
    }
}

/// Requests that one file reports: a single number (`host_busy`), or reads and writes apart (`inflight`).
fn in_flight(file: &File) -> Option<u64> {
    let mut buffer = [0; 64];
    let (first, rest) = number(read_start(file, &mut buffer).ok()?)?;
    let second = number(rest).map_or(0, |(second, _)| second);
    Some(first.saturating_add(second))
}

/// I/Os in flight as the block layer accounts them: the ninth number of `stat` (Documentation/block/stat.rst).
fn accounted(file: &File) -> Option<u64> {
    let mut buffer = [0; 256];
    let mut rest = read_start(file, &mut buffer).ok()?;
    for _ in 0..8 {
        (_, rest) = number(rest)?;
    }
    let (value, _) = number(rest)?;
    // Some kernels print a count that is below zero for a moment as unsigned.
    Some(if value < 1 << 31 { value } else { 0 })
}

/// The interval between two reads, in which the rate stays as it is: if samples were denser while much is in flight,
/// their mean would be that of those times.
struct Interval {
    began: Instant,
    /// Samples a second that the last one called for, until the thread takes them over.
    useful_hz: Option<f64>,
}

/// State shared by the thread and its owner.
pub struct Shared {
    watched: Mutex<Vec<Watched>>,
    interval: Mutex<Interval>,
    pub stop: AtomicBool,
    pub cpu_ns: AtomicU64,
}

impl Default for Shared {
    fn default() -> Self {
        Self {
            watched: Mutex::default(),
            interval: Mutex::new(Interval {
                began: Instant::now(),
                useful_hz: None,
            }),
            stop: AtomicBool::default(),
            cpu_ns: AtomicU64::default(),
        }
    }
}

impl Shared {
    /// Counters of a thread that panicked are still whole, so a poisoned lock is taken all the same.
    pub fn watched(&self) -> MutexGuard<'_, Vec<Watched>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Samples all devices once; false if there is none.
    fn sample(&self) -> bool {
        let mut watched = self.watched();
        watched.retain_mut(Watched::sample);
        !watched.is_empty()
    }

    /// Begins the next interval at the rate that the samples of this one call for.
    pub fn end_interval(&self) {
        let mut interval = self.interval();
        let length = interval.began.elapsed();
        if length < SHORTEST_INTERVAL {
            return;
        }
        let spreads: Vec<Spread> = self
            .watched()
            .iter_mut()
            .map(|one| std::mem::take(&mut one.spread))
            .collect();
        let least_hz = LEAST_SAMPLES / length.as_secs_f64();
        let useful_hz = spreads
            .iter()
            .map(Spread::useful_hz)
            .fold(least_hz, f64::max);
        *interval = Interval {
            began: Instant::now(),
            useful_hz: Some(useful_hz),
        };
    }

    fn take_useful_hz(&self) -> Option<f64> {
        self.interval().useful_hz.take()
    }

    fn interval(&self) -> MutexGuard<'_, Interval> {
        self.interval.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// CPU time and number of samples since `since`.
struct Cost {
    since: Instant,
    cpu_ns: u64,
    samples: u32,
}

impl Cost {
    fn begin() -> Self {
        Self {
            since: Instant::now(),
            cpu_ns: thread_cpu_ns(),
            samples: 0,
        }
    }
}

/// Samples until `stop` is set; sleeps while nothing is watched. The owner unparks it after every change.
pub fn run(shared: &Shared, mut pace: Pace) {
    ask_for_exact_timers();
    let mut cost = Cost::begin();
    while !shared.stop.load(Ordering::Acquire) {
        if !shared.sample() {
            std::thread::park();
            cost = Cost::begin();
            continue;
        }
        cost.samples += 1;
        if cost.since.elapsed() >= COST_AFTER {
            let now = Cost::begin();
            shared.cpu_ns.store(now.cpu_ns, Ordering::Relaxed);
            pace.heed_cost(now.cpu_ns - cost.cpu_ns, cost.samples);
            cost = now;
        }
        if let Some(useful_hz) = shared.take_useful_hz() {
            pace.follow(useful_hz);
        }
        std::thread::park_timeout(Duration::from_nanos(pace.next_ns()));
    }
}

/// Makes the kernel wake the calling thread on time.
///
/// By default timers of 50 us apart are served at once (`PR_SET_TIMERSLACK` of prctl(2)): samples would gather where the
/// timers of others are, those of a load that is paced by a timer among them.
fn ask_for_exact_timers() {
    let slack_ns: libc::c_ulong = 1;
    // SAFETY: the call reads its numbers and changes an attribute of the calling thread only.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, slack_ns) };
}

/// CPU time of the calling thread.
fn thread_cpu_ns() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the time is valid to write one timespec to.
    if unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) } != 0 {
        return 0;
    }
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000
        + u64::try_from(time.tv_nsec).unwrap_or(0)
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
    fn an_interval_calls_for_the_rate_of_the_next_one() {
        let shared = Shared::default();
        shared.end_interval();
        assert_eq!(shared.take_useful_hz(), None, "too short for an interval");
        let mut busy = Watched::new(b"sda".to_vec(), vec![], vec![], None);
        for count in [0, 0, 0, 1] {
            busy.spread.add(count, Some(count));
        }
        shared.watched().push(busy);
        let second_ago = || Instant::now().checked_sub(Duration::from_secs(1)).unwrap();
        shared.interval().began = second_ago();
        shared.end_interval();
        let useful_hz = shared.take_useful_hz().unwrap();
        assert!((1800.0..1900.0).contains(&useful_hz), "{useful_hz}");
        assert_eq!(shared.take_useful_hz(), None, "once for each interval");
        shared.interval().began = second_ago();
        shared.end_interval();
        let idle_hz = shared.take_useful_hz().unwrap();
        assert!((490.0..=500.0).contains(&idle_hz), "{idle_hz}");
    }

    #[test]
    fn never_more_is_in_the_driver_than_is_accounted() {
        let seen = seen(&[(2, 1)]);
        assert_eq!((seen.accounted, seen.queued), (2, 0));
    }
}
