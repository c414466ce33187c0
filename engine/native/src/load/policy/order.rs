//! Paths in the order in which a policy checks them; the one that was used goes to the end.

use std::collections::VecDeque;

use super::rule::PathState;

/// A list of all paths.
pub struct Order(VecDeque<usize>);

impl Order {
    pub fn new(paths: usize) -> Self {
        Self((0..paths).collect())
    }

    /// Usable paths, the least recently used first.
    pub fn usable<'a>(&'a self, paths: &'a [PathState]) -> impl Iterator<Item = usize> + 'a {
        self.0.iter().copied().filter(|path| paths[*path].usable)
    }

    /// Makes a path the last.
    pub fn put_last(&mut self, path: usize) {
        if let Some(index) = self.0.iter().position(|other| *other == path) {
            self.0.remove(index);
            self.0.push_back(path);
        }
    }
}
