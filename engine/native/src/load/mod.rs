//! The load engine: workers that keep a queue depth on every target while knobs turn.
//!
//! From above to below, each importing only what follows:
//!
//! - `python`, which Python sees, over `engine` (start, turn, stop) and `readings`;
//! - `coordinator`, the clock, and `workers`, which starts workers of either backend (`worker_uring`, `worker_threads`);
//! - `shared_state` of these, with `new_epoch` and `redistribution` for turns;
//! - `run`, which all workers ask what to do next, and `completion`, what becomes of it; `verify`, `multipath`;
//! - `epoch`, in which it is `counted`, and its means: `knobs`, `fanout`, `pacing`, `schedule`, `opening`;
//! - values that any of them use: `pattern`, `policy`, `target`, `stats`, `clock` and the like.

mod arrival;
mod backend;
mod budget;
mod buffers;
mod cell;
mod claims;
pub mod clock;
mod closed_epoch;
mod completion;
mod content;
mod coordinator;
mod counted;
mod cpu;
mod cpu_span;
mod crowd;
mod dealing;
mod direct_io;
mod engine;
mod epoch;
mod errors;
mod failure;
mod fanout;
mod fill;
mod flight;
mod flow;
mod fsyncs;
mod histogram;
mod io_workers;
mod knobs;
mod levels;
mod life;
pub mod lock;
mod logical;
mod memory;
mod mirror;
mod mode;
mod mode_turn;
mod multipath;
mod new_epoch;
mod next_io;
mod node;
mod opening;
mod opening_turn;
mod outstanding;
mod pacing;
mod packed;
mod path_outcome;
mod pattern;
mod payload;
mod peaks;
mod policy;
mod policy_cost;
mod priority;
mod python;
mod readings;
mod redistribution;
mod refusal;
mod rest;
mod ring;
mod ring_lock;
mod ring_setup;
mod room;
mod run;
mod schedule;
mod shared_state;
mod sink;
mod slowest;
mod spin;
mod stats;
mod stop_watch;
mod stripe;
mod sums;
mod system_call;
mod target;
mod timeline;
mod verify;
mod worker_handle;
mod worker_threads;
mod worker_uring;
mod workers;
#[cfg(test)]
#[cfg(target_arch = "x86_64")]
mod written_lines;

pub use python::register;
