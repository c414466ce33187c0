//! Memory of I/Os, and what is in it.

pub mod buffers;
pub mod content;
pub mod memory;
pub mod payload;
