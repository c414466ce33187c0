//! How many ring workers this process has: where there are many, it is dearer to sleep than to watch for a completion.
//!
//! A thread that goes to sleep gives its processor to a kernel thread, and gets it back from one. Both switches write two
//! cache lines of the memory descriptor, which all threads of a process share: its count of references
//! (`mmgrab_lazy_tlb` and `mmdrop_lazy_tlb`, kernel/sched/core.c) and, up to Linux 6.18, its set of concurrency numbers
//! (`mm_cid_get`, kernel/sched/sched.h). Workers share nothing else per I/O, so that eight processes with a worker each
//! do not have this cost; eight workers of one process that slept once per I/O reached 0.71 of their IOPS.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread::available_parallelism;

/// Workers from which sleeping costs IOPS: two had 1.02 of the IOPS of two processes, four 0.88.
const LEAST: usize = 4;

/// On a cache line of its own, which is written when a worker begins or ends, and read before every wait.
#[repr(align(128))]
struct Count(AtomicUsize);

static PRESENT: Count = Count(AtomicUsize::new(0));

/// One worker among those of this process, of whatever load; it counts until this is dropped.
pub struct Crowd {
    most: usize,
}

impl Crowd {
    pub fn join() -> Self {
        PRESENT.0.fetch_add(1, Relaxed);
        Self {
            most: most(available_parallelism().map_or(1, std::num::NonZero::get)),
        }
    }

    /// Whether workers should stay awake a little rather than sleep, if that succeeds.
    #[inline]
    pub fn stays_awake(&self) -> bool {
        pays(PRESENT.0.load(Relaxed), self.most)
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        PRESENT.0.fetch_sub(1, Relaxed);
    }
}

/// Kernel threads and interrupts that complete the I/Os need as many processors again.
fn most(processors: usize) -> usize {
    processors / 2
}

fn pays(workers: usize, most: usize) -> bool {
    (LEAST..=most).contains(&workers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_workers_stay_awake_where_others_have_processors_left() {
        let awake = |workers, processors| pays(workers, most(processors));
        assert!(!awake(1, 64) && !awake(3, 64));
        assert!(awake(4, 8) && awake(8, 16) && awake(32, 64));
        assert!(!awake(4, 2) && !awake(4, 7) && !awake(16, 16));
    }

    #[test]
    fn workers_count_until_they_end() {
        let before = PRESENT.0.load(Relaxed);
        let crowd: Vec<Crowd> = (0..100).map(|_| Crowd::join()).collect();
        assert!(PRESENT.0.load(Relaxed) >= 100);
        drop(crowd);
        assert!(PRESENT.0.load(Relaxed) < before + 100);
    }
}
