//! `io_uring`: setting up, restricting, and waiting for completions.

pub mod crowd;
pub mod flight;
pub mod ring;
pub mod ring_lock;
pub mod ring_setup;
pub mod spin;
