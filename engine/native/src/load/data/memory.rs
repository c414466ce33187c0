//! Page-aligned memory for I/O.

use std::io;
use std::ptr::NonNull;

use crate::load::system::refusal::refused;

const HUGE_PAGE: usize = 2 << 20;

/// Zeroed pages of our own, mapped and present.
///
/// A child process does not get them: copy-on-write under an I/O in flight would send the data to the wrong copy.
pub struct Memory {
    base: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the mapping belongs to this value alone; its owner decides which thread accesses the bytes.
unsafe impl Send for Memory {}
// SAFETY: a shared reference gives the address only; reading or writing there is the caller's responsibility.
unsafe impl Sync for Memory {}

impl Memory {
    pub fn new(bytes: usize) -> io::Result<Self> {
        let (protection, flags) = (
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
        );
        // SAFETY: an anonymous mapping at an address of the kernel's choice touches nothing that exists.
        let base = unsafe { libc::mmap(std::ptr::null_mut(), bytes, protection, flags, -1, 0) };
        if base == libc::MAP_FAILED {
            let what = format!("{bytes} bytes of I/O buffers");
            return Err(refused(
                &io::Error::last_os_error(),
                &what,
                "use a smaller queue depth or block",
            ));
        }
        let base = NonNull::new(base.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        let memory = Self { base, bytes };
        if bytes >= HUGE_PAGE {
            memory.advise(libc::MADV_HUGEPAGE);
        }
        memory.advise(libc::MADV_DONTFORK);
        memory.advise(libc::MADV_POPULATE_WRITE);
        Ok(memory)
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Start of the mapping.
    pub fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// Advice only makes it faster; older kernels know less of it.
    fn advise(&self, advice: i32) {
        // SAFETY: the range is exactly our mapping and none of the advices used drops its content.
        unsafe { libc::madvise(self.base.as_ptr().cast(), self.bytes, advice) };
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: the range is exactly our mapping, and its holder has no I/O in flight on it.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.bytes) };
    }
}
