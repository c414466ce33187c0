//! `LoadTarget`.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::arguments::unsigned;
use super::os_error;
use crate::load::target::Target;

#[pyclass(module = "engine._native", frozen)]
pub struct LoadTarget(pub Arc<Target>);

#[pymethods]
impl LoadTarget {
    #[new]
    #[pyo3(signature = (fd, name, size_bytes, align_bytes, *, writable))]
    fn new(
        fd: RawFd,
        name: String,
        size_bytes: i64,
        align_bytes: i64,
        writable: bool,
    ) -> PyResult<Self> {
        let (size_bytes, align_bytes) = (
            unsigned("size_bytes", size_bytes)?,
            unsigned("align_bytes", align_bytes)?,
        );
        if align_bytes == 0 || size_bytes == 0 {
            return Err(PyValueError::new_err(format!(
                "{name}: size_bytes and align_bytes must be above 0"
            )));
        }
        if writable && !opened_for_writing(fd).map_err(|error| os_error(&error))? {
            return Err(PyValueError::new_err(format!(
                "{name}: writable, but the descriptor is open for reading only"
            )));
        }
        let fd = duplicate(fd).map_err(|error| os_error(&error))?;
        Ok(Self(Arc::new(Target {
            fd,
            name,
            size_bytes,
            align_bytes,
            writable,
        })))
    }
}

fn opened_for_writing(fd: RawFd) -> io::Result<bool> {
    // SAFETY: F_GETFL takes no pointer.
    match unsafe { libc::fcntl(fd, libc::F_GETFL) } {
        -1 => Err(io::Error::last_os_error()),
        flags => Ok(flags & libc::O_ACCMODE != libc::O_RDONLY),
    }
}

fn duplicate(fd: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: F_DUPFD_CLOEXEC takes no pointer.
    match unsafe { libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, 0) } {
        -1 => Err(io::Error::last_os_error()),
        // SAFETY: the kernel just gave this descriptor to us alone.
        duplicate => Ok(unsafe { OwnedFd::from_raw_fd(duplicate) }),
    }
}
