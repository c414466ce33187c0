//! `least-command-load`: the path with the fewest I/Os outstanding (HP-UX `least_cmd_load`, dm `queue-length`).
//!
//! An idle path ends the search; among equals the least recently used wins.

use super::order::Order;
use super::rule::{PathState, Policy, Request};

pub struct LeastCommandLoad(Order);

impl LeastCommandLoad {
    pub fn new(paths: usize) -> Self {
        Self(Order::new(paths))
    }
}

impl Policy for LeastCommandLoad {
    fn choose(&mut self, paths: &[PathState], _request: &Request) -> Option<usize> {
        // `min_by_key` keeps the first of equals, which an idle path is too.
        let best = self
            .0
            .usable(paths)
            .min_by_key(|path| paths[*path].in_flight)?;
        self.0.put_last(best);
        Some(best)
    }

    fn reinstated(&mut self, path: usize) {
        self.0.put_last(path);
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{choices, paths};
    use super::*;

    #[test]
    fn the_fewest_outstanding_win_whatever_their_size() {
        let (mut policy, mut paths) = (LeastCommandLoad::new(3), paths(&[1, 1, 1]));
        for (path, in_flight) in [(0, 3), (1, 1), (2, 2)] {
            paths[path].in_flight = in_flight;
        }
        paths[1].in_flight_bytes = 1 << 30;
        assert_eq!(choices(&mut policy, &paths, 2), [1, 1]);
        paths[1].usable = false;
        assert_eq!(choices(&mut policy, &paths, 1), [2]);
    }

    #[test]
    fn equals_take_turns() {
        let (mut policy, paths) = (LeastCommandLoad::new(3), paths(&[1, 1, 1]));
        assert_eq!(choices(&mut policy, &paths, 5), [0, 1, 2, 0, 1]);
    }
}
