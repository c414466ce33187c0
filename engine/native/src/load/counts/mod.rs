//! What is counted of I/Os and of CPU time, per worker and over all of them.

pub mod counted;
pub mod cpu_span;
pub mod errors;
pub mod histogram;
pub mod levels;
pub mod logical;
pub mod outstanding;
pub mod packed;
pub mod peaks;
pub mod policy_cost;
pub mod stats;
pub mod sums;
