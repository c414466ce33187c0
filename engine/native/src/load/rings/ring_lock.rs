//! A ring that can only read: the kernel refuses any other operation on it, whatever is queued.
//!
//! The set of operations is registered while the ring is disabled and can never be widened (`io_uring_register(2)`,
//! `IORING_REGISTER_RESTRICTIONS`, Linux 5.10).

use std::io;

use io_uring::register::Restriction;
use io_uring::{IoUring, Submitter, opcode, squeue, types};

use super::ring_setup::{self, Access};
use crate::load::system::refusal::refused;

/// What a load that only reads submits: its reads, no-ops of a dry run, the poll that wakes it and its end.
const OPERATIONS: [u8; 5] = [
    opcode::Nop::CODE,
    opcode::Read::CODE,
    opcode::ReadFixed::CODE,
    opcode::PollAdd::CODE,
    opcode::AsyncCancel::CODE,
];
/// `IORING_REGISTER_BUFFERS_UPDATE`: memory comes and goes with queue depth. Files stay those registered at set-up.
const BUFFERS_UPDATE: u8 = 16;

/// Restricts a disabled ring to reads and enables it, for the calling thread; false where the kernel does not restrict.
pub fn enable_for_reads(submitter: &Submitter<'_>) -> io::Result<bool> {
    let restricted = restrict(submitter);
    submitter
        .register_enable_rings()
        .map_err(|error| refused(&error, "io_uring_register", "use the threads backend"))?;
    Ok(restricted)
}

fn restrict(submitter: &Submitter<'_>) -> bool {
    let mut allowed: Vec<_> = OPERATIONS.map(Restriction::sqe_op).into();
    allowed.push(Restriction::register_op(BUFFERS_UPDATE));
    allowed.push(Restriction::sqe_flags_allowed(
        squeue::Flags::FIXED_FILE.bits(),
    ));
    submitter.register_restrictions(&mut allowed).is_ok()
}

/// Why a ring that is not armed for writing could write here all the same, found by trying; empty if it cannot.
pub fn refusal() -> String {
    match written_by_a_reader() {
        Ok(libc::EACCES) => String::new(),
        Ok(0) => "the kernel let a ring write that may only read".into(),
        Ok(errno) => io::Error::from_raw_os_error(errno).to_string(),
        Err(error) => error.to_string(),
    }
}

