//! How a job has its I/Os arrive.

/// The times at which I/Os are issued (`engine.job.spec.Arrival`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// Whenever one completes.
    Closed,
    /// Arrivals at even distances.
    Constant,
    /// Arrivals at exponentially distributed distances, each independent of all others.
    Poisson,
}

impl Arrival {
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "closed" => Some(Self::Closed),
            "constant" => Some(Self::Constant),
            "poisson" => Some(Self::Poisson),
            _ => None,
        }
    }
}
