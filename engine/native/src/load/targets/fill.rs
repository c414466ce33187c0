//! Fills files with incompressible data: unwritten space reads many times too fast.

use std::fs::File;
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{FromRawFd, RawFd};
use std::os::unix::fs::FileExt;

use crate::load::data::memory::Memory;
use crate::load::data::payload;

const PIECE_BYTES: u64 = 1 << 20;

/// Writes pseudo-random bytes; how many, which is less than `length` when the disk is full.
pub fn fill(fd: RawFd, offset: u64, length: u64, seed: u64) -> io::Result<u64> {
    if length == 0 {
        return Ok(0);
    }
    // SAFETY: the descriptor is the caller's, is used while the caller waits, and is not closed here.
    let file = ManuallyDrop::new(unsafe { File::from_raw_fd(fd) });
    let size = usize::try_from(PIECE_BYTES.min(length)).map_err(io::Error::other)?;
    let memory = Memory::new(size)?;
    // SAFETY: the mapping is ours alone and has this many bytes.
    let buffer = unsafe { std::slice::from_raw_parts_mut(memory.base().as_ptr(), size) };
    let mut done = 0;
    while done < length {
        let piece = usize::try_from(PIECE_BYTES.min(length - done)).map_err(io::Error::other)?;
        payload::fill(&mut buffer[..piece], seed, offset + done);
        let (written, stopped_by) = write_all(&file, &buffer[..piece], offset + done);
        done += written;
        match stopped_by {
            None => {}
            Some(error) if done == 0 || error.raw_os_error() != Some(libc::ENOSPC) => {
                return Err(error);
            }
            Some(_) => break,
        }
    }
    Ok(done)
}

/// Writes until all is written or an error comes.
fn write_all(file: &File, bytes: &[u8], offset: u64) -> (u64, Option<io::Error>) {
    let mut done = 0;
    while done < bytes.len() {
        match file.write_at(&bytes[done..], offset + done as u64) {
            Ok(0) => {
                return (
                    done as u64,
                    Some(io::Error::from_raw_os_error(libc::ENOSPC)),
                );
            }
            Ok(written) => done += written,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return (done as u64, Some(error)),
        }
    }
    (done as u64, None)
}
