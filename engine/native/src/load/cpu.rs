//! CPU time of a worker thread, readable by others while it runs and after it ended.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// The CPU clock of one thread.
#[derive(Default)]
pub struct ThreadCpu {
    clock: OnceLock<libc::clockid_t>,
    last_ns: AtomicU64,
    ended: AtomicBool,
}

impl ThreadCpu {
    /// Must be called by the thread itself.
    pub fn begin(&self) {
        let mut clock = 0;
        // SAFETY: pthread_self is always valid for the calling thread, and `clock` is a live local.
        let error = unsafe { libc::pthread_getcpuclockid(libc::pthread_self(), &raw mut clock) };
        if error == 0 {
            self.clock.get_or_init(|| clock);
        }
    }

    /// To be called by the thread as its last act: its clock may later be another thread's.
    pub fn end(&self) {
        self.ns();
        self.ended.store(true, Relaxed);
    }

    /// CPU time so far.
    pub fn ns(&self) -> u64 {
        if self.ended.load(Relaxed) {
            return self.last_ns.load(Relaxed);
        }
        if let Some(ns) = self.clock.get().and_then(|clock| read(*clock)) {
            self.last_ns.fetch_max(ns, Relaxed);
        }
        self.last_ns.load(Relaxed)
    }
}

/// None for the clock of a thread that is gone.
fn read(clock: libc::clockid_t) -> Option<u64> {
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
