//! Completions that are of no I/O, by their number (`user_data`).

/// Number of the poll on the worker's eventfd.
pub(super) const WOKEN: u64 = u64::MAX;
/// Number of the cancellation when the run is given up.
pub(super) const CANCELLED: u64 = u64::MAX - 1;
