//! The thread that looks into files that tell of requests in flight, and what it has seen.

use std::fs::File;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::counters::number;
use super::files::read_start;
use super::pace::Pace;

/// How long the cost of looking is summed before the pace follows it.
const FOLLOW_AFTER: Duration = Duration::from_millis(100);

/// One watched device, or a group looked at together, and what was seen of it.
pub struct Watched {
    pub name: Vec<u8>,
    /// Where the files are below sysfs.
    pub paths: Vec<Vec<u8>>,
    files: Vec<File>,
    pub sum: u64,
    pub looks: u64,
    pub busy_looks: u64,
    pub peak: u64,
}

impl Watched {
    pub fn new(name: Vec<u8>, paths: Vec<Vec<u8>>, files: Vec<File>) -> Self {
        Self {
            name,
            paths,
            files,
            sum: 0,
            looks: 0,
            busy_looks: 0,
            peak: 0,
        }
    }

    /// Looks once; false if the device, or one of the group, is gone.
    fn look(&mut self) -> bool {
        let mut requests: u64 = 0;
        for file in &self.files {
            let Some(here) = in_flight(file) else {
                return false;
            };
            requests = requests.saturating_add(here);
        }
        self.sum = self.sum.saturating_add(requests);
        self.looks += 1;
        self.busy_looks += u64::from(requests > 0);
        self.peak = self.peak.max(requests);
        true
    }
}

/// Requests that one file tells of: a single number (`host_busy`), or reads and writes apart (`inflight`).
fn in_flight(file: &File) -> Option<u64> {
    let mut buffer = [0; 64];
    let (first, rest) = number(read_start(file, &mut buffer).ok()?)?;
    let second = number(rest).map_or(0, |(second, _)| second);
    Some(first.saturating_add(second))
}

/// What the thread and its owner share.
#[derive(Default)]
pub struct Shared {
    watched: Mutex<Vec<Watched>>,
    pub stop: AtomicBool,
    pub cpu_ns: AtomicU64,
}

impl Shared {
    /// Counters of a thread that panicked are still whole, so a poisoned lock is taken all the same.
    pub fn watched(&self) -> MutexGuard<'_, Vec<Watched>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks at all devices once; false if there is none.
    fn look(&self) -> bool {
        let mut watched = self.watched();
        watched.retain_mut(Watched::look);
        !watched.is_empty()
    }
}

/// Looks until told to stop; sleeps while nothing is watched. The owner unparks it after every change.
pub fn run(shared: &Shared, mut pace: Pace) {
    let mut followed = (Instant::now(), thread_cpu_ns());
    while !shared.stop.load(Ordering::Acquire) {
        if !shared.look() {
            std::thread::park();
            followed = (Instant::now(), thread_cpu_ns());
            continue;
        }
        let elapsed = followed.0.elapsed();
        if elapsed >= FOLLOW_AFTER {
            let cpu_ns = thread_cpu_ns();
            shared.cpu_ns.store(cpu_ns, Ordering::Relaxed);
            pace.follow(
                cpu_ns - followed.1,
                u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX),
            );
            followed = (Instant::now(), cpu_ns);
        }
        std::thread::park_timeout(Duration::from_nanos(pace.next_ns()));
    }
}

/// CPU time of the calling thread.
fn thread_cpu_ns() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the time is a valid place to write one timespec to.
    if unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) } != 0 {
        return 0;
    }
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000
        + u64::try_from(time.tv_nsec).unwrap_or(0)
}
