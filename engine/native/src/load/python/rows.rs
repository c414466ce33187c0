//! Rows of the raw tables of the load, in the order of their columns.

use crate::load::counts::sums::Sums;
use crate::load::running::readings::{Counters, PathCounters};
use crate::load::running::slowest::SlowIo;

/// Columns of the raw table `load`.
pub const COUNTER_COLUMNS: usize = SUM_COLUMNS + GAUGE_COLUMNS;
/// Columns of the raw table `load_path`.
pub const PATH_COLUMNS: usize = SUM_COLUMNS + 3;
/// Columns of the raw table `slow_load`.
pub const SLOW_COLUMNS: usize = 6;

const SUM_COLUMNS: usize = 9;
const GAUGE_COLUMNS: usize = 9;

/// I/Os, bytes, latency and peak of both directions, then errors of both together.
pub fn sums_row(sums: &[Sums; 2]) -> [u64; SUM_COLUMNS] {
    let [read, write] = sums;
    [
        read.ios,
        read.bytes,
        read.latency_ns,
        read.peak_ns,
        write.ios,
        write.bytes,
        write.latency_ns,
        write.peak_ns,
        read.errors + write.errors,
    ]
}

pub fn counter_row(row: &Counters) -> impl Iterator<Item = u64> + use<> {
    let gauges: [u64; GAUGE_COLUMNS] = [
        row.in_flight,
        row.queue_depth,
        u64::from(row.active),
        u64::from(row.failing),
        row.epoch,
        row.skipped,
        row.sums[0].service_ns,
        row.sums[1].service_ns,
        row.outstanding_ns,
    ];
    sums_row(&row.sums).into_iter().chain(gauges)
}

pub fn path_row(row: PathCounters) -> impl Iterator<Item = u64> {
    let state = row.state.unwrap_or_default();
    sums_row(&row.sums).into_iter().chain([
        u64::from(state.in_flight),
        u64::from(!state.usable),
        row.target as u64,
    ])
}

/// `issued_ns`: when it was submitted (`CLOCK_MONOTONIC`).
pub fn slow_row((io, issued_ns): (SlowIo, u64)) -> [u64; SLOW_COLUMNS] {
    [
        io.target as u64,
        io.direction as u64,
        io.offset,
        u64::from(io.length),
        issued_ns,
        io.latency_ns,
    ]
}
