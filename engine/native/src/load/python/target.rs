//! `LoadTarget`.

use std::fs::File;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::arguments::unsigned;
use super::os_error;
use crate::load::node::Node;
use crate::load::refusal::refused;
use crate::load::target::Target;

/// What is reported of one path; the same attributes as `engine._native.LoadPath` documents.
#[pyclass(module = "engine._native", frozen)]
pub struct LoadPath {
    fd: RawFd,
    name: String,
    weight: u32,
    preferred: bool,
    cell: Option<u32>,
    outstanding: u32,
}

#[pymethods]
impl LoadPath {
    #[new]
    #[pyo3(signature = (fd, name, *, weight = 1, preferred = false, cell = None, outstanding = 0))]
    fn new(
        fd: RawFd,
        name: String,
        weight: i64,
        preferred: bool,
        cell: Option<u32>,
        outstanding: i64,
    ) -> PyResult<Self> {
        Ok(Self {
            fd,
            name,
            weight: unsigned("weight", weight)?,
            preferred,
            cell,
            outstanding: unsigned("outstanding", outstanding)?,
        })
    }
}

impl LoadPath {
    fn node(&self, writable: bool) -> PyResult<Node> {
        let mut node = node(self.fd, &self.name, writable)?;
        node.weight = self.weight;
        node.preferred = self.preferred;
        node.cell = self.cell;
        node.outstanding_at_open = self.outstanding;
        Ok(node)
    }
}

#[pyclass(module = "engine._native", frozen)]
pub struct LoadTarget(pub Arc<Target>);

#[pymethods]
impl LoadTarget {
    #[new]
    #[pyo3(signature = (fd, name, size_bytes, align_bytes, *, writable, paths = None))]
    fn new(
        fd: RawFd,
        name: String,
        size_bytes: i64,
        align_bytes: i64,
        writable: bool,
        paths: Option<Vec<Bound<'_, LoadPath>>>,
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
        let paths = paths.unwrap_or_default();
        let nodes = if paths.is_empty() {
            vec![node(fd, &name, writable)?]
        } else {
            let each = paths.iter().map(|path| path.get().node(writable));
            each.collect::<PyResult<_>>()?
        };
        Ok(Self(Arc::new(Target {
            nodes,
            name,
            size_bytes,
            align_bytes,
            writable,
        })))
    }
}

fn node(fd: RawFd, name: &str, writable: bool) -> PyResult<Node> {
    let opened_for_writing = opened_for_writing(fd).map_err(|error| os_error(&error))?;
    if writable && !opened_for_writing {
        return Err(PyValueError::new_err(format!(
            "{name}: writable, but the descriptor is open for reading only"
        )));
    }
    let fd = if opened_for_writing && !writable {
        open_for_reading(fd, name)
    } else {
        duplicate(fd)
    };
    Ok(Node::new(
        fd.map_err(|error| os_error(&error))?,
        name.into(),
    ))
}

fn status_flags(fd: RawFd) -> io::Result<i32> {
    // SAFETY: F_GETFL takes no pointer.
    match unsafe { libc::fcntl(fd, libc::F_GETFL) } {
        -1 => Err(io::Error::last_os_error()),
        flags => Ok(flags),
    }
}

fn opened_for_writing(fd: RawFd) -> io::Result<bool> {
    Ok(status_flags(fd)? & libc::O_ACCMODE != libc::O_RDONLY)
}

/// The same file by a description of its own that cannot write, as a duplicate could: what is not armed for writing
/// gets EBADF from the kernel (`write(2)`).
fn open_for_reading(fd: RawFd, name: &str) -> io::Result<OwnedFd> {
    let flags = status_flags(fd)? & libc::O_DIRECT;
    File::options()
        .read(true)
        .custom_flags(flags)
        .open(format!("/proc/self/fd/{fd}"))
        .map(OwnedFd::from)
        .map_err(|error| refused(&error, &format!("{name}: open for reading only"), ""))
}

pub fn duplicate(fd: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: F_DUPFD_CLOEXEC takes no pointer.
    match unsafe { libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, 0) } {
        -1 => Err(io::Error::last_os_error()),
        // SAFETY: the kernel just gave this descriptor to us alone.
        duplicate => Ok(unsafe { OwnedFd::from_raw_fd(duplicate) }),
    }
}
