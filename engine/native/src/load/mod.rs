//! The load engine: workers that keep a queue depth on every target while knobs turn.
//!
//! From above to below, each importing only what follows:
//!
//! - `python`, which Python sees, over `engine` (start, turn, stop);
//! - `backends`: workers with a ring each, and workers that do one system call at a time;
//! - `running`: what all workers share and ask what to do next, what becomes of their I/Os, turns, the clock, readings;
//! - `verify`, which checks what a load wrote; `epochs`, in which it is counted; `layout`, `knobs`, `targets`;
//! - `pace`, when an I/O may be issued; `rings`; `policy`, `data` and `pattern`, which others use to choose and to fill;
//! - `counts` and `system`.

mod backends;
mod counts;
mod data;
mod engine;
mod epochs;
mod knobs;
mod layout;
mod pace;
mod pattern;
mod policy;
mod python;
mod rings;
mod running;
pub mod system;
mod targets;
mod verify;
#[cfg(test)]
#[cfg(target_arch = "x86_64")]
mod written_lines;

pub use python::register;
