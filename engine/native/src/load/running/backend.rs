//! What does the I/O of a run.

/// What does the I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// Threads with a ring each serve all targets; how many is a knob.
    Uring,
    /// One thread per outstanding I/O.
    Threads,
}
