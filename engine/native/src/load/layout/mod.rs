//! How a logical I/O becomes I/Os on targets.

pub mod fanout;
pub mod mirror;
pub mod next_io;
