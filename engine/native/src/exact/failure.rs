//! Why tracing cannot begin or go on.

use std::fmt::{Display, Formatter};
use std::io;

use pyo3::PyErr;
use pyo3::exceptions::{PyOSError, PyValueError};

/// What failed, with the fix.
#[derive(Debug)]
pub enum Failure {
    /// A step the kernel refused.
    Os { errno: i32, text: String },
    /// An argument out of range.
    Value(String),
}

impl Failure {
    pub fn os(step: &str, error: &io::Error) -> Self {
        let errno = error.raw_os_error().unwrap_or(libc::EIO);
        let text = error.to_string();
        let text = text.trim_end_matches(&format!(" (os error {errno})"));
        Self::Os {
            errno,
            text: format!("{step}: {text}"),
        }
    }

    /// A step of loading that the kernel refused, with the fix.
    pub fn loading(step: &str, error: &io::Error) -> Self {
        let errno = error.raw_os_error().unwrap_or(libc::EIO);
        Self::Os {
            errno,
            text: format!("{}{}", Self::os(step, error), fix(errno)),
        }
    }

    /// Something that the host lacks, in words.
    pub fn missing(text: String) -> Self {
        Self::Os {
            errno: libc::EOPNOTSUPP,
            text,
        }
    }

    /// Libraries wrap the kernel's errors; the number is searched for down the chain of sources.
    pub fn library(step: impl Display, error: &(dyn std::error::Error + 'static)) -> Self {
        let mut errno = libc::EIO;
        let mut words = error.to_string();
        let mut cause = error.source();
        while let Some(inner) = cause {
            if let Some(found) = inner
                .downcast_ref::<io::Error>()
                .and_then(io::Error::raw_os_error)
            {
                errno = found;
            }
            words = inner.to_string();
            cause = inner.source();
        }
        let words = words.lines().next().unwrap_or_default();
        let words = words.trim_end_matches(&format!(" (os error {errno})"));
        Self::Os {
            errno,
            text: format!("{step}: {words}{}", fix(errno)),
        }
    }
}

fn fix(errno: i32) -> &'static str {
    match errno {
        libc::EPERM | libc::EACCES => ": run as root, or with CAP_BPF and CAP_PERFMON",
        libc::EMFILE | libc::ENFILE => ": raise ulimit -n",
        libc::ENOMEM => ": free memory, or raise the limit of the control group (memory.max)",
        _ => "",
    }
}

impl Display for Failure {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        let (Self::Os { text, .. } | Self::Value(text)) = self;
        formatter.write_str(text)
    }
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Os { errno, text } => PyOSError::new_err((errno, text)),
            Failure::Value(text) => PyValueError::new_err(text),
        }
    }
}
