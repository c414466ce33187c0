//! Errors of the load as Python's.

use std::io;

use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;

use crate::load::running::failure::Failure;
use crate::load::system::refusal::{errno, words};

/// An `OSError` with the kernel's number, from which Python makes the right subclass.
pub fn os_error(error: &io::Error) -> PyErr {
    PyOSError::new_err((errno(error).unwrap_or(libc::EIO), words(error)))
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Value(text) => PyValueError::new_err(text),
            Failure::Os(error) => os_error(&error),
        }
    }
}
