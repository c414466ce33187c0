//! `cell-local-round-robin`: the paths of the NUMA node of the processor that issues the I/O, in turn
//! (HP-UX `cl_round_robin`); all paths in turn where that node has none that works.

use super::order::Order;
use super::rule::{PathState, Policy, Request};

pub struct CellLocalRoundRobin(Order);

impl CellLocalRoundRobin {
    pub fn new(paths: usize) -> Self {
        Self(Order::new(paths))
    }
}

impl Policy for CellLocalRoundRobin {
    fn choose(&mut self, paths: &[PathState], request: &Request) -> Option<usize> {
        let is_local = |path: &usize| paths[*path].cell == Some(request.cell);
        let local = self.0.usable(paths).find(is_local);
        let head = local.or_else(|| self.0.usable(paths).next())?;
        self.0.put_last(head);
        Some(head)
    }

    fn reinstated(&mut self, path: usize) {
        self.0.put_last(path);
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::paths;
    use super::*;

    #[test]
    fn each_cell_uses_its_own_paths_in_turn_and_others_only_without_them() {
        let (mut policy, mut paths) = (CellLocalRoundRobin::new(4), paths(&[1; 4]));
        for (path, cell) in [(0, 0), (1, 0), (2, 1)] {
            paths[path].cell = Some(cell);
        }
        let mut take = |paths: &[PathState], cell, count: usize| -> Vec<usize> {
            let request = Request {
                cell,
                ..Request::default()
            };
            (0..count)
                .map(|_| policy.choose(paths, &request).unwrap())
                .collect()
        };
        assert_eq!(take(&paths, 0, 4), [0, 1, 0, 1]);
        assert_eq!(take(&paths, 1, 3), [2, 2, 2]);
        paths[0].usable = false;
        assert_eq!(take(&paths, 0, 2), [1, 1]);
        let mut anywhere = take(&paths, 7, 3);
        anywhere.sort_unstable();
        assert_eq!(anywhere, [1, 2, 3]);
    }
}
