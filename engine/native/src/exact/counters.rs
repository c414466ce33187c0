//! The counters of all devices as one table.

use std::sync::atomic::Ordering::{Acquire, Relaxed};

use super::cells::{self, Watch};
use super::layout::{Cell, DIRECTIONS};
use super::maps::Maps;
use super::rows::Rows;
use super::sums::{self, Totals};

const SECTOR_BYTES: u64 = 512;

/// Columns of a row, in order; described by the raw table trace.
pub const COLUMNS: [&str; 23] = [
    "reads",
    "writes",
    "others",
    "read_bytes",
    "write_bytes",
    "queue_read_ns",
    "queue_write_ns",
    "service_read_ns",
    "service_write_ns",
    "tag_waits",
    "tag_wait_ns",
    "busy_ns",
    "in_flight_now",
    "in_driver_now",
    "in_driver_peak",
    "queue_max_ns",
    "service_max_ns",
    "latency_max_ns",
    "unstamped",
    "errors",
    "lost_in_driver_ns",
    "in_driver_peak_most",
    "uncounted",
];
/// Columns before are sums.
const TAG_WAITS: usize = 9;
const BUSY: usize = 11;
const FIRST_OF_INTERVAL: usize = 12;
const PEAK: usize = 14;
const PEAK_MOST: usize = 21;
/// As in collectors.model.MISSING.
const MISSING: u64 = u64::MAX;

#[derive(Default)]
pub struct Counters {
    watch: Watch,
    /// Rows without I/O in the interval last read.
    quiet: Vec<bool>,
    /// I/Os in the driver by cell, when last read.
    leaves: Vec<u64>,
    pub values: Vec<u64>,
    /// Devices that did something in the interval last read, or may have.
    pub active: Vec<usize>,
}

impl Counters {
    /// Reads all rows; peaks are those of `epoch`, which has ended.
    pub fn read(&mut self, maps: &Maps, rows: &mut Rows, epoch: usize) {
        self.quiet.resize(rows.len(), false);
        self.leaves.resize(maps.cells.len(), 0);
        self.values.resize(rows.len() * COLUMNS.len(), 0);
        self.active.clear();
        for row in 0..rows.len() {
            let number = rows.all[row].device;
            let moved = self.watch.has_moved(maps, number);
            if !moved && self.quiet[row] {
                continue;
            }
            let values = &mut self.values[row * COLUMNS.len()..][..COLUMNS.len()];
            self.quiet[row] = !moved && values[FIRST_OF_INTERVAL] == 0;
            if self.quiet[row] {
                values[FIRST_OF_INTERVAL..FIRST_OF_INTERVAL + 6].fill(0);
                values[PEAK_MOST] = 0;
                continue;
            }
            self.active.push(number);
            rows.has_changed(row, maps);
            if let Some(totals) = sums::of_device(maps, number) {
                fill_sums(values, &totals);
            }
            let leaves = Leaves::read(maps, number, epoch, &mut self.leaves);
            fill(values, maps, number, epoch, &leaves);
        }
    }
}

/// I/Os in the driver, by the leaves that count them.
#[derive(Default)]
struct Leaves {
    now: u64,
    /// As many were there at once: known exactly while only one leaf counted any.
    peak: u64,
    /// No more than these were there at once.
    peak_most: u64,
}

impl Leaves {
    fn read(maps: &Maps, device: usize, epoch: usize, last: &mut [u64]) -> Self {
        let (mut now_all, mut before_all, mut largest, mut most) = (0_i64, 0_u64, 0_u64, 0_u64);
        for number in cells::numbers(maps, device) {
            let (Some(cell), Some(last)) = (maps.cells.get(number), last.get_mut(number)) else {
                continue;
            };
            let now = cell.in_driver.load(Acquire);
            let before = std::mem::replace(last, u64::try_from(now).unwrap_or(0));
            let peak = cell.in_driver_peak[epoch]
                .load(Relaxed)
                .max(before)
                .max(*last);
            now_all += i64::from(now);
            before_all += before;
            largest = largest.max(peak);
            most += peak;
        }
        let now = u64::try_from(now_all).unwrap_or(0);
        let peak = largest.max(now).max(before_all);
        Self {
            now,
            peak,
            peak_most: most.max(peak),
        }
    }
}

fn fill_sums(values: &mut [u64], [read, write, other]: &[Totals; DIRECTIONS]) {
    let filled: [u64; TAG_WAITS] = [
        read.ios,
        write.ios,
        other.ios,
        read.sectors * SECTOR_BYTES,
        write.sectors * SECTOR_BYTES,
        read.queue_ns,
        write.queue_ns,
        read.service_ns,
        write.service_ns,
    ];
    values[..TAG_WAITS].copy_from_slice(&filled);
}

fn fill(values: &mut [u64], maps: &Maps, device: usize, epoch: usize, leaves: &Leaves) {
    let cells = || cells::of_device(maps, device);
    let sum = |of: fn(&Cell) -> u64| cells().map(of).fold(0, u64::wrapping_add);
    let largest = |of: fn(&Cell, usize) -> u64| cells().map(|cell| of(cell, epoch)).max();
    let queued: i64 = cells()
        .map(|cell| i64::from(cell.queued.load(Relaxed)))
        .sum();
    let busy = &maps.devices[device].busy;
    let filled: [u64; COLUMNS.len() - TAG_WAITS] = [
        sum(|cell| cell.tag_waits.load(Relaxed)),
        sum(|cell| cell.tag_wait_ns.load(Relaxed)),
        busy.least_ns().max(values[BUSY]),
        leaves.now + u64::try_from(queued).unwrap_or(0),
        leaves.now,
        leaves.peak,
        largest(|cell, epoch| cell.queue_max_ns[epoch].load(Relaxed)).unwrap_or(0),
        largest(|cell, epoch| cell.service_max_ns[epoch].load(Relaxed)).unwrap_or(0),
        largest(|cell, epoch| cell.latency_max_ns[epoch].load(Relaxed)).unwrap_or(0),
        sum(|cell| u64::from(cell.unstamped.load(Relaxed))),
        sum(|cell| u64::from(cell.errors.load(Relaxed))),
        busy.lost_ns.load(Acquire),
        leaves.peak_most,
        sum(|cell| u64::from(cell.uncounted.load(Relaxed))),
    ];
    values[TAG_WAITS..].copy_from_slice(&filled);
    if !maps.has_busy() {
        for column in [BUSY, PEAK, PEAK_MOST] {
            values[column] = MISSING;
        }
    }
}
