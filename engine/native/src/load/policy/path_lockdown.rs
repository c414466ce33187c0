//! `path-lockdown`: one path for everything (HP-UX `path_lockdown`): the one that had the fewest I/Os outstanding when
//! the target was opened, or when the policy was turned to; another by the same rule once it fails.

use super::rule::{PathState, Policy, Request};

#[derive(Default)]
pub struct PathLockdown {
    locked: Option<usize>,
}

impl Policy for PathLockdown {
    fn choose(&mut self, paths: &[PathState], _request: &Request) -> Option<usize> {
        if let Some(locked) = self.locked.filter(|path| paths[*path].usable) {
            return Some(locked);
        }
        let outstanding = |path: &usize| paths[*path].outstanding_at_open + paths[*path].in_flight;
        let usable = (0..paths.len()).filter(|path| paths[*path].usable);
        self.locked = usable.min_by_key(outstanding);
        self.locked
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{choices, paths};
    use super::*;

    #[test]
    fn the_least_busy_at_open_is_kept_until_it_fails() {
        let (mut policy, mut paths) = (PathLockdown::default(), paths(&[1, 1, 1]));
        for (path, outstanding) in [(0, 5), (1, 1), (2, 2)] {
            paths[path].outstanding_at_open = outstanding;
        }
        assert_eq!(choices(&mut policy, &paths, 2), [1, 1]);
        paths[1].in_flight = 100;
        assert_eq!(choices(&mut policy, &paths, 2), [1, 1]);
        paths[1].usable = false;
        assert_eq!(choices(&mut policy, &paths, 1), [2]);
        paths[1].usable = true;
        assert_eq!(choices(&mut policy, &paths, 1), [2]);
    }
}
