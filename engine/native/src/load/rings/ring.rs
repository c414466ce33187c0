//! The two queues of an `io_uring` and the system call between them.

use std::io;
use std::os::fd::RawFd;
use std::time::Duration;

use io_uring::types::{SubmitArgs, Timespec};
use io_uring::{CompletionQueue, EnterFlags, IoUring, SubmissionQueue, Submitter, squeue};

use super::ring_lock;
use super::ring_setup::Access;
use crate::load::data::buffers::Registrar;
use crate::load::data::memory::Memory;
use crate::load::system::refusal::refused;

const REGISTERED_REGIONS: u16 = 64;
/// `IO_URING_MAX_BUFFER_BYTES`: the kernel registers no larger piece.
const LARGEST_REGISTERED_BYTES: usize = 1 << 30;

/// What is registered with the kernel ahead of I/O, so that it is not looked up for each.
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
    /// Whether the kernel refuses everything but reads on it.
    reads_only: bool,
}

impl<'ring> Ring<'ring> {
    /// Registers what can be and, on a ring for reads, lets the kernel refuse all else from then on.
    pub fn new(ring: &'ring mut IoUring, files: &[RawFd], access: Access) -> io::Result<Self> {
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
        let reads_only = access == Access::Read && ring_lock::enable_for_reads(&submitter)?;
        Ok(Self {
            submitter,
            submissions,
            completions,
            registry,
            queued: 0,
            no_iowait,
            reads_only,
        })
    }

    pub fn features(&self) -> Vec<&'static str> {
        let granted = [
            (self.registry.files, "registered_files"),
            (self.registry.buffers, "registered_buffers"),
            (self.registry.ring, "registered_ring"),
            (self.no_iowait, "no_iowait"),
            (self.reads_only, "read_only_ring"),
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

    /// Whether the kernel has completions to deliver at the next call.
    #[inline]
    pub fn has_news(&self) -> bool {
        self.submissions.taskrun()
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

    /// Submits what is queued.
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

    /// Submits what is queued and takes the completions it has, without waiting.
    #[inline]
    pub fn collect(&mut self) -> io::Result<()> {
        self.submissions.sync();
        let flags = EnterFlags::GETEVENTS.bits();
        // SAFETY: no argument structure is passed.
        let taken = unsafe {
            self.submitter
                .enter::<libc::sigset_t>(self.queued, 0, flags, None)
        };
        self.account(taken)
    }

    /// Whether completions are ready to be reaped.
    #[inline]
    pub fn has_completions(&mut self) -> bool {
        self.completions.sync();
        !self.completions.is_empty()
    }

    /// Submits what is queued and waits for a completion, at most for `timeout`.
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
                _ => Err(refused(&error, "io_uring_enter", "")),
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
    use crate::load::rings::ring_setup;

    #[test]
    fn a_wait_ends_at_its_timeout() {
        let Ok((mut ring, _)) = ring_setup::open(8, Access::Read) else {
            return;
        };
        let mut ring = Ring::new(&mut ring, &[], Access::Read).unwrap();
        let before = std::time::Instant::now();
        ring.wait(Some(Duration::from_millis(20)), true).unwrap();
        assert!(before.elapsed() >= Duration::from_millis(19));
    }
}
