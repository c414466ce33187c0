//! Finds the description of the kernel's types: its own, or a file that somebody names.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use aya::{Btf, Endianness};

use super::btf_types::{self, STRUCT, TYPEDEF};
use super::failure::Failure;

/// Names the file where the kernel has no description of its own.
const VARIABLE: &str = "LUNSCOPE_BTF";

/// Types of kernels take some 10 MB.
const MOST_BYTES: u64 = 256 << 20;

/// Slab caches whose objects are of one type each, as SYSFS/kernel/slab names them.
const SLABS: [(&str, &str); 5] = [
    ("request_queue", "request_queue"),
    ("filp", "file"),
    ("dentry", "dentry"),
    ("inode_cache", "inode"),
    ("signal_cache", "signal_struct"),
];
/// Caches whose objects fill as many cache lines may be merged into one (`find_mergeable` in `mm/slab_common.c`).
const LINE_BYTES: usize = 64;

/// A description of the kernel's types in BPF type format.
pub struct Types {
    pub path: PathBuf,
    content: Vec<u8>,
    /// Whether it is the kernel's own: programs with typed arguments need that.
    pub own: bool,
}

impl Types {
    /// Reads SYSFS/kernel/btf/vmlinux, or the file that `LUNSCOPE_BTF` names where the kernel has none.
    ///
    /// The error says why there is none, with the fix.
    pub fn of_host(sysfs: &Path) -> Result<Self, String> {
        let path = sysfs.join("kernel/btf/vmlinux");
        match read(&path) {
            Ok(content) => Ok(Self {
                path,
                content,
                own: true,
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Self::named(sysfs, &path),
            Err(error) => Err(format!("{}: {error}: run as root", path.display())),
        }
    }

    fn named(sysfs: &Path, missing: &Path) -> Result<Self, String> {
        let Some(path) = std::env::var_os(VARIABLE).filter(|path| !path.is_empty()) else {
            return Err(format!(
                "{} is missing: the exact tier needs a kernel built with CONFIG_DEBUG_INFO_BTF, or a file with its \
                 types named by --btf or {VARIABLE}",
                missing.display()
            ));
        };
        let path = PathBuf::from(path);
        let shown = format!("{VARIABLE}={}", path.display());
        let content = read(&path).map_err(|error| {
            format!(
                "{}: name a file that can be read",
                Failure::os(&shown, &error)
            )
        })?;
        let structures = SLABS.map(|(_, structure)| (STRUCT, structure));
        let found = btf_types::find(&content, &structures).ok_or_else(|| {
            format!("{shown}: no types in BTF: name a file made by pahole or bpftool")
        })?;
        let sizes = found.into_iter().map(|one| Some(one?.size));
        if let Some(other) = unlike(sysfs, sizes) {
            return Err(format!(
                "{shown}: not the types of this kernel, whose struct {other} has another size: name the file of \
                 exactly this kernel"
            ));
        }
        Ok(Self {
            path,
            content,
            own: false,
        })
    }

    pub fn parse(&self) -> Result<Btf, Failure> {
        Btf::parse(&self.content, Endianness::default())
            .map_err(|error| Failure::library(self.path.display(), &error))
    }

    /// The number of a tracepoint's type.
    pub fn of_tracepoint(&self, name: &str) -> Option<u32> {
        let name = format!("btf_trace_{name}");
        let found = btf_types::find(&self.content, &[(TYPEDEF, &name)])?;
        found.into_iter().next()?.map(|one| one.id)
    }

    /// Names are in it as plain text, so that what is missing is known without parsing.
    pub fn has_name(&self, name: &str) -> bool {
        has_name(&self.content, name)
    }
}

/// Reads a whole regular file: a pipe would block, and a device has no end.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let file = File::options()
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(path)?;
    let mut content = Vec::new();
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    file.take(MOST_BYTES).read_to_end(&mut content)?;
    Ok(content)
}

/// A structure that is of another size than the objects of its slab cache, if the kernel shows any.
fn unlike(sysfs: &Path, sizes: impl Iterator<Item = Option<usize>>) -> Option<&'static str> {
    let there = |slab: &str| {
        let path = sysfs.join("kernel/slab").join(slab).join("object_size");
        fs::read_to_string(path).ok()?.trim().parse::<usize>().ok()
    };
    let (_, (_, structure)) = sizes.zip(SLABS).find(|(described, (slab, _))| {
        described
            .zip(there(slab))
            .is_some_and(|(described, there)| {
                !(described..=described.next_multiple_of(LINE_BYTES)).contains(&there)
            })
    })?;
    Some(structure)
}

fn has_name(content: &[u8], name: &str) -> bool {
    let name = format!("\0{name}\0");
    let (first, rest) = (name.as_bytes()[1], name.as_bytes());
    content
        .windows(rest.len())
        .any(|window| window[1] == first && window == rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_end_is_not_read() {
        let refused = read(Path::new("/dev/zero")).unwrap_err();
        assert_eq!(refused.to_string(), "not a regular file");
        assert_eq!(
            read(Path::new("/")).unwrap_err().to_string(),
            "not a regular file"
        );
    }

    #[test]
    fn a_name_is_found_whole() {
        let btf = b"\0abc\0btf_trace_block_rq_issue\0x\0";
        assert!(has_name(btf, "btf_trace_block_rq_issue"));
        assert!(!has_name(btf, "btf_trace_block_rq"));
    }
}
