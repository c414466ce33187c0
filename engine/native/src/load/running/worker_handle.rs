//! State of one worker that the coordinator and readers share with it.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, RawFd};
use std::sync::atomic::{
    AtomicU32, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::thread::Thread;

use crate::load::counts::levels::Served;
use crate::load::counts::outstanding::Outstanding;
use crate::load::epochs::epoch::Epoch;
use crate::load::system::cpu::ThreadCpu;
use crate::load::system::lock::lock;
use crate::load::system::refusal::refused;

/// A parked worker has no I/O at all.
const PARKED: u64 = u64::MAX;

/// How a waiting worker is woken.
pub enum Waker {
    /// A worker that waits in a ring polls this eventfd there.
    Event(File),
    /// A worker that issues one I/O at a time parks its thread.
    Park(OnceLock<Thread>),
}

impl Waker {
    pub fn event() -> io::Result<Self> {
        // SAFETY: eventfd takes no pointers.
        let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if fd < 0 {
            let error = io::Error::last_os_error();
            return Err(refused(
                &error,
                "an eventfd of the load",
                "use fewer threads, or raise `ulimit -n`",
            ));
        }
        // SAFETY: the kernel just gave this descriptor to us alone.
        Ok(Self::Event(unsafe { File::from_raw_fd(fd) }))
    }

    pub fn park() -> Self {
        Self::Park(OnceLock::new())
    }

    pub fn wake(&self) {
        match self {
            // Fails only when the count is full, and then the worker is awake.
            Self::Event(event) => drop((&mut &*event).write(&1_u64.to_ne_bytes())),
            Self::Park(thread) => thread.get().into_iter().for_each(Thread::unpark),
        }
    }

    /// The eventfd to poll, for workers that have one.
    pub fn descriptor(&self) -> Option<RawFd> {
        match self {
            Self::Event(event) => Some(event.as_raw_fd()),
            Self::Park(_) => None,
        }
    }

    /// Makes the eventfd silent until the next wake-up.
    pub fn clear(&self) {
        if let Self::Event(event) = self {
            // Fails only when there was nothing to clear.
            drop((&mut &*event).read(&mut [0; 8]));
        }
    }

    /// The thread that will be unparked must call this.
    pub fn is_me(&self) {
        if let Self::Park(thread) = self {
            thread.get_or_init(std::thread::current);
        }
    }
}

/// Counters of 16 targets on a cache line of their own: neighbours in memory may belong to another worker.
#[derive(Default)]
#[repr(align(64))]
struct Line([AtomicU32; LINE_COUNTERS]);

const LINE_COUNTERS: usize = 16;

/// One worker as the others see it.
///
/// A worker counts its I/Os while it holds its epoch, and a turn replaces the epoch of every worker. So each I/O is
/// counted in exactly one epoch, and an epoch is complete the moment all workers were given the next.
#[repr(align(128))]
pub struct WorkerHandle {
    pub worker: usize,
    pub served: Served,
    pub waker: Waker,
    pub cpu: ThreadCpu,
    /// I/Os of the worker, by the numbers of its flights.
    pub outstanding: Outstanding,
    epoch: Mutex<Arc<Epoch>>,
    in_flight: Box<[Line]>,
    allowed: Box<[AtomicU32]>,
    adopted: AtomicU64,
    settled: AtomicU64,
}

impl WorkerHandle {
    pub fn new(worker: usize, served: Served, waker: Waker, epoch: Arc<Epoch>) -> Self {
        let lines = 0..served.count.div_ceil(LINE_COUNTERS);
        let (epoch, settled) = (Mutex::new(epoch), AtomicU64::new(PARKED));
        Self {
            worker,
            served,
            waker,
            cpu: ThreadCpu::default(),
            outstanding: Outstanding::default(),
            epoch,
            in_flight: lines.map(|_| Line::default()).collect(),
            allowed: (0..served.count).map(|_| AtomicU32::new(0)).collect(),
            adopted: AtomicU64::new(PARKED),
            settled,
        }
    }

    pub fn epoch(&self) -> MutexGuard<'_, Arc<Epoch>> {
        lock(&self.epoch)
    }

    /// I/Os of this worker outstanding on a target.
    pub fn in_flight(&self, target: usize) -> u64 {
        let index = target.checked_sub(self.served.first);
        let served = index.filter(|index| *index < self.served.count);
        served.map_or(0, |index| u64::from(self.counter(index).load(Relaxed)))
    }

    /// Only the worker itself may call this.
    #[inline]
    pub fn set_in_flight(&self, target: usize, count: u32) {
        self.counter(target - self.served.first)
            .store(count, Relaxed);
    }

    #[inline]
    fn counter(&self, index: usize) -> &AtomicU32 {
        &self.in_flight[index / LINE_COUNTERS].0[index % LINE_COUNTERS]
    }

    /// How many I/Os this worker may keep outstanding on a target while depths are being redistributed.
    pub fn allowed(&self, target: usize) -> u32 {
        self.allowed[target].load(Relaxed)
    }

    pub fn allow(&self, target: usize, most: usize) {
        self.allowed[target].store(u32::try_from(most).unwrap_or(u32::MAX), Relaxed);
    }

    /// Says that this worker keeps within what this epoch allows it from now on.
    pub fn adopt(&self, index: u32) {
        self.adopted.store(u64::from(index), Release);
    }

    pub fn has_adopted(&self, index: u32) -> bool {
        self.adopted.load(Acquire) == u64::from(index)
    }

    /// Whether this worker has anything to do in an epoch; rings are shared by all targets.
    pub fn is_used(&self, epoch: &Epoch) -> bool {
        self.waker.descriptor().is_some() || self.served.first < epoch.settings.width
    }

    /// Says that no outstanding I/O of this worker is older than this epoch.
    pub fn settle(&self, index: u32) {
        self.settled.store(u64::from(index), Relaxed);
    }

    /// Says that this worker has no I/O and begins none until it is woken.
    pub fn parked(&self) {
        self.settled.store(PARKED, Relaxed);
    }

    pub fn is_parked(&self) -> bool {
        self.settled.load(Relaxed) == PARKED
    }

    pub fn has_settled(&self, index: u32) -> bool {
        self.settled.load(Relaxed) >= u64::from(index)
    }
}
