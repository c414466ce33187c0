//! When an I/O may be issued, and with which priority: arrivals, rates, pauses, fsyncs.

pub mod arrival;
pub mod claims;
pub mod flow;
pub mod fsyncs;
pub mod pacing;
pub mod priority;
pub mod rest;
pub mod schedule;
