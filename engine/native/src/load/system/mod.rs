//! What the kernel and the processor say: time, CPU time, memory nodes, refusals; and locks.

pub mod cell;
pub mod clock;
pub mod cpu;
pub mod io_workers;
pub mod lock;
pub mod refusal;
