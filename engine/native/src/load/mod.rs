//! The load engine: workers that keep a queue depth on every target while knobs turn.
//!
//! `engine` is what Python sees (`python`); `workers` starts workers of either backend (`worker_uring`, `worker_threads`),
//! which take what to do next from `run` and count it in the `epoch` on their `handle`; `coordinator` is the clock.

mod arrival;
mod buffers;
mod cell;
pub mod clock;
mod content;
mod coordinator;
mod cpu;
mod cpu_span;
mod dealing;
mod engine;
mod epoch;
mod errors;
mod fanout;
mod fill;
mod flight;
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
mod multipath;
mod node;
mod opening;
mod outstanding;
mod pacing;
mod packed;
mod pattern;
mod payload;
mod peaks;
mod policy;
mod policy_cost;
mod python;
mod refusal;
mod ring;
mod ring_lock;
mod ring_setup;
mod room;
mod run;
mod slowest;
mod spin;
mod stats;
mod stop_watch;
mod stripe;
mod target;
mod timeline;
mod verify;
mod worker_handle;
mod worker_threads;
mod worker_uring;
mod workers;

pub use python::register;
