//! Small kernel files: opened relative to a folder, read at offset 0 through descriptors that stay open.

use std::ffi::CString;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use pyo3::PyErr;
use pyo3::exceptions::PyOSError;

/// Descriptors left to the rest of the process.
const SPARE_DESCRIPTORS: u64 = 512;

/// An error with the path it concerns.
#[derive(Debug)]
pub struct PathError {
    pub path: OsString,
    pub error: io::Error,
}

impl PathError {
    pub fn new(path: &Path, error: io::Error) -> Self {
        Self {
            path: path.as_os_str().to_owned(),
            error,
        }
    }
}

impl From<PathError> for PyErr {
    fn from(failure: PathError) -> Self {
        let text = failure.error.to_string();
        let text = text
            .split(" (os error")
            .next()
            .unwrap_or_default()
            .to_owned();
        PyOSError::new_err((failure.error.raw_os_error(), text, failure.path))
    }
}

/// Opens a folder for `open_at` only.
pub fn open_folder(path: &Path) -> Result<File, PathError> {
    OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_PATH | libc::O_DIRECTORY | libc::O_CLOEXEC)
        .open(path)
        .map_err(|error| PathError::new(path, error))
}

/// Opens `name` below an open folder; `flags` beside read-only and close-on-exec.
///
/// Nothing blocks, not even a FIFO of that name.
pub fn open_at(folder: &File, name: &[u8], flags: i32) -> io::Result<File> {
    let name = CString::new(name).map_err(|_| io::Error::from_raw_os_error(libc::ENOENT))?;
    let flags = flags | libc::O_RDONLY | libc::O_CLOEXEC | libc::O_NONBLOCK;
    // SAFETY: the folder is open for the call and the name is a NUL-terminated string that outlives it.
    let descriptor = unsafe { libc::openat(folder.as_raw_fd(), name.as_ptr(), flags) };
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: openat has just returned this descriptor and nothing else owns it.
    Ok(File::from(unsafe { OwnedFd::from_raw_fd(descriptor) }))
}

/// What a file holds from its start, at most as much as the buffer takes.
pub fn read_start<'buffer>(file: &File, buffer: &'buffer mut [u8]) -> io::Result<&'buffer [u8]> {
    loop {
        match file.read_at(buffer, 0) {
            Ok(length) => return Ok(&buffer[..length]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Kernel names of all whole block devices: SYSFS/block with '!' turned back into '/'.
pub fn list_disks(sysfs: &Path) -> Result<Vec<Vec<u8>>, PathError> {
    let path = sysfs.join("block");
    let failed = |error| PathError::new(&path, error);
    let mut names = Vec::new();
    for entry in fs::read_dir(&path).map_err(failed)? {
        let mut name = entry.map_err(failed)?.file_name().into_vec();
        replace(&mut name, b'!', b'/');
        names.push(name);
    }
    Ok(names)
}

/// The entry of a device in SYSFS/block; sysfs writes '/' as '!' (lib/kobject.c).
pub fn sysfs_name(name: &[u8]) -> Vec<u8> {
    let mut name = name.to_vec();
    replace(&mut name, b'/', b'!');
    name
}

fn replace(name: &mut [u8], from: u8, to: u8) {
    for byte in name {
        if *byte == from {
            *byte = to;
        }
    }
}

/// Raises the soft limit of open files so that `count` more fit; whether they do.
pub fn admit_descriptors(count: usize) -> bool {
    let wanted = count as u64 + SPARE_DESCRIPTORS;
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the limit is valid to write one rlimit to.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } != 0
        || limit.rlim_max < wanted
    {
        return false;
    }
    if limit.rlim_cur >= wanted {
        return true;
    }
    limit.rlim_cur = wanted;
    // SAFETY: the limit is a valid rlimit for the duration of the call.
    unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) == 0 }
}

/// How many of `count` descriptors may stay open beside those that are open already.
pub fn room_for(count: usize) -> usize {
    let open = fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
    let mut room = count;
    while room > 0 && !admit_descriptors(open + room) {
        room /= 2;
    }
    room
}

/// Replaces what a file held; whether it differs.
pub fn replace_text(old: &mut Option<Vec<u8>>, new: Option<&[u8]>) -> bool {
    let differs = old.as_deref() != new;
    match (old.as_mut(), new) {
        _ if !differs => {}
        (Some(old), Some(new)) => {
            old.clear();
            old.extend_from_slice(new);
        }
        _ => *old = new.map(<[u8]>::to_vec),
    }
    differs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slashes_are_exclamation_marks_in_sysfs() {
        assert_eq!(sysfs_name(b"cciss/c0d0"), b"cciss!c0d0");
    }

    #[test]
    fn more_descriptors_than_the_hard_limit_are_refused() {
        assert!(admit_descriptors(1));
        assert!(!admit_descriptors(usize::MAX >> 8));
    }

    #[test]
    fn a_missing_file_is_an_error_not_a_panic() {
        let folder = open_folder(Path::new("/")).unwrap();
        assert_eq!(
            open_at(&folder, b"no\0such", 0).unwrap_err().raw_os_error(),
            Some(libc::ENOENT)
        );
        assert!(open_at(&folder, b"no-such-entry", 0).is_err());
    }
}
