//! Why a request of the load is refused.

use std::io;

/// Why a request was refused.
#[derive(Debug)]
pub enum Failure {
    /// An argument is out of range.
    Value(String),
    /// The kernel refuses.
    Os(io::Error),
}

impl From<String> for Failure {
    fn from(text: String) -> Self {
        Self::Value(text)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Os(error)
    }
}
