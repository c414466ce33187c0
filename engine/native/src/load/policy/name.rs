//! Names of the policies.

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
    pub(super) const ALL: [(Self, &'static str); 8] = [
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
}
