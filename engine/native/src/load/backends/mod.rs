//! Workers of either backend.

pub mod system_call;
pub mod worker_threads;
pub mod worker_uring;
pub mod workers;
