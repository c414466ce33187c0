//! Why the exact tier cannot work here, in words and with the fix.

use std::fs;
use std::io;
use std::path::Path;

use super::failure::Failure;
use super::form::Form;
use super::loading::lock_more;
use super::memory;
use super::programs::tracepoints;
use super::sizes::{HISTOGRAMS, Sizes};
use super::types::Types;

const CAP_SYS_ADMIN: u32 = 21;
const CAP_PERFMON: u32 = 38;
const CAP_BPF: u32 = 39;

/// Empty if nothing speaks against it, neither the kernel nor what this process may do.
pub fn refusal(procfs: &Path, sysfs: &Path) -> String {
    let refused = kernel_refusal(sysfs)
        .or_else(|| rights(procfs))
        .or_else(bpf_call)
        .or_else(|| memory::refusal(procfs, sysfs, Sizes::of_host(sysfs, HISTOGRAMS).bytes()))
        .or_else(|| programs(sysfs));
    refused.unwrap_or_default()
}

/// What no privilege would allow, and so no privileged helper either.
pub fn kernel_refusal(sysfs: &Path) -> Option<String> {
    type_information(sysfs).or_else(|| lockdown(sysfs))
}

fn type_information(sysfs: &Path) -> Option<String> {
    let types = match Types::of_host(sysfs) {
        Ok(types) => types,
        Err(refusal) => return Some(refusal),
    };
    let missing = tracepoints().find(|name| !types.has_name(&format!("btf_trace_{name}")))?;
    Some(format!(
        "the kernel has no tracepoint {missing}: the exact tier needs one built with CONFIG_BLOCK and CONFIG_TRACEPOINTS"
    ))
}

/// Whether the kernel accepts one of the forms of the programs.
fn programs(sysfs: &Path) -> Option<String> {
    let types = Types::of_host(sysfs).ok()?;
    Form::of_kernel(&types)
        .err()
        .map(|failure| failure.to_string())
}

/// The mode in force is in brackets; only confidentiality forbids reading kernel memory.
fn lockdown(sysfs: &Path) -> Option<String> {
    let modes = fs::read_to_string(sysfs.join("kernel/security/lockdown")).ok()?;
    modes.contains("[confidentiality]").then(|| {
        "the kernel is locked down (confidentiality): boot with lockdown=integrity or less for the exact tier".to_owned()
    })
}

fn rights(procfs: &Path) -> Option<String> {
    let status = fs::read_to_string(procfs.join("self/status")).ok()?;
    let effective = status
        .lines()
        .find_map(|line| u64::from_str_radix(line.strip_prefix("CapEff:")?.trim(), 16).ok())?;
    let has = |capability: u32| effective >> capability & 1 == 1;
    let missing = match (has(CAP_SYS_ADMIN), has(CAP_BPF), has(CAP_PERFMON)) {
        (true, ..) | (_, true, true) => return None,
        (_, true, false) => "CAP_BPF alone is not enough: add CAP_PERFMON",
        (_, false, true) => "CAP_PERFMON alone is not enough: add CAP_BPF",
        (_, false, false) => "no right to trace: run as root, or with CAP_BPF and CAP_PERFMON",
    };
    Some(missing.to_owned())
}

/// Tries the smallest call that needs the right: a container's filter or user namespace may refuse what the process
/// seems to hold.
fn bpf_call() -> Option<String> {
    let is_refused = |error: &io::Error| error.raw_os_error() == Some(libc::EPERM);
    let error = match create_map().err()? {
        error if is_refused(&error) && lock_more() => create_map().err()?,
        error => error,
    };
    Some(match error.raw_os_error() {
        Some(libc::EPERM) => "bpf() is not permitted although the process has the rights: a seccomp filter or a user \
             namespace forbids it, or a limit of locked memory before Linux 5.11; run outside of the container, or \
             allow it there"
            .to_owned(),
        Some(libc::ENOSYS) => {
            "the kernel has no bpf(): the exact tier needs one built with CONFIG_BPF_SYSCALL".to_owned()
        }
        Some(libc::EINVAL) => {
            "the kernel maps no BPF arrays into memory (BPF_F_MMAPABLE): the exact tier needs Linux 5.5 or newer"
                .to_owned()
        }
        _ => Failure::loading("bpf()", &error).to_string(),
    })
}

fn create_map() -> io::Result<()> {
    const BPF_MAP_CREATE: libc::c_int = 0;
    const BPF_MAP_TYPE_ARRAY: u32 = 2;
    const BPF_F_MMAPABLE: u32 = 1024;
    // type, bytes of a key, bytes of a value, entries, flags (union bpf_attr of linux/bpf.h)
    let attributes: [u32; 5] = [BPF_MAP_TYPE_ARRAY, 4, 8, 1, BPF_F_MMAPABLE];
    // SAFETY: the kernel reads that many bytes of a live array and returns a new descriptor.
    let map = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            BPF_MAP_CREATE,
            attributes.as_ptr(),
            size_of_val(&attributes),
        )
    };
    let Ok(map) = i32::try_from(map) else {
        return Err(io::Error::from_raw_os_error(libc::EBADF));
    };
    if map < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor was just made and nothing else uses it.
    unsafe { libc::close(map) };
    Ok(())
}
