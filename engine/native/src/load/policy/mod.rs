//! Which of several paths to the same data an I/O takes.
//!
//! The rules are those of operating systems, under the names people know them by: dm-multipath's selectors
//! (`drivers/md/dm-ps-*.c`) and the load-balancing policies of HP-UX 11i v3. Each is a file of its own and sees nothing
//! but the figures of the paths, so that it can be checked against its rule. Copies of a mirror are chosen by them too.

mod cell_local_round_robin;
mod historical_service_time;
mod least_command_load;
mod order;
mod path_lockdown;
mod preferred_path;
mod round_robin;
mod selector;
mod service_time;
mod weighted_round_robin;

pub use self::selector::Selector;

/// What a policy is given of one path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PathState {
    /// Does not fail, so that it may be chosen.
    pub usable: bool,
    pub in_flight: u32,
    pub in_flight_bytes: u64,
    /// `service-time`: relative throughput; `weighted-round-robin`: I/Os in a row.
    pub weight: u32,
    pub preferred: bool,
    /// NUMA node of its adapter, where there is one.
    pub cell: Option<u32>,
    /// I/Os outstanding on the device, from any issuer, when it was opened.
    pub outstanding_at_open: u32,
}

/// The I/O that needs a path.
#[derive(Clone, Copy, Debug, Default)]
pub struct Request {
    pub bytes: u64,
    pub now_ns: u64,
    /// NUMA node of the processor that issues it.
    pub cell: u32,
}

/// A rule.
pub trait Policy: Send {
    /// One of the usable paths; none if the rule excludes all of them.
    fn choose(&mut self, paths: &[PathState], request: &Request) -> Option<usize>;

    /// An I/O completed without an error.
    fn ended(&mut self, _paths: &[PathState], _path: usize, _began_ns: u64, _now_ns: u64) {}

    /// A path that failed answers again.
    fn reinstated(&mut self, _path: usize) {}
}

/// `engine.job.spec.PathPolicy`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PolicyName {
    #[default]
    RoundRobin,
    LeastCommandLoad,
    ServiceTime,
    HistoricalServiceTime,
    CellLocalRoundRobin,
    PathLockdown,
    PreferredPath,
    WeightedRoundRobin,
}

impl PolicyName {
    const ALL: [(Self, &'static str); 8] = [
        (Self::RoundRobin, "round-robin"),
        (Self::LeastCommandLoad, "least-command-load"),
        (Self::ServiceTime, "service-time"),
        (Self::HistoricalServiceTime, "historical-service-time"),
        (Self::CellLocalRoundRobin, "cell-local-round-robin"),
        (Self::PathLockdown, "path-lockdown"),
        (Self::PreferredPath, "preferred-path"),
        (Self::WeightedRoundRobin, "weighted-round-robin"),
    ];

    pub fn parse(text: &str) -> Option<Self> {
        let found = Self::ALL.iter().find(|(_, name)| *name == text);
        found.map(|(policy, _)| *policy)
    }

    /// Whether it depends on the processor that issues an I/O.
    pub fn asks_for_cell(self) -> bool {
        self == Self::CellLocalRoundRobin
    }

    /// Whether a path is never used under it, even alone.
    pub fn excludes_weight(self, weight: u32) -> bool {
        self == Self::WeightedRoundRobin && weight == 0
    }

    fn policy(self, paths: usize) -> Box<dyn Policy> {
        match self {
            Self::RoundRobin => Box::new(round_robin::RoundRobin::new(paths)),
            Self::LeastCommandLoad => Box::new(least_command_load::LeastCommandLoad::new(paths)),
            Self::ServiceTime => Box::new(service_time::ServiceTime::new(paths)),
            Self::HistoricalServiceTime => {
                Box::new(historical_service_time::HistoricalServiceTime::new(paths))
            }
            Self::CellLocalRoundRobin => {
                Box::new(cell_local_round_robin::CellLocalRoundRobin::new(paths))
            }
            Self::PathLockdown => Box::new(path_lockdown::PathLockdown::default()),
            Self::PreferredPath => Box::new(preferred_path::PreferredPath),
            Self::WeightedRoundRobin => {
                Box::new(weighted_round_robin::WeightedRoundRobin::default())
            }
        }
    }
}

#[cfg(test)]
mod testing {
    use super::{PathState, Policy, Request};

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
}
