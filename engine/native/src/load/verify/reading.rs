//! Reads ranges of a target for a pass, and says what each unit of them is.

use std::io;
use std::os::fd::AsRawFd;

use super::finding::Finding;
use super::unit::{UNIT_BYTES, units};
use crate::load::data::memory::Memory;
use crate::load::targets::target::Target;

/// Size of the pieces that locate the failure where a large read fails.
const PIECE_BYTES: u64 = 4096;

/// What a range holds; where it cannot be read at once, piece by piece.
pub fn read_findings(target: &Target, memory: &Memory, offset: u64, length: u64) -> Vec<Finding> {
    if read_at(target, memory, offset, length).is_ok() {
        return found(memory, length);
    }
    let mut findings = Vec::new();
    let piece_bytes = PIECE_BYTES.max(target.align_bytes);
    for begin in (0..length).step_by(usize::try_from(piece_bytes).unwrap_or(4096)) {
        let piece = piece_bytes.min(length - begin);
        match read_at(target, memory, offset + begin, piece) {
            Ok(()) => findings.extend(found(memory, piece)),
            Err(errno) => {
                let units = usize::try_from(piece / UNIT_BYTES as u64).unwrap_or(0);
                findings.extend(std::iter::repeat_n(Finding::Unreadable(errno), units));
            }
        }
    }
    findings
}

/// Reads a range by the first path that returns all of it; else the errno of the last.
fn read_at(target: &Target, memory: &Memory, offset: u64, length: u64) -> Result<(), i32> {
    let mut failed = libc::EIO;
    for node in &target.nodes {
        match read_all(node.fd.as_raw_fd(), memory, offset, length) {
            Ok(()) => return Ok(()),
            Err(error) => failed = error.raw_os_error().unwrap_or(libc::EIO),
        }
    }
    Err(failed)
}

fn read_all(fd: i32, memory: &Memory, offset: u64, length: u64) -> io::Result<()> {
    let mut done = 0;
    while done < length {
        let at = usize::try_from(done).map_err(io::Error::other)?;
        let left = usize::try_from(length - done).map_err(io::Error::other)?;
        let position = libc::off_t::try_from(offset + done).map_err(io::Error::other)?;
        // SAFETY: `length` is at most what is mapped, so that `left` bytes are there.
        let read =
            unsafe { libc::pread(fd, memory.base().as_ptr().add(at).cast(), left, position) };
        match u64::try_from(read) {
            Ok(0) => return Err(io::Error::from_raw_os_error(libc::ENODATA)),
            Ok(read) => done += read,
            Err(_) => {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
        }
    }
    Ok(())
}

fn found(memory: &Memory, length: u64) -> Vec<Finding> {
    let length = usize::try_from(length).unwrap_or(0).min(memory.bytes());
    // SAFETY: the mapping is this thread's alone, has that length, and no I/O is in flight on it.
    let bytes = unsafe { std::slice::from_raw_parts(memory.base().as_ptr(), length) };
    units(bytes).map(Finding::of).collect()
}
