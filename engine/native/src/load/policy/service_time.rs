//! `service-time`: the path on which the bytes in flight and the new ones would be through first, if its throughput were
//! its weight (dm `service-time`). It weighs bytes and measures no time.
//!
//! A path of weight 0 is taken only where there is no other; among equals the larger weight wins, then the least
//! recently used.

use std::cmp::Ordering;

use super::order::Order;
use super::rule::{PathState, Policy, Request};

pub struct ServiceTime(Order);

impl ServiceTime {
    pub fn new(paths: usize) -> Self {
        Self(Order::new(paths))
    }
}

/// Less is better.
fn compare(one: &PathState, other: &PathState, bytes: u64) -> Ordering {
    let larger_weight = other.weight.cmp(&one.weight);
    if one.weight == other.weight {
        return one.in_flight_bytes.cmp(&other.in_flight_bytes);
    }
    if one.in_flight_bytes == other.in_flight_bytes || one.weight == 0 || other.weight == 0 {
        return larger_weight;
    }
    // (a + bytes) / weight of a against (b + bytes) / weight of b, without the division.
    let time = |path: &PathState, weight: u32| {
        u128::from(path.in_flight_bytes + bytes) * u128::from(weight)
    };
    time(one, other.weight)
        .cmp(&time(other, one.weight))
        .then(larger_weight)
}

impl Policy for ServiceTime {
    fn choose(&mut self, paths: &[PathState], request: &Request) -> Option<usize> {
        let compared =
            |one: &usize, other: &usize| compare(&paths[*one], &paths[*other], request.bytes);
        let best = self.0.usable(paths).min_by(compared)?;
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

    fn loaded(weights: &[u32], bytes: &[u64]) -> Vec<PathState> {
        let mut loaded = paths(weights);
        for (path, bytes) in loaded.iter_mut().zip(bytes) {
            path.in_flight_bytes = *bytes;
        }
        loaded
    }

    fn choice(weights: &[u32], bytes: &[u64]) -> usize {
        let mut policy = ServiceTime::new(weights.len());
        choices(&mut policy, &loaded(weights, bytes), 1)[0]
    }

    #[test]
    fn alike_paths_are_chosen_by_bytes_in_flight_not_by_their_number() {
        let mut paths = loaded(&[1, 1], &[65536, 4096]);
        paths[1].in_flight = 50;
        assert_eq!(choices(&mut ServiceTime::new(2), &paths, 2), [1, 1]);
    }

    #[test]
    fn a_weight_stands_for_throughput() {
        // 4 KiB more: (8 + 4) / 3 against (4 + 4) / 1.
        assert_eq!(choice(&[1, 3], &[4096, 8192]), 1);
        // (60 + 4) / 3 against (4 + 4) / 1.
        assert_eq!(choice(&[1, 3], &[4096, 61_440]), 0);
    }

    #[test]
    fn ties_go_to_the_larger_weight() {
        assert_eq!(choice(&[1, 3], &[8192, 8192]), 1);
        // (4 + 4) / 1 equals (20 + 4) / 3.
        assert_eq!(choice(&[1, 3], &[4096, 20_480]), 1);
    }

    #[test]
    fn weight_0_is_used_only_where_nothing_else_is() {
        let mut paths = loaded(&[0, 1], &[0, 1 << 30]);
        assert_eq!(choices(&mut ServiceTime::new(2), &paths, 2), [1, 1]);
        paths[1].usable = false;
        assert_eq!(choices(&mut ServiceTime::new(2), &paths, 1), [0]);
    }

    #[test]
    fn equals_take_turns() {
        let paths = loaded(&[2, 2], &[4096, 4096]);
        assert_eq!(choices(&mut ServiceTime::new(2), &paths, 4), [0, 1, 0, 1]);
    }
}
