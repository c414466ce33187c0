//! Waits for the limits of control groups: programs of their own, so that a kernel without them loses nothing else.

pub mod layout;
pub mod programs;
pub mod waits;
