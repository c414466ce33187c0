//! Descriptors that Python gave; the load has copies of its own.

use std::fs::File;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;

use crate::load::system::refusal::refused;

fn status_flags(fd: RawFd) -> io::Result<i32> {
    // SAFETY: F_GETFL takes no pointer.
    match unsafe { libc::fcntl(fd, libc::F_GETFL) } {
        -1 => Err(io::Error::last_os_error()),
        flags => Ok(flags),
    }
}

pub fn opened_for_writing(fd: RawFd) -> io::Result<bool> {
    Ok(status_flags(fd)? & libc::O_ACCMODE != libc::O_RDONLY)
}

/// The same file by a description of its own that cannot write, as a duplicate could: what is not armed for writing
/// gets EBADF from the kernel (`write(2)`).
pub fn open_for_reading(fd: RawFd, name: &str) -> io::Result<OwnedFd> {
    let flags = status_flags(fd)? & libc::O_DIRECT;
    File::options()
        .read(true)
        .custom_flags(flags)
        .open(format!("/proc/self/fd/{fd}"))
        .map(OwnedFd::from)
        .map_err(|error| refused(&error, &format!("{name}: open for reading only"), ""))
}

pub fn duplicate(fd: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: F_DUPFD_CLOEXEC takes no pointer.
    match unsafe { libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, 0) } {
        -1 => Err(io::Error::last_os_error()),
        // SAFETY: the kernel just gave this descriptor to us alone.
        duplicate => Ok(unsafe { OwnedFd::from_raw_fd(duplicate) }),
    }
}
