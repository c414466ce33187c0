//! Paths and requests for the tests of policies.

use super::rule::{PathState, Policy, Request};

/// Paths alike but for their weights, idle and usable.
pub fn paths(weights: &[u32]) -> Vec<PathState> {
    let path = |weight: &u32| PathState {
        usable: true,
        weight: *weight,
        ..PathState::default()
    };
    weights.iter().map(path).collect()
}

/// What a policy chooses for I/Os of this size while nothing else changes.
pub fn choices(policy: &mut impl Policy, paths: &[PathState], count: usize) -> Vec<usize> {
    let request = Request {
        bytes: 4096,
        ..Request::default()
    };
    (0..count)
        .map(|_| policy.choose(paths, &request).unwrap())
        .collect()
}
