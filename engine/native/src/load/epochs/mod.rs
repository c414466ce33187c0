//! Stretches of a run in which no knob moves, and everything counted in them.

pub mod closed_epoch;
pub mod epoch;
pub mod opening;
pub mod timeline;
