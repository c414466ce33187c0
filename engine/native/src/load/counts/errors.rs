//! Errors of I/Os, by target, direction and errno.

use std::collections::HashMap;
use std::sync::Mutex;

use super::stats::Direction;
use crate::load::system::lock::lock;

/// Means a short transfer.
pub const SHORT: i32 = 0;

/// How often one error came, and where first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorCount {
    pub target: usize,
    pub direction: Direction,
    pub errno: i32,
    pub first_offset: u64,
    pub count: u64,
}

/// Errors of all workers.
#[derive(Default)]
pub struct ErrorLog(Mutex<HashMap<(usize, usize, i32), ErrorCount>>);

impl ErrorLog {
    pub fn record(&self, target: usize, direction: Direction, errno: i32, offset: u64) {
        let first = || ErrorCount {
            target,
            direction,
            errno,
            first_offset: offset,
            count: 0,
        };
        lock(&self.0)
            .entry((target, direction as usize, errno))
            .or_insert_with(first)
            .count += 1;
    }

    /// The most frequent first.
    pub fn list(&self) -> Vec<ErrorCount> {
        let mut errors: Vec<_> = lock(&self.0).values().cloned().collect();
        errors.sort_by_key(|error| (std::cmp::Reverse(error.count), error.target, error.errno));
        errors
    }
}
