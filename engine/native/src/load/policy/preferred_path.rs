//! `preferred-path`: the path that was named as such as long as it works (HP-UX `preferred_path`), else the first other
//! one that does; without a name the first path is preferred.

use super::rule::{PathState, Policy, Request};

pub struct PreferredPath;

impl Policy for PreferredPath {
    fn choose(&mut self, paths: &[PathState], _request: &Request) -> Option<usize> {
        let usable = || (0..paths.len()).filter(|path| paths[*path].usable);
        usable()
            .find(|path| paths[*path].preferred)
            .or_else(|| usable().next())
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{choices, paths};
    use super::*;

    #[test]
    fn the_named_path_is_used_while_it_works_and_again_once_it_does() {
        let mut paths = paths(&[1, 1, 1]);
        assert_eq!(choices(&mut PreferredPath, &paths, 2), [0, 0]);
        paths[2].preferred = true;
        assert_eq!(choices(&mut PreferredPath, &paths, 2), [2, 2]);
        paths[2].usable = false;
        assert_eq!(choices(&mut PreferredPath, &paths, 2), [0, 0]);
        paths[2].usable = true;
        assert_eq!(choices(&mut PreferredPath, &paths, 1), [2]);
    }
}
