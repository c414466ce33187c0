//! An array of 64-bit words that several threads access at once, in memory or in a file.

use std::io;
use std::os::fd::RawFd;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

use crate::load::system::refusal::refused;

/// Words in pages that the kernel provides as they are touched.
pub struct Pages {
    base: NonNull<u8>,
    bytes: usize,
    first: usize,
    words: usize,
}

// SAFETY: the mapping belongs to this value and is reached through atomics only.
unsafe impl Send for Pages {}
// SAFETY: as above.
unsafe impl Sync for Pages {}

impl Pages {
    /// Zeros in memory, allocated as they are written.
    pub fn in_memory(words: u64) -> io::Result<Self> {
        Self::map(words, None)
    }

    /// Maps the pages of a file from a page-aligned offset on, shared with other mappings of it.
    pub fn in_file(words: u64, fd: RawFd, first: usize) -> io::Result<Self> {
        Self::map(words, Some((fd, first)))
    }

    fn map(words: u64, file: Option<(RawFd, usize)>) -> io::Result<Self> {
        let words = usize::try_from(words).map_err(io::Error::other)?;
        let (flags, fd, first) = match file {
            Some((fd, first)) => (libc::MAP_SHARED, fd, first),
            None => (
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            ),
        };
        let bytes = first + 8 * words.max(1);
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a mapping at an address of the kernel's choice touches nothing that exists.
        let base = unsafe { libc::mmap(std::ptr::null_mut(), bytes, protection, flags, fd, 0) };
        if base == libc::MAP_FAILED {
            let what = format!("{bytes} bytes for the journal of --verify");
            let error = io::Error::last_os_error();
            return Err(refused(&error, &what, "use a smaller size"));
        }
        let base = NonNull::new(base.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self {
            base,
            bytes,
            first,
            words,
        })
    }

    #[inline]
    #[expect(
        clippy::cast_ptr_alignment,
        reason = "a mapping begins on a page, and the facts before the words are one"
    )]
    pub fn words(&self) -> &[AtomicU64] {
        // SAFETY: the words lie inside the mapping, zero at first, and all who reach them do so through atomics.
        unsafe {
            let first = self.base.as_ptr().add(self.first).cast::<AtomicU64>();
            std::slice::from_raw_parts(first, self.words)
        }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: the range is exactly our mapping, and references to it end with this value.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.bytes) };
    }
}
