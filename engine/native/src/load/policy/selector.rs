//! The paths of one target, what is outstanding on each, and the policy that chooses among them.

use super::cell_local_round_robin::CellLocalRoundRobin;
use super::historical_service_time::HistoricalServiceTime;
use super::least_command_load::LeastCommandLoad;
use super::name::PolicyName;
use super::path_lockdown::PathLockdown;
use super::preferred_path::PreferredPath;
use super::round_robin::RoundRobin;
use super::rule::{PathState, Policy, Request};
use super::service_time::ServiceTime;
use super::weighted_round_robin::WeightedRoundRobin;

/// Chooses paths and keeps their figures.
pub struct Selector {
    name: PolicyName,
    policy: Box<dyn Policy>,
    paths: Vec<PathState>,
}

impl Selector {
    pub fn new(name: PolicyName, paths: Vec<PathState>) -> Self {
        Self {
            name,
            policy: policy(name, paths.len()),
            paths,
        }
    }

    pub fn paths(&self) -> &[PathState] {
        &self.paths
    }

    pub fn name(&self) -> PolicyName {
        self.name
    }

    /// Whether there is a path the policy would choose.
    pub fn any(&self) -> bool {
        let name = self.name;
        self.paths
            .iter()
            .any(|path| path.usable && !name.excludes_weight(path.weight))
    }

    /// Changes the policy; the counts of outstanding I/Os are kept.
    pub fn turn(&mut self, name: PolicyName) {
        if name != self.name {
            self.name = name;
            self.policy = policy(name, self.paths.len());
        }
    }

    /// The path for an I/O; none where none is usable.
    #[inline]
    pub fn choose(&mut self, request: &Request) -> Option<usize> {
        self.policy.choose(&self.paths, request)
    }

    /// Counts an I/O as outstanding on a path.
    #[inline]
    pub fn began(&mut self, path: usize, bytes: u64) {
        let state = &mut self.paths[path];
        state.in_flight += 1;
        state.in_flight_bytes += bytes;
    }

    /// Counts an I/O as back.
    #[inline]
    pub fn left(&mut self, path: usize, bytes: u64) {
        let state = &mut self.paths[path];
        state.in_flight = state.in_flight.saturating_sub(1);
        state.in_flight_bytes = state.in_flight_bytes.saturating_sub(bytes);
    }

    /// Reports the time of an I/O that completed without an error to the policy.
    #[inline]
    pub fn learn(&mut self, path: usize, began_ns: u64, now_ns: u64) {
        self.policy.ended(&self.paths, path, began_ns, now_ns);
    }

    /// Says whether a path may be chosen; whether that is news.
    pub fn set_usable(&mut self, path: usize, usable: bool) -> bool {
        let was = std::mem::replace(&mut self.paths[path].usable, usable);
        if usable && !was {
            self.policy.reinstated(path);
        }
        was != usable
    }
}

/// The rule of this name.
fn policy(name: PolicyName, paths: usize) -> Box<dyn Policy> {
    match name {
        PolicyName::RoundRobin => Box::new(RoundRobin::new(paths)),
        PolicyName::LeastCommandLoad => Box::new(LeastCommandLoad::new(paths)),
        PolicyName::ServiceTime => Box::new(ServiceTime::new(paths)),
        PolicyName::HistoricalServiceTime => Box::new(HistoricalServiceTime::new(paths)),
        PolicyName::CellLocalRoundRobin => Box::new(CellLocalRoundRobin::new(paths)),
        PolicyName::PathLockdown => Box::new(PathLockdown::default()),
        PolicyName::PreferredPath => Box::new(PreferredPath),
        PolicyName::WeightedRoundRobin => Box::new(WeightedRoundRobin::default()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::paths;
    use super::*;

    #[test]
    fn every_policy_has_its_name_and_takes_the_only_live_path() {
        for (name, text) in PolicyName::ALL {
            assert_eq!(PolicyName::parse(text), Some(name));
            let mut selector = Selector::new(name, paths(&[1, 1, 1]));
            selector.set_usable(0, false);
            selector.set_usable(2, false);
            for _ in 0..5 {
                assert_eq!(selector.choose(&Request::default()), Some(1), "{text}");
                selector.began(1, 4096);
            }
            assert_eq!(selector.paths()[1].in_flight_bytes, 5 * 4096);
            selector.set_usable(1, false);
            assert_eq!(selector.choose(&Request::default()), None, "{text}");
        }
        assert_eq!(PolicyName::parse("closest"), None);
    }

    #[test]
    fn a_turn_keeps_what_is_outstanding() {
        let mut selector = Selector::new(PolicyName::RoundRobin, paths(&[1, 1]));
        let first = selector.choose(&Request::default()).unwrap();
        selector.began(first, 4096);
        selector.turn(PolicyName::LeastCommandLoad);
        assert_eq!(selector.choose(&Request::default()), Some(1 - first));
    }
}
