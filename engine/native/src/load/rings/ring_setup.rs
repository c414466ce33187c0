//! Sets up an `io_uring` with the features this kernel grants, or reports why there is none.

use std::io;

use io_uring::{Builder, IoUring};

use crate::load::system::refusal::refused;

/// Submissions go in small chunks, so few entries suffice.
const SUBMISSION_ENTRIES: u32 = 128;
/// The kernel's `IORING_MAX_CQ_ENTRIES`; more I/Os than that wait in the kernel's overflow list.
const MOST_COMPLETION_ENTRIES: usize = 65536;
const DISABLED: &str = "/proc/sys/kernel/io_uring_disabled";

type Setup = (&'static str, fn(&mut Builder) -> &mut Builder);

/// Set-up flags from the youngest to the oldest; the first kernel that has a flag has all that follow.
const SETUP: [Setup; 5] = [
    ("no_sqarray", Builder::setup_no_sqarray),
    ("defer_taskrun", Builder::setup_defer_taskrun),
    ("single_issuer", Builder::setup_single_issuer),
    ("coop_taskrun", |builder| {
        builder.setup_coop_taskrun().setup_taskrun_flag()
    }),
    ("submit_all", Builder::setup_submit_all),
];

/// What a ring is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// A ring that starts disabled, so that it can be restricted before anything is submitted.
    Read,
    Write,
}

/// Opens a ring for this many I/Os at once, without the flags the kernel refuses; also returns those it accepted.
pub fn open(ios: usize, access: Access) -> io::Result<(IoUring, Vec<&'static str>)> {
    let completions = ios
        .next_power_of_two()
        .clamp(2 * SUBMISSION_ENTRIES as usize, MOST_COMPLETION_ENTRIES);
    let mut without = 0;
    loop {
        let granted = &SETUP[without..];
        let mut builder = IoUring::builder();
        builder
            .setup_clamp()
            .setup_cqsize(u32::try_from(completions).unwrap_or(u32::MAX))
            .dontfork();
        if access == Access::Read {
            builder.setup_r_disabled();
        }
        for (_, add) in granted {
            add(&mut builder);
        }
        match builder.build(SUBMISSION_ENTRIES) {
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) && without < SETUP.len() => {
                without += 1;
            }
            Err(error) => return Err(explained(&error)),
            Ok(ring) if !ring.params().is_feature_ext_arg() => {
                let old = io::Error::from_raw_os_error(libc::ENOSYS);
                return Err(refused(
                    &old,
                    "io_uring",
                    "needs Linux 5.11: use the threads backend",
                ));
            }
            Ok(ring) => return Ok((ring, granted.iter().map(|(name, _)| *name).collect())),
        }
    }
}

/// Why `io_uring` cannot be used, empty if it can.
pub fn refusal() -> String {
    open(1, Access::Write)
        .err()
        .map(|error| error.to_string())
        .unwrap_or_default()
}

fn explained(error: &io::Error) -> io::Error {
    let fix = match error.raw_os_error() {
        Some(libc::ENOSYS) => "this kernel or container has none: use the threads backend",
        Some(libc::EPERM | libc::EACCES) => {
            match std::fs::read_to_string(DISABLED).unwrap_or_default().trim() {
                "1" => "kernel.io_uring_disabled is 1: run as root, or use the threads backend",
                "2" => "kernel.io_uring_disabled is 2: set it to 0, or use the threads backend",
                _ => "forbidden here, by seccomp or a security module: use the threads backend",
            }
        }
        Some(libc::ENOMEM) => "not enough locked memory: raise `ulimit -l`",
        Some(libc::EMFILE | libc::ENFILE) => "too many open files: raise `ulimit -n`",
        _ => "use the threads backend",
    };
    refused(error, "io_uring", fix)
}
