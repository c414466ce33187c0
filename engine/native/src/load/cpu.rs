//! CPU time of a worker thread, readable by others while it runs and after it ended.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// CPU time of one thread of this process.
#[derive(Default)]
pub struct ThreadCpu {
    thread: OnceLock<libc::pid_t>,
    last_ns: AtomicU64,
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

    /// To be called by the thread as its last act: its number may later be another thread's.
    pub fn end(&self) {
        self.ns();
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
    }
}
