//! Why the exact tier cannot work here, in words and with the fix.

use std::fs;
use std::io;
use std::path::Path;

use super::programs::tracepoints;

const OLDEST_KERNEL: (u32, u32) = (5, 12);
const CAP_SYS_ADMIN: u32 = 21;
const CAP_PERFMON: u32 = 38;
const CAP_BPF: u32 = 39;

/// Empty if nothing speaks against it, neither the kernel nor what this process may do.
pub fn refusal(procfs: &Path, sysfs: &Path) -> String {
    let checks = [kernel_refusal(procfs, sysfs), rights(procfs), bpf_call()];
    checks.into_iter().flatten().next().unwrap_or_default()
}

/// What no privilege would allow, and so no privileged helper either.
pub fn kernel_refusal(procfs: &Path, sysfs: &Path) -> Option<String> {
    kernel_age(procfs)
        .or_else(|| type_information(sysfs))
        .or_else(|| lockdown(sysfs))
}

fn kernel_age(procfs: &Path) -> Option<String> {
    let release = fs::read_to_string(procfs.join("sys/kernel/osrelease")).unwrap_or_default();
    let release = release.trim();
    let (major, minor) = version(release)?;
    ((major, minor) < OLDEST_KERNEL)
        .then(|| format!("kernel {release} is too old: the exact tier needs Linux 5.12 or newer"))
}

fn version(release: &str) -> Option<(u32, u32)> {
    let mut parts = release.split(|c: char| !c.is_ascii_digit());
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// It holds the names of all types as plain text, so a tracepoint that is missing is known without parsing.
fn type_information(sysfs: &Path) -> Option<String> {
    let path = sysfs.join("kernel/btf/vmlinux");
    let btf = match fs::read(&path) {
        Ok(btf) => btf,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Some(format!(
                "{} is missing: the exact tier needs a kernel built with CONFIG_DEBUG_INFO_BTF",
                path.display()
            ));
        }
        Err(error) => return Some(format!("{}: {error}: run as root", path.display())),
    };
    let missing = tracepoints().find(|name| !has_name(&btf, &format!("btf_trace_{name}")))?;
    Some(format!(
        "the kernel has no tracepoint {missing}: the exact tier needs one built with CONFIG_BLOCK and CONFIG_TRACEPOINTS"
    ))
}

fn has_name(btf: &[u8], name: &str) -> bool {
    let name = format!("\0{name}\0");
    let (first, rest) = (b'b', name.as_bytes());
    btf.windows(rest.len())
        .any(|window| window[1] == first && window == rest)
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
    let error = create_map().err()?;
    Some(match error.raw_os_error() {
        Some(libc::EPERM) => "bpf() is not permitted although the process has the rights: a seccomp filter or a user \
             namespace forbids it; run outside of the container, or allow it there"
            .to_owned(),
        Some(libc::ENOSYS) => {
            "the kernel has no bpf(): the exact tier needs one built with CONFIG_BPF_SYSCALL".to_owned()
        }
        _ => format!("bpf(): {error}"),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_compared_by_number() {
        assert_eq!(version("6.18.44-fc"), Some((6, 18)));
        assert_eq!(version("5.4.0-200-generic"), Some((5, 4)));
        assert_eq!(version("unknown"), None);
    }

    #[test]
    fn a_name_is_found_whole() {
        let btf = b"\0abc\0btf_trace_block_rq_issue\0x\0";
        assert!(has_name(btf, "btf_trace_block_rq_issue"));
        assert!(!has_name(btf, "btf_trace_block_rq"));
    }
}
