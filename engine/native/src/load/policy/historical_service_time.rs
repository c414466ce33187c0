//! `historical-service-time`: the path with the least product of past service time and outstanding I/Os
//! (dm `historical-service-time` with its default arguments: base weight 0.95, threshold multiplier 0).
//!
//! The service time of an I/O counts from the end of the one before if that came after its own start, as if the path
//! served one at a time. Older times fade: the weight of history is 0.95 to the power of one more than the number of
//! whole 16.8 ms spans in the new time, and none beyond 63 of them. A path on which nothing completed within the time
//! in which every path should have served one I/O is stale: idle, it gets one I/O as a probe; busy, it is not used
//! than the others.

use super::order::Order;
use super::rule::{PathState, Policy, Request};

const HISTORY_WEIGHT: f64 = 0.95;
/// 16.8 ms.
const SPAN_BITS: u32 = 24;
const SPANS: u64 = 64;

/// All in nanoseconds.
#[derive(Clone, Copy, Default)]
struct History {
    service: f64,
    last_end: u64,
    stale_after: u64,
}

pub struct HistoricalServiceTime {
    order: Order,
    history: Vec<History>,
}

impl HistoricalServiceTime {
    pub fn new(paths: usize) -> Self {
        Self {
            order: Order::new(paths),
            history: vec![History::default(); paths],
        }
    }

    /// Whether the first of two is the better one; on a tie it is not.
    fn is_better(&self, paths: &[PathState], one: usize, other: usize, now_ns: u64) -> bool {
        let (first, second) = (self.history[one], self.history[other]);
        let outstanding = [one, other].map(|path| paths[path].in_flight);
        let stale = [first, second].map(|history| history.stale_after < now_ns);
        // No path has a history yet.
        if first.service <= 0.0 && second.service <= 0.0 {
            return outstanding[0] < outstanding[1];
        }
        match outstanding {
            [0, 0] => return first.stale_after < second.stale_after,
            [0, _] if stale[0] => return true,
            [_, 0] if stale[1] => return false,
            _ => {}
        }
        let due =
            |path: usize, history: History| f64::from(1 + paths[path].in_flight) * history.service;
        let second_wins = due(one, first) > due(other, second);
        if stale[usize::from(second_wins)] {
            return outstanding[0] < outstanding[1];
        }
        !second_wins
    }
}

impl Policy for HistoricalServiceTime {
    fn choose(&mut self, paths: &[PathState], request: &Request) -> Option<usize> {
        let mut usable = self.order.usable(paths);
        let first = usable.next()?;
        let better = |best: usize, path: usize| {
            if self.is_better(paths, best, path, request.now_ns) {
                best
            } else {
                path
            }
        };
        let best = usable.fold(first, better);
        self.order.put_last(best);
        Some(best)
    }

    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "nanoseconds of service are far below 2^53 and not negative"
    )]
    fn ended(&mut self, paths: &[PathState], path: usize, began_ns: u64, now_ns: u64) {
        let usable = paths.iter().filter(|path| path.usable).count();
        let history = &mut self.history[path];
        let service_ns = now_ns.saturating_sub(began_ns.max(history.last_end));
        let weight = history_weight(service_ns);
        history.service = history.service * weight + service_ns as f64 * (1.0 - weight);
        history.last_end = now_ns;
        history.stale_after = now_ns + (usable as f64 * history.service) as u64;
    }

    fn reinstated(&mut self, path: usize) {
        self.order.put_last(path);
    }
}

