//! Direct I/O of a descriptor, changed while it stays open (`O_DIRECT`, fcntl(2)).

use std::io;
use std::os::fd::RawFd;

/// Why a descriptor takes no direct I/O, found by turning it on and back off.
pub fn direct_refusal(fd: RawFd) -> Option<i32> {
    match flags(fd) {
        Ok(flags) if flags & libc::O_DIRECT != 0 => None,
        _ => set_direct(fd, true)
            .and_then(|()| set_direct(fd, false))
            .err()
            .and_then(|error| error.raw_os_error()),
    }
}

fn flags(fd: RawFd) -> io::Result<i32> {
    // SAFETY: F_GETFL takes no pointer.
    match unsafe { libc::fcntl(fd, libc::F_GETFL) } {
        -1 => Err(io::Error::last_os_error()),
        flags => Ok(flags),
    }
}

/// Turns direct I/O on or off.
pub fn set_direct(fd: RawFd, direct: bool) -> io::Result<()> {
    let flags = flags(fd)?;
    let wanted = if direct {
        flags | libc::O_DIRECT
    } else {
        flags & !libc::O_DIRECT
    };
    // SAFETY: F_SETFL takes no pointer.
    if unsafe { libc::fcntl(fd, libc::F_SETFL, wanted) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
