//! An array map of the kernel as a slice of this process.

use std::fs;
use std::io;
use std::marker::PhantomData;
use std::ops::Deref;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;
use std::slice;

/// Values that consist of atomics and of unused padding: others may write them at any time.
///
/// # Safety
///
/// Every field that is written is atomic, and any bits are a valid value.
pub unsafe trait Shared {}

// SAFETY: atomics of integers and padding only, as for all of the layout.
unsafe impl Shared for super::layout::Control {}
// SAFETY: as above.
unsafe impl Shared for super::layout::Device {}
// SAFETY: as above.
unsafe impl Shared for super::layout::Cell {}
// SAFETY: as above.
unsafe impl Shared for super::layout::Places {}
// SAFETY: as above.
unsafe impl Shared for super::layout::Own {}
// SAFETY: as above.
unsafe impl Shared for super::layout::Touched {}
// SAFETY: as above.
unsafe impl Shared for super::layout::Counts {}
// SAFETY: as above.
unsafe impl Shared for super::layout::Identity {}
// SAFETY: as above.
unsafe impl Shared for super::layout::Group {}
// SAFETY: as above.
unsafe impl Shared for super::layout::IoSet {}
// SAFETY: as above.
unsafe impl Shared for super::layout::Octave {}
// SAFETY: as above.
unsafe impl Shared for super::layout::SlowIo {}
// SAFETY: as above.
unsafe impl Shared for super::layout::Pending {}
// SAFETY: as above.
unsafe impl Shared for super::layout::Asides {}
// SAFETY: as above.
unsafe impl Shared for super::layout::Lock {}
// SAFETY: as above.
unsafe impl Shared for super::layout::Process {}
// SAFETY: as above.
unsafe impl Shared for super::layout::ProcessSums {}

pub struct Mapping<T: Shared> {
    base: NonNull<T>,
    entries: usize,
    bytes: usize,
    values: PhantomData<T>,
}

// SAFETY: the mapping is memory of the whole process and its values are atomics.
unsafe impl<T: Shared> Send for Mapping<T> {}
// SAFETY: as above.
unsafe impl<T: Shared> Sync for Mapping<T> {}

impl<T: Shared> Mapping<T> {
    /// Maps a map whose values have the size of `T`; the descriptor may be closed afterwards.
    pub fn new(map: BorrowedFd<'_>, writable: bool) -> io::Result<Self> {
        let (entries, value_bytes) = shape(map)?;
        if value_bytes != size_of::<T>() {
            let text = format!(
                "values of {value_bytes} bytes where {} were expected: not a map of this version",
                size_of::<T>()
            );
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        let page = 4096;
        let bytes = (entries * value_bytes).next_multiple_of(page);
        let protection = if writable {
            libc::PROT_READ | libc::PROT_WRITE
        } else {
            libc::PROT_READ
        };
        let (flags, fd) = (libc::MAP_SHARED, map.as_raw_fd());
        Self::mapped(entries, bytes, protection, flags, fd)
    }

    /// Memory that no program writes, for tests.
    #[cfg(test)]
    pub fn anonymous(entries: usize) -> io::Result<Self> {
        let bytes = (entries * size_of::<T>()).next_multiple_of(4096);
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        Self::mapped(entries, bytes, protection, flags, -1)
    }

    fn mapped(
        entries: usize,
        bytes: usize,
        protection: i32,
        flags: i32,
        fd: i32,
    ) -> io::Result<Self> {
        // SAFETY: a new mapping at an address of the kernel's choice touches nothing that exists.
        let base = unsafe { libc::mmap(std::ptr::null_mut(), bytes, protection, flags, fd, 0) };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base = NonNull::new(base.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self {
            base,
            entries,
            bytes,
            values: PhantomData,
        })
    }
}

impl<T: Shared> Deref for Mapping<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: the kernel mapped that many values of this size, page aligned, until drop; other writers of them
        // do so through atomics, which is what `Shared` says of the type.
        unsafe { slice::from_raw_parts(self.base.as_ptr(), self.entries) }
    }
}

impl<T: Shared> Drop for Mapping<T> {
    fn drop(&mut self) {
        // SAFETY: the range is exactly our mapping, and references to it have ended with the borrow of self.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.bytes) };
    }
}

/// Entries and bytes of a value, which the kernel reports of a descriptor without any privilege.
fn shape(map: BorrowedFd<'_>) -> io::Result<(usize, usize)> {
    let text = fs::read_to_string(format!("/proc/self/fdinfo/{}", map.as_raw_fd()))?;
    let figure = |name: &str| {
        text.lines()
            .find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
    };
    figure("max_entries:")
        .zip(figure("value_size:"))
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "not a BPF map"))
}