/// What of the old average stays beside a new service time.
fn history_weight(service_ns: u64) -> f64 {
    let spans = service_ns >> SPAN_BITS;
    match i32::try_from(spans) {
        Ok(whole) if spans < SPANS => HISTORY_WEIGHT.powi(whole + 1),
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::paths;
    use super::*;

    const MS: u64 = 1_000_000;

    fn served(policy: &mut HistoricalServiceTime, states: &[PathState], path: usize, ns: u64) {
        // Long enough apart that none overlaps the one before, often enough that nothing else is remembered.
        for _ in 0..400 {
            let began_ns = policy.history[path].last_end + 1;
            policy.ended(states, path, began_ns, began_ns + ns);
        }
    }

    fn near(value: f64, wanted: f64) {
        assert!(
            (value - wanted).abs() < wanted / 1000.0,
            "{value}, not {wanted}"
        );
    }

    #[test]
    fn the_weight_of_history_falls_with_the_time_and_ends() {
        near(history_weight(0), 0.95);
        near(history_weight((1 << 24) - 1), 0.95);
        near(history_weight(1 << 24), 0.95 * 0.95);
        near(history_weight(63 << 24), 0.95_f64.powi(64));
        assert!(history_weight(64 << 24) <= 0.0);
    }

    #[test]
    fn overlapping_ios_are_timed_as_if_served_one_by_one() {
        let (mut policy, states) = (HistoricalServiceTime::new(1), paths(&[1]));
        policy.ended(&states, 0, 0, 100);
        near(policy.history[0].service, 5.0);
        // Began before the first ended: 10 ns, not 110.
        policy.ended(&states, 0, 0, 110);
        near(policy.history[0].service, 5.0 * 0.95 + 10.0 * 0.05);
    }

    #[test]
    fn the_product_of_history_and_outstanding_is_least() {
        let (mut policy, mut states) = (HistoricalServiceTime::new(2), paths(&[1, 1]));
        served(&mut policy, &states, 0, MS);
        served(&mut policy, &states, 1, 4 * MS);
        policy
            .history
            .iter_mut()
            .for_each(|path| path.stale_after = u64::MAX);
        let request = Request::default();
        for (outstanding, wanted) in [([1, 1], 0), ([2, 1], 0), ([6, 1], 0), ([8, 1], 1)] {
            states[0].in_flight = outstanding[0];
            states[1].in_flight = outstanding[1];
            assert_eq!(
                policy.choose(&states, &request),
                Some(wanted),
                "{outstanding:?}"
            );
        }
    }

    #[test]
    fn without_any_history_the_fewest_outstanding_win() {
        let (mut policy, mut states) = (HistoricalServiceTime::new(2), paths(&[1, 1]));
        states[0].in_flight = 1;
        assert_eq!(policy.choose(&states, &Request::default()), Some(1));
    }

    #[test]
    fn a_stale_idle_path_is_probed_and_a_stale_busy_one_held_to_equal_use() {
        let (mut policy, mut states) = (HistoricalServiceTime::new(2), paths(&[1, 1]));
        served(&mut policy, &states, 0, MS);
        served(&mut policy, &states, 1, 100 * MS);
        let request = Request {
            now_ns: 1000 * 1000 * MS,
            ..Request::default()
        };
        policy.history[0].stale_after = u64::MAX;
        states[0].in_flight = 3;
        assert_eq!(
            policy.choose(&states, &request),
            Some(1),
            "slow, but idle and stale"
        );
        // The better one is stale and has more outstanding: the other gets it.
        policy.history[0].stale_after = 0;
        policy.history[1].stale_after = u64::MAX;
        states[1].in_flight = 2;
        assert_eq!(policy.choose(&states, &request), Some(1));
        states[1].in_flight = 4;
        assert_eq!(policy.choose(&states, &request), Some(0));
    }

    #[test]
    fn a_path_is_fresh_for_as_long_as_all_paths_take_to_serve_one() {
        let (mut policy, mut states) = (HistoricalServiceTime::new(3), paths(&[1, 1, 1]));
        states[2].usable = false;
        served(&mut policy, &states, 0, MS);
        let path = policy.history[0];
        let fresh_ns = u32::try_from(path.stale_after - path.last_end).unwrap();
        near(f64::from(fresh_ns), 2e6);
    }
}
