//! `round-robin`: every path in turn, whatever its load (dm `round-robin`, HP-UX `round_robin`).

use super::order::Order;
use super::rule::{PathState, Policy, Request};

pub struct RoundRobin(Order);

impl RoundRobin {
    pub fn new(paths: usize) -> Self {
        Self(Order::new(paths))
    }
}

impl Policy for RoundRobin {
    fn choose(&mut self, paths: &[PathState], _request: &Request) -> Option<usize> {
        let head = self.0.usable(paths).next()?;
        self.0.put_last(head);
        Some(head)
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
    fn paths_take_turns_whatever_their_load() {
        let (mut policy, mut paths) = (RoundRobin::new(3), paths(&[1, 1, 1]));
        paths[1].in_flight = 100;
        assert_eq!(choices(&mut policy, &paths, 7), [0, 1, 2, 0, 1, 2, 0]);
    }

    #[test]
    fn a_failed_path_is_left_out_and_comes_back_last() {
        let (mut policy, mut paths) = (RoundRobin::new(3), paths(&[1, 1, 1]));
        paths[1].usable = false;
        assert_eq!(choices(&mut policy, &paths, 3), [0, 2, 0]);
        paths[1].usable = true;
        policy.reinstated(1);
        assert_eq!(choices(&mut policy, &paths, 4), [2, 0, 1, 2]);
    }

    #[test]
    fn one_path_takes_all_and_none_takes_nothing() {
        let (mut policy, mut paths) = (RoundRobin::new(2), paths(&[1, 1]));
        paths[0].usable = false;
        assert_eq!(choices(&mut policy, &paths, 2), [1, 1]);
        paths[1].usable = false;
        assert_eq!(policy.choose(&paths, &Request::default()), None);
    }
}
