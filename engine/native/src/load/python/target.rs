//! `LoadTarget`.

use std::os::fd::RawFd;
use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::descriptors::{duplicate, open_for_reading, opened_for_writing};
use super::errors::os_error;
use super::numbers::unsigned;
use crate::load::targets::node::Node;
use crate::load::targets::target::Target;

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
