//! A device node of a target, and whether it still leads to the same disk.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use super::direct_io::direct_refusal;
use crate::load::data::memory::Memory;

/// `linux/fs.h`: size in bytes, and the number no other disk of this boot has (5.15 on).
const BLKGETSIZE64: libc::c_ulong = 0x8008_1272;
const BLKGETDISKSEQ: libc::c_ulong = 0x8008_1280;

/// One path to a target by an open descriptor of its own.
pub struct Node {
    pub fd: OwnedFd,
    pub name: String,
    pub weight: u32,
    pub preferred: bool,
    /// NUMA node of its adapter.
    pub cell: Option<u32>,
    /// I/Os outstanding on it, from any issuer, when it was opened.
    pub outstanding_at_open: u32,
    /// Errno with which it refuses direct I/O, if it does.
    pub direct_refusal: Option<i32>,
    disk_sequence: Option<u64>,
}

impl Node {
    pub fn new(fd: OwnedFd, name: String) -> Self {
        let disk_sequence = ask(fd.as_raw_fd(), BLKGETDISKSEQ);
        let direct_refusal = direct_refusal(fd.as_raw_fd());
        Self {
            fd,
            name,
            weight: 1,
            preferred: false,
            cell: None,
            outstanding_at_open: 0,
            direct_refusal,
            disk_sequence,
        }
    }

    /// Whether all these bytes are there: the node of a disk that is gone has none.
    pub fn holds(&self, size_bytes: u64) -> bool {
        let fd = self.fd.as_raw_fd();
        let bytes = ask(fd, BLKGETSIZE64).or_else(|| file_bytes(fd));
        bytes.is_none_or(|bytes| bytes >= size_bytes)
    }

    /// Whether a failed path may be used again: it leads to the same disk, which reads its first block.
    pub fn answers(&self, size_bytes: u64, align_bytes: u64) -> bool {
        let same = ask(self.fd.as_raw_fd(), BLKGETDISKSEQ) == self.disk_sequence;
        same && self.holds(size_bytes) && self.reads_first_block(align_bytes).unwrap_or(false)
    }

    fn reads_first_block(&self, align_bytes: u64) -> io::Result<bool> {
        let length = usize::try_from(align_bytes.max(512)).unwrap_or(4096);
        let memory = Memory::new(length)?;
        // SAFETY: the mapping is ours alone and has this many bytes.
        let read = unsafe {
            libc::pread(
                self.fd.as_raw_fd(),
                memory.base().as_ptr().cast(),
                length,
                0,
            )
        };
        Ok(usize::try_from(read).is_ok_and(|read| read == length))
    }
}

/// Result of an ioctl on a block device; none for anything else.
fn ask(fd: RawFd, request: libc::c_ulong) -> Option<u64> {
    let mut answer = 0_u64;
    // SAFETY: both requests write one u64 into a live local.
    let code = unsafe { libc::ioctl(fd, request, &raw mut answer) };
    (code == 0).then_some(answer)
}

fn file_bytes(fd: RawFd) -> Option<u64> {
    // SAFETY: stat is plain memory that the kernel fills.
    let status = unsafe {
        let mut status: libc::stat = std::mem::zeroed();
        (libc::fstat(fd, &raw mut status) == 0).then_some(status)
    }?;
    let is_file = status.st_mode & libc::S_IFMT == libc::S_IFREG;
    is_file.then(|| status.st_size.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn only_the_same_disk_of_the_old_size_answers() {
        let path = std::env::temp_dir().join(format!("lunscope-node-{}", std::process::id()));
        let file = File::create_new(&path).unwrap();
        file.set_len(8192).unwrap();
        let mut node = Node::new(File::open(&path).unwrap().into(), "file".into());
        assert!(node.holds(8192) && node.answers(8192, 512));
        node.disk_sequence = Some(7);
        assert!(!node.answers(8192, 512), "another disk by its number");
        node.disk_sequence = None;
        file.set_len(4096).unwrap();
        assert!(!node.holds(8192) && !node.answers(8192, 512));
        std::fs::remove_file(&path).unwrap();
    }
}
