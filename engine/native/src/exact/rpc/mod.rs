//! Times of the calls of NFS clients: a program of its own, so that a host without NFS loses nothing else.

pub mod calls;
pub mod format;
pub mod layout;
pub mod programs;
pub mod slow;
