//! An `io_uring` with whatever this kernel grants, and why there is none.

use std::io;
use std::os::fd::RawFd;
use std::time::Duration;

use io_uring::types::{SubmitArgs, Timespec};
use io_uring::{Builder, CompletionQueue, EnterFlags, IoUring, SubmissionQueue, Submitter, squeue};

use super::buffers::Registrar;
use super::memory::Memory;

/// Submissions go in small chunks, so few entries suffice.
const SUBMISSION_ENTRIES: u32 = 128;
/// The kernel's `IORING_MAX_CQ_ENTRIES`; more I/Os than that wait in the kernel's overflow list.
const MOST_COMPLETION_ENTRIES: usize = 65536;
const REGISTERED_REGIONS: u16 = 64;
/// `IO_URING_MAX_BUFFER_BYTES`: the kernel registers no larger piece.
const LARGEST_REGISTERED_BYTES: usize = 1 << 30;
const DISABLED: &str = "/proc/sys/kernel/io_uring_disabled";

type Setup = (&'static str, fn(&mut Builder) -> &mut Builder);

/// Set-up flags from the youngest to the oldest; the first kernel that has a flag has all that follow.
const SETUP: [Setup; 5] = [
    ("no_sqarray", Builder::setup_no_sqarray),
    ("defer_taskrun", Builder::setup_defer_taskrun),
    ("single_issuer", Builder::setup_single_issuer),
    ("coop_taskrun", Builder::setup_coop_taskrun),
    ("submit_all", Builder::setup_submit_all),
];

/// Opens a ring for this many I/Os at once, without the flags the kernel refuses; also names those it took.
pub fn open(ios: usize) -> io::Result<(IoUring, Vec<&'static str>)> {
    let completions = ios
        .next_power_of_two()
        .clamp(2 * SUBMISSION_ENTRIES as usize, MOST_COMPLETION_ENTRIES);
    let mut without = 0;
    loop {
        let granted = &SETUP[without..];
        let mut builder = IoUring::builder();
        builder
            .setup_clamp()
            .setup_cqsize(u32::try_from(completions).unwrap_or(u32::MAX))
            .dontfork();
        for (_, add) in granted {
            add(&mut builder);
        }
        match builder.build(SUBMISSION_ENTRIES) {
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) && without < SETUP.len() => {
                without += 1;
            }
            Err(error) => return Err(explained(&error)),
            Ok(ring) if !ring.params().is_feature_ext_arg() => {
                return Err(io::Error::new(
                    io::ErrorKind::Unsupported,
                    "io_uring: needs Linux 5.11: use the threads backend",
                ));
            }
            Ok(ring) => return Ok((ring, granted.iter().map(|(name, _)| *name).collect())),
        }
    }
}

/// Why `io_uring` cannot be used, empty if it can.
pub fn refusal() -> String {
    open(1)
        .err()
        .map(|error| error.to_string())
        .unwrap_or_default()
}

fn explained(error: &io::Error) -> io::Error {
    let mend = match error.raw_os_error() {
        Some(libc::ENOSYS) => "this kernel or container has none: use the threads backend",
        Some(libc::EPERM | libc::EACCES) => {
            match std::fs::read_to_string(DISABLED).unwrap_or_default().trim() {
                "1" => "kernel.io_uring_disabled is 1: run as root, or use the threads backend",
                "2" => "kernel.io_uring_disabled is 2: set it to 0, or use the threads backend",
                _ => "forbidden here, by seccomp or a security module: use the threads backend",
            }
        }
        Some(libc::ENOMEM) => "not enough locked memory: raise `ulimit -l`",
        Some(libc::EMFILE | libc::ENFILE) => "too many open files: raise `ulimit -n`",
        _ => "use the threads backend",
    };
    io::Error::new(error.kind(), format!("io_uring: {error}: {mend}"))
}

/// What the kernel knows ahead of I/O, so that it need not look it up each time.
pub struct Registry {
    pub files: bool,
    pub buffers: bool,
    pub ring: bool,
    free: Vec<u16>,
}

/// The two queues and the system call between them.
pub struct Ring<'ring> {
    submitter: Submitter<'ring>,
    submissions: SubmissionQueue<'ring>,
    pub completions: CompletionQueue<'ring>,
    pub registry: Registry,
    queued: u32,
    no_iowait: bool,
}

impl<'ring> Ring<'ring> {
    pub fn new(ring: &'ring mut IoUring, files: &[RawFd]) -> Self {
        let no_iowait = ring.params().is_feature_no_iowait();
        let (mut submitter, submissions, completions) = ring.split();
        let registry = Registry {
            ring: submitter.register_ring_fd().is_ok(),
            files: submitter.register_files(files).is_ok(),
            buffers: submitter
                .register_buffers_sparse(u32::from(REGISTERED_REGIONS))
                .is_ok(),
            free: (0..REGISTERED_REGIONS).rev().collect(),
        };
        Self {
            submitter,
            submissions,
            completions,
            registry,
            queued: 0,
            no_iowait,
        }
    }

