//! The exact tier: programs in the kernel that time every block I/O, and their counters.

mod aside;
mod btf_types;
mod busy;
mod cells;
mod counters;
mod failure;
mod form;
mod freeze;
mod grouping;
mod healing;
mod histograms;
mod layout;
mod loading;
mod mapping;
mod maps;
mod memory;
mod process_places;
mod processes;
mod programs;
mod python;
mod refusal;
mod rows;
mod rpc;
mod shards;
mod sizes;
mod slowest;
mod sums;
mod throttle;
mod tracer;
mod types;
mod view;

pub use python::register;
