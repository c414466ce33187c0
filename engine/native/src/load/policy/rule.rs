//! What a policy sees, and what it must answer.

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

/// The rule of one policy.
pub trait Policy: Send {
    /// One of the usable paths; none if the rule excludes all of them.
    fn choose(&mut self, paths: &[PathState], request: &Request) -> Option<usize>;

    /// An I/O completed without an error.
    fn ended(&mut self, _paths: &[PathState], _path: usize, _began_ns: u64, _now_ns: u64) {}

    /// A path that failed answers again.
    fn reinstated(&mut self, _path: usize) {}
}