    pub fn features(&self) -> Vec<&'static str> {
        let granted = [
            (self.registry.files, "registered_files"),
            (self.registry.buffers, "registered_buffers"),
            (self.registry.ring, "registered_ring"),
            (self.no_iowait, "no_iowait"),
        ];
        granted
            .into_iter()
            .filter(|(granted, _)| *granted)
            .map(|(_, name)| name)
            .collect()
    }

    pub fn queued(&self) -> u32 {
        self.queued
    }

    pub fn is_full(&self) -> bool {
        self.submissions.is_full()
    }

    /// Queues one entry.
    ///
    /// # Safety
    ///
    /// What the entry points to must stay valid until its completion was seen.
    #[inline]
    pub unsafe fn push(&mut self, entry: &squeue::Entry) -> io::Result<()> {
        // SAFETY: the caller's.
        unsafe { self.submissions.push(entry) }
            .map_err(|_| io::Error::other("io_uring: submission queue is full"))?;
        self.queued += 1;
        Ok(())
    }

    /// Hands what is queued to the kernel.
    #[inline]
    pub fn submit(&mut self) -> io::Result<()> {
        self.submissions.sync();
        // SAFETY: no argument structure is passed.
        let taken = unsafe {
            self.submitter
                .enter::<libc::sigset_t>(self.queued, 0, 0, None)
        };
        self.account(taken)
    }

    /// Hands what is queued to the kernel and waits for a completion, at most for `timeout`.
    ///
    /// `idle`: no I/O is outstanding, so the wait is not one for I/O and must not show as iowait or pressure.
    #[inline]
    pub fn wait(&mut self, timeout: Option<Duration>, idle: bool) -> io::Result<()> {
        self.submissions.sync();
        let mut flags = EnterFlags::GETEVENTS;
        flags.set(EnterFlags::NO_IOWAIT, idle && self.no_iowait);
        let taken = match timeout {
            // SAFETY: no argument structure is passed.
            None => unsafe {
                self.submitter
                    .enter::<libc::sigset_t>(self.queued, 1, flags.bits(), None)
            },
            Some(timeout) => {
                let timeout = Timespec::from(timeout);
                let argument = SubmitArgs::new().timespec(&timeout);
                flags.insert(EnterFlags::EXT_ARG);
                // SAFETY: with EXT_ARG the argument is a SubmitArgs, which lives through the call.
                unsafe {
                    self.submitter
                        .enter(self.queued, 1, flags.bits(), Some(&argument))
                }
            }
        };
        self.account(taken)
    }

    fn account(&mut self, taken: io::Result<usize>) -> io::Result<()> {
        match taken {
            Ok(taken) => {
                self.queued -= u32::try_from(taken).unwrap_or(0).min(self.queued);
                Ok(())
            }
            Err(error) => match error.raw_os_error() {
                Some(libc::ETIME | libc::EINTR) => Ok(()),
                // The kernel wants completions reaped first, or is short of memory for a moment.
                Some(libc::EAGAIN | libc::EBUSY) => {
                    std::thread::yield_now();
                    Ok(())
                }
                _ => Err(io::Error::new(
                    error.kind(),
                    format!("io_uring_enter: {error}"),
                )),
            },
        }
    }
}

impl Registrar for Ring<'_> {
    fn register(&mut self, memory: &Memory) -> Option<u16> {
        if !self.registry.buffers || memory.bytes() > LARGEST_REGISTERED_BYTES {
            return None;
        }
        let index = self.registry.free.pop()?;
        let piece = libc::iovec {
            iov_base: memory.base().as_ptr().cast(),
            iov_len: memory.bytes(),
        };
        // SAFETY: the arena unregisters the memory before it unmaps it.
        let registered = unsafe {
            self.submitter
                .register_buffers_update(u32::from(index), &[piece], None)
        };
        if registered.is_ok() {
            return Some(index);
        }
        // RLIMIT_MEMLOCK: plain buffers work as well, only slower.
        self.registry.buffers = false;
        self.registry.free.push(index);
        None
    }

    fn unregister(&mut self, index: u16) {
        let nothing = libc::iovec {
            iov_base: std::ptr::null_mut(),
            iov_len: 0,
        };
        // SAFETY: an empty entry takes the registered one out; the kernel keeps its pages while I/O uses them.
        if unsafe {
            self.submitter
                .register_buffers_update(u32::from(index), &[nothing], None)
        }
        .is_ok()
        {
            self.registry.free.push(index);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_ends_at_its_timeout() {
        let Ok((mut ring, _)) = open(8) else { return };
        let mut ring = Ring::new(&mut ring, &[]);
        let before = std::time::Instant::now();
        ring.wait(Some(Duration::from_millis(20)), true).unwrap();
        assert!(before.elapsed() >= Duration::from_millis(19));
    }
}
