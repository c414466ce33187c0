//! One I/O as a system call.

use std::io;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;

use crate::load::counts::stats::Direction;
use crate::load::knobs::Settings;
use crate::load::pace::priority::turn_thread;
use crate::load::pattern::Part;
use crate::load::running::run::Run;

/// Does an I/O; the result as a ring gives it.
pub fn transfer(run: &Run, part: &Part, pointer: NonNull<u8>, settings: &Settings) -> i32 {
    turn_thread(&run.limits.priorities, part);
    let fd = run.routes.node(part.file as usize).fd.as_raw_fd();
    let piece = libc::iovec {
        iov_base: pointer.as_ptr().cast(),
        iov_len: part.length as usize,
    };
    let offset = libc::off_t::try_from(part.offset).unwrap_or(libc::off_t::MAX);
    // SAFETY: the buffer has part.length bytes; reads of several threads may land in one, whose data is not used.
    let moved = unsafe {
        match part.direction {
            Direction::Read => libc::preadv2(fd, &raw const piece, 1, offset, 0),
            Direction::Write if part.is_fsync() => settings.flush.call(fd) as isize,
            Direction::Write => {
                libc::pwritev2(fd, &raw const piece, 1, offset, settings.mode.write_flags())
            }
        }
    };
    let failed = || {
        -io::Error::last_os_error()
            .raw_os_error()
            .unwrap_or(libc::EIO)
    };
    if moved < 0 {
        failed()
    } else {
        i32::try_from(moved).unwrap_or(i32::MAX)
    }
}
