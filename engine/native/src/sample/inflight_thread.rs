//! The thread that samples the files with requests in flight.

use std::fs::File;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::counters::number;
use super::files::read_start;
use super::inflight_sums::{Seen, Spread};
use super::pace::Pace;

/// How long the cost of sampling is summed before the pace heeds it.
const COST_AFTER: Duration = Duration::from_millis(100);

/// Time between two reads below which they are not taken for an interval of their own.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(50);

/// Samples that an interval needs even if nothing was in flight in the one before: more may be in flight in this one.
/// With a fifth of them `collectors/derive/queue_split.py` still shows what they found.
const LEAST_SAMPLES: f64 = 500.0;

/// Values of a device or group in the order of `InflightSampler.read`.
pub const SUMS: usize = 9;

/// A value that was not read.
const MISSING: u64 = u64::MAX;

/// One watched device, or a group sampled together, and what was seen of it.
pub struct Watched {
    pub name: Vec<u8>,
    /// Paths of the files below sysfs.
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
}
