//! `weighted-round-robin`: as many I/Os in a row on each path as its weight says, then the next path
//! (HP-UX `weighted_rr`); weight 0 excludes a path.

use super::rule::{PathState, Policy, Request};

#[derive(Default)]
pub struct WeightedRoundRobin {
    current: Option<usize>,
    /// I/Os left in the turn of `current`.
    left: u32,
}

impl Policy for WeightedRoundRobin {
    fn choose(&mut self, paths: &[PathState], _request: &Request) -> Option<usize> {
        let takes_part = |path: &usize| paths[*path].usable && paths[*path].weight > 0;
        if let Some(current) = self
            .current
            .filter(|path| self.left > 0 && takes_part(path))
        {
            self.left -= 1;
            return Some(current);
        }
        let after = self.current.map_or(0, |current| current + 1);
        let next = (after..after + paths.len())
            .map(|index| index % paths.len())
            .find(takes_part)?;
        self.current = Some(next);
        self.left = paths[next].weight - 1;
        Some(next)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{choices, paths};
    use super::*;

    #[test]
    fn each_path_gets_its_weight_in_a_row_and_0_gets_none() {
        let (mut policy, paths) = (WeightedRoundRobin::default(), paths(&[3, 0, 1, 2]));
        let wanted = [0, 0, 0, 2, 3, 3, 0, 0, 0, 2];
        assert_eq!(choices(&mut policy, &paths, 10), wanted);
    }

    #[test]
    fn a_failure_ends_a_turn() {
        let (mut policy, mut paths) = (WeightedRoundRobin::default(), paths(&[3, 2]));
        assert_eq!(choices(&mut policy, &paths, 1), [0]);
        paths[0].usable = false;
        assert_eq!(choices(&mut policy, &paths, 3), [1, 1, 1]);
        paths[0].usable = true;
        assert_eq!(choices(&mut policy, &paths, 4), [1, 0, 0, 0]);
    }

    #[test]
    fn an_excluded_path_is_not_used_even_alone() {
        let (mut policy, mut paths) = (WeightedRoundRobin::default(), paths(&[1, 0]));
        paths[0].usable = false;
        assert_eq!(policy.choose(&paths, &Request::default()), None);
    }
}
