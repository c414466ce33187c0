//! A worker's request for its next I/O, and the answer.

use crate::load::pattern::Part;

/// The worker that needs a part, and the failing targets.
pub struct Asker<'a> {
    pub target: usize,
    pub now_ns: u64,
    pub failing: &'a dyn Fn(usize) -> bool,
}

/// What a worker with a free slot on a target does next.
#[derive(Debug, PartialEq, Eq)]
pub enum Next {
    Issue(Part),
    /// The rate limit allows none before this moment.
    NotBefore(u64),
    /// Nothing on this target before this moment: it is failing, or no I/O arrives.
    Refused(u64),
    /// A logical I/O waits for a free slot on another target first.
    Blocked,
}
