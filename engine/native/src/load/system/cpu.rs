//! CPU time of a worker thread, and its wait for a processor, readable by others while it runs and after it ended.

use std::fs;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// CPU time of one thread of this process.
#[derive(Default)]
pub struct ThreadCpu {
    thread: OnceLock<libc::pid_t>,
    last_ns: AtomicU64,
    last_waited_ns: AtomicU64,
    ended: AtomicBool,
}

impl ThreadCpu {
    /// Must be called by the thread itself.
    pub fn begin(&self) {
        // SAFETY: gettid takes nothing and cannot fail.
        self.thread.get_or_init(|| unsafe { libc::gettid() });
    }

    /// The thread's number, once it has begun.
    pub fn thread(&self) -> Option<libc::pid_t> {
        self.thread.get().copied()
    }

    /// The thread calls this as its last act: its number may later be another thread's.
    pub fn end(&self) {
        self.ns();
        self.waited_ns();
        self.ended.store(true, Relaxed);
    }

    /// CPU time so far.
    pub fn ns(&self) -> u64 {
        if self.ended.load(Relaxed) {
            return self.last_ns.load(Relaxed);
        }
        if let Some(ns) = self.thread().and_then(thread_ns) {
            self.last_ns.fetch_max(ns, Relaxed);
        }
        self.last_ns.load(Relaxed)
    }

    /// How long it waited for a processor so far; None where the kernel does not count that.
    pub fn waited_ns(&self) -> Option<u64> {
        let Some(thread) = self.thread() else {
            return Some(0);
        };
        if self.ended.load(Relaxed) {
            let last = self.last_waited_ns.load(Relaxed);
            return (last != UNKNOWN).then_some(last);
        }
        let waited = thread_waited_ns(thread);
        self.last_waited_ns
            .store(waited.unwrap_or(UNKNOWN), Relaxed);
        waited
    }
}

const UNKNOWN: u64 = u64::MAX;

/// How long a thread of this process was ready and waited for a processor; None when it is gone, and where the kernel
/// does not count it.
fn thread_waited_ns(thread: libc::pid_t) -> Option<u64> {
    // Time on the processor, time on a run queue, slices (Documentation/scheduler/sched-stats.rst).
    let text = fs::read_to_string(format!("/proc/self/task/{thread}/schedstat")).ok()?;
    text.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// CPU time of a thread of this process; None when it is gone.
pub fn thread_ns(thread: libc::pid_t) -> Option<u64> {
    // The kernel's encoding of "scheduler time of one thread" (include/linux/posix-timers_types.h).
    let clock = (!thread << 3) | 6;
    let mut spent = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the kernel writes one timespec into a live local, or refuses an outdated clock.
    let failed = unsafe { libc::clock_gettime(clock, &raw mut spent) } != 0;
    (!failed).then(|| spent.tv_sec.unsigned_abs() * 1_000_000_000 + spent.tv_nsec.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_a_thread_outlives_it() {
        let cpu = std::sync::Arc::new(ThreadCpu::default());
        let mine = std::sync::Arc::clone(&cpu);
        std::thread::spawn(move || {
            mine.begin();
            while mine.ns() < 5_000_000 {}
            mine.end();
        })
        .join()
        .unwrap();
        assert!(cpu.ns() >= 5_000_000);
        assert_eq!(
            cpu.waited_ns().is_some(),
            fs::exists("/proc/self/schedstat").unwrap()
        );
    }

    #[test]
    fn threads_that_share_a_processor_wait_for_it() {
        if !fs::exists("/proc/self/schedstat").unwrap() {
            return;
        }
        let cpus: Vec<_> = (0..2)
            .map(|_| std::sync::Arc::new(ThreadCpu::default()))
            .collect();
        let threads: Vec<_> = cpus
            .iter()
            .map(|cpu| {
                let mine = std::sync::Arc::clone(cpu);
                std::thread::spawn(move || {
                    pin_to_first();
                    mine.begin();
                    while mine.ns() < 30_000_000 {}
                    mine.end();
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        assert!(cpus.iter().filter_map(|cpu| cpu.waited_ns()).sum::<u64>() > 10_000_000);
    }

    /// Lets the calling thread run on the first processor only that it may use.
    fn pin_to_first() {
        // SAFETY: both calls get a live set and its size; zeroed is a valid empty set.
        unsafe {
            let mut allowed: libc::cpu_set_t = std::mem::zeroed();
            libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut allowed);
            let first = (0..libc::CPU_SETSIZE.unsigned_abs() as usize)
                .find(|&cpu| libc::CPU_ISSET(cpu, &allowed))
                .unwrap();
            let mut one: libc::cpu_set_t = std::mem::zeroed();
            libc::CPU_SET(first, &mut one);
            libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const one);
        }
    }
}
