//! A run from its start to its end, and what all workers share.

pub mod backend;
pub mod completion;
pub mod coordinator;
pub mod dealing;
pub mod failure;
pub mod life;
pub mod new_epoch;
pub mod opening_turn;
pub mod readings;
pub mod redistribution;
pub mod run;
pub mod shared_state;
pub mod sink;
pub mod slowest;
pub mod stop_watch;
pub mod worker_handle;