/// The error with which the kernel refuses a write of one byte to memory of our own; 0 if it was written.
fn written_by_a_reader() -> io::Result<i32> {
    let (mut ring, _) = ring_setup::open(1, Access::Read)?;
    enable_for_reads(&ring.submitter())?;
    let byte = [1_u8];
    // SAFETY: the name is a static string, and the descriptor is closed below.
    let fd = unsafe { libc::memfd_create(c"lunscope".as_ptr(), libc::MFD_CLOEXEC) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    let write = opcode::Write::new(types::Fd(fd), byte.as_ptr(), 1).build();
    let outcome = run_one(&mut ring, &write);
    // SAFETY: the descriptor is ours and was not closed.
    unsafe { libc::close(fd) };
    outcome.map(|result| (-result).max(0))
}

/// Submits one entry, with memory that outlives the call, and waits for its result.
fn run_one(ring: &mut IoUring, entry: &squeue::Entry) -> io::Result<i32> {
    // SAFETY: the call returns once the entry is done.
    unsafe { ring.submission().push(entry) }.map_err(io::Error::other)?;
    ring.submit_and_wait(1)?;
    let mut completions = ring.completion();
    let completion = completions.next();
    completion
        .map(|completion| completion.result())
        .ok_or_else(|| io::Error::other("io_uring: no completion"))
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::FileExt;

    use super::*;
    use crate::load::rings::ring::Ring;

    const CONTENT: [u8; 8] = *b"as found";

    struct Sample {
        file: File,
        path: std::path::PathBuf,
    }

    impl Sample {
        fn new(test: &str) -> Self {
            let name = format!("lunscope-ring-{test}-{}", std::process::id());
            let path = std::env::temp_dir().join(name);
            std::fs::write(&path, CONTENT).unwrap();
            let file = File::options().read(true).write(true).open(&path).unwrap();
            Self { file, path }
        }

        fn content(&self) -> [u8; 8] {
            let mut content = [0; 8];
            self.file.read_exact_at(&mut content, 0).unwrap();
            content
        }
    }

    impl Drop for Sample {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(&self.path);
        }
    }

    /// The result of one entry on a ring as workers set it up, on the file it has registered.
    fn result_of(access: Access, sample: &Sample, entry: squeue::Entry) -> Option<i32> {
        let (mut ring, _) = ring_setup::open(8, access).ok()?;
        let mut ring = Ring::new(&mut ring, &[sample.file.as_raw_fd()], access).unwrap();
        let entry = entry.flags(squeue::Flags::FIXED_FILE);
        // SAFETY: callers keep the memory, and the wait is for the entry's end.
        unsafe { ring.push(&entry) }.unwrap();
        ring.wait(None, false).unwrap();
        ring.completions.sync();
        ring.completions
            .next()
            .map(|completion| completion.result())
    }

    #[test]
    fn the_kernel_refuses_every_way_to_change_a_file_on_a_ring_that_is_not_armed_for_writing() {
        let sample = Sample::new("unarmed");
        let (file, bytes) = (types::Fd(0), *b"scribble");
        let pieces = [libc::iovec {
            iov_base: bytes.as_ptr().cast_mut().cast(),
            iov_len: bytes.len(),
        }];
        let changes = [
            opcode::Write::new(file, bytes.as_ptr(), 8).build(),
            opcode::Writev::new(file, pieces.as_ptr(), 1).build(),
            opcode::WriteFixed::new(file, bytes.as_ptr(), 8, 0).build(),
            opcode::Fallocate::new(file, 4).build(),
            opcode::Fsync::new(file).build(),
            opcode::Ftruncate::new(file, 0).build(),
        ];
        for change in changes {
            let Some(result) = result_of(Access::Read, &sample, change.clone()) else {
                return;
            };
            assert_eq!(result, -libc::EACCES, "{change:?}");
        }
        assert_eq!(sample.content(), CONTENT);
    }

    #[test]
    fn the_same_write_passes_on_a_ring_armed_for_writing() {
        let sample = Sample::new("armed");
        let bytes = *b"scribble";
        let write = opcode::Write::new(types::Fd(0), bytes.as_ptr(), 8).build();
        if let Some(result) = result_of(Access::Write, &sample, write) {
            assert_eq!(result, 8);
            assert_eq!(sample.content(), bytes);
        }
    }

    #[test]
    fn a_ring_that_is_not_armed_for_writing_reads() {
        let sample = Sample::new("reads");
        let mut bytes = [0_u8; 8];
        let read = opcode::Read::new(types::Fd(0), bytes.as_mut_ptr(), 8).build();
        if let Some(result) = result_of(Access::Read, &sample, read) {
            assert_eq!(result, 8);
            assert_eq!(bytes, CONTENT);
        }
    }

    #[test]
    fn nothing_lifts_the_restriction_and_no_file_is_added() {
        let sample = Sample::new("kept");
        let Ok((ring, _)) = ring_setup::open(8, Access::Read) else {
            return;
        };
        let submitter = ring.submitter();
        submitter.register_files_sparse(1).unwrap();
        assert!(enable_for_reads(&submitter).unwrap());
        let errno = |done: io::Result<()>| done.unwrap_err().raw_os_error();
        let write = &mut [Restriction::sqe_op(opcode::Write::CODE)];
        assert!(matches!(
            errno(submitter.register_restrictions(write)),
            Some(libc::EACCES | libc::EBADFD)
        ));
        let added = submitter.register_files_update(0, &[sample.file.as_raw_fd()]);
        assert_eq!(errno(added.map(drop)), Some(libc::EACCES));
    }

    #[test]
    fn the_trial_finds_the_restriction_in_force() {
        if ring_setup::open(1, Access::Read).is_ok() {
            assert_eq!(refusal(), "");
        }
    }
}
