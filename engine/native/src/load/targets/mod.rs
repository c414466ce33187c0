//! Targets, the paths to them, the files behind them, and how one address space spreads over them.

pub mod budget;
pub mod direct_io;
pub mod fill;
pub mod mode;
pub mod mode_turn;
pub mod multipath;
pub mod node;
pub mod path_outcome;
pub mod room;
pub mod stripe;
pub mod target;
