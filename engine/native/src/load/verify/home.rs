//! The owner of a write map.

/// The run and target of the write map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Home {
    pub run: u64,
    pub target: u32,
}
